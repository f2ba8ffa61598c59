"""What sites and the faces of their box are: kinds, which the numbers of a mask mean, and edges:
periodic, slip, or a wall.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from lanewise.support.checks import shown
from lanewise.support.errors import ArgumentError

MOST = 32  # five bits of a flags
# of a face that the flow leaves through: its links are cut, and filled between steps
OUTFLOW = MOST + 1
REST = MOST  # the kind of a wall that no mask names: where different walls meet, at rest
Face = Literal["periodic", "slip"] | int  # a number is a kind of wall
RULES: Mapping[str, Face] = MappingProxyType(
    {"periodic": "periodic", "slip": "slip", "outflow": OUTFLOW}
)
"""Of the edges, besides the names of walls."""


@dataclass(frozen=True, slots=True)
class Wall:
    """Sites that are not updated, and that half-way bounce-back takes for a wall; `velocity` names
    the uniform that moves it.

    fields: (field, the uniform that it has there), for fields that are read through its links.
    """

    number: int
    name: str
    velocity: str | None = None
    fields: tuple[tuple[str, str], ...] = ()


def check_new(number: object, name: object, taken: Iterable[tuple[int, str]]) -> None:
    """Refuse a kind whose number or name is out of range or in use."""
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number < MOST:
        raise ArgumentError(
            f"kind {shown(number)} ({shown(name)}): wanted an integer from 1 to {MOST - 1}; 0 "
            "is the function itself"
        )
    if not isinstance(name, str) or not name:
        raise ArgumentError(f'kind {number} needs a name, for example "inlet"; found {shown(name)}')
    if name in RULES:
        raise ArgumentError(f"kind {number}: {name!r} is a rule of the edges; choose another name")
    for other, label in taken:
        if other == number:
            raise ArgumentError(
                f"kind {number} is {label!r} already; choose another number for {name!r}"
            )
        if label == name:
            raise ArgumentError(
                f"{name!r} is kind {other} already; choose another name for kind {number}"
            )


AXES = "xyz"
Rule = str | tuple[str, str]


@dataclass(frozen=True, slots=True)
class Edges:
    """(low, high) face of every axis, x first."""

    faces: tuple[tuple[Face, Face], ...]

    @property
    def walls(self) -> frozenset[int]:
        """The kinds of walls at faces."""
        return frozenset(f for pair in self.faces for f in pair if isinstance(f, int))

    @property
    def outlets(self) -> tuple[tuple[int, int], ...]:
        """(axis, step) of the faces that the flow leaves through."""
        return tuple(
            (axis, step)
            for axis, pair in enumerate(self.faces)
            for step, f in zip((-1, 1), pair, strict=True)
            if f == OUTFLOW
        )

    def face(self, axis: int, step: int) -> Face:
        """The face that a site next to it reaches with a step of -1 or 1 along an axis."""
        return self.faces[axis][step > 0]


def read_edges(edges: Mapping[str, Rule] | None, dimension: int, walls: Mapping[str, int]) -> Edges:
    """Check the user's rules, `{"x": "periodic", "y": ("wall", "lid")}`; an axis without one is
    periodic.

    `walls` are the numbers of the kinds of walls by name. Raises `ArgumentError` for unknown axes
    and rules, and for an axis that is periodic at one end only.
    """
    axes = AXES[:dimension]
    rules = _by_axis(edges)
    for axis in rules:
        if axis not in axes:
            raise ArgumentError(f"edges have the axes {', '.join(axes)}, found {shown(axis)}")
    return Edges(tuple(_pair(axis, rules.get(axis, "periodic"), walls) for axis in axes))


def _by_axis(edges: object) -> dict[str, object]:
    if edges is None:
        return {}
    if not isinstance(edges, Mapping):
        raise ArgumentError(
            'edges are rules by axis, for example {"x": "slip", "y": "periodic"}; found '
            f"{shown(edges)}"
        )
    return {str(axis): rule for axis, rule in edges.items()}  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _pair(axis: str, rule: object, walls: Mapping[str, int]) -> tuple[Face, Face]:
    both = rule if isinstance(rule, Sequence) and not isinstance(rule, str) else (rule, rule)
    if len(both) != 2:
        raise ArgumentError(
            f"the edges of {axis} are one rule, or two: (low, high); found {shown(rule)}"
        )
    low, high = _face(axis, both[0], walls), _face(axis, both[1], walls)
    if (low == "periodic") != (high == "periodic"):
        raise ArgumentError(f"{axis} is periodic at both ends or at none, found {shown(rule)}")
    return low, high


def _face(axis: str, rule: object, walls: Mapping[str, int]) -> Face:
    known: dict[str, Face] = {**walls, **RULES}
    if isinstance(rule, str) and rule in known:
        return known[rule]
    names = ", ".join(map(repr, (*RULES, *walls)))
    raise ArgumentError(f"the edge {rule!r} of {axis} is unknown; wanted one of {names}")
