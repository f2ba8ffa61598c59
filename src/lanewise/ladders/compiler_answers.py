"""What benchmarks of the ladder `compiler` compute, in float64, and what libraries have for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.sims.common.devices import module_of, to_host

WINDOW, SMALL = 32, 16  # edges of the window of a convolution, and of small matrices


Arrays = Mapping[str, Any]


Places = tuple[NDArray[np.int64], ...]


Answer = NDArray[np.float64]


def pick(a: Any, *index: Any) -> Any:
    """The elements of an array on any device at places that NumPy's arrays tell."""
    return a[tuple(module_of(a).asarray(i) if isinstance(i, np.ndarray) else i for i in index)]


def _wide(a: Any, *index: Any) -> Answer:
    """An array, or elements of it, as float64 on the host."""
    return to_host(pick(a, *index) if index else a).astype(np.float64)


def product_answer(g: Arrays, at: Places) -> Answer:
    """Elements of a product of matrices, or of a batch of them."""
    *batch, y, x = at
    rows = _wide(g["a"], *batch, y)
    columns = _wide(g["b"], batch[0], slice(None), x) if batch else _wide(g["b"], slice(None), x).T
    return np.einsum("pk,pk->p", rows, columns)


def times_vector(g: Arrays, at: Places) -> Answer:
    """Elements of a matrix times a vector."""
    return _wide(g["a"], at[0]) @ _wide(g["x"])


def times_transposed(g: Arrays, at: Places) -> Answer:
    """Elements of a transposed matrix times a vector."""
    return _wide(g["x"]) @ _wide(g["a"], slice(None), at[0])


def outer_answer(g: Arrays, at: Places) -> Answer:
    """Elements of an outer product."""
    return _wide(g["u"])[at[0]] * _wide(g["v"])[at[1]]


def sum_answer(g: Arrays, at: Places) -> Answer:
    """The sum of all elements."""
    return np.array([to_host(g["a"]).sum(dtype=np.float64)])


def solved_answer(g: Arrays, at: Places) -> Answer:
    """Forward substitution of the columns that are requested, row after row."""
    i, x = at
    columns, which = np.unique(x, return_inverse=True)
    a, c = to_host(g["a"]), _wide(g["b"], slice(None), columns)
    for row in range(len(c)):
        c[row] = (c[row] - a[row, :row].astype(np.float64) @ c[:row]) / float(a[row, row])
    return c[i, which]


def convolved(g: Arrays, at: Places) -> Answer:
    """Pixels of a convolution."""
    f, total = _wide(g["f"]), np.zeros(len(at[0]))
    for j, i in np.ndindex(*f.shape):
        total += f[j, i] * _wide(g["a"], at[0] + j, at[1] + i)
    return total


def turned(g: Arrays, at: Places) -> Answer:
    """Elements of a transposed matrix."""
    return _wide(g["a"], at[1], at[0])


def green_answer(g: Arrays, at: Places) -> Answer:
    """The green of pixels of a Bayer pattern."""
    p = _around(g["raw"], at)
    return np.where((at[0] + at[1]) % 2 == 0, p[4], (p[1] + p[3] + p[5] + p[7]) / 4)


def maximal(g: Arrays, at: Places) -> Answer:
    """Whether pixels are larger than their neighbours."""
    p = _around(g["a"], at)
    return (p[4] > np.max([*p[:4], *p[5:]], axis=0)).astype(np.float64)


def _around(a: Any, at: Places) -> list[Answer]:
    return [_wide(a, at[0] + j, at[1] + i) for j in range(3) for i in range(3)]


def laplacian(g: Arrays, at: Places) -> Answer:
    """Points of a stencil of seven."""
    z, y, x = (p + 1 for p in at)
    steps = ((1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1))
    around = sum(_wide(g["a"], z + k, y + j, x + i) for k, j, i in steps)
    return np.asarray(around) - 6 * _wide(g["a"], z, y, x)


def softened(g: Arrays, at: Places) -> Answer:
    """Rows of a softmax."""
    rows = _wide(g["a"], at[0])
    e = np.exp(rows - rows.max(axis=1, keepdims=True))
    return e[np.arange(len(e)), at[1]] / e.sum(axis=1)


def counted(g: Arrays, at: Places) -> Answer:
    """Bins of a histogram."""
    counts = to_host(g["counts"])
    return (counts + np.bincount(to_host(g["a"]), minlength=counts.size))[at[0]].astype(np.float64)


def library_transpose(xp: Any, g: Arrays) -> None:
    """A transposed copy."""
    xp.copyto(g["c"], g["a"].T)


def library_solve(xp: Any, g: Arrays) -> Any:
    """By cuBLAS, in place after a copy; its matrices are transposed ones.

    On a CPU by LAPACK's general solver, as NumPy has no other.
    """
    a, b, c = g["a"], g["b"], g["c"]
    if xp is np:
        return np.linalg.solve(a, b)
    xp.copyto(c, b)
    cublas, one = xp.cuda.cublas, np.ones(1, np.float32)
    rows, columns = b.shape
    cublas.strsm(
        xp.cuda.Device().cublas_handle,
        cublas.CUBLAS_SIDE_RIGHT,
        cublas.CUBLAS_FILL_MODE_UPPER,
        cublas.CUBLAS_OP_N,
        cublas.CUBLAS_DIAG_NON_UNIT,
        columns,
        rows,
        one.ctypes.data,
        a.data.ptr,
        rows,
        c.data.ptr,
        columns,
    )
    return None


def by_fourier(xp: Any, g: Arrays) -> Any:
    """A correlation is a product of transforms, one of them conjugated; what wraps round is beyond
    the result.
    """
    a, (h, w) = g["a"], g["c"].shape
    edges = [_smooth_length(length) for length in a.shape]
    spectrum = xp.fft.rfft2(a, edges) * xp.conj(xp.fft.rfft2(g["f"], edges))
    return xp.fft.irfft2(spectrum, edges)[:h, :w]


def _smooth_length(n: int) -> int:
    """The next length that transforms are fast for: of factors 2, 3 and 5."""
    while True:
        rest = n
        for p in (2, 3, 5):
            while rest % p == 0:
                rest //= p
        if rest == 1:
            return n
        n += 1


def library_green(xp: Any, g: Arrays) -> Any:
    """The green of a Bayer pattern."""
    raw, (h, w) = g["raw"], g["green"].shape
    y, x = xp.arange(h)[:, None], xp.arange(w)
    around = (raw[:-2, 1:-1] + raw[2:, 1:-1] + raw[1:-1, :-2] + raw[1:-1, 2:]) * xp.float32(0.25)
    return xp.where((y + x) % 2 == 0, raw[1:-1, 1:-1], around)


def library_maxima(xp: Any, g: Arrays) -> Any:
    """Local maxima of a picture."""
    a, (h, w) = g["a"], g["c"].shape
    highest = a[:h, :w]
    for j, i in ((0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1), (2, 2)):
        highest = xp.maximum(highest, a[j : j + h, i : i + w])
    return (a[1:-1, 1:-1] > highest).astype(xp.float32)


def library_stencil(xp: Any, g: Arrays) -> Any:
    """A stencil of seven points."""
    a, i = g["a"], slice(1, -1)
    s = a[:-2, i, i] + a[2:, i, i] + a[i, :-2, i] + a[i, 2:, i] + a[i, i, :-2] + a[i, i, 2:]
    return s - xp.float32(6) * a[i, i, i]


def library_softmax(xp: Any, g: Arrays) -> Any:
    """A softmax of rows."""
    e = xp.exp(g["a"] - g["a"].max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def batch(n: int) -> int:
    """Small matrices whose elements are one and a half times those of a large one."""
    return max(1, 3 * n * n // (2 * SMALL * SMALL))
