"""Scatters, histograms, compaction and prefix sums on a CPU beside NumPy's: on the same cores, in
one run, interleaved.

    python -m bench.cpu_scatter [--values 1e7] [--bins 1e6] [--rounds 15]
Every version is compared with NumPy's result, and runs twice: its bits have to be the same. NumPy's
`bincount` is timed with the arrays that lanewise takes, and with those that it needs not convert
(places of int64, weights of float64). Times are the least of all rounds, which a busy machine
disturbs least: of the clock, and of all cores together by the time of the process. Writes
bench/results/cpu_scatter.md, or into the folder that the variable OUT names.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import lanewise as lw
from bench.harness import describe_machine

Task = dict[str, Callable[[], Any]]


@lw.threadwise
def add32(i: lw.index, place: lw.Array1[lw.i32], v: lw.Array1[lw.f32], sums: lw.Array1[lw.f32]):
    lw.scatter_add(sums, place[i], v[i])


@lw.threadwise
def add64(i: lw.index, place: lw.Array1[lw.i64], v: lw.Array1[lw.f64], sums: lw.Array1[lw.f64]):
    lw.scatter_add(sums, place[i], v[i])


@lw.threadwise
def count(i: lw.index, place: lw.Array1[lw.i32], counts: lw.Array1[lw.i64]):
    lw.scatter_add(counts, place[i], 1)


def scattered(kernel: Any, bins: int, kind: Any, **arrays: Any) -> Callable[[], Any]:
    """A bound scatter into zeros."""
    names = [n for n in kernel._calls.signature.arrays if n not in arrays]
    result = np.zeros(bins, kind)
    bound = kernel.bind(**arrays, **dict.fromkeys(names, result), grid=len(arrays["place"]))

    def run() -> Any:
        result.fill(0)
        bound()
        return result

    return run


def tasks(values: int, bins: int) -> dict[str, Task]:
    """What is compared: by its name, versions that give the same."""
    rng = np.random.default_rng(0)
    place, v = (
        rng.integers(0, bins, values, dtype=np.int32),
        rng.normal(size=values).astype(np.float32),
    )
    place64, v64, few = place.astype(np.int64), v.astype(np.float64), (place % 256).astype(np.int32)
    half, hundredth = rng.random(values) < 0.5, rng.random(values) < 0.01
    out32, out64, outi = np.empty_like(v), np.empty_like(v64), np.empty_like(place)
    return {
        "add float32": {
            "lanewise, exact": scattered(add32, bins, np.float32, place=place, v=v),
            "np.bincount, the same arrays": lambda: np.bincount(place, v, bins),
            "np.bincount, nothing converted": lambda: np.bincount(place64, v64, bins),
        },
        "add float64": {
            "lanewise, exact": scattered(add64, bins, np.float64, place=place64, v=v64),
            "np.bincount": lambda: np.bincount(place64, v64, bins),
        },
        "count": {
            "lanewise": scattered(count, bins, np.int64, place=place),
            "lanewise histogram": lambda: lw.histogram(place, bins=bins),
            "np.bincount, the same array": lambda: np.bincount(place, minlength=bins),
            "np.bincount, int64": lambda: np.bincount(place64, minlength=bins),
        },
        "count, 256 bins": {
            "lanewise histogram": lambda: lw.histogram(few, bins=256),
            "np.bincount": lambda: np.bincount(few, minlength=256),
        },
        "compact float32, half": {
            "lanewise": lambda: lw.compact(v, half),
            "NumPy, v[mask]": lambda: v[half],
        },
        "compact float32, 1 %": {
            "lanewise": lambda: lw.compact(v, hundredth),
            "NumPy, v[mask]": lambda: v[hundredth],
        },
        "compact float64, half": {
            "lanewise": lambda: lw.compact(v64, half),
            "NumPy, v[mask]": lambda: v64[half],
        },
        "cumsum float32": {
            "lanewise": lambda: lw.cumsum(v, out=out32),
            "np.cumsum": lambda: np.cumsum(v, out=out32),
        },
        "cumsum float64": {
            "lanewise": lambda: lw.cumsum(v64, out=out64),
            "np.cumsum": lambda: np.cumsum(v64, out=out64),
        },
        "cumsum int32": {
            "lanewise": lambda: lw.cumsum(place, out=outi),
            "np.cumsum": lambda: np.cumsum(place, out=outi),
        },
    }


def check(name: str, versions: Task) -> None:
    """Raise `ValueError` for results that are not NumPy's, or not the same again."""
    found = {n: [np.array(run()) for _ in range(2)] for n, run in versions.items()}
    expected = found[list(found)[-1]][0].astype(np.float64)
    for version, (one, other) in found.items():
        if version.startswith("lanewise") and one.tobytes() != other.tobytes():
            raise ValueError(f"{name}, {version}: other bits in another run")
        tolerance = 1e-3 if one.dtype == np.float32 or "cumsum" in name else 1e-10
        if not np.allclose(
            one, expected, rtol=tolerance, atol=tolerance * max(1.0, np.abs(expected).max())
        ):
            raise ValueError(f"{name}, {version}: not what NumPy gives")


def timed(versions: Task, rounds: int) -> dict[str, tuple[float, float]]:
    """The least seconds of each version, by the clock and of all cores together."""
    least = dict.fromkeys(versions, (np.inf, np.inf))
    for turn in range(rounds):
        for name in list(versions)[:: -1 if turn % 2 else 1]:
            start, used = time.perf_counter(), time.process_time()
            versions[name]()
            now = time.perf_counter() - start, time.process_time() - used
            least[name] = min(least[name][0], now[0]), min(least[name][1], now[1])
    return least


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--values", type=float, default=1e7)
    parser.add_argument("--bins", type=float, default=1e6)
    parser.add_argument("--rounds", type=int, default=15)
    given = parser.parse_args()
    values, bins = int(given.values), int(given.bins)
    lines = [
        "| task | version | ms | ms of all cores | times lanewise |",
        "|---|---|---:|---:|---:|",
    ]
    before = os.getloadavg()
    for name, versions in tasks(values, bins).items():
        check(name, versions)
        times = timed(versions, given.rounds)
        first = next(iter(times.values()))[0]
        for version, (seconds, used) in times.items():
            lines.append(
                f"| {name} | {version} | {1e3 * seconds:.2f} | {1e3 * used:.2f} | "
                f"{seconds / first:.2f} |"
            )
            print(lines[-1], flush=True)
    loads = " to ".join(f"{x[0]:.1f}" for x in (before, os.getloadavg()))
    machine = ", ".join(f"{k}: {v}" for k, v in describe_machine().items() if "cuda" not in k)
    head = (
        f"# Scatters, histograms, compaction and prefix sums on a CPU\n\n{machine}, load of the "
        f"machine: {loads}\n\n"
    )
    head += (
        f"{values:,} values, {bins:,} bins; the least of {given.rounds} rounds in turn. Right, and "
        "the same bits again.\n\n"
    )
    path = Path(os.environ.get("OUT") or "bench/results") / "cpu_scatter.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
