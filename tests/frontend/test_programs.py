"""Programs of many parts mean the same as ordinary Python, to the interpreter, and compiled."""

from __future__ import annotations

import numpy as np

import lanewise as lw
from tests.frontend.ways import agree

OFFSET = 2.5
WEIGHTS = (0.5, 0.25, 0.125)
N = np.array([-7, -3, -1, 0, 1, 2, 5, 8, 40, 2147483647, -2147483648], "i4")
SMALL = np.arange(-6, 12, dtype="i4")
X = np.linspace(-3, 4, 18, dtype="f4")


@lw.function
def sign(x):
    if x > 0:
        return 1
    elif x < 0:
        return -1
    return 0


@lw.function
def positive(n):
    return n > 0


@lw.function
def both_ends(a, b):
    return lw.min(a, b), lw.max(a, b)


@lw.elementwise
def control(n: lw.i32, x: lw.f32) -> tuple[lw.i32, lw.i32, lw.f32, lw.i32, lw.i32, lw.i32]:
    total = 0
    for i in range(6):
        if i == n:
            continue
        for j in range(i, 0, -2):
            if j * i > 12:
                break
            total += 10 * i + j
        if i > n + 4:
            break
    steps = 0
    left = n
    while left > 0 and steps < 20:
        left = left // 2
        steps += 1
    smooth = 0.0
    k = 0
    while True:
        k += 1
        if k > 5:
            break
        smooth += x / lw.f32(k)
    short = 0
    if (positive(n) and sign(n - 3) > 0) or not positive(n + 4):
        short = 1
    chained = 1 if 0 < n <= 5 < n + 3 else 2 if n < 0 else 3
    if n > 7:
        return total, steps, smooth, short, chained, 99
    last = -1
    for i in range(n, 9, 3):
        last = i
    return total, steps, smooth, short, chained, last


def test_control_flow() -> None:
    out = agree(control, rtol=1e-6, atol=3e-7, n=SMALL, x=X)
    assert out[5][SMALL > 7].tolist() == [99] * 4
    assert out[3].tolist() == [int(n > 3 or n <= -4) for n in SMALL]


@lw.elementwise
def integers(
    n: lw.i32, u: lw.u32, m: lw.i64
) -> tuple[
    lw.i32,
    lw.i32,
    lw.i32,
    lw.i32,
    lw.i32,
    lw.i32,
    lw.u32,
    lw.u32,
    lw.u32,
    lw.u32,
    lw.i64,
    lw.i64,
    lw.i64,
    lw.i32,
    lw.bool,
]:
    return (
        n + 1, n * 3, n // 3, n % 3, n // -3, n % -3,
        u - 1, u * 1664525, u >> 3, ~u, m * m, m // 7, n + lw.i64(u), (n >> 2) ^ (n << 1) & 255 | 8, n == lw.i32(u),
    )  # fmt: skip


def test_whole_numbers() -> None:
    out = agree(integers, n=N, u=N.view("u4"), m=N.astype("i8") * 4000000000)
    for result, wanted in ((out[2], N // 3), (out[3], N % 3), (out[4], N // -3), (out[5], N % -3)):
        np.testing.assert_array_equal(result, wanted)  # towards minus infinity, as Python
    assert out[0][N == 2147483647] == -2147483648  # overflow wraps
    np.testing.assert_array_equal(out[6], N.view("u4") - np.uint32(1))
    assert out[14].all()


@lw.elementwise
def vectors(
    v: lw.vec3, w: lw.ivec3, x: lw.f32
) -> tuple[lw.vec3, lw.vec4, lw.ivec2, lw.f32, lw.f32, lw.vec3, lw.f32, lw.vec3]:
    a, b, c = v.zyx
    swapped = lw.vec3(b, a, c)
    swapped = swapped.yxz if x > 0 else swapped
    low, high = both_ends(v.x, v.y)
    low, high = high, low
    u = v * 2 + x
    u += lw.vec3(1, 2, 3)
    u /= 4.0
    return (
        swapped, lw.vec4(v.xy, w.yz), w.zx // 2, lw.dot(v, u) + v[0] * v[-1], low - high, lw.cross(v, u), lw.length(w),
        lw.mix(v, u, 0.25) - lw.min(v, 0.5),
    )  # fmt: skip


def test_vectors() -> None:
    rng = np.random.default_rng(3)
    v, w = rng.normal(size=(18, 3)).astype("f4"), rng.integers(-9, 9, (18, 3), "i4")
    out = agree(vectors, rtol=2e-6, atol=3e-7, v=v, w=w, x=X)
    np.testing.assert_array_equal(out[2], w[:, [2, 0]] // 2)
    np.testing.assert_array_equal(out[0], np.where(X[:, None] > 0, v[:, [2, 1, 0]], v[:, [1, 2, 0]]))


@lw.elementwise
def arrays(n: lw.i32, x: lw.f32) -> tuple[lw.f32, lw.f32, lw.i32]:
    history = lw.zeros(lw.f32, 6)
    seen = lw.zeros(lw.bool, 4)
    for i in range(6):
        history[i] = x * lw.f32(i) + OFFSET
    history[lw.clamp(n, 0, 5)] += 100.0
    history[-1] = WEIGHTS[1]
    seen[n % 4] = True
    total = 0.0
    count = 0
    for i in range(6):
        total += history[i]
        if seen[i % 4]:
            count += 1
    return total, history[n % 6], count


def test_local_arrays_and_module_values() -> None:
    out = agree(arrays, rtol=1e-6, atol=3e-7, n=SMALL, x=X)
    assert out[2].tolist() == [2 if n % 4 < 2 else 1 for n in SMALL]


@lw.elementwise
def conversions(
    x: lw.f32, d: lw.f64, n: lw.i32
) -> tuple[lw.i32, lw.f64, lw.f32, lw.f64, lw.f32, lw.f32, lw.i32, lw.f64, lw.f32, lw.f64, lw.i32]:
    total = 0
    total += n
    third = 1 / 3
    weak = 0.1
    weak_sum = 0.0
    weak_sum += x
    return (
        lw.i32(x), x + d, n / 2, d * third, x * third, n * weak, lw.i32(x > 0) + total, d + 1, weak_sum + 1, lw.f64(weak) + d,
        lw.select(x > 0, 1, n),
    )  # fmt: skip


def test_conversions_and_literals() -> None:
    x, n = X, SMALL
    d = X.astype("f8") / 3
    out = agree(conversions, rtol=1e-7, atol=3e-7, x=x, d=d, n=n)
    np.testing.assert_array_equal(out[0], x.astype("i4"))
    np.testing.assert_allclose(out[3], d / 3, rtol=1e-15)  # the literal has its full precision where it meets f64
    np.testing.assert_allclose(out[4], x * np.float32(1 / 3), rtol=1e-7)
    np.testing.assert_array_equal(out[10], np.where(x > 0, 1, n))


@lw.elementwise
def mathematics(
    x: lw.f32, d: lw.f64
) -> tuple[lw.f32, lw.f32, lw.f32, lw.f32, lw.f64, lw.f64, lw.f64, lw.f32, lw.f32, lw.f64, lw.bool]:
    p = lw.abs(x) + 0.5
    return (
        lw.sqrt(p), lw.exp(-p), lw.log(p), lw.atan2(x, p), lw.sin(d) * lw.cos(d), lw.hypot(d, 2.0), d**3 - d**-2,
        x**2, p**0.5, lw.floor(d) + lw.trunc(d) + lw.ceil(d), lw.isfinite(lw.log(x)),
    )  # fmt: skip


def test_mathematics() -> None:
    agree(mathematics, rtol=2e-6, atol=3e-7, x=X, d=X.astype("f8") * 1.7)
