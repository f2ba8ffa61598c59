"""The force kernel of gravity as it is compiled for a device, to be explained."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from lanewise.errors import InputError
from lanewise.explanation.offline import Offline, compile_offline
from lanewise.layouts import layout_by_name
from lanewise.sims.gravity.checks import self_force_vanishes
from lanewise.sims.gravity.physics import RECORDS, make_physics, pair_type
from lanewise.sims.gravity.plans import wanted_force

SOFTENING2 = 1e-4  # the square of a Plummer softening of 0.01


def compile_gravity(
    device: str,
    bodies: int,
    precision: str = "f32",
    layout: str | None = None,
    arch: str | None = None,
    values: Mapping[str, float] | None = None,
) -> Offline:
    """The force kernel of a simulation of so many bodies, with the fields of its plan that a simulation fixes.

    As there, `softening2` (in `values`) decides whether it tests for a body that meets itself. Raises `InputError`.
    """
    if precision not in RECORDS:
        raise InputError(f"unknown precision {precision!r}; wanted one of {', '.join(RECORDS)}")
    cls: Any = RECORDS[precision]
    numbers = {"softening2": SOFTENING2, **(values or {})}
    if (softening2 := numbers["softening2"]) < 0:
        raise InputError(f"--set softening2={softening2}: the square of a softening is zero or more")
    softened = math.isnan(softening2) or self_force_vanishes(softening2**0.5, pair_type(precision))
    return compile_offline(
        make_physics(cls, softened).acceleration,
        bodies,
        device,
        arch=arch,
        layout=layout_by_name(layout) if layout else None,
        values=numbers,
        wanted=wanted_force(precision),
    )
