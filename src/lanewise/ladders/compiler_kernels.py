"""The naive kernels of the ladder `compiler`, one thread an output, as one writes them first.

`bench/gpu_threadwise.py` uses them as well.

Windows and stencils write the points whose neighbours are all there: `a` is larger than `c` by the
edges. Without `from __future__ import annotations`: a kernel's types are read where it is defined.
"""

import lanewise as lw


@lw.threadwise
def matmul(
    y: lw.index, x: lw.index, a: lw.Array2[lw.f32], b: lw.Array2[lw.f32], c: lw.Array2[lw.f32]
):
    """C = A B."""
    s = 0.0
    for k in range(a.shape[1]):
        s += a[y, k] * b[k, x]
    c[y, x] = s


@lw.threadwise
def matvec(y: lw.index, a: lw.Array2[lw.f32], x: lw.Array1[lw.f32], c: lw.Array1[lw.f32]):
    """A x, into c."""
    s = 0.0
    for k in range(a.shape[1]):
        s += a[y, k] * x[k]
    c[y] = s


@lw.threadwise
def transposed(j: lw.index, a: lw.Array2[lw.f32], x: lw.Array1[lw.f32], c: lw.Array1[lw.f32]):
    """A^T x, into c."""
    s = 0.0
    for k in range(a.shape[0]):
        s += a[k, j] * x[k]
    c[j] = s


@lw.threadwise
def outer(
    y: lw.index, x: lw.index, u: lw.Array1[lw.f32], v: lw.Array1[lw.f32], c: lw.Array2[lw.f32]
):
    """C = u v^T."""
    c[y, x] = u[y] * v[x]


@lw.threadwise
def total(y: lw.index, x: lw.index, a: lw.Array2[lw.f32]) -> lw.f32:
    """The sum of all elements."""
    return a[y, x]


@lw.threadwise
def halve(i: lw.index, a: lw.Array1[lw.f32], c: lw.Array1[lw.f32]):
    """One level of a sum with a thread an output: c is the first half of a plus the second,
    launched until one number is left.
    """
    s = a[i]
    if i + len(c) < len(a):
        s += a[i + len(c)]
    c[i] = s


@lw.threadwise
def solve(x: lw.index, a: lw.Array2[lw.f32], b: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    """A C = B for a lower triangle A: a thread for each right-hand side."""
    for i in range(a.shape[0]):
        s = b[i, x]
        for k in range(i):
            s -= a[i, k] * c[k, x]
        c[i, x] = s / a[i, i]


@lw.threadwise
def convolve(
    y: lw.index, x: lw.index, a: lw.Array2[lw.f32], f: lw.Array2[lw.f32], c: lw.Array2[lw.f32]
):
    """A picture times a window f around each of its points."""
    s = 0.0
    for j in range(f.shape[0]):
        for i in range(f.shape[1]):
            s += a[y + j, x + i] * f[j, i]
    c[y, x] = s


@lw.threadwise
def transpose(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    """C = A^T."""
    c[x, y] = a[y, x]


@lw.threadwise
def demosaic(y: lw.index, x: lw.index, raw: lw.Array2[lw.f32], green: lw.Array2[lw.f32]):
    """Green of each point of a Bayer picture, the mean of four neighbours where it was not
    measured.
    """
    around = (raw[y, x + 1] + raw[y + 2, x + 1] + raw[y + 1, x] + raw[y + 1, x + 2]) * 0.25
    green[y, x] = raw[y + 1, x + 1] if (y + x) % 2 == 0 else around


@lw.threadwise
def maxima(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    """1 where a point is larger than its eight neighbours, else 0."""
    top = lw.max(lw.max(a[y, x], a[y, x + 1]), a[y, x + 2])
    middle = lw.max(a[y + 1, x], a[y + 1, x + 2])
    bottom = lw.max(lw.max(a[y + 2, x], a[y + 2, x + 1]), a[y + 2, x + 2])
    c[y, x] = 1.0 if a[y + 1, x + 1] > lw.max(lw.max(top, middle), bottom) else 0.0


@lw.threadwise
def batched(
    n: lw.index,
    y: lw.index,
    x: lw.index,
    a: lw.Array3[lw.f32],
    b: lw.Array3[lw.f32],
    c: lw.Array3[lw.f32],
):
    """A product of small matrices for each n."""
    s = 0.0
    for k in range(a.shape[2]):
        s += a[n, y, k] * b[n, k, x]
    c[n, y, x] = s


@lw.threadwise
def stencil(z: lw.index, y: lw.index, x: lw.index, a: lw.Array3[lw.f32], c: lw.Array3[lw.f32]):
    """The Laplacian of seven points."""
    s = a[z, y + 1, x + 1] + a[z + 2, y + 1, x + 1] + a[z + 1, y, x + 1] + a[z + 1, y + 2, x + 1]
    s += a[z + 1, y + 1, x] + a[z + 1, y + 1, x + 2]
    c[z, y, x] = s - 6.0 * a[z + 1, y + 1, x + 1]


@lw.threadwise
def softmax(y: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    """exp(a) over its sum along each row."""
    m = a[y, 0]
    for k in range(a.shape[1]):
        m = lw.max(m, a[y, k])
    s = 0.0
    for k in range(a.shape[1]):
        s += lw.exp(a[y, k] - m)
    for k in range(a.shape[1]):
        c[y, k] = lw.exp(a[y, k] - m) / s


@lw.threadwise
def histogram(i: lw.index, a: lw.Array1[lw.i32], counts: lw.Array1[lw.i32]):
    """How often each number occurs in a, added to counts."""
    lw.scatter_add(counts, a[i], 1)
