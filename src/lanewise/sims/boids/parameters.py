"""The numbers of the rules: OpenSteer's, and those of the synchronous version on GPUs that this project's thesis comes from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np

from lanewise.attributes import frozen
from lanewise.checks import check_fields
from lanewise.errors import InputError

SEMANTICS = ("sync", "seq", "thesis")
"""All steer, then all move; one after another, in place; and as "sync", with the thesis's differences."""


@frozen
@dataclass(frozen=True, slots=True)
class Parameters:
    """Every constant of the rules. Lengths, times and masses are OpenSteer's own units; cosines are of angles to the heading.

    near_radius: flockmates nearer than this are seen in every direction. facing: 1, or -1 where offsets to flockmates are taken
    backwards in the test of the angle. unit_side: whether the side is normalised after forward x up; else up gets shorter than 1.
    Where the three radii of the behaviours are larger than the search radius, the search decides.
    """

    radius: float = 9.0
    near_radius: float = 1.5
    separation_radius: float = 5.0
    separation_cosine: float = -0.707
    separation_weight: float = 12.0
    alignment_radius: float = 7.5
    alignment_cosine: float = 0.7
    alignment_weight: float = 8.0
    cohesion_radius: float = 9.0
    cohesion_cosine: float = -0.15
    cohesion_weight: float = 8.0
    max_force: float = 27.0
    max_speed: float = 9.0
    mass: float = 1.0
    agent_radius: float = 0.5
    avoid_time: float = 1.0
    facing: float = 1.0
    unit_side: bool = True

    def __post_init__(self) -> None:
        check_fields(self, InputError)


THESIS = Parameters(radius=math.sqrt(18.0), near_radius=math.sqrt(1.5), facing=-1.0, unit_side=False)
THESIS_K = 7
POSITIVE = ("radius", "max_force", "max_speed", "mass", "agent_radius")
NOT_NEGATIVE = ("near_radius", "separation_radius", "alignment_radius", "cohesion_radius", "avoid_time")
COSINES = ("separation_cosine", "alignment_cosine", "cohesion_cosine")
NUMBERS = tuple(f.name for f in fields(Parameters) if f.name not in ("facing", "unit_side"))
"""Those that a user may choose; the others make the semantics."""


def check_semantics(name: str) -> None:
    """Refuse an unknown name."""
    if name not in SEMANTICS:
        raise InputError(f"unknown semantics {name!r}; wanted one of {', '.join(SEMANTICS)}")


def make_parameters(semantics: str, given: Mapping[str, float] | None = None) -> Parameters:
    """The numbers of these semantics with those `given` instead. Raises `InputError` for unknown names and values out of range."""
    check_semantics(semantics)
    for name in given or {}:
        if name not in NUMBERS:
            raise InputError(f"unknown parameter {name!r} of the rules; wanted some of {', '.join(NUMBERS)}")
    result = replace(THESIS if semantics == "thesis" else Parameters(), **dict(given or {}))
    check_parameters(result)
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
        if name in COSINES and abs(value) > 1:
            raise InputError(f"the {shown} is {value:g}; wanted a cosine, from -1 to 1")


def pair_values(p: Parameters) -> dict[str, Any]:
    """What the function of a pair takes for all. The squares are rounded once, from float64."""
    radii = (p.separation_radius, p.alignment_radius, p.cohesion_radius)
    return {
        "near2": p.near_radius**2, "facing": p.facing, "radius2": np.array([r * r for r in radii]),
        "cosine": np.array([p.separation_cosine, p.alignment_cosine, p.cohesion_cosine]),
    }  # fmt: skip


def move_values(p: Parameters, dt: float) -> dict[str, Any]:
    """What the function that moves an agent takes for all: OpenSteer's SimpleVehicle in terms of the time step."""
    return {
        "weights": np.array([p.separation_weight, p.alignment_weight, p.cohesion_weight]), "max_force": p.max_force,
        "max_speed": p.max_speed, "inverse_mass": 1 / p.mass, "dt": dt, "smoothing": min(max(9 * dt, 0.15), 0.4), "roll": min(3 * dt, 1.0),
    }  # fmt: skip
