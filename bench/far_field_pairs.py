"""Pairs of groups, with queues of several lengths, beside a walk: how fast is a force, and how wrong?

`python -m bench.far_field_pairs [--device cuda] [--bodies 4194304] [--places plummer] [--queues 32]`
writes bench/results/far_field_pairs_DEVICE_BODIES.{md,json}. A queue of one node adds what is far as soon
as it is found. All versions of one tree have to give the same bits. A force is a step of a loop: the
order of the bodies is made once in 32 of them. Errors are those of 1,024 bodies against all pairs in
float64, and no version whose errors are above the limit is written.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import lanewise as lw
from bench.far_field import cloud
from bench.harness import Errors, Measurement, describe_machine, interleave, write_results
from lanewise.patterns.search.tree import pairs
from lanewise.runtime.device import get_device
from lanewise.sims.common.devices import to_host
from lanewise.sims.gravity.physics import Body, make_physics
from lanewise.sims.gravity.trees import force_errors

SOFTENING = 1e-3
STEPS = 32  # of a loop: one order
QUEUES = (1, 32, 128)
WALKS, DUALS = ((2, 0.7),), ((3, 0.8), (5, 0.8))  # order, theta
LIMIT = 0.1  # of the 99 % error


def bound(search: lw.Tree, bodies: Any, queue: int) -> lw.Call:
    """A call whose kernels are its own, with queues of this length."""
    module: Any = pairs
    module.QUEUE = queue
    law = make_physics.__wrapped__(Body, True).acceleration.using(search=search)
    return law.bind(bodies, bodies, softening2=SOFTENING**2)


def calls(bodies: Any, queues: Sequence[int]) -> dict[str, lw.Call]:
    """By names, those of one tree one behind the other."""
    made = {
        f"walk, order {order}, theta {theta}": bound(lw.Tree(theta=theta, order=order), bodies, 1)
        for order, theta in WALKS
    }
    for order, theta in DUALS:
        search = lw.Tree(theta=theta, order=order, method="dual")
        for queue in queues:
            name = f"dual, order {order}, theta {theta}, queues of {queue}"
            made[name] = bound(search, bodies, queue)
    return made


def checked(made: dict[str, lw.Call], bodies: Any) -> dict[str, Errors]:
    """The errors of each; raises ValueError where they are too large, or bits differ."""
    errors: dict[str, Errors] = {}
    first: dict[str, Any] = {}
    for name, call in made.items():
        found = call()
        tree, values = name.partition(", queues")[0], np.asarray(to_host(found))
        if not np.array_equal(first.setdefault(tree, values), values):
            raise ValueError(f"{name}: the bits are others than those of shorter queues")
        e = force_errors(bodies, found, SOFTENING)
        if not e.most < LIMIT:
            raise ValueError(f"{name}: 99 % of the errors are below {e.most:.1e}, not {LIMIT:g}")
        errors[name] = Errors(e.median, e.most, e.largest, e.bodies)
    return errors


def stepping(call: lw.Call, device: str) -> Callable[[], None]:
    """So many steps of a loop, to their end."""
    loop = lw.steps([call])

    def run() -> None:
        loop.run(STEPS)
        get_device(device).synchronize()

    return run


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--bodies", type=float, default=2**22)
    options.add_argument("--device", default="cuda")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--places", nargs="*", default=["plummer", "uniform"])
    options.add_argument("--queues", nargs="*", type=int, default=QUEUES)
    given = options.parse_args()
    count, began = int(given.bodies), time.perf_counter()
    rows: list[Measurement] = []
    errors: dict[str, Errors] = {}
    for kind in given.places:
        bodies: Any = Body.array(  # type: ignore[attr-defined]
            position=cloud(kind, count, np.random.default_rng(1)),
            mass=np.full(count, 1 / count),
            device=given.device,
        )
        made = calls(bodies, given.queues)
        errors |= {f"{kind}: {name}": e for name, e in checked(made, bodies).items()}
        runs = {f"{kind}: {name}": stepping(call, given.device) for name, call in made.items()}
        times = interleave(runs, given.rounds)
        rows += [
            Measurement(name, [x / STEPS for x in seconds], count, "bodies")
            for name, seconds in times.items()
        ]
        print(f"{kind}: done after {time.perf_counter() - began:.0f} s", flush=True)
    device = "cpu" if given.device == "cpu" else "cuda"
    path = Path(f"bench/results/far_field_pairs_{device}_{count}.md")
    title = f"A force over lw.Tree in a loop, {count:,} bodies, softening {SOFTENING:g}, float32"
    print(write_results(path, title, rows, describe_machine(), errors))


if __name__ == "__main__":
    main()
