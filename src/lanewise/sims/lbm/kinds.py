"""What the sites of a flow are: walls, and openings. The numbers of a mask stand for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lanewise.support.attributes import frozen
from lanewise.support.checks import check_fields
from lanewise.support.errors import InputError

Edge = str | tuple[str, str]
Edges = Mapping[str, Edge]
"""An axis ("x", "y", "z") -> what its faces are: "periodic", "slip" or the name of a wall.

Or (low, high).
"""


@frozen
@dataclass(frozen=True, slots=True)
class Wall:
    """Bounce-back: the wall lies half a link before its sites, or at its surface. `velocity`: of a
    moving wall, in sites per step.
    """

    name: str
    velocity: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        check_fields(self, InputError)


@frozen
@dataclass(frozen=True, slots=True, eq=False)
class Open:
    """Sites at a face of the box through which fluid flows.

    Attributes:
        boundary: the name of a boundary condition (see `boundaries`)
        face: "x-", "x+", "y-", "y+", "z-" or "z+": the face that its sites lie at
        velocity: what it wants, one vector in sites per step; `profile` multiplies it at every site
        density: what it wants
    """

    name: str
    boundary: str
    face: str
    velocity: tuple[float, ...] | None = None
    density: float | None = None
    profile: Any = None

    def __post_init__(self) -> None:
        check_fields(self, InputError)


Kind = Wall | Open
