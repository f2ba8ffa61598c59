"""Which calls over a search are of one kind: what was measured for one of them is used for all."""

from __future__ import annotations

import math

from lanewise.patterns.search.automatic import Outlook
from lanewise.patterns.search.base import Search
from lanewise.patterns.search.points import Points


def kind_of_call(wish: Search, points: Points, outlook: Outlook | None) -> str:
    """What of a search decides which structure is best, beside numbers of elements: calls with equal texts are of one kind.

    How crowded cells are counts in powers of four, and how wide they are in powers of two: a sample tells no more, and a flock that
    moves stays of one kind for long. outlook: of the sources; None for few of them, which nobody looks at.
    """
    which = "all" if wish.k is None else f"{wish.k} nearest"
    within = "" if wish.radius is None else " within a radius"
    kind = f"{which}{within} in {points.dimension} axes, {type(wish.world).__name__.lower()} world"
    if outlook is None:
        return f"{kind}; few"
    crowd = f"{4 ** round(math.log(outlook.members, 4)):,} in a cell"
    if wish.radius is None:
        return f"{kind}; {crowd}"
    return f"{kind}; {crowd} of {2.0 ** round(math.log2(max(outlook.side / wish.radius, 1.0))):g} radii"
