"""The types of a precision, and sets of directions that every operator loops over."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import lanewise as lw
from lanewise.support.errors import InputError


@dataclass(frozen=True, slots=True)
class NumberTypes:
    """The types of a site's arithmetic: of a scalar, of a vector of the lattice's dimension, of its
    populations.
    """

    real: Any
    vector: Any
    populations: Any


def number_types(lattice: lw.Lattice, precision: str) -> NumberTypes:
    """The types of "f32" (which is the arithmetic of float16 storage as well) or "f64"; raises
    `InputError` for another.
    """
    match precision, lattice.dimension:
        case "f32", 2:
            return NumberTypes(lw.f32, lw.vec2, lw.populations)
        case "f32", 3:
            return NumberTypes(lw.f32, lw.vec3, lw.populations)
        case "f64", 2:
            return NumberTypes(lw.f64, lw.dvec2, lw.dpopulations)
        case "f64", 3:
            return NumberTypes(lw.f64, lw.dvec3, lw.dpopulations)
        case _:
            raise InputError(
                f"no collision operators in precision {precision!r} and {lattice.dimension} "
                "dimensions; wanted f32 or f64, in 2 or 3 dimensions"
            )


@cache
def pairs_of(lattice: lw.Lattice) -> tuple[lw.Direction, ...]:
    """One direction of every pair of opposite ones, the first by index; the direction at rest is in
    no pair.
    """
    return tuple(q for q in lattice if q.index < q.opposite.index)


@cache
def axes_of(lattice: lw.Lattice) -> tuple[lw.Direction, ...]:
    """The directions x, y and, in three dimensions, z: unit vectors."""
    unit = [tuple(int(a == b) for b in range(lattice.dimension)) for a in range(lattice.dimension)]
    return tuple(lattice[lattice.velocities.index(e)] for e in unit)
