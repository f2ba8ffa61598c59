"""Which structures are worth measuring for Neighbors and Nearest."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from lanewise.patterns.search.automatic import (
    CROWDED,
    CROWDED_RINGS,
    CROWDED_WIDE,
    FEW,
    WIDE,
    Outlook,
    choose,
    look,
    look_into,
)
from lanewise.patterns.search.base import Search
from lanewise.patterns.search.points import Points
from lanewise.patterns.search.tuning.configurations import (
    MOST_CELLS_A_SOURCE,
    Configuration,
    cells_of,
    cells_wanted,
    default_cells,
)
from lanewise.patterns.search.worlds import Periodic

SIDES = (0.5, 0.7, 1.4, 2.0)  # of cells, in radii (without a radius: in sides of the default cells)
LEAVES = (4, 16, 32)  # beside the default, 8
CLEAR = 64  # times the limit of the automatic choice: there the curve is 12 times as fast and more (table of patterns/search/automatic.py)
CLEAR_PAIRS = 8  # times as many looks as others take


@dataclass(frozen=True, slots=True)
class Candidates:
    """configurations: what is to be measured, the automatic choice first; refused: what is not, with the reason."""

    configurations: tuple[Configuration, ...]
    refused: tuple[tuple[Configuration, str], ...]


def candidates(wish: Search, points: Points) -> Candidates:
    """The structures worth measuring for a search and these sources.

    Raises `ArgumentError` for a world with other axes, and for more neighbours than there are sources.
    """
    outlook = look(wish, points)
    default = Configuration(type(choose(wish, points, outlook)[0]).__name__)
    verdicts = {r: _refusal(r, wish, points, outlook) for r in _configurations(wish, points) if r != default}
    kept = (default, *(r for r, reason in verdicts.items() if not reason))
    return Candidates(kept, tuple((r, reason) for r, reason in verdicts.items() if reason))


def _configurations(wish: Search, points: Points) -> Iterator[Configuration]:
    """All structures, those with the same cells once."""
    if wish.radius is not None or not isinstance(wish.world, Periodic):
        yield Configuration("StaticGrid")
        seen = {default_cells(wish, points).cells}
        for side in SIDES:
            cells = cells_of(wish, points, side).cells
            if cells not in seen or cells_wanted(wish, points, side) > points.count * MOST_CELLS_A_SOURCE:
                yield Configuration("StaticGrid", side=side)
            seen.add(cells)
    yield Configuration("DynamicGrid")
    yield from (Configuration("DynamicGrid", leaf=leaf) for leaf in LEAVES)
    yield Configuration("AllPairs")


def _refusal(configuration: Configuration, wish: Search, points: Points, outlook: Outlook) -> str:
    """Why a structure need not be measured, or nothing."""
    if configuration.name == "AllPairs":
        # More than the limit are in a cell of a grid only where boxes along a curve do with less.
        inside = min(outlook.members, _limit(wish, outlook))
        looks = FEW + inside * 3**points.dimension
        clear = points.count > CLEAR_PAIRS * looks
        return f"a target would look at {points.count:,} sources, through others at about {looks:,.0f}" if clear else ""
    if configuration.name == "DynamicGrid":
        return ""
    if configuration.side is not None:
        cells, most = cells_wanted(wish, points, configuration.side), points.count * MOST_CELLS_A_SOURCE
        if cells > most:
            return f"{cells:,.0f} cells are more than {most:,}, {MOST_CELLS_A_SOURCE} for each source"
        outlook = look_into(cells_of(wish, points, configuration.side), points)
    crowded = outlook.members > CLEAR * _limit(wish, outlook)
    return f"the cell of a source would hold {outlook.members:,.0f} sources on average" if crowded else ""


def _limit(wish: Search, outlook: Outlook) -> float:
    """With more sources in the cell of a source the automatic choice is a curve."""
    if wish.k is not None:
        return max(CROWDED, 2 * wish.k) if wish.radius is not None else CROWDED_RINGS
    assert wish.radius is not None
    return CROWDED_WIDE if outlook.side > WIDE * wish.radius else math.inf
