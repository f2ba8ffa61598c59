"""How often the loops of a kernel over a search run that go over what it has set aside: sources in
reach, and the nearest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from lanewise.ir.names import own

FOUND, SET_ASIDE = own("m"), own("near.m")


def ball(side: Sequence[float], radius: float) -> float:
    """The volume (the area, in the plane) within a radius, in cells with these sides."""
    whole = math.pi * radius**2 if len(side) == 2 else 4 / 3 * math.pi * radius**3
    return whole / math.prod(side)


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
