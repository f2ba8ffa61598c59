"""Structures that the host builds, for numbers of threads: steps of a flock, and one build alone.

    python -m bench.host_builders --device cuda --agents 262144

The world is that of the thesis's comparison (J. Breitbart 2008, figure 7.3). Numbers of threads are
measured in turns.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from bench.harness import describe_machine, interleave
from lanewise.ladders.boids_run import make_start
from lanewise.ladders.boids_versions import AROUND, BOUNDARY, HOST, ONE, SORT, versions
from lanewise.runtime.devices import cores
from lanewise.sims.boids import Flock
from lanewise.sims.boids.parameters import THESIS_K

WORLD, STEPS, ROUNDS = 200.0, 10, 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--agents", type=int, default=2**18)
    given = parser.parse_args()
    threads = [t for t in (1, 2, 4, 8, 16, 32, 64) if t < cores()] + [cores()]
    print(*(f"{k}: {v}" for k, v in describe_machine().items()), sep="\n")
    state = make_start(given.agents, WORLD, 0)
    for version in versions(WORLD, given.device):
        if version.search is None or version.name not in (HOST, SORT, ONE, AROUND):
            continue
        flock = Flock(
            semantics="thesis", k=THESIS_K, search=version.search, state=state, world=WORLD,
            boundary=BOUNDARY, device=given.device,
        )  # fmt: skip
        flock.run(STEPS)
        structure = flock.structure
        assert structure is not None
        run, build = partial(flock.run, STEPS), partial(_build, structure.tasks())
        steps = interleave({str(t): partial(_on, t, run) for t in threads}, ROUNDS)
        builds = interleave({str(t): partial(_on, t, build) for t in threads}, 4 * ROUNDS)
        for t in map(str, threads):
            rate = STEPS / statistics.median(steps[t])
            took = 1e3 * statistics.median(builds[t])
            print(f"{version.name:24} {t:>3} threads: {rate:7.1f} steps/s, build {took:6.2f} ms")


def _build(tasks: Iterable[Any]) -> None:
    for task in tasks:
        task.run()


def _on(threads: int, run: Callable[[], object]) -> None:
    """Run something on so many threads of the host."""
    os.environ["LANEWISE_THREADS"] = str(threads)
    run()


if __name__ == "__main__":
    begin = time.perf_counter()
    main()
    print(f"{time.perf_counter() - begin:.0f} s in all")
