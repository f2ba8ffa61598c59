"""The kernels of a flock, to be explained, and the steering as a flock binds it, to be tuned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lanewise.layouts import default_layout
from lanewise.sims.boids.choice import find_search
from lanewise.sims.boids.division import division_of
from lanewise.sims.boids.explained import NEAR_OF_CALLS, shown_calls
from lanewise.sims.boids.flock import Flock
from lanewise.sims.boids.parameters import NUMBERS, pair_values
from lanewise.sims.boids.placing import world_of
from lanewise.sims.boids.rules import record_class
from lanewise.sims.boids.semantics import rules_of
from lanewise.sims.boids.settings import check_fit
from lanewise.sims.common.devices import check_compiled
from lanewise.sims.common.shown import ShownCall, ShownDivision, ShownWork, TunedCall, listed
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
    flock = _flock(device, agents, precision, layout, values)
    search = f"search: {flock.describe_search()} ({flock.search_reason})"
    return search, shown_calls(flock)


def divided(
    mesh: str,
    device: str,
    agents: int,
    precision: str,
    layout: str | None,
    values: Mapping[str, float],
) -> tuple[str, ShownDivision]:
    """The same of a step of this flock on a mesh, by its text; device: the kind of its devices.

    Raises `InputError`, also for what a flock on a mesh cannot have.
    """
    flock = _flock(device, agents, precision, layout, values)
    check_fit(replace(flock.settings, device=mesh))
    search = f"search: {flock.describe_search()} ({flock.search_reason})"
    division, calls = division_of(flock, parts=len(listed(mesh))), shown_calls(flock)
    works = tuple(ShownWork(c, near=n) for c, n in zip(calls, NEAR_OF_CALLS, strict=True))
    return search, ShownDivision("agents", division, division.grow, works)


def _flock(
    device: str, agents: int, precision: str, layout: str | None, values: Mapping[str, float]
) -> Flock:
    """On the host, in the layout of a device."""
    chosen = layout or str(default_layout(record_class(precision).__record__, device)).lower()
    numbers = _numbers(values)
    return Flock(agents, start="world", device="cpu", precision=precision, layout=chosen, **numbers)


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
