"""Kinds of sites: what a number in the mask means."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lanewise.checks import shown
from lanewise.errors import ArgumentError

MOST = 32  # five bits of a flags
OUTFLOW = MOST + 1  # of a face that the flow leaves through: its links are cut, and filled between steps
REST = MOST  # the kind of a wall that no mask names: where different walls meet, at rest


@dataclass(frozen=True, slots=True)
class Wall:
    """Sites that are not updated, and that half-way bounce-back takes for a wall; `velocity` names the uniform that moves it."""

    number: int
    name: str
    velocity: str | None = None


def check_new(number: object, name: object, taken: Iterable[tuple[int, str]]) -> None:
    """Refuse a kind whose number or name is out of range or in use."""
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number < MOST:
        raise ArgumentError(
            f"kind {shown(number)} ({shown(name)}): wanted a whole number from 1 to {MOST - 1}; 0 is the function itself"
        )
    if not isinstance(name, str) or not name:
        raise ArgumentError(f'kind {number} needs a name, for example "inlet"; found {shown(name)}')
    if name in ("periodic", "slip", "outflow"):
        raise ArgumentError(f"kind {number}: {name!r} is a rule of the edges; choose another name")
    for other, label in taken:
        if other == number:
            raise ArgumentError(f"kind {number} is {label!r} already; choose another number for {name!r}")
        if label == name:
            raise ArgumentError(f"{name!r} is kind {other} already; choose another name for kind {number}")
