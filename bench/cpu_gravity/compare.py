"""Is the generated CPU kernel as fast as the best C? Both run in one process, interleaved, on one
and two threads.

`python -m bench.cpu_gravity.compare` writes bench/results/cpu_gravity.{md,json}. Every version is
held against float64 before it is timed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import lanewise as lw
from bench.cpu_gravity.bodies import Bodies, random_bodies, relative_error
from bench.cpu_gravity.reference import TOLERANCE, build_references, checked
from bench.harness import Measurement, describe_machine, interleave, write_results
from lanewise.sims.gravity.physics import Body, make_physics

SOFTENING2 = 0.02**2


def lanewise_version(
    bodies: Bodies, layout: lw.Layout | None, threads: int, plan: lw.Plan | None = None
) -> Callable[[], None]:
    """The gravity product's own force kernel, checked and bound."""
    records: Any = Body.array(position=bodies.position.T, mass=bodies.mass, layout=layout)  # type: ignore[attr-defined]
    call = make_physics(Body, True).acceleration.bind(
        records, records, softening2=SOFTENING2, plan=plan
    )
    os.environ["LANEWISE_THREADS"] = str(threads)
    error = relative_error(bodies, np.ascontiguousarray(call().T), SOFTENING2)
    if not error < TOLERANCE:
        raise ValueError(f"wrong by {error:.2e}")

    def run() -> None:
        os.environ["LANEWISE_THREADS"] = str(threads)
        call()

    return run


def main() -> None:
    bodies = random_bodies(16_384)
    versions: dict[str, Callable[[], None]] = {}
    for threads in (1, 2):
        for name, reference in build_references().items():
            versions[f"C, {name}, {threads} thread(s)"] = checked(
                reference, bodies, SOFTENING2, threads
            )
        versions[f"lanewise, default (SoA), {threads} thread(s)"] = lanewise_version(
            bodies, None, threads
        )
        versions[f"lanewise, fast_math, {threads} thread(s)"] = lanewise_version(
            bodies, None, threads, lw.Plan(fast_math=True)
        )
    for layout in (lw.AoS(), lw.AoAS(), lw.SoAoAS(), lw.AoSoA(16)):
        versions[f"lanewise, {layout}, 2 thread(s)"] = lanewise_version(bodies, layout, 2)
    times = interleave(versions, 9)
    rows = [Measurement(name, seconds, bodies.count**2, "pairs") for name, seconds in times.items()]
    title = (
        f"Direct-sum gravity on a CPU: generated LLVM text against C, {bodies.count:,} bodies, "
        "float32, softened"
    )
    print(write_results(Path("bench/results/cpu_gravity.md"), title, rows, describe_machine()))


if __name__ == "__main__":
    main()
