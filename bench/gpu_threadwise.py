"""Naive array kernels by several plans, beside cuBLAS and CuPy: rates on one GPU.

    python -m bench.gpu_threadwise [--seconds 95] [NAME ...]
Needs CuPy and an NVIDIA GPU. Every kernel is compared with float64 results first; times are medians
of rounds that go through all plans in turn. A plan that is not legal, or is wrong, says so in its
row. The last table compares the default plans with the naive
kernels: a thread for each index, which does everything alone (of a sum over all indices: one
block). Writes bench/results/gpu_threadwise.md, or into the folder that the variable OUT names.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import lanewise as lw
from bench.harness import describe_machine
from lanewise.ladders.compiler_kernels import (
    batched,
    convolve,
    demosaic,
    matmul,
    matvec,
    maxima,
    outer,
    softmax,
    solve,
    stencil,
    total,
    transpose,
    transposed,
)
from lanewise.ladders.compiler_plans import naive_plan
from lanewise.planning.plan import NEUTRAL

ROUNDS = 7
SECONDS = 0.004  # of a measurement


@lw.threadwise
def filter3(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    top = a[y, x] + 2.0 * a[y, x + 1] + a[y, x + 2]
    middle = 2.0 * a[y + 1, x] + 4.0 * a[y + 1, x + 1] + 2.0 * a[y + 1, x + 2]
    bottom = a[y + 2, x] + 2.0 * a[y + 2, x + 1] + a[y + 2, x + 2]
    c[y, x] = (top + middle + bottom) * 0.0625


@lw.threadwise
def laplace(z: lw.index, y: lw.index, x: lw.index, a: lw.Array3[lw.f32], c: lw.Array3[lw.f32]):
    if 0 < z < a.shape[0] - 1 and 0 < y < a.shape[1] - 1 and 0 < x < a.shape[2] - 1:
        s = (
            a[z - 1, y, x]
            + a[z + 1, y, x]
            + a[z, y - 1, x]
            + a[z, y + 1, x]
            + a[z, y, x - 1]
            + a[z, y, x + 1]
        )
        c[z, y, x] = s - 6.0 * a[z, y, x]


@lw.threadwise
def histogram(i: lw.index, a: lw.Array1[lw.i32], counts: lw.Array1[lw.i32]):
    lw.scatter_add(counts, a[i], 1)


@dataclass(frozen=True)
class Whole:
    """A call of lanewise that takes whole arrays and has no plans, in the place of a kernel."""

    launch: Callable[[dict[str, Any]], Any]

    def bind(self, *, grid: Any, plan: Any, **given: Any) -> Any:
        del grid, plan
        return Bound(partial(self.launch, given))


@dataclass(frozen=True)
class Bound:
    """Such a call with its arrays."""

    launch: Callable[[], Any]

    def __call__(self) -> Any:
        return self.launch()


@dataclass(frozen=True)
class Benchmark:
    """`make` gives the arguments and the grid, `expect` the float64 result of a part of them; work
    is in FLOP or bytes a call.
    """

    name: str
    kernel: Any
    make: Callable[[Any], tuple[dict[str, Any], tuple[int, ...]]]
    result: str
    expect: Callable[[Any, dict[str, Any]], Any]
    work: float
    unit: str
    plans: tuple[dict[str, Any], ...]
    others: tuple[tuple[str, Callable[[Any, dict[str, Any]], Any]], ...] = ()
    tolerance: float = 2e-4
    # What differs from a thread for each index that does all alone.
    naive: dict[str, Any] = field(default_factory=dict[str, Any])
    original: bool = False  # one of those of Yang, Xiang, Kong and Zhou, PLDI 2010


def random(cp: Any, *shape: int) -> Any:
    return cp.random.default_rng(5).random(shape, dtype=cp.float32)


def _matrices(n: int) -> Callable[[Any], tuple[dict[str, Any], tuple[int, ...]]]:
    def make(cp: Any) -> tuple[dict[str, Any], tuple[int, ...]]:
        a = random(cp, n, n)
        return {"a": a - 0.5, "b": a[::-1].copy(), "c": cp.zeros((n, n), cp.float32)}, (n, n)

    return make


def _window(k: int, n: int) -> Callable[[Any], tuple[dict[str, Any], tuple[int, ...]]]:
    def make(cp: Any) -> tuple[dict[str, Any], tuple[int, ...]]:
        return {
            "a": random(cp, n + k - 1, n + k - 1),
            "f": random(cp, k, k),
            "c": cp.zeros((n, n), cp.float32),
        }, (n, n)

    return make


def _convolved(cp: Any, g: dict[str, Any]) -> Any:
    (h, w), (m, n) = g["c"].shape, g["f"].shape
    total = cp.zeros((h, w))
    a, f = g["a"].astype(cp.float64), g["f"].get()
    for j in range(m):
        for i in range(n):
            total += a[j : j + h, i : i + w] * float(f[j, i])
    return total


def _image(
    name: str, n: int, edge: int = 2, out: str = "c"
) -> Callable[[Any], tuple[dict[str, Any], tuple[int, ...]]]:
    return lambda cp: (
        {name: random(cp, n + edge, n + edge), out: cp.zeros((n, n), cp.float32)},
        (n, n),
    )


def _nine(cp: Any, a: Any) -> list[Any]:
    h, w = a.shape
    wide = a.astype(cp.float64)
    return [wide[j : h - 2 + j, i : w - 2 + i] for j in range(3) for i in range(3)]


def _filtered(cp: Any, g: dict[str, Any]) -> Any:
    return (
        sum(f * p for f, p in zip((1, 2, 1, 2, 4, 2, 1, 2, 1), _nine(cp, g["a"]), strict=True)) / 16
    )


def _green(cp: Any, g: dict[str, Any]) -> Any:
    p = _nine(cp, g["raw"])
    y, x = cp.ogrid[: p[0].shape[0], : p[0].shape[1]]
    return cp.where((y + x) % 2 == 0, p[4], (p[1] + p[3] + p[5] + p[7]) / 4)


def _maxima(cp: Any, g: dict[str, Any]) -> Any:
    p = _nine(cp, g["a"])
    highest = p[0]
    for q in (*p[1:4], *p[5:]):
        highest = cp.maximum(highest, q)
    return (p[4] > highest).astype(cp.float64)


def _laplace(cp: Any, g: dict[str, Any], *, inside: bool) -> Any:
    w, i = g["a"].astype(cp.float64), slice(1, -1)
    s = (
        w[:-2, i, i]
        + w[2:, i, i]
        + w[i, :-2, i]
        + w[i, 2:, i]
        + w[i, i, :-2]
        + w[i, i, 2:]
        - 6 * w[i, i, i]
    )
    if not inside:
        return s
    total = cp.zeros(w.shape)
    total[i, i, i] = s
    return total


def _cube(n: int, edge: int) -> Callable[[Any], tuple[dict[str, Any], tuple[int, ...]]]:
    return lambda cp: (
        {"a": random(cp, n + edge, n + edge, n + edge), "c": cp.zeros((n, n, n), cp.float32)},
        (n, n, n),
    )


def _product(cp: Any, g: dict[str, Any]) -> Any:
    return g["a"].astype(cp.float64) @ g["b"].astype(cp.float64)


def _vectors(cp: Any) -> tuple[dict[str, Any], tuple[int, ...]]:
    n = 16384
    return {"u": random(cp, n), "v": random(cp, n), "c": cp.zeros((n, n), cp.float32)}, (n, n)


def _batch(cp: Any) -> tuple[dict[str, Any], tuple[int, ...]]:
    shape = (100_000, 16, 16)
    a = random(cp, *shape)
    return {"a": a, "b": a[::-1].copy(), "c": cp.zeros(shape, cp.float32)}, shape


def _vector(cp: Any) -> tuple[dict[str, Any], tuple[int, ...]]:
    n = 16384
    return {"a": random(cp, n, n), "x": random(cp, n), "c": cp.zeros(n, cp.float32)}, (n,)


def _many(cp: Any) -> tuple[dict[str, Any], tuple[int, ...]]:
    n = 16384
    return {"a": random(cp, n, n)}, (n, n)


def _rows(cp: Any) -> tuple[dict[str, Any], tuple[int, ...]]:
    shape = (65536, 4096)
    return {"a": random(cp, *shape), "c": cp.zeros(shape, cp.float32)}, shape[:1]


def _soft(cp: Any, g: dict[str, Any]) -> Any:
    e = cp.exp(g["a"].astype(cp.float64))
    e /= e.sum(axis=1, keepdims=True)
    return e


def _triangle(cp: Any) -> tuple[dict[str, Any], tuple[int, ...]]:
    a = cp.tril(random(cp, N, N) - 0.5) / N**0.5 + 2.0 * cp.eye(N, dtype=cp.float32)
    return {"a": a, "b": random(cp, N, N), "c": cp.zeros((N, N), cp.float32)}, (N,)


def _solved(cp: Any, g: dict[str, Any]) -> Any:
    from cupyx.scipy.linalg import solve_triangular  # pyright: ignore[reportMissingImports]

    return solve_triangular(g["a"].astype(cp.float64), g["b"].astype(cp.float64), lower=True)


def _strsm(cp: Any, g: dict[str, Any]) -> None:
    """By cuBLAS, in place after a copy. It counts columns first: `a x = b` by rows is `x a = b`
    with the upper triangle.
    """
    from cupy.cuda import cublas, device  # pyright: ignore[reportMissingImports]

    a, c, one = g["a"], g["c"], np.ones(1, np.float32)
    cp.copyto(c, g["b"])
    upper, right, plain = (
        cublas.CUBLAS_FILL_MODE_UPPER,
        cublas.CUBLAS_SIDE_RIGHT,
        cublas.CUBLAS_OP_N,
    )
    handle, n = device.get_cublas_handle(), c.shape[1]
    diagonal = cublas.CUBLAS_DIAG_NON_UNIT
    cublas.strsm(
        handle, right, upper, plain, diagonal, n, N, one.ctypes.data, a.data.ptr, N, c.data.ptr, n
    )


def _places(bins: int) -> Callable[[Any], tuple[dict[str, Any], tuple[int, ...]]]:
    def make(cp: Any) -> tuple[dict[str, Any], tuple[int, ...]]:
        n = 100_000_000
        return {
            "a": (random(cp, n) * bins).astype(cp.int32) % bins,
            "counts": cp.zeros(bins, cp.int32),
        }, (n,)

    return make


def _line(kind: str, n: int) -> Callable[[Any], tuple[dict[str, Any], tuple[int, ...]]]:
    def make(cp: Any) -> tuple[dict[str, Any], tuple[int, ...]]:
        values = random(cp, n) - 0.5 if kind.startswith("f") else (random(cp, n) * 100).astype(kind)
        return {"values": values.astype(kind), "out": cp.zeros(n, kind)}, (n,)

    return make


def _torch(
    call: Callable[[Any, dict[str, Any]], Any],
) -> tuple[str, Callable[[Any, dict[str, Any]], Any]]:
    """PyTorch on the same memory, in float32 without tensor cores: the module and the arguments as
    its tensors.
    """

    def launch(cp: Any, g: dict[str, Any]) -> Any:
        import torch  # pyright: ignore[reportMissingImports]

        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
        return call(
            torch, {name: torch.as_tensor(value, device="cuda") for name, value in g.items()}
        )

    return "PyTorch", launch


def _cudnn(torch: Any, g: dict[str, Any]) -> Any:
    return torch.nn.functional.conv2d(g["a"][None, None], g["f"][None, None])


def _cupyx_correlate(cp: Any, g: dict[str, Any]) -> Any:
    from cupyx.scipy.ndimage import correlate  # pyright: ignore[reportMissingImports]

    return correlate(g["a"], g["f"], mode="constant")


def _cupyx_maximum(cp: Any, g: dict[str, Any]) -> Any:
    from cupyx.scipy.ndimage import maximum_filter  # pyright: ignore[reportMissingImports]

    return maximum_filter(g["a"], 3)


@cache
def _cupy_stencil() -> Any:
    """The 7-point stencil by hand, as a CuPy ElementwiseKernel over the result."""
    import cupy  # pyright: ignore[reportMissingImports]

    return cupy.ElementwiseKernel(
        "raw float32 a, int64 h, int64 w",
        "float32 c",
        """
        long long x = i % w, y = i / w % h, z = i / w / h, W = w + 2, P = W * (h + 2);
        const float* p = &a[(z + 1) * P + (y + 1) * W + x + 1];
        c = p[-P] + p[P] + p[-W] + p[W] + p[-1] + p[1] - 6.0f * p[0];
        """,
        "seven_points",
    )


def _cupy_cube(cp: Any, g: dict[str, Any]) -> Any:
    return _cupy_stencil()(g["a"], *g["c"].shape[1:], g["c"])


def _prefix_sums(kind: str, n: int) -> Benchmark:
    wide = "float64" if kind.startswith("f") else "int64"
    return Benchmark(
        f"cumsum {kind}, {n}",
        Whole(lambda g: lw.cumsum(g["values"], out=g["out"])),
        _line(kind, n),
        "out",
        lambda cp, g: cp.cumsum(g["values"], dtype=wide).astype(
            wide if wide == "float64" else kind
        ),
        2.0 * n * np.dtype(kind).itemsize,
        "TB/s",
        (),
        (
            ("CuPy", lambda cp, g: cp.cumsum(g["values"], dtype=kind, out=g["out"])),
            _torch(
                lambda torch, g: torch.cumsum(g["values"], 0, out=g["out"], dtype=g["out"].dtype)
            ),
            ("copy", lambda cp, g: cp.copyto(g["out"], g["values"])),
        ),
    )


MATVEC = (
    {"block": 256, "slices": 256, "unroll": 4},
    {"block": 512, "slices": 512, "unroll": 4},
    {"block": 128, "slices": 128, "unroll": 4},
)
DOWN = (
    {"block": 256, "slices": 4, "parts": 32, "unroll": 16},
    {"block": 256, "slices": 2, "parts": 32, "unroll": 8},
)
TOTAL = (
    {"block": 512, "slices": 512, "parts": 2048, "unroll": 4},
    {"block": 256, "slices": 256, "parts": 1056, "unroll": 4},
)
SOFTMAX = ({"block": 256, "slices": 256, "tile": 4096, "unroll": 4, "min_blocks": 8},)
TILED = {"block": 256, "rows": 8, "targets": 8}
HALF = {
    "block": 128,
    "across": 16,
    "rows": 8,
    "targets": 8,
    "tile": 16,
    "prefetch": "registers",
    "unroll": 0,
}
MATMUL = (
    {**TILED, "tile": 8, "prefetch": "registers", "min_blocks": 2},
    {**TILED, "tile": 16, "unroll": 0, "min_blocks": 2},
    {**TILED, "tile": 16, "unroll": 0, "min_blocks": 2, "order": "panels"},
    {**TILED, "tile": 16, "prefetch": "registers", "min_blocks": 2},
    {**TILED, "tile": 16, "prefetch": "registers", "unroll": 0},
    {**TILED, "tile": 8, "prefetch": "registers", "unroll": 0},
    {**TILED, "tile": 8, "prefetch": "registers", "unroll": 0, "order": "panels"},
    HALF,
    {**HALF, "prefetch": "async"},
    {**HALF, "prefetch": "async", "min_blocks": 1},
    {**HALF, "prefetch": "async3"},
    {**HALF, "prefetch": "async4", "tile": 8},
    {**HALF, "order": "panels"},
    {**HALF, "min_blocks": 3},
    {**HALF, "tile": 8},
    {**HALF, "tile": 8, "min_blocks": 3},
    {**HALF, "rows": 16},
    {**HALF, "rows": 16, "tile": 8},
    {**HALF, "prefetch": "none"},
    {**HALF, "prefetch": "none", "min_blocks": 4},
    {"block": 256},
)
WINDOW = {"block": 256, "across": 4, "targets": 8, "adjacent": 8, "tile": 16, "unroll": 0}
CONVOLVE = (
    {**WINDOW, "rows": 1, "targets": 16, "adjacent": 16, "block": 128},
    {**WINDOW, "rows": 2, "block": 128},
    {**WINDOW, "rows": 1},
    {**WINDOW, "rows": 1, "block": 128},
    {**WINDOW, "rows": 1, "min_blocks": 3},
    {**WINDOW, "rows": 1, "across": 8},
    {**WINDOW, "rows": 1, "across": 8, "block": 128},
    {**WINDOW, "rows": 1, "targets": 16, "adjacent": 16},
    {**WINDOW, "rows": 1, "block": 512},
    {**WINDOW, "rows": 2, "unroll": 16},
    {**WINDOW, "block": 128, "rows": 4},
    {**WINDOW, "block": 128, "rows": 4, "unroll": 16},
    {"block": 256, "across": 8, "targets": 8, "rows": 2, "tile": 16, "unroll": 0},
    {"block": 256, "across": 16, "targets": 8, "rows": 4, "tile": 16, "unroll": 16},
    {"block": 256},
)
TURNED = {"neighbours": "first", "tile": 1, "block": 256}
TRANSPOSE = (
    {**TURNED, "across": 16, "targets": 4, "rows": 4},
    {**TURNED, "across": 8, "targets": 4, "rows": 1},
    {**TURNED, "across": 8, "targets": 4, "rows": 2},
    {**TURNED, "across": 32, "targets": 1, "rows": 4},
    {**TURNED, "across": 16, "targets": 4, "rows": 4, "order": "diagonal"},
    {**TURNED, "across": 16, "targets": 4, "rows": 4, "order": "panels"},
    {**TURNED, "across": 16, "targets": 4, "rows": 2, "block": 512},
    {"block": 256},
)
STENCIL = (
    {"block": 256, "across": 32, "targets": 4, "rows": 1},
    {"block": 256, "across": 32, "targets": 4, "rows": 2},
    {"block": 256, "across": 32, "targets": 4, "rows": 4},
    {"block": 128, "across": 32, "targets": 4, "rows": 8},
    {"block": 256},
)
CUBE = (
    {"block": 256, "across": 64, "targets": 2, "rows": 1, "layers": 8},
    {"block": 512, "across": 64, "targets": 2, "rows": 2, "layers": 4},
    {"block": 256, "across": 32, "targets": 2, "rows": 2, "layers": 4},
    {"block": 128, "across": 64, "targets": 2, "rows": 2, "layers": 4},
    {"block": 256, "across": 64, "targets": 2, "rows": 2, "layers": 8},
    {"block": 256, "across": 128, "targets": 2, "rows": 2, "layers": 4},
    {"block": 256, "across": 64, "targets": 4, "rows": 2, "layers": 4},
    {"block": 128, "across": 64, "targets": 4, "rows": 2, "layers": 4},
    {"block": 128, "across": 64, "targets": 4, "rows": 2, "layers": 8},
    {"block": 256, "across": 128, "targets": 4, "rows": 2, "layers": 4},
    {"block": 128, "across": 32, "targets": 4, "rows": 2, "layers": 4},
    {"block": 256, "across": 64, "targets": 2, "rows": 4, "layers": 4},
    {"block": 256, "across": 32, "targets": 4, "rows": 1, "layers": 1},
    {"block": 256, "across": 32, "targets": 4, "rows": 2, "layers": 2},
    {"block": 256, "across": 32, "targets": 4, "rows": 1, "layers": 4},
    {"block": 256, "across": 64, "targets": 4, "rows": 1, "layers": 8},
    {"block": 128, "across": 64, "targets": 2, "rows": 2, "layers": 8},
    {"block": 256},
)
SMALL = {"across": 4, "down": 4, "targets": 4, "rows": 4, "tile": 16, "unroll": 0}
BATCHED = (
    {**SMALL, "block": 64},
    {**SMALL, "block": 128},
    {**SMALL, "block": 256},
    {"across": 4, "down": 8, "targets": 4, "rows": 2, "tile": 16, "unroll": 0, "block": 128},
    {"block": 256},
)

SOLVE = (
    {**HALF, "panel": 512},
    {**HALF, "panel": 1024},
    {**HALF, "panel": 256},
    {"block": 256, "panel": 512},
    {"block": 256, "panel": 0},
)

N = 4096
FILTERS = (("CuPy, correlate", _cupyx_correlate), _torch(_cudnn))
BENCHMARKS = (
    Benchmark(
        "matmul 4096",
        matmul,
        _matrices(N),
        "c",
        _product,
        2.0 * N**3,
        "TFLOP/s",
        MATMUL,
        (
            ("cuBLAS", lambda cp, g: cp.matmul(g["a"], g["b"], out=g["c"])),
            _torch(lambda torch, g: torch.matmul(g["a"], g["b"], out=g["c"])),
        ),
        original=True,
    ),
    Benchmark(
        "matmul 8192",
        matmul,
        _matrices(2 * N),
        "c",
        _product,
        16.0 * N**3,
        "TFLOP/s",
        (
            HALF,
            {**HALF, "prefetch": "async", "min_blocks": 1},
            {**HALF, "prefetch": "async3"},
            {**HALF, "order": "panels"},
        ),
        (
            ("cuBLAS", lambda cp, g: cp.matmul(g["a"], g["b"], out=g["c"])),
            _torch(lambda torch, g: torch.matmul(g["a"], g["b"], out=g["c"])),
        ),
    ),
    Benchmark(
        "matrix-vector 16384",
        matvec,
        _vector,
        "c",
        lambda cp, g: g["a"].astype(cp.float64) @ g["x"],
        4.0 * 16384**2,
        "TB/s",
        MATVEC,
        (
            ("cuBLAS", lambda cp, g: cp.matmul(g["a"], g["x"], out=g["c"])),
            _torch(lambda torch, g: torch.mv(g["a"], g["x"], out=g["c"])),
        ),
        original=True,
    ),
    Benchmark(
        "transposed matrix-vector 16384",
        transposed,
        _vector,
        "c",
        lambda cp, g: g["a"].T.astype(cp.float64) @ g["x"],
        4.0 * 16384**2,
        "TB/s",
        DOWN,
        (
            ("cuBLAS", lambda cp, g: cp.matmul(g["a"].T, g["x"], out=g["c"])),
            _torch(lambda torch, g: torch.mv(g["a"].T, g["x"], out=g["c"])),
        ),
        original=True,
    ),
    Benchmark(
        "sum 16384",
        total,
        _many,
        "",
        lambda cp, g: g["a"].sum(dtype=cp.float64),
        4.0 * 16384**2,
        "TB/s",
        TOTAL,
        (("CuPy", lambda cp, g: g["a"].sum()), _torch(lambda torch, g: g["a"].sum())),
        1e-4,
        naive={"slices": 256},
        original=True,
    ),
    Benchmark(
        "softmax 65536 x 4096",
        softmax,
        _rows,
        "c",
        _soft,
        8.0 * 65536 * 4096,
        "TB/s",
        SOFTMAX,
        (_torch(lambda torch, g: torch.softmax(g["a"], 1, out=g["c"])),),
    ),
    Benchmark(
        "transpose 4096",
        transpose,
        _image("a", N, 0),
        "c",
        lambda cp, g: g["a"].T,
        8.0 * N**2,
        "TB/s",
        TRANSPOSE,
        (
            ("CuPy", lambda cp, g: cp.copyto(g["c"], g["a"].T)),
            _torch(lambda torch, g: g["c"].copy_(g["a"].T)),
            ("copy", lambda cp, g: cp.copyto(g["c"], g["a"])),
        ),
        original=True,
    ),
    Benchmark(
        "transpose 16384",
        transpose,
        _image("a", 16384, 0),
        "c",
        lambda cp, g: g["a"].T,
        8.0 * 16384**2,
        "TB/s",
        TRANSPOSE,
        (
            ("CuPy", lambda cp, g: cp.copyto(g["c"], g["a"].T)),
            _torch(lambda torch, g: g["c"].copy_(g["a"].T)),
            ("copy", lambda cp, g: cp.copyto(g["c"], g["a"])),
        ),
    ),
    Benchmark("filter 3x3", filter3, _image("a", N), "c", _filtered, 8.0 * N**2, "TB/s", STENCIL),
    Benchmark(
        "stencil 512",
        stencil,
        _cube(512, 2),
        "c",
        lambda cp, g: _laplace(cp, g, inside=False),
        8.0 * 512**3,
        "TB/s",
        CUBE,
        (("CuPy, ElementwiseKernel", _cupy_cube),),
    ),
    Benchmark(
        "laplace 512",
        laplace,
        _cube(512, 0),
        "c",
        lambda cp, g: _laplace(cp, g, inside=True),
        8.0 * 512**3,
        "TB/s",
        CUBE,
    ),
    Benchmark(
        "outer 16384",
        outer,
        _vectors,
        "c",
        lambda cp, g: cp.multiply.outer(g["u"].astype(cp.float64), g["v"]),
        4.0 * 16384**2,
        "TB/s",
        STENCIL,
        (
            ("CuPy", lambda cp, g: cp.multiply(g["u"][:, None], g["v"], out=g["c"])),
            _torch(lambda torch, g: torch.outer(g["u"], g["v"], out=g["c"])),
        ),
        original=True,
    ),
    Benchmark(
        "convolve 16",
        convolve,
        _window(16, N),
        "c",
        _convolved,
        2.0 * 256 * N**2,
        "TFLOP/s",
        CONVOLVE,
        FILTERS,
    ),
    Benchmark(
        "convolve 32",
        convolve,
        _window(32, N),
        "c",
        _convolved,
        2.0 * 1024 * N**2,
        "TFLOP/s",
        CONVOLVE,
        FILTERS,
        original=True,
    ),
    Benchmark(
        "batched 16",
        batched,
        _batch,
        "c",
        _product,
        2.0 * 100_000 * 16**3,
        "TFLOP/s",
        BATCHED,
        (
            ("cuBLAS", lambda cp, g: cp.matmul(g["a"], g["b"], out=g["c"])),
            _torch(lambda torch, g: torch.matmul(g["a"], g["b"], out=g["c"])),
        ),
    ),
    Benchmark(
        "triangular solve 4096",
        solve,
        _triangle,
        "c",
        _solved,
        1.0 * N**3,
        "TFLOP/s",
        SOLVE,
        (
            ("cuBLAS", _strsm),
            _torch(
                lambda torch, g: torch.linalg.solve_triangular(
                    g["a"], g["b"], upper=False, out=g["c"]
                )
            ),
        ),
        original=True,
    ),
    Benchmark(
        "demosaic",
        demosaic,
        _image("raw", N, out="green"),
        "green",
        _green,
        8.0 * N**2,
        "TB/s",
        STENCIL,
        original=True,
    ),
    Benchmark(
        "histogram 1e6",
        histogram,
        _places(1_000_000),
        "counts",
        lambda cp, g: cp.bincount(g["a"], minlength=1_000_000),
        4e8,
        "TB/s",
        ({"block": 256}, {"block": 256, "targets": 4}),
        (
            ("CuPy", lambda cp, g: cp.bincount(g["a"], minlength=1_000_000)),
            _torch(lambda torch, g: torch.bincount(g["a"], minlength=1_000_000)),
        ),
        1e-9,
    ),
    _prefix_sums("float32", 2**28),
    _prefix_sums("int32", 2**28),
    _prefix_sums("float64", 2**27),
    Benchmark(
        "maxima",
        maxima,
        _image("a", N),
        "c",
        _maxima,
        8.0 * N**2,
        "TB/s",
        STENCIL,
        (("CuPy, maximum_filter alone", _cupyx_maximum),),
        original=True,
    ),
)


def milliseconds(cp: Any, call: Callable[[], Any], times: int) -> float:
    begin, end = cp.cuda.Event(), cp.cuda.Event()
    begin.record()
    for _ in range(times):
        call()
    end.record()
    end.synchronize()
    return float(cp.cuda.get_elapsed_time(begin, end)) / times


@dataclass(frozen=True)
class Row:
    """A version of a benchmark: its rate in the benchmark's unit and the median of its times, or
    why there is none.
    """

    name: str
    rate: float = 0.0
    median: float = 0.0
    problem: str = ""
    kind: str = ""  # "default" or "naive"


def run(cp: Any, b: Benchmark, deadline: float) -> list[Row]:
    """One benchmark: its plans are checked, then measured in turns; the fastest first."""
    given, grid = b.make(cp)
    expected = b.expect(cp, given)
    scale = float(cp.abs(expected).max())
    calls: list[tuple[str, Callable[[], Any]]] = []
    kinds: list[str] = []
    failed: list[Row] = []
    naive = replace(naive_plan("cuda"), block=256, **b.naive)
    plans = [
        None,
        *(p for p in (lw.Plan(**wish) for wish in b.plans) if p.filled(NEUTRAL) != naive),
    ]
    for plan in [*plans, naive] if b.plans else plans:  # calls of lanewise's own have no plans
        text = (
            "by default"
            if plan is None
            else f"naive: {plan.short()}"
            if plan is naive
            else str(plan)
        )
        if time.perf_counter() > deadline:
            failed.append(Row(text, problem="no time left"))
            continue
        if b.result:
            given[b.result].fill(0)
        start = time.perf_counter()
        try:
            bound = b.kernel.bind(**given, grid=grid, plan=plan)
            result = bound()
        except lw.LanewiseError as error:
            failed.append(Row(text, problem=str(error).splitlines()[0]))
            continue
        compiled = time.perf_counter() - start
        error = (
            float(cp.abs((given[b.result] if b.result else cp.asarray(result)) - expected).max())
            / scale
        )
        if not error < b.tolerance:
            failed.append(Row(text, problem=f"WRONG: off by {error:.1e} of the largest"))
            continue
        if plan is None and not isinstance(bound, Bound):
            text += f": {bound.compiled.plan.short()}"
        calls.append((f"{text} (built in {compiled:.1f} s, off by {error:.0e})", bound.launch))
        kinds.append("default" if plan is None else "naive" if plan is naive else "")
    calls += [(name, partial(call, cp, given)) for name, call in b.others]
    kinds += [""] * len(b.others)
    del expected
    counts = [
        max(1, min(200, int(SECONDS * 1000 / max(1e-3, milliseconds(cp, call, 2)))))
        for _, call in calls
    ]
    times = [
        [milliseconds(cp, call, n) for (_, call), n in zip(calls, counts, strict=True)]
        for _ in range(ROUNDS)
    ]
    medians = [float(np.median(column)) for column in zip(*times, strict=True)]
    rows = [
        Row(text, b.work / ms / 1e9, ms, kind=k)
        for (text, _), ms, k in zip(calls, medians, kinds, strict=True)
    ]
    return sorted(rows, key=lambda row: row.median) + failed


def table(b: Benchmark, rows: list[Row]) -> str:
    """A table of Markdown."""
    lines = [f"## {b.name}", "", f"| version | {b.unit} | milliseconds |", "|---|---:|---:|"]
    for row in rows:
        lines.append(
            f"| {row.name} | {row.problem or f'{row.rate:.2f}'} | "
            f"{f'{row.median:.4f}' if row.median else ''} |"
        )
    return "\n".join([*lines, "", ""])


def comparison(measured: list[tuple[Benchmark, list[Row]]]) -> str:
    """How much faster the default plans are than the naive kernels, and the geometric mean over the
    original benchmarks.
    """
    lines = [
        "## Naive time by default time",
        "",
        "| benchmark | naive ms | default ms | ratio |",
        "|---|---:|---:|---:|",
    ]
    ratios: list[float] = []
    for b, rows in measured:
        times = {row.kind: row.median for row in rows if row.kind}
        if len(times) < 2:
            continue
        ratio = times["naive"] / times["default"]
        ratios += [ratio] if b.original else []
        mark = " (original)" if b.original else ""
        lines.append(
            f"| {b.name}{mark} | {times['naive']:.4f} | {times['default']:.4f} | {ratio:.2f} |"
        )
    if ratios:
        mean = float(np.exp(np.mean(np.log(ratios))))
        lines.append(f"| geometric mean of the {len(ratios)} original ones | | | {mean:.2f} |")
    return "\n".join([*lines, "", ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "names", nargs="*", help="beginnings of the names of benchmarks; all without any"
    )
    parser.add_argument(
        "--seconds", type=float, default=95.0, help="no kernel is compiled any more after that many"
    )
    options = parser.parse_args()
    import cupy as cp  # pyright: ignore[reportMissingImports]

    begin = time.perf_counter()
    chosen = [
        b
        for b in BENCHMARKS
        if not options.names or any(b.name.startswith(n) for n in options.names)
    ]
    tables: list[str] = []
    measured: list[tuple[Benchmark, list[Row]]] = []
    for b in chosen:
        measured.append((b, run(cp, b, begin + options.seconds)))
        tables.append(table(*measured[-1]))
        print(tables[-1], flush=True)
        cp.get_default_memory_pool().free_all_blocks()
    tables.append(comparison(measured))
    print(tables[-1], flush=True)
    print(f"{time.perf_counter() - begin:.1f} s")
    machine = "\n".join(f"- {n}: {v}" for n, v in describe_machine().items())
    path = Path(os.environ.get("OUT") or "bench/results") / "gpu_threadwise.md"
    path.write_text(
        "# Naive array kernels on a GPU\n\n" + "".join(tables) + machine + "\n", encoding="utf-8"
    )


if __name__ == "__main__":
    main()
