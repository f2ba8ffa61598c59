"""The kernels of a flock, to be explained, and the steering as a flock binds it, to be tuned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lanewise.layouts import default_layout
from lanewise.sims.boids.choice import find_search
from lanewise.sims.boids.flock import Flock
from lanewise.sims.boids.options import DT
from lanewise.sims.boids.parameters import NUMBERS, move_values, pair_values
from lanewise.sims.boids.placing import world_of
from lanewise.sims.boids.rules import record_class
from lanewise.sims.boids.semantics import URGES, rules_of
from lanewise.sims.common.devices import check_compiled
from lanewise.sims.common.shown import ShownCall, TunedCall
from lanewise.support.attributes import near
from lanewise.support.errors import InputError

SETTABLE = ("k", "world", "think_every", "start_radius", "seed", *NUMBERS)


def explained(
    device: str,
    agents: int,
    precision: str,
    layout: str | None,
    values: Mapping[str, float],
) -> tuple[str, tuple[ShownCall, ...]]:
    """What finds flockmates and why, and the kernels of steering and of moving `agents` that fill a
    world of radius 50.

    On "cuda" no GPU is needed; the search is laid out on the host. `values`: k, world, think_every,
    and numbers of the rules. Raises `InputError`.
    """
    numbers = _numbers(values)
    chosen = layout or str(default_layout(record_class(precision).__record__, device)).lower()
    flock = Flock(
        agents, start="world", device="cpu", precision=precision, layout=chosen, **numbers
    )
    search = f"search: {flock.describe_search()} ({flock.search_reason})"
    s, rules, boids = flock.settings, rules_of(flock.settings), flock.boids
    steer = ShownCall(rules.steer.using(flock.search), (boids, boids), pair_values(s.parameters))
    values_of_move: dict[str, Any] = {**move_values(s.parameters, DT), "world": s.world}
    urges = [np.zeros((agents, 3), boids.position.dtype) for _ in URGES]
    return search, (steer, ShownCall(rules.move, (boids, *urges), values_of_move))


def tuned_call(
    device: str, agents: int, precision: str, layout: str | None, values: Mapping[str, float]
) -> TunedCall:
    """The steering of a flock as `lanewise boids run` starts it, in a ball of 0.4 of the world,
    through every structure worth trying.

    `values`: k, world, start_radius, and numbers of the rules. Raises `InputError` and
    `DeviceError`.
    """
    check_compiled("boids", device)  # before agents are made
    numbers = _numbers(values)
    if "think_every" in numbers:
        raise InputError(
            "--set think_every: structures are measured for flocks whose agents think in every "
            "step; leave it out"
        )
    flock = Flock(agents, device=device, precision=precision, layout=layout, **numbers)
    s = flock.settings
    requested = find_search("auto", s.parameters.radius, s.k, world_of(s))
    kernel = rules_of(s).steer.using(requested)
    return TunedCall(kernel, (flock.boids, flock.boids), pair_values(s.parameters))


def _numbers(values: Mapping[str, float]) -> dict[str, Any]:
    """Arguments of `Flock` from numbers of the command line."""
    numbers: dict[str, Any] = dict(values)
    for name in numbers:
        if name not in SETTABLE:
            raise InputError(
                f"boids has no value {name!r} to set{near(name, SETTABLE) or ';'} it has "
                f"{', '.join(SETTABLE)}"
            )
    for name in ("k", "think_every", "seed"):
        if name in numbers:
            if numbers[name] != int(numbers[name]):
                raise InputError(f"--set {name}={numbers[name]:g}: wanted an integer")
            numbers[name] = int(numbers[name])
    return numbers
