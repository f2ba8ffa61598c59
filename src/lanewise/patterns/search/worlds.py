"""Worlds: where elements may be, and what lies beyond the border."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lanewise.support.attributes import frozen
from lanewise.support.checks import shown
from lanewise.support.errors import ArgumentError, brief
from lanewise.support.kinds import number_kind


@frozen
@dataclass(frozen=True, slots=True)
class Open:
    """A world without borders: elements may be anywhere; distances are those of their positions."""

    def __str__(self) -> str:
        return "open world"


@frozen
@dataclass(frozen=True, slots=True, init=False)
class Periodic:
    """A box whose opposite faces are one: a target sees each source at its nearest image.

    size: the extents of the box, one number per axis. origin: its lowest corner, one number for all
    axes or one per axis. Positions may lie outside the box. Raises `ArgumentError` for sizes that
    are not positive.
    """

    size: tuple[float, ...]
    origin: tuple[float, ...]

    @brief
    def __init__(self, size: Sequence[float], origin: float | Sequence[float] = 0.0) -> None:
        sizes = _corner("Periodic: size", size)
        object.__setattr__(self, "size", sizes)
        same = isinstance(origin, (int, float))
        object.__setattr__(
            self,
            "origin",
            _corner("Periodic: origin", [origin] * len(sizes) if same else origin, len(sizes)),
        )
        if min(sizes) <= 0:
            raise ArgumentError(f"Periodic: every size must be positive, found {sizes}")

    def __str__(self) -> str:
        return f"periodic world of {' x '.join(f'{s:g}' for s in self.size)}"


@frozen
@dataclass(frozen=True, slots=True, init=False)
class Bounded:
    """A box that contains all elements, including its borders: `lw.Bounded((0, 0), (2, 1))`.

    low, high: its corners, one number for each axis, in the units of the positions. A call with an
    element outside raises `ArgumentError`, and so does a `low` that is not below `high`.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]

    @brief
    def __init__(self, low: Sequence[float], high: Sequence[float]) -> None:
        lows = _corner("Bounded: low", low)
        object.__setattr__(self, "low", lows)
        object.__setattr__(self, "high", _corner("Bounded: high", high, len(lows)))
        if any(a >= b for a, b in zip(self.low, self.high, strict=True)):
            raise ArgumentError(
                f"Bounded: low must be below high on every axis, found {self.low} and {self.high}"
            )

    def __str__(self) -> str:
        low, high = (tuple(float(f"{x:.8g}") for x in corner) for corner in (self.low, self.high))
        return f"bounded world from {low} to {high}"


World = Open | Periodic | Bounded


def _corner(name: str, numbers: Any, length: int | None = None) -> tuple[float, ...]:
    """Two or three finite numbers."""
    try:
        values = tuple(float(number_kind(x)) for x in numbers)
    except Exception:  # of the user's class, or what is no number
        raise ArgumentError(
            f"{name} takes one number for each axis, found {shown(numbers)}"
        ) from None
    if len(values) not in (2, 3) or (length is not None and len(values) != length):
        raise ArgumentError(f"{name} takes {length or '2 or 3'} numbers, found {len(values)}")
    if not all(math.isfinite(x) for x in values):
        raise ArgumentError(f"{name} takes finite numbers, found {values}")
    return values


def world_dimension(world: World) -> int | None:
    """The number of axes that a world has; None where it has any."""
    match world:
        case Open():
            return None
        case Periodic(size=size):
            return len(size)
        case Bounded(low=low):
            return len(low)
