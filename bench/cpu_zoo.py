"""Kernels of everyday beside what a user has today: NumPy, SciPy, and loops that Numba compiles.

    python -m bench.cpu_zoo [--rounds 9] [--only stencil]
A row's ratio is the other's time by lanewise's, so that more than 1 is faster: the median of ratios
in turns, of the time of the process, on one thread. Results are compared first. Writes
bench/results/cpu_zoo.md, or into the folder that the variable OUT names.
"""

from __future__ import annotations

# ruff: noqa: E402 - libraries read how many threads they shall have when they are imported
import argparse
import gc
import os
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("LANEWISE_THREADS", "1")
for library in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

import numba
import numpy as np
from scipy import ndimage, special

import lanewise as lw
from bench.cpu_zoo_kernels import (
    Place,
    Point,
    attend,
    best_of_row,
    deposit,
    deposit_in_order,
    diffuse,
    filter5,
    function_of,
    heat,
    in_order32,
    in_order64,
    kde,
    kde_by_points,
    life,
    payoff,
    scatter32,
    scatter64,
)
from bench.harness import describe_machine

FUNCTIONS = [
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "cbrt",
    "sqrt",
    "round",
    "erf",
    "erfc",
    "atan2",
    "pow",
    "hypot",
]
IN_NUMPY = {
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2", "pow": "power", "round": "rint",
}  # fmt: skip
STEPS = 10  # of a stencil in one call
f32, f64 = np.float32, np.float64


@dataclass(frozen=True)
class Row:
    """What is compared. wanted: of the ratio. near: how far results may be apart."""

    name: str
    other: str
    wanted: float
    ours: Callable[[], Any]
    theirs: Callable[[], Any]
    near: float = 1e-4


def functions() -> Iterator[Row]:
    rng, n = np.random.default_rng(0), 100_000
    for kind in (f32, f64):
        for name in FUNCTIONS:
            low, high = (0.01, 0.99) if name in ("asin", "acos") else (0.1, 8)
            x, y = (rng.uniform(a, b, n).astype(kind) for a, b in ((low, high), (0.1, 3)))
            given = (x, y) if name in ("atan2", "pow", "hypot") else (x,)
            kernel = function_of(name, "f32" if kind is f32 else "f64")
            module: Any = special if name in ("erf", "erfc") else np
            ufunc: Any = getattr(module, IN_NUMPY.get(name, name))
            other = "SciPy" if module is special else "NumPy"
            yield Row(
                f"{name}, {kind.__name__}, {n:,}", other, 1.0,
                lambda k=kernel, g=given: k(*g), lambda u=ufunc, g=given: u(*g),
            )  # fmt: skip


def pairs() -> Iterator[Row]:
    rng = np.random.default_rng(1)
    y, x = (rng.random((n, 3), f32) for n in (2000, 4000))
    targets, sources = Point.array(x=y), Point.array(x=x)
    tall, wide, sums = y.T.copy(), x.T.copy(), np.empty(2000, f32)

    def by_points() -> Any:
        kde_by_points(tall, wide, 0.1, sums, grid=2000)
        return sums

    def by_product() -> Any:
        d2 = (y * y).sum(1)[:, None] + (x * x).sum(1) - 2 * y @ x.T
        return np.exp(-0.5 * d2 / f32(0.1)).sum(1)

    def ours() -> Any:
        return kde(targets, sources, 0.1)

    yield Row("Gaussian sum 2,000 x 4,000", "its threadwise twin", 1.0, ours, by_points)
    yield Row("Gaussian sum 2,000 x 4,000", "NumPy, product of matrices", 4.0, ours, by_product)


@numba.njit(fastmath=True)
def cic_loop(x: Any, y: Any, q: Any, g: Any) -> None:
    for k in range(len(x)):
        i, j = int(x[k]), int(y[k])
        a, b = x[k] - i, y[k] - j
        g[j, i] += q[k] * (1 - a) * (1 - b)
        g[j, i + 1] += q[k] * a * (1 - b)
        g[j + 1, i] += q[k] * (1 - a) * b
        g[j + 1, i + 1] += q[k] * a * b


@numba.njit(fastmath=True)
def scatter_loop(place: Any, v: Any, sums: Any) -> None:
    for k in range(len(place)):
        sums[place[k]] += 2 * v[k]


def scatters() -> Iterator[Row]:
    rng, n = np.random.default_rng(2), 1_000_000
    x, y = (rng.uniform(0, 255, n).astype(f32) for _ in range(2))
    q, grid, own = rng.random(n, f32), np.zeros((257, 257), f32), np.zeros((257, 257), f32)
    particles = Place.array(x=x, y=y, q=q)

    def ours(k: Any = deposit_in_order) -> Any:
        own.fill(0)
        k(particles, own)
        return own

    def theirs() -> Any:
        grid.fill(0)
        cic_loop(x, y, q, grid)
        return grid

    name = "cloud in cell, 1e6 on 256^2"
    yield Row(f"{name}, in order", "Numba", 1.0, ours, theirs, 1e-2)
    yield Row(f"{name}, exact", "Numba", 1.0, lambda: ours(deposit), theirs, 1e-2)
    kernels = ((f32, in_order32), (f64, in_order64), (f32, scatter32), (f64, scatter64))
    for kind, kernel in kernels:
        how = "exact" if kernel in (scatter32, scatter64) else "in order"
        place, v = rng.integers(0, 10_000, n).astype(np.int32), rng.random(n).astype(kind)
        a, b = np.zeros(10_000, kind), np.zeros(10_000, kind)

        def some(k: Any = kernel, p: Any = place, w: Any = v, s: Any = a) -> Any:
            s.fill(0)
            k(p, w, s, grid=n)
            return s

        def loop(p: Any = place, w: Any = v, s: Any = b) -> Any:
            s.fill(0)
            scatter_loop(p, w, s)
            return s

        yield Row(
            f"scatter_add, {kind.__name__}, 1e6 to 1e4, {how}", "Numba", 1.0, some, loop, 1e-3
        )


def monte_carlo() -> Iterator[Row]:
    paths, rng = np.arange(1_000_000, dtype=np.int32), np.random.default_rng(3)

    def theirs() -> Any:
        z = rng.standard_normal(len(paths), f32)
        return np.maximum(100 * np.exp(f32(0.03) + f32(0.2) * z) - 100, 0).mean()

    yield Row("option, 1e6 paths", "NumPy", 1.5, lambda: payoff(paths).mean(), theirs, 0.02)


@numba.njit(fastmath=True)
def diffuse_loop(old: Any, new: Any, k: Any) -> None:
    for y in range(1, old.shape[0] - 1):
        for x in range(1, old.shape[1] - 1):
            new[y, x] = old[y, x] + k * (
                old[y - 1, x] + old[y + 1, x] + old[y, x - 1] + old[y, x + 1] - 4 * old[y, x]
            )


def stencils() -> Iterator[Row]:
    rng = np.random.default_rng(4)
    for n in (128, 256, 512, 1024, 2048):
        old, k = rng.random((n, n), f32), f32(0.1)
        a, b = old.copy(), old.copy()

        def ours(old: Any = old, new: Any = a) -> Any:
            diffuse(old, new, 0.1, grid=old.shape)
            return new

        def theirs(old: Any = old, new: Any = b, k: Any = k) -> Any:
            diffuse_loop(old, new, k)
            return new

        yield Row(f"diffuse, threadwise, {n}^2", "Numba", 1.0, ours, theirs)
        plate = heat.sites((n, n), t=old)
        c, d = old.copy(), old.copy()

        def run(plate: Any = plate) -> Any:
            heat.run(plate, STEPS, rate=0.1)
            return None

        def loop(c: Any = c, d: Any = d, k: Any = k) -> Any:
            for _ in range(STEPS // 2):
                diffuse_loop(c, d, k)
                diffuse_loop(d, c, k)
            return None

        yield Row(f"heat, stencil, {n}^2, {STEPS} steps", "Numba", 1.0, run, loop)


def pictures() -> Iterator[Row]:
    rng, n = np.random.default_rng(5), 512
    old = rng.integers(0, 2, (n, n)).astype(np.int32)
    new = np.empty_like(old)

    def ours() -> Any:
        life(old, new, grid=old.shape)
        return new

    def rolls() -> Any:
        s = sum(np.roll(old, (j, i), (0, 1)) for j in (-1, 0, 1) for i in (-1, 0, 1) if i or j)
        return ((s == 3) | ((old == 1) & (s == 2))).astype(np.int32)

    yield Row(f"Game of Life, {n}^2", "NumPy, roll", 2.0, ours, rolls, 0)
    a, w = rng.random((720, 1280), f32), rng.random((5, 5), f32)
    c = np.empty_like(a)

    def filtered() -> Any:
        filter5(a, w, c, grid=a.shape)
        return c

    yield Row(
        "5 x 5 filter, mirrored, 720p", "SciPy, ndimage", 2.0, filtered,
        lambda: ndimage.correlate(a, w, mode="mirror"),
    )  # fmt: skip


def rows() -> Iterator[Row]:
    rng = np.random.default_rng(6)
    q, k, v = (rng.standard_normal((512, 64)).astype(f32) for _ in range(3))
    out = np.empty_like(q)

    def ours() -> Any:
        attend(q, k, v, out, grid=512)
        return out

    def theirs() -> Any:
        s = q @ k.T / f32(8)
        e = np.exp(s - s.max(1, keepdims=True))
        return e @ v / e.sum(1, keepdims=True)

    yield Row("attention 512 x 512 x 64", "NumPy", 1.0, ours, theirs)
    for columns in (100, 1000, 10_000):
        a = rng.random((1_000_000 // columns, columns), f32)
        best = np.empty(len(a), np.int32)

        def largest(a: Any = a, best: Any = best) -> Any:
            best_of_row(a, best, grid=len(a))
            return best

        yield Row(
            f"argmax of rows of {columns:,}", "NumPy", 1.0, largest, lambda a=a: a.argmax(1), 0
        )


GROUPS = (functions, pairs, scatters, monte_carlo, stencils, pictures, rows)


def measure(row: Row, rounds: int) -> tuple[float, float, float]:
    """The median of the ratios, and the median times of both in seconds."""
    a, b = row.ours(), row.theirs()
    if a is not None:
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=row.near, atol=row.near)
    start = time.process_time()
    row.ours()
    row.theirs()
    calls = max(1, int(0.004 / (time.process_time() - start + 1e-9)))

    def timed(call: Callable[[], Any]) -> float:
        begin = time.process_time()
        for _ in range(calls):
            call()
        return (time.process_time() - begin) / calls

    found = list[tuple[float, float]]()
    gc.disable()
    for turn in range(rounds):
        if turn % 2:
            found.append((timed(row.ours), timed(row.theirs)))
        else:
            theirs = timed(row.theirs)
            found.append((timed(row.ours), theirs))
    gc.enable()
    ours, theirs = (statistics.median(t) for t in zip(*found, strict=True))
    return statistics.median(b / a for a, b in found), ours, theirs


def main() -> None:
    """Measure, print and write all rows."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", default="", help="rows whose name has this")
    options = parser.parse_args()
    head = [
        "| row | beside | lanewise, µs | other, µs | ratio | wanted | share |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    lines = list[str]()
    for group in GROUPS:
        for row in group():
            if options.only not in f"{group.__name__} {row.name}":
                continue
            try:
                ratio, ours, theirs = measure(row, options.rounds)
            except (lw.LanewiseError, AssertionError) as error:
                lines.append(f"| {row.name} | {row.other} | | | {type(error).__name__} | | |")
                print(lines[-1], str(error)[:300], flush=True)
                continue
            share = ratio / row.wanted
            lines.append(
                f"| {row.name} | {row.other} | {ours * 1e6:.1f} | {theirs * 1e6:.1f} | {ratio:.2f} "
                f"| {row.wanted:g} | {share:.2f} |"
            )
            print(lines[-1], flush=True)
    machine = [f"- {name}: {value}" for name, value in describe_machine().items()]
    text = "\n".join(
        ["# Everyday kernels on a CPU", "", "Time of the process, one thread, medians in turns.", "",
         *head, *lines, "", "Machine:", "", *machine, ""]
    )  # fmt: skip
    folder = Path(os.environ.get("OUT", Path(__file__).parent / "results"))
    if not options.only:
        (folder / "cpu_zoo.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
