"""The structures that `pairwise` runs over: one file each."""

from lanewise.search.all_pairs import AllPairs
from lanewise.search.automatic import Nearest, Neighbors
from lanewise.search.base import Search
from lanewise.search.dynamic_grid import DynamicGrid
from lanewise.search.static_grid import StaticGrid
from lanewise.search.worlds import Bounded, Open, Periodic, World

__all__ = [
    "AllPairs",
    "Bounded",
    "DynamicGrid",
    "Nearest",
    "Neighbors",
    "Open",
    "Periodic",
    "Search",
    "StaticGrid",
    "World",
]
