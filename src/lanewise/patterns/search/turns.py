"""How often the loops of a kernel over a search run that go over what it has set aside: sources in
reach, and the nearest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from lanewise.ir.names import own
from lanewise.language.target import WARP

FOUND, SET_ASIDE = own("m"), own("near.m")
ROW = own("walk.j")  # sources in a row of cells
MANY = 500.0  # of them, of which the longest row of a warp has hardly more


def ball(side: Sequence[float], radius: float) -> float:
    """The volume (the area, in the plane) within a radius, in cells with these sides."""
    whole = math.pi * radius**2 if len(side) == 2 else 4 / 3 * math.pi * radius**3
    return whole / math.prod(side)


def longest_row(row: float) -> float:
    """How many sources the longest of the rows has that the threads of a warp look at together,
    where one has so many on average, and sources lie at random: as many as a Poisson distribution
    gives.

    Targets lie in the order of cells, so that a warp looks at as many rows apart from each other as
    its targets fill, and one more.
    """
    apart = min(float(WARP), 1 + WARP / row)
    longest, at_most, chance = 0.0, 0.0, math.exp(-row)
    for n in range(1, math.ceil(row + 12 * math.sqrt(row)) + 12):
        at_most += chance
        longest += 1 - min(1.0, at_most) ** apart
        chance *= row / n
    return longest


def turns_of_lists(looked_at: float, near: float, k: int | None) -> dict[str, float]:
    """Turns by the loops' variables, for so many sources looked at and so many within the radius,
    on average for a target.

    Of sources in any order the n-th is among the k nearest so far with a chance of k / n, so that k
    (1 + ln(near / k)) enter the list. A CPU's list of sources set aside is emptied whenever it is
    full, which each source looked at may find, and once at the end.
    """
    near = min(near, looked_at)
    enter = near if k is None or near <= k else k * (1 + math.log(near / k))
    return {
        SET_ASIDE: enter / (1 + looked_at),
        **({} if k is None else {FOUND: min(float(k), near)}),
    }
