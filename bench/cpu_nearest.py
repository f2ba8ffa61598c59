"""Is lw.nearest on a CPU at least twice as fast as scipy's tree? Both build and search, on the same
cores, in one run, interleaved.

`python -m bench.cpu_nearest [points]` writes bench/results/cpu_nearest.{md,json}: the 7 nearest
within sqrt(18), 2^18 points evenly in a ball of radius 200 (the density of the thesis). Every
version is compared with the others before it is timed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from scipy.spatial import cKDTree

import lanewise as lw
from bench.harness import Measurement, describe_machine, interleave, write_results
from lanewise.runtime.devices import cpu_threads

K, RADIUS, WORLD = 7, 18**0.5, 200.0
ROUNDS = 9
Found = tuple[Any, Any]
SEARCHES: dict[str, lw.AllPairs | lw.StaticGrid | lw.DynamicGrid | None] = {
    "chosen": None,
    "static grid": lw.StaticGrid(k=K, radius=RADIUS),
    "dynamic grid along a curve": lw.DynamicGrid(k=K, radius=RADIUS),
}


def ball(count: int) -> Any:
    """Points evenly in a ball, float32."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(count, 3))
    x *= (WORLD * rng.random(count) ** (1 / 3) / np.linalg.norm(x, axis=1))[:, None]
    return x.astype("f4")


def by_tree(x: Any, workers: int) -> Found:
    """The same with scipy: the nearest one is the point itself."""
    far, found = cKDTree(x).query(x, K + 1, distance_upper_bound=RADIUS, workers=workers)
    return np.where(np.isinf(far), -1, found)[:, 1:], far[:, 1:]


def check(name: str, found: Found, wanted: Found) -> None:
    """The same lists but where float32 (or an equal distance) decides; raises ValueError."""
    (ours, near), (theirs, far) = found, wanted
    same = (ours == theirs).all(axis=1)
    apart = np.abs(np.nan_to_num(near, posinf=RADIUS) - np.nan_to_num(far, posinf=RADIUS)).max()
    if same.mean() < 0.9999 or not apart < 1e-5 * WORLD:
        raise ValueError(
            f"{name}: {1 - same.mean():.2%} of the lists differ, distances by up to {apart:.2e}"
        )


def versions(x: Any, threads: int) -> dict[str, Callable[[], None]]:
    """All versions on as many threads, each compared with scipy's tree."""
    wanted = by_tree(x, threads)

    def ours(search: Any) -> Callable[[], Any]:
        def run() -> Found:
            os.environ["LANEWISE_THREADS"] = str(threads)
            return lw.nearest(x, K, RADIUS, search=search)

        return run

    for name, search in SEARCHES.items():
        check(name, ours(search)(), wanted)
    made = {
        f"lw.nearest, {name}, {threads} thread(s)": ours(search)
        for name, search in SEARCHES.items()
    }
    return {f"scipy cKDTree, workers={threads}": lambda: by_tree(x, threads), **made}


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2**18
    x = ball(count)
    times: dict[str, list[float]] = {}
    for threads in sorted({1, cpu_threads()}):
        times |= interleave(versions(x, threads), ROUNDS)
    rows = [Measurement(name, seconds, count, "points") for name, seconds in times.items()]
    title = (
        f"The {K} nearest within sqrt(18) on a CPU, {count:,} points evenly in a ball of radius "
        "200, float32, structure included"
    )
    machine = describe_machine() | {
        "scipy": scipy.__version__,
        "programs running at the end": f"{os.getloadavg()[0]:.1f}",
    }
    print(write_results(Path("bench/results/cpu_nearest.md"), title, rows, machine))


if __name__ == "__main__":
    main()
