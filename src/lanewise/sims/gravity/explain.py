"""The force kernel of gravity as it is compiled for a device, to be explained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lanewise.errors import InputError
from lanewise.explanation.offline import Offline, compile_offline
from lanewise.layouts import layout_by_name
from lanewise.plan import Plan
from lanewise.sims.gravity.physics import RECORDS, make_physics

SOFTENING2 = 1e-4  # the square of a Plummer softening of 0.01; it changes no decision


def compile_gravity(
    device: str,
    bodies: int,
    precision: str = "f32",
    layout: str | None = None,
    arch: str | None = None,
    values: Mapping[str, float] | None = None,
) -> Offline:
    """The softened force kernel for a number of bodies, with the plan that the simulation asks for."""
    if precision not in RECORDS:
        raise InputError(f"unknown precision {precision!r}; wanted one of {', '.join(RECORDS)}")
    cls: Any = RECORDS[precision]
    return compile_offline(
        make_physics(cls, True).acceleration,
        bodies,
        device,
        arch=arch,
        layout=layout_by_name(layout) if layout else None,
        values={"softening2": SOFTENING2, **(values or {})},
        wanted=Plan(parts=1, accumulate="f64" if precision == "mixed" else None),
    )
