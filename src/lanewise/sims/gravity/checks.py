"""What a simulation refuses to start with: numbers that are none, or that its types cannot hold."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import lanewise as lw
from lanewise.sims.common import checks
from lanewise.sims.common.devices import array_module
from lanewise.sims.common.meshes import first_rows, parts_of, transport_of
from lanewise.support.checks import plain_zero
from lanewise.support.errors import InputError

DTYPES: dict[str, np.dtype[Any]] = {"f32": np.dtype(np.float32), "f64": np.dtype(np.float64)}
"""The floating types by the names that users write: `lw.f32`, `lw.f64`."""


def largest_number(scalar: str) -> float:
    """The largest finite number of a floating type."""
    return float(np.finfo(DTYPES[scalar]).max)


def longest(scalar: str) -> float:
    """The longest distance that forces in this type hold: its third power is the largest number."""
    return largest_number(scalar) ** (1 / 3)


def self_force_vanishes(softening: float, scalar: str) -> bool:
    """Whether a body that meets itself feels nothing: m 0 / eps^3, where eps^-3 stays far below
    infinity.
    """
    return softening > largest_number(scalar) ** (-1 / 6)


def check_bodies(bodies: lw.RecordArray, scalar: str) -> None:
    """Refuse NaN and infinity, and places too far away for forces in `scalar`; name the field and
    the first body.
    """
    # twice the square root of three times this is the longest separation
    reach = longest(scalar) / 4
    for name in ("position", "mass", "velocity"):
        if (found := _first(bodies, name, _not_finite)) is not None:
            raise InputError(f"{name} of body {found[0]} is {found[1]}; wanted finite numbers")
    if (found := _first(bodies, "position", partial(_beyond, reach))) is not None:
        raise InputError(
            f"position of body {found[0]} is {found[1]}; forces in {scalar} reach {reach:.2g}: "
            f"use {_wider(scalar)}another unit of length"
        )


def _not_finite(module: Any, values: Any) -> Any:
    return module.logical_not(module.isfinite(values))


def _beyond(reach: float, module: Any, values: Any) -> Any:
    return module.greater(module.abs(values), reach)


def _first(
    bodies: lw.RecordArray, name: str, test: Callable[[Any, Any], Any]
) -> tuple[int, str] | None:
    """The first body with a field of which a test is true, and that field; of several processes all
    know it.
    """
    found = transport_of(bodies).agree(_first_here(bodies, name, test))
    return next((each for each in found if each is not None), None)


def _first_here(
    bodies: lw.RecordArray, name: str, test: Callable[[Any, Any], Any]
) -> tuple[int, str] | None:
    for before, part in zip(first_rows(bodies), parts_of(bodies), strict=True):
        module, values = array_module(part.device), getattr(part, name)
        bad = test(module, values)
        bad = module.any(bad, axis=1) if bad.ndim == 2 else bad
        if bool(module.any(bad)):
            index = int(module.argmax(bad))
            return before + index, _shown(values[index])
    return None


def _shown(value: Any) -> str:
    numbers = [f"{float(x):g}" for x in np.ravel(value.tolist())]
    return numbers[0] if len(numbers) == 1 else f"({', '.join(numbers)})"


def _wider(scalar: str) -> str:
    return "precision f64 or " if scalar == "f32" else ""


def check_range(particles: Any) -> None:
    """Refuse values that float32 cannot hold."""
    for name in ("position", "mass", "velocity"):
        largest = float(np.abs(getattr(particles, name)).max())
        if largest > largest_number("f32"):
            raise InputError(
                f"{name} reaches {largest:g}, more than float32 holds; use precision f64"
            )


def check_softening(softening: float, scalar: str | None = None) -> float:
    """The softening length; refuses one below zero, not finite, or too long for forces in
    `scalar`.
    """
    if not (math.isfinite(softening) and softening >= 0):
        raise InputError(f"the softening is {softening}; wanted a finite length of zero or more")
    if scalar is not None and softening > (most := longest(scalar)):
        raise InputError(
            f"the softening is {softening:g}; forces in {scalar} hold lengths up to {most:.2g}: "
            f"use {_wider(scalar)}another unit of length"
        )
    return plain_zero(softening)


def check_time_step(
    dt: float, scalar: str | None = None, gravitational_constant: float = 1.0
) -> None:
    """Refuse a time step of zero or less, not finite, or too long for velocities in `scalar`."""
    checks.check_time_step(dt)
    if scalar is None:
        return
    # an integrator's kicks are up to 1.36 dt
    most = largest_number(scalar) / (2 * max(1.0, gravitational_constant))
    if dt > most:
        raise InputError(
            f"the time step dt is {dt:g}; bodies in {scalar} move by at most {most:.2g} at a time"
        )


def check_gravitational_constant(value: float) -> None:
    """Refuse what is not a positive, finite number."""
    if not (math.isfinite(value) and value > 0):
        raise InputError(
            f"the gravitational constant is {value}; wanted a finite number above zero"
        )
