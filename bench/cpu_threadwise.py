"""How near to a copy, and to NumPy's BLAS, do naive array kernels come on a CPU? All cores, in one
run, versions interleaved.

    python -m bench.cpu_threadwise [NAME ...]
Every version is compared with float64 results first. Of kernels that read and write each element
once the bound is a copy by as many
threads, in the same rounds and between the very arrays that the kernel reads and writes: how fast a
copy is hangs on where arrays lie, 29 to 52 GB/s between pairs of arrays of one process. Where a
kernel has but one large array its partner is one of the same size. (The row `copy` is a kernel that
stores past the caches.) What writes alone, or reads alone, cannot have the bytes of a quick copy,
which go both ways at once: beside it stands an array that is filled, or read, and nothing else. Of
the matrix product the bound is NumPy's, that is its BLAS. Beside each kernel stands what NumPy
offers for it in one call or few, and the kernel as it is written: with neither lanes nor tiles.
Writes bench/results/cpu_threadwise.{md,json}, or into the folder that the variable OUT names.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import lanewise as lw
from bench.gpu_threadwise import (
    demosaic,
    filter3,
    laplace,
    matmul,
    matvec,
    maxima,
    outer,
    softmax,
    stencil,
    total,
    transpose,
    transposed,
)
from bench.harness import Measurement, describe_machine, interleave, write_results
from lanewise.runtime.devices import cpu_threads

ROUNDS = 11
N = 8192  # rows and columns of matrices
PRODUCT = 2048
CUBE = 384
AS_WRITTEN = lw.Plan(across=0, slices=1, vector_bits=0)
# as written they take seconds
SLOW = (
    "matmul",
    "transpose",
    "transpose of 4096",
    "transpose of 16384",
    "transposed matrix-vector",
    "softmax",
)
Given = dict[str, Any]


@lw.threadwise
def copied(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    c[y, x] = a[y, x]


@dataclass(frozen=True)
class Benchmark:
    """`make` gives the arguments and the grid, `expect` the float64 result; work is in bytes a
    call, or FLOP of the product.
    """

    name: str
    kernel: Any
    make: Callable[[], tuple[Given, tuple[int, ...]]]
    result: str
    expect: Callable[[Given], Any]
    work: float
    numpy: Callable[[Given], Any] | None = None
    tolerance: float = 2e-4
    unit: str = "bytes"


def random(*shape: int) -> Any:
    return np.random.default_rng(5).random(shape, dtype=np.float32)


def blank(*shape: int) -> Any:
    """Memory that was touched: the first write to a page is not what is measured."""
    made = np.empty(shape, np.float32)
    made.fill(0)
    return made


def _nine(a: Any) -> list[Any]:
    h, w = a.shape
    return [a[j : h - 2 + j, i : w - 2 + i] for j in range(3) for i in range(3)]


def _filtered(g: Given) -> Any:
    found = np.zeros(g["c"].shape)
    for f, p in zip((1, 2, 1, 2, 4, 2, 1, 2, 1), _nine(g["a"]), strict=True):
        found += f / 16 * p.astype(np.float64)
    return found


def _green(g: Given) -> Any:
    p = _nine(g["raw"])
    y, x = np.ogrid[: p[0].shape[0], : p[0].shape[1]]
    around = (p[1].astype(np.float64) + p[3] + p[5] + p[7]) / 4
    return np.where((y + x) % 2 == 0, p[4], around)


def _maxima(g: Given) -> Any:
    p = _nine(g["a"])
    highest = p[0].copy()
    for q in (*p[1:4], *p[5:]):
        np.maximum(highest, q, out=highest)
    return (p[4] > highest).astype(np.float64)


def _laplace(g: Given, *, inside: bool) -> Any:
    w, i = g["a"].astype(np.float64), slice(1, -1)
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
    found = np.zeros(w.shape)
    found[i, i, i] = s
    return found


def _soft(g: Given) -> Any:
    a = g["a"].astype(np.float64)
    e = np.exp(a - a.max(axis=1, keepdims=True))
    e /= e.sum(axis=1, keepdims=True)
    return e


def _soft32(g: Given) -> None:
    a, c = g["a"], g["c"]
    np.subtract(a, a.max(axis=1, keepdims=True), out=c)
    np.exp(c, out=c)
    c /= c.sum(axis=1, keepdims=True)


def _product() -> tuple[Given, tuple[int, ...]]:
    a = random(PRODUCT, PRODUCT) - np.float32(0.5)
    return {"a": a, "b": a[::-1].copy(), "c": blank(PRODUCT, PRODUCT)}, (PRODUCT, PRODUCT)


def _vector() -> tuple[Given, tuple[int, ...]]:
    return {"a": random(N, N), "x": random(N), "c": blank(N)}, (N,)


def _image(
    name: str = "a", out: str = "c", edge: int = 2, n: int = N
) -> Callable[[], tuple[Given, tuple[int, ...]]]:
    return lambda: ({name: random(n + edge, n + edge), out: blank(n, n)}, (n, n))


def _cube(edge: int) -> Callable[[], tuple[Given, tuple[int, ...]]]:
    shape = (CUBE, CUBE, CUBE)
    return lambda: ({"a": random(*(n + edge for n in shape)), "c": blank(*shape)}, shape)


MATRIX = 4.0 * N * N  # bytes
BENCHMARKS = (
    Benchmark(
        "matmul",
        matmul,
        _product,
        "c",
        lambda g: g["a"].astype(np.float64) @ g["b"],
        2.0 * PRODUCT**3,
        lambda g: np.matmul(g["a"], g["b"], out=g["c"]),
        unit="FLOP",
    ),
    Benchmark(
        "matrix-vector",
        matvec,
        _vector,
        "c",
        lambda g: g["a"].astype(np.float64) @ g["x"],
        MATRIX,
        lambda g: np.matmul(g["a"], g["x"], out=g["c"]),
    ),
    Benchmark(
        "transposed matrix-vector",
        transposed,
        _vector,
        "c",
        lambda g: g["x"].astype(np.float64) @ g["a"],
        MATRIX,
        lambda g: np.matmul(g["x"], g["a"], out=g["c"]),
    ),
    Benchmark("copy", copied, _image(edge=0), "c", lambda g: g["a"], 2 * MATRIX),
    Benchmark(
        "outer product",
        outer,
        lambda: ({"u": random(N), "v": random(N), "c": blank(N, N)}, (N, N)),
        "c",
        lambda g: np.multiply.outer(g["u"].astype(np.float64), g["v"]),
        MATRIX,
        lambda g: np.multiply.outer(g["u"], g["v"], out=g["c"]),
    ),
    Benchmark(
        "sum",
        total,
        lambda: ({"a": random(N, N)}, (N, N)),
        "",
        lambda g: g["a"].sum(dtype=np.float64),
        MATRIX,
        lambda g: g["a"].sum(),
    ),
    Benchmark(
        "transpose",
        transpose,
        _image(edge=0),
        "c",
        lambda g: g["a"].T,
        2 * MATRIX,
        lambda g: np.copyto(g["c"], g["a"].T),
    ),
    Benchmark(
        "transpose of 4096",
        transpose,
        _image(edge=0, n=4096),
        "c",
        lambda g: g["a"].T,
        2 * MATRIX / 4,
    ),
    Benchmark(
        "transpose of 16384",
        transpose,
        _image(edge=0, n=16384),
        "c",
        lambda g: g["a"].T,
        2 * MATRIX * 4,
    ),
    Benchmark("filter 3x3", filter3, _image(), "c", _filtered, 2 * MATRIX),
    Benchmark("demosaic", demosaic, _image("raw", "green"), "green", _green, 2 * MATRIX),
    Benchmark("maxima", maxima, _image(), "c", _maxima, 2 * MATRIX),
    Benchmark(
        "7-point stencil",
        stencil,
        _cube(2),
        "c",
        lambda g: _laplace(g, inside=False),
        8.0 * CUBE**3,
    ),
    Benchmark(
        "7-point stencil with edges",
        laplace,
        _cube(0),
        "c",
        lambda g: _laplace(g, inside=True),
        8.0 * CUBE**3,
    ),
    Benchmark(
        "softmax",
        softmax,
        lambda: ({"a": random(N, N), "c": blank(N, N)}, (N,)),
        "c",
        _soft,
        2 * MATRIX,
        _soft32,
    ),
)


def copier(source: Any, to: Any) -> tuple[Callable[[], None], float]:
    """A copy of as many elements as both arrays have, in one piece for each thread; and the bytes
    that it reads and writes.
    """
    threads, count = cpu_threads(), min(source.size, to.size)
    pool = ThreadPoolExecutor(threads)
    edges = np.linspace(0, count, threads + 1).astype(int)
    pieces = [slice(*pair) for pair in pairwise(edges)]
    flat, flat_to = source.reshape(-1), to.reshape(-1)

    def one(piece: slice) -> None:
        np.copyto(flat_to[piece], flat[piece])

    def run() -> None:
        list(pool.map(one, pieces))

    return run, 2.0 * count * source.itemsize


def copy_of(b: Benchmark, given: Given) -> tuple[Callable[[], None], float]:
    """A copy between the arrays of a benchmark: from the largest one that it reads to the one that
    it writes.
    """
    result = given.get(b.result)
    read = max((a for a in given.values() if a is not result), key=lambda a: a.size)
    if result is None or 2 * result.size < read.size:
        return copier(read, blank(*read.shape))
    if 2 * read.size < result.size:
        return copier(random(*result.shape), result)
    return copier(read, result)


def filler(to: Any) -> Callable[[], None]:
    """One number written to all elements, by as many threads."""
    flat, pool = to.reshape(-1), ThreadPoolExecutor(cpu_threads())
    pieces = [
        slice(*pair) for pair in pairwise(np.linspace(0, flat.size, cpu_threads() + 1).astype(int))
    ]

    def one(piece: slice) -> None:
        flat[piece].fill(0.5)

    def run() -> None:
        for _ in pool.map(one, pieces):
            pass

    return run


@lw.threadwise
def largest(y: lw.index, a: lw.Array2[lw.f32], c: lw.Array1[lw.f32]):
    m = a[y, 0]
    for x in range(a.shape[1]):
        m = lw.max(m, a[y, x])
    c[y] = m


def one_way(b: Benchmark, given: Given) -> dict[str, Callable[[], Any]]:
    """What reads or writes as many bytes as a kernel whose other arrays are small, and does little
    else; nothing for other kernels.
    """
    result = given.get(b.result)
    read = max((a for a in given.values() if a is not result), key=lambda a: a.size)
    if b.unit != "bytes":
        return {}
    if result is None or 2 * result.size < read.size:
        found = blank(len(read))
        run = largest.bind(read, found, grid=len(read))
        run()
        np.testing.assert_array_equal(found, read.max(axis=1))
        return {f"{b.name}, the largest element of each row": run.launch}
    return {f"{b.name}, the array filled": filler(result)} if 2 * read.size < result.size else {}


def checked(
    b: Benchmark, given: Given, grid: tuple[int, ...], plan: lw.Plan | None
) -> tuple[str, Callable[[], Any]]:
    """A kernel bound to its arguments, and its plan with the seconds to its first result; raises
    ValueError for a wrong one.
    """
    if b.result:
        given[b.result].fill(0)
    start = time.perf_counter()
    bound = b.kernel.bind(**given, grid=grid, plan=plan)
    result = bound()
    first = time.perf_counter() - start
    expected = b.expect(given)
    found = given[b.result] if b.result else np.asarray(result)[0]
    error = float(np.abs(found - expected).max() / np.abs(expected).max())
    if not error < b.tolerance:
        raise ValueError(f"{b.name}: off by {error:.1e} of the largest value")
    return (
        f"{bound.compiled.plan.short()}; first result after {first:.1f} s, off by {error:.0e}",
        bound.launch,
    )


def measured(b: Benchmark) -> list[Measurement]:
    """One benchmark beside its bound, which is measured in the same rounds."""
    given, grid = b.make()
    copy, copied_bytes = copy_of(b, given)
    text, call = checked(b, given, grid, None)
    versions: dict[str, Callable[[], Any]] = {"copy": copy, f"{b.name}: {text}": call}
    if b.name not in SLOW:
        versions[f"{b.name}, as written"] = checked(b, given, grid, AS_WRITTEN)[1]
    if b.numpy is not None:
        numpy = b.numpy
        versions[f"{b.name}, NumPy"] = lambda: numpy(given)
    versions |= one_way(b, given)
    times = interleave(versions, ROUNDS)
    bound = Measurement(f"copy of the arrays of {b.name}", times.pop("copy"), copied_bytes, "bytes")
    if b.unit == "FLOP":
        bound = Measurement("NumPy", times[f"{b.name}, NumPy"], b.work, b.unit)
    best = bound.work / min(bound.seconds)
    rows = [
        Measurement(
            f"{name}; {b.work / min(seconds) / best:.1%} by the least times",
            seconds,
            b.work,
            b.unit,
            bound.rate,
        )
        for name, seconds in times.items()
    ]
    rows = [*rows, bound] if b.unit == "bytes" else rows
    for row in rows:
        print(
            f"{row.rate / bound.rate:7.1%}  {row.rate / 1e9:8.1f} G{row.unit}/s  {row.name}",
            flush=True,
        )
    return rows


def main() -> None:
    names, before = sys.argv[1:], os.getloadavg()[0]
    chosen = [b for b in BENCHMARKS if not names or any(b.name.startswith(n) for n in names)]
    rows = [row for b in chosen for row in measured(b)]
    title = (
        f"Naive array kernels on a CPU, {cpu_threads()} threads, float32: matrices of {N} x {N}, "
        f"products of {PRODUCT}, cubes of {CUBE}; "
        "bytes (FLOP of the product) a second; the bound is a copy of the same arrays in the same "
        "rounds, and NumPy for the product"
    )
    path = Path(os.environ.get("OUT") or "bench/results") / "cpu_threadwise.md"
    machine = describe_machine() | {"load": f"{before:.1f} to {os.getloadavg()[0]:.1f}"}
    print(write_results(path, title, rows, machine))


if __name__ == "__main__":
    main()
