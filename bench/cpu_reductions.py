"""The nearest of many centres (the assignment of k-means) on a CPU, beside scikit-learn: on the
same cores, in one run, interleaved.

    python -m bench.cpu_reductions [--points 200000] [--centers 200]
Needs scikit-learn. Every version is compared with float64 before it is timed. `KMeans.predict` is
scikit-learn's assignment; `pairwise_distances_argmin` is its reduction of pairs. Both work in
float32, as lanewise does. Writes bench/results/cpu_reductions.{md,json}.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import lanewise as lw
from bench.harness import Measurement, describe_machine, interleave, write_results

ROUNDS = 15
CHECKED = 2000  # points


@lw.record
class Point:
    """A point or a centre."""

    position: lw.vec3


@lw.pairwise
def closest(point: Point, center: Point) -> lw.ArgMin[lw.f32]:
    d = point.position - center.position
    return lw.dot(d, d)


def check(name: str, found: Any, x: Any, y: Any) -> None:
    """Raise `ValueError` where a centre is clearly not the nearest one."""
    d2 = ((x[:CHECKED, None].astype("f8") - y[None]) ** 2).sum(-1)
    if not np.allclose(
        d2[np.arange(CHECKED), np.asarray(found)[:CHECKED]], d2.min(1), rtol=1e-4, atol=1e-6
    ):
        raise ValueError(f"{name}: a centre that is not the nearest one")


def versions(x: Any, y: Any) -> dict[str, Callable[[], Any]]:
    """All versions on the same points and centres."""
    from sklearn.cluster import KMeans
    from sklearn.metrics import pairwise_distances_argmin

    means = KMeans(len(y), n_init=1, max_iter=1).fit(np.tile(y, (2, 1)))
    means.cluster_centers_ = np.ascontiguousarray(y)
    points, centers = (
        Point.array(position=x, layout=lw.SoA()),
        Point.array(position=y, layout=lw.SoA()),
    )
    plans = {
        "default": None,
        "sources one by one": lw.Plan(across=0),
        "128 targets": lw.Plan(across=128),
    }
    calls = {
        f"lanewise, {n}": closest.bind(points, centers, plan=plan) for n, plan in plans.items()
    }
    return {
        **calls,
        "scikit-learn, KMeans.predict": lambda: means.predict(x),
        "scikit-learn, pairwise_distances_argmin": lambda: pairwise_distances_argmin(x, y),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=200_000)
    parser.add_argument("--centers", type=int, default=200)
    given = parser.parse_args()
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=(n, 3)).astype("f4") for n in (given.points, given.centers))
    calls = versions(x, y)
    for name, call in calls.items():
        check(name, call(), x, y)

    def only(call: Callable[[], Any]) -> Callable[[], None]:
        return lambda: (call(), None)[1]

    times = interleave({n: only(c) for n, c in calls.items()}, ROUNDS)
    rows = [Measurement(n, t, given.points * given.centers, "pairs") for n, t in times.items()]
    for row in rows:
        print(
            f"{row.name:44} least {1e3 * min(row.seconds):8.2f} ms  median {1e3 * row.median:8.2f} "
            "ms"
        )
    out = Path(os.environ.get("OUT", "bench/results")) / "cpu_reductions.md"
    print(
        write_results(
            out,
            f"Nearest of {given.centers:,} centres, {given.points:,} points",
            rows,
            describe_machine(),
        )
    )


if __name__ == "__main__":
    main()
