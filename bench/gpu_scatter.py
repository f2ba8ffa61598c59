"""Scatters of floats, histograms and compaction on one GPU, beside CuPy and PyTorch: milliseconds,
rates, parts of a copy.

    python -m bench.gpu_scatter [--values 100000000] [--bins 1000000] [NAME ...]
Needs CuPy and an NVIDIA GPU; PyTorch is timed where it is installed. Everything is checked first:
sums of floats against the exact ones for all bins in float64, and twice for the same bits; times
are medians of rounds that go through all versions in turn. Bytes are those that have to move: what
is added and where is read once, the bins are written once; of a compaction the values and the mask
are read once and what is kept is written once. Writes bench/results/gpu_scatter.md, or into the
folder that the variable OUT names.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lanewise as lw
from bench.harness import describe_machine

ROUNDS = 9


@lw.record
class Particle:
    """16 bytes to keep or to leave out."""

    position: lw.vec3
    mass: lw.f32


@lw.elementwise
def add32(place: lw.i32, v: lw.f32, sums: lw.Array1[lw.f32]):
    lw.scatter_add(sums, place, v)


@lw.elementwise
def add64(place: lw.i32, v: lw.f64, sums: lw.Array1[lw.f64]):
    lw.scatter_add(sums, place, v)


@lw.elementwise
def count32(place: lw.i32, counts: lw.Array1[lw.i32]):
    lw.scatter_add(counts, place, 1)


@lw.elementwise
def largest(place: lw.i32, v: lw.f32, tops: lw.Array1[lw.f32]):
    lw.scatter_max(tops, place, v)


@dataclass
class Task:
    """What is timed together: bytes that have to move, versions by name, whether what one leaves is
    right.
    """

    moved: float
    versions: dict[str, Callable[[], Any]] = field(default_factory=dict)
    right: Callable[[Any], bool] = lambda result: True


def _tasks(values: int, bins: int) -> dict[str, Task]:
    import cupy as cp

    rng = cp.random.default_rng(1)
    place, v = rng.integers(0, bins, values, dtype=cp.int32), rng.random(values, dtype=cp.float32)
    signed = cp.ldexp(v - 0.5, rng.integers(-30, 30, values, dtype=cp.int32))
    wide = v.astype(cp.float64)
    mask = v < 0.5
    sums, sums64 = cp.zeros(bins, cp.float32), cp.zeros(bins, cp.float64)
    counts, tops = cp.zeros(bins, cp.int32), cp.zeros(bins, cp.float32)
    exact = cp.bincount(place, weights=wide, minlength=bins)

    def cleared(array: Any, run: Callable[[], Any]) -> Callable[[], Any]:
        def call() -> Any:
            array.fill(0)
            run()
            return array

        return call

    close32 = lambda r: bool(cp.allclose(r, exact, rtol=3e-6))  # noqa: E731  # others add in float32
    tasks = {
        "add float32": Task(
            8.0 * values + 4.0 * bins,
            {
                "lanewise, exact": cleared(sums, lambda: add32(place, v, sums)),
                "CuPy add.at": cleared(sums, lambda: cp.add.at(sums, place, v)),
                "CuPy bincount": lambda: cp.bincount(place, weights=v, minlength=bins),
            },
            close32,
        ),
        "add float32, 60 exponents": Task(
            8.0 * values + 4.0 * bins,
            {
                "lanewise, exact": cleared(sums, lambda: add32(place, signed, sums)),
                "CuPy add.at": cleared(sums, lambda: cp.add.at(sums, place, signed)),
            },
        ),
        "add float64": Task(
            12.0 * values + 8.0 * bins,
            {
                "lanewise, exact": cleared(sums64, lambda: add64(place, wide, sums64)),
                "CuPy add.at": cleared(sums64, lambda: cp.add.at(sums64, place, wide)),
            },
            lambda r: bool(cp.allclose(r, exact, rtol=1e-12)),
        ),
        "count": Task(
            4.0 * values + 4.0 * bins,
            {
                "lanewise": cleared(counts, lambda: count32(place, counts)),
                "lanewise histogram": lambda: lw.histogram(place, bins=bins),
                "CuPy bincount": lambda: cp.bincount(place, minlength=bins),
            },
            lambda r: int(r.sum()) == values,
        ),
        "largest float32": Task(
            8.0 * values + 4.0 * bins,
            {
                "lanewise": cleared(tops, lambda: largest(place, v, tops)),
                "CuPy maximum.at": cleared(tops, lambda: cp.maximum.at(tops, place, v)),
            },
        ),
        "compact float32": Task(
            5.0 * values + 4.0 * int(mask.sum()),
            {"lanewise": lambda: lw.compact(v, mask), "CuPy v[mask]": lambda: v[mask]},
            lambda r: bool((cp.asarray(r) == v[mask]).all()),
        ),
    }
    many, longer = rng.random(4 * values, dtype=cp.float32), cp.tile(mask, 4)
    tasks["compact float32, four times as many"] = Task(
        4 * tasks["compact float32"].moved,
        {"lanewise": lambda: lw.compact(many, longer)},
        lambda r: bool((cp.asarray(r) == many[longer]).all()),
    )
    records = max(1, values // 4)
    particles = Particle.array(
        position=cp.zeros((records, 3), cp.float32), mass=v[:records], device="cuda"
    )
    kept = mask[:records].copy()
    tasks["compact records of 16 bytes"] = Task(
        17.0 * records + 16.0 * int(kept.sum()),
        {"lanewise": lambda: lw.compact(particles, kept)},
        lambda r: bool((r.mass == v[:records][kept]).all()),
    )
    _with_torch(tasks, place, v, wide, mask, bins)
    return tasks


def _with_torch(
    tasks: dict[str, Task], place: Any, v: Any, wide: Any, mask: Any, bins: int
) -> None:
    try:
        import torch
    except ImportError:
        return
    at, weights, doubles, chosen = (
        torch.as_tensor(x, device="cuda") for x in (place, v, wide, mask)
    )
    sums, sums64 = (torch.zeros(bins, device="cuda", dtype=x.dtype) for x in (weights, doubles))
    import cupy as cp

    tasks["add float32"].versions |= {
        "PyTorch index_add": lambda: cp.asarray(sums.zero_().index_add_(0, at, weights)),
        "PyTorch bincount": lambda: cp.asarray(torch.bincount(at, weights=weights, minlength=bins)),
    }
    tasks["add float64"].versions["PyTorch index_add"] = lambda: cp.asarray(
        sums64.zero_().index_add_(0, at, doubles)
    )
    tasks["compact float32"].versions["PyTorch masked_select"] = lambda: cp.asarray(
        torch.masked_select(weights, chosen)
    )


def _copy_rate() -> float:
    """Bytes a second of a copy, read and written."""
    import cupy as cp

    source = cp.zeros(200_000_000, cp.float32)
    to = cp.empty_like(source)
    return (
        2.0
        * source.nbytes
        / statistics.median(_seconds(lambda: cp.copyto(to, source)) for _ in range(ROUNDS))
    )


def _seconds(run: Callable[[], Any]) -> float:
    import cupy as cp

    cp.cuda.Device().synchronize()
    begin, end = cp.cuda.Event(), cp.cuda.Event()
    begin.record()
    run()
    cp.cuda.Device().synchronize()
    end.record()
    end.synchronize()
    return cp.cuda.get_elapsed_time(begin, end) * 1e-3


def _timed(task: Task) -> list[tuple[str, float, str]]:
    import cupy as cp

    notes: dict[str, str] = {}
    for name, run in task.versions.items():
        first = run()
        first = first.copy() if hasattr(first, "copy") else first
        again = run()
        right = task.right(first)
        same = not hasattr(first, "tobytes") or bool(cp.asarray(first == again).all())
        notes[name] = ("right" if right else "WRONG") + (
            ", the same bits again" if same else ", other bits again"
        )
    times: dict[str, list[float]] = {n: [] for n in task.versions}
    for _ in range(ROUNDS):
        for name, run in task.versions.items():
            times[name].append(_seconds(run))
    return [(n, statistics.median(x), notes[n]) for n, x in times.items()]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="tasks, all by default")
    parser.add_argument("--values", type=int, default=100_000_000)
    parser.add_argument("--bins", type=int, default=1_000_000)
    options = parser.parse_args()
    copy = _copy_rate()
    lines = [
        "# Scatters, histograms and compaction on a GPU",
        "",
        ", ".join(f"{k}: {v}" for k, v in describe_machine().items()),
        "",
        f"{options.values:,} values, {options.bins:,} bins; a copy moves {copy / 1e12:.2f} TB/s. "
        f"Median of {ROUNDS} rounds in turn.",
        "",
        "| task | version | ms | TB/s | of a copy | bound, ms | check |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, task in _tasks(options.values, options.bins).items():
        if options.names and name not in options.names:
            continue
        for version, seconds, note in _timed(task):
            rate = task.moved / seconds
            bound = task.moved / copy
            figures = (
                f"{seconds * 1e3:.3f} | {rate / 1e12:.2f} | {rate / copy:.0%} | {bound * 1e3:.3f}"
            )
            row = f"| {name} | {version} | {figures} | {note} |"
            lines.append(row)
            print(row, flush=True)
    folder = Path(os.environ.get("OUT", Path(__file__).parent / "results"))
    (folder / "gpu_scatter.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
