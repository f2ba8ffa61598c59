"""How a search is divided: a unit is a part of the sky, of the coarse spin-downs and of the
frequencies.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import ceil

from lanewise.support.attributes import frozen
from lanewise.support.errors import InputError

Part = tuple[int, int]  # the first number and that after the last


@frozen
@dataclass(frozen=True, slots=True)
class Unit:
    """A unit's number, and which directions, spin-downs of the coarse grid and frequencies it
    searches.
    """

    number: int
    sky: Part
    spins: Part
    frequencies: Part

    @property
    def steps(self) -> int:
        """Maps to be made: one for each direction and spin-down."""
        return (self.sky[1] - self.sky[0]) * (self.spins[1] - self.spins[0])

    def done(self, sky: int, spin: int) -> int:
        """Steps before the one of this direction and spin-down."""
        return (sky - self.sky[0]) * (self.spins[1] - self.spins[0]) + spin - self.spins[0]


def divide(
    directions: int, spins: int, frequencies: int, least: int, whole_bands: bool = False
) -> tuple[Unit, ...]:
    """At least `least` units, of parts that differ by one at most.

    Directions are divided first, then spin-downs, then frequencies: parts of a band compute F
    besides their ends twice. whole_bands: they are not divided. Raises InputError where there are
    fewer parts of a search than units.
    """
    if least < 1:
        raise InputError(f"{least} work units requested; wanted at least 1")
    if least > directions * spins * (1 if whole_bands else frequencies):
        band = (
            "one band, which resampling does not divide"
            if whole_bands
            else f"{frequencies:,} frequencies"
        )
        raise InputError(
            f"{least:,} work units requested; there are {directions:,} directions, {spins:,} "
            f"spin-downs and {band}"
        )
    a = min(least, directions)
    b = min(ceil(least / a), spins)
    c = min(ceil(least / (a * b)), frequencies)
    parts = [
        (s, f, n)
        for s in _parts(directions, a)
        for f in _parts(spins, b)
        for n in _parts(frequencies, c)
    ]
    return tuple(Unit(number, *part) for number, part in enumerate(parts))


def _parts(count: int, parts: int) -> list[Part]:
    ends = [count * i // parts for i in range(parts + 1)]
    return list(pairwise(ends))
