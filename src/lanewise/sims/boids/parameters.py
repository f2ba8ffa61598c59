"""The numbers of the rules: OpenSteer's, and those of the synchronous version on GPUs that this
project's thesis comes from.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np

from lanewise.sims.common.checks import check_known
from lanewise.sims.common.options import Option, option_of, setting
from lanewise.support.attributes import frozen, near
from lanewise.support.checks import check_fields
from lanewise.support.errors import InputError

RULES = "Rules (defaults are OpenSteer's; lengths, times and masses in its units)"
ANGLE = "only those at angles to the heading with a larger cosine"
SEMANTICS = ("sync", "seq", "thesis")
"""All steer, then all move; one after another, in place.

And as "sync", with the thesis's differences.
"""


def _rule(default: float, text: str = "", more: str = "") -> float:
    """A number of the rules, with its option."""
    return setting(default, Option(RULES, "X", f"{text} (default {{default}}{more})".strip()))


@frozen
@dataclass(frozen=True, slots=True)
class Parameters:
    """Every constant of the rules. Lengths, times and masses are OpenSteer's own units; cosines are
    of angles to the heading.

    near_radius: flockmates nearer than this are seen in every direction. facing: 1, or -1 to
    reverse the offsets to flockmates in the test of the angle. unit_side: whether the side is
    normalised after forward x up; otherwise up becomes shorter than 1. If default radii of the
    three behaviours are larger than the search radius, the search radius applies; radii that you
    set must not be.
    """

    radius: float = _rule(9.0, "how far flockmates are seen", "; thesis 4.243")
    near_radius: float = _rule(1.5, "nearer ones are seen in every direction", "; thesis 1.225")
    separation_radius: float = _rule(5.0, "agents get out of the way of nearer ones")
    separation_cosine: float = _rule(-0.707, ANGLE)
    separation_weight: float = _rule(12.0)
    alignment_radius: float = _rule(7.5, "agents turn to where nearer ones head")
    alignment_cosine: float = _rule(0.7, ANGLE)
    alignment_weight: float = _rule(8.0)
    cohesion_radius: float = _rule(9.0, "agents steer to the middle of nearer ones")
    cohesion_cosine: float = _rule(-0.15, ANGLE)
    cohesion_weight: float = _rule(8.0)
    max_force: float = _rule(27.0, "largest force of steering")
    max_speed: float = _rule(9.0)
    mass: float = _rule(1.0, "of an agent")
    agent_radius: float = _rule(0.5, "room that an agent keeps to obstacles")
    avoid_time: float = _rule(1.0, "an obstacle is avoided when it would be met within this time")
    facing: float = 1.0
    unit_side: bool = True

    def __post_init__(self) -> None:
        check_fields(self, InputError)


SHORTEST, LONGEST = 1e-15, 1e15
"""Lengths whose squares, and the inverses of these, are numbers in float32."""
THESIS = Parameters(
    radius=math.sqrt(18.0), near_radius=math.sqrt(1.5), facing=-1.0, unit_side=False
)
THESIS_K = 7
POSITIVE = ("radius", "max_force", "max_speed", "mass", "agent_radius")
NOT_NEGATIVE = (
    "near_radius",
    "separation_radius",
    "alignment_radius",
    "cohesion_radius",
    "avoid_time",
)
BEHAVIOURS = ("separation_radius", "alignment_radius", "cohesion_radius")
COSINES = ("separation_cosine", "alignment_cosine", "cohesion_cosine")
NUMBERS = tuple(f.name for f in fields(Parameters) if option_of(f))
"""Those that a user may choose; the others make the semantics."""


def check_semantics(name: str) -> None:
    """Refuse an unknown name."""
    check_known("semantics", name, SEMANTICS)


def make_parameters(
    semantics: str, chosen: Mapping[str, float] | None = None, before: Parameters | None = None
) -> Parameters:
    """The numbers of these semantics, or those of `before`, with those `chosen` instead.

    Raises `InputError` for unknown names, values out of range, and a chosen near radius or one of a
    behaviour beyond the search radius.
    """
    check_semantics(semantics)
    for name in chosen or {}:
        if name not in NUMBERS:
            raise InputError(
                f"unknown parameter {name!r} of the rules{near(name, NUMBERS) or ';'} wanted some "
                f"of {', '.join(NUMBERS)}"
            )
    usual = THESIS if semantics == "thesis" else Parameters()
    result = replace(before or usual, **dict(chosen or {}))
    check_parameters(result)
    for name in ("near_radius", *BEHAVIOURS):
        if name in (chosen or {}) and (value := getattr(result, name)) > result.radius:
            raise InputError(
                f"the {name.replace('_', ' ')} is {value:g}, and flockmates are seen up to the "
                f"radius {result.radius:g}; wanted at most "
                "that, or a larger radius"
            )
    return result


def check_parameters(p: Parameters) -> None:
    """Refuse values out of range."""
    for name, value in asdict(p).items():
        shown = name.replace("_", " ")
        if not math.isfinite(value):
            raise InputError(f"the {shown} is {value:g}; wanted a finite number")
        if name in POSITIVE and value <= 0:
            raise InputError(f"the {shown} is {value:g}; wanted a finite number above zero")
        if name in NOT_NEGATIVE and value < 0:
            raise InputError(f"the {shown} is {value:g}; wanted zero or more")
        if name == "radius" and not SHORTEST <= value <= LONGEST:
            raise InputError(
                f"the radius is {value:g}; wanted {SHORTEST:g} to {LONGEST:g}: distances are "
                "squared"
            )
        if name in COSINES and abs(value) > 1:
            raise InputError(f"the {shown} is {value:g}; wanted a cosine, from -1 to 1")


def pair_values(p: Parameters) -> dict[str, Any]:
    """The uniform values of the function of a pair. The squares are rounded once, from float64."""
    radii = (p.separation_radius, p.alignment_radius, p.cohesion_radius)
    return {
        "near2": p.near_radius**2, "facing": p.facing, "radius2": np.array([r * r for r in radii]),
        "cosine": np.array([p.separation_cosine, p.alignment_cosine, p.cohesion_cosine]),
    }  # fmt: skip


def move_values(p: Parameters, dt: float) -> dict[str, Any]:
    """The uniform values of the function that moves an agent: OpenSteer's SimpleVehicle in terms of
    the time step.
    """
    return {
        "weights": np.array([p.separation_weight, p.alignment_weight, p.cohesion_weight]),
        "max_force": p.max_force,
        "max_speed": p.max_speed,
        "inverse_mass": 1 / p.mass,
        "dt": dt,
        "smoothing": min(max(9 * dt, 0.15), 0.4),
        "roll": min(3 * dt, 1.0),
    }
