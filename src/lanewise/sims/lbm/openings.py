"""Openings of a flow as kinds of a sitewise function: what flows in or out, then the collision."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import lanewise as lw
from lanewise.sims.lbm.boundaries import Boundary, find_boundary
from lanewise.sims.lbm.checks import check_mach
from lanewise.sims.lbm.kinds import Open
from lanewise.sims.lbm.obstacles.boxes import AXES, site_text
from lanewise.sims.lbm.settings import Settings
from lanewise.support.errors import InputError

Function = Callable[..., Any]


def opening_function(
    lattice: lw.Lattice, settings: Settings, number: int, opening: Open, collide: Function
) -> Function:
    """What the sites of this opening do."""
    function = find_boundary(opening.boundary).make(
        lattice,
        settings.precision,
        opening.face,
        collide,
        forced=bool(settings.force),
        names=_names(number, opening),
    )
    function.__name__ += f"_{number}"  # kernels tell the functions of kinds apart by their names
    return function


def opening_observer(
    lattice: lw.Lattice, settings: Settings, number: int, opening: Open
) -> Function | None:
    """The density (less 1) and the velocity at its sites: what arrives there through the face is no
    flow's.

    None for a far field: its sites send out what it says, whatever arrives.
    """
    boundary = find_boundary(opening.boundary)
    if not boundary.collides:
        return None
    return boundary.observer(
        lattice,
        settings.precision,
        opening.face,
        forced=bool(settings.force),
        names=_names(number, opening),
    )


def opening_values(settings: Settings, number: int, opening: Open) -> dict[str, Any]:
    """The values of its parameters, by the names that they have in a flow.

    A profile has a value for each site, x fastest.
    """
    values: dict[str, Any] = {
        "velocity": opening.velocity,
        "density": opening.density,
        "profile": 1.0,
    }
    if opening.profile is not None:
        real = np.float64 if settings.precision == "f64" else np.float32
        values["profile"] = np.ascontiguousarray(opening.profile, real).reshape(-1)
    names = _names(number, opening)
    return {names[p]: values[p] for p in names}


def check_opening(number: int, opening: Open, shape: tuple[int, ...], mask: Any) -> None:
    """Refuse an opening without what its boundary takes, a profile of another shape, and sites that
    are not at its face.
    """
    boundary = find_boundary(opening.boundary)
    for name in ("velocity", "density"):
        is_set = getattr(opening, name) is not None
        if is_set != (name in boundary.parameters):
            wanted = "takes none" if is_set else f"wanted its {name}"
            raise InputError(
                f"{opening.name!r} has {'a' if is_set else 'no'} {name}; the boundary "
                f"{boundary.name!r} {wanted}"
            )
    if opening.density is not None and not 0 < opening.density < math.inf:
        raise InputError(
            f"the density of {opening.name!r} is {opening.density:g}; wanted a number above zero, "
            "about 1"
        )
    if opening.profile is not None:
        _check_profile(number, opening, boundary, shape, mask)
    _check_places(number, opening, boundary, shape, mask)


def _check_profile(
    number: int, opening: Open, boundary: Boundary, shape: tuple[int, ...], mask: Any
) -> None:
    if "profile" not in boundary.parameters:
        raise InputError(
            f"{opening.name!r} has a profile, which multiplies a velocity; the boundary "
            f"{boundary.name!r} takes none"
        )
    if np.shape(opening.profile) != shape:
        raise InputError(
            f"the profile of {opening.name!r} has shape {np.shape(opening.profile)}; wanted {shape}"
        )
    if mask is not None:
        factors = np.asarray(opening.profile, np.float64)[mask == number, None]
        check_mach(
            factors * np.asarray(opening.velocity, np.float64),
            f"velocity of {opening.name!r} with its profile",
        )


def _check_places(
    number: int, opening: Open, boundary: Boundary, shape: tuple[int, ...], mask: Any
) -> None:
    faces = [axis + side for axis in AXES[: len(shape)] for side in "-+"]
    if opening.face not in faces:
        raise InputError(
            f"{opening.name!r} is at the face {opening.face!r}; wanted one of {', '.join(faces)}"
        )
    if mask is None or not boundary.collides:  # a far field may be anywhere
        return
    axis = len(shape) - 1 - AXES.index(opening.face[0])
    index = np.argwhere(mask == number)
    wrong = index[index[:, axis] != (0 if opening.face[1] == "-" else shape[axis] - 1)]
    if len(wrong):
        raise InputError(
            f"{opening.name!r} has {len(wrong):,} sites away from the face {opening.face}, first "
            f"at {site_text(wrong[0])}; "
            "wanted all of them at it"
        )


def _names(number: int, opening: Open) -> dict[str, str]:
    """Parameters of one name are one value in all kinds: each opening has its own names."""
    return {name: f"{name}_{number}" for name in find_boundary(opening.boundary).parameters}
