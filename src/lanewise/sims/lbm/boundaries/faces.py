"""The faces of a box, and what the directions of a lattice are for the sites at one of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import lanewise as lw
from lanewise.support.attributes import near
from lanewise.support.errors import InputError

AXES = "xyz"


@dataclass(frozen=True, slots=True)
class Face:
    """A face of the box as its sites see it.

    Attributes:
        inward: the unit vector into the box
        unknown: the directions that enter through the face: what arrives along them is no flow's
        grazing: those along the face, with the one at rest
        leaving: those through the face, outwards
        tangents: for every direction its part along the face: c without its component along
          `inward`
    """

    inward: lw.Direction
    unknown: tuple[lw.Direction, ...]
    grazing: tuple[lw.Direction, ...]
    leaving: tuple[lw.Direction, ...]
    tangents: tuple[lw.Direction, ...]


@cache
def make_face(lattice: lw.Lattice, name: str) -> Face:
    """The face "x-", "x+", "y-", ... of a box of this lattice; raises `InputError` for another
    name.
    """
    names = [a + side for a in AXES[: lattice.dimension] for side in "-+"]
    if name not in names:
        raise InputError(
            f"a box of {lattice.name} has no face {name!r}{near(name, names) or ';'} wanted one of "
            f"{', '.join(names)}"
        )
    axis, sign = AXES.index(name[0]), 1 if name[1] == "-" else -1
    inward = tuple(sign if a == axis else 0 for a in range(lattice.dimension))
    through = [sign * v[axis] for v in lattice.velocities]
    along = [tuple(0 if a == axis else x for a, x in enumerate(v)) for v in lattice.velocities]
    unknown, grazing, leaving = (
        tuple(q for q in lattice if through[q.index] == s) for s in (1, 0, -1)
    )
    return Face(
        lattice[lattice.velocities.index(inward)],
        unknown,
        grazing,
        leaving,
        tuple(lattice[lattice.velocities.index(v)] for v in along),
    )
