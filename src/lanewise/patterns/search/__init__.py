"""The structures that `pairwise` runs over: one file each."""

from lanewise.patterns.search.all_pairs import AllPairs
from lanewise.patterns.search.automatic import Nearest, Neighbors
from lanewise.patterns.search.base import Search
from lanewise.patterns.search.cell_array import CellArray
from lanewise.patterns.search.dynamic_grid import DynamicGrid
from lanewise.patterns.search.neighbor_lists import NeighborLists
from lanewise.patterns.search.sight import Sight
from lanewise.patterns.search.static_grid import StaticGrid
from lanewise.patterns.search.tree.search import Tree
from lanewise.patterns.search.worlds import Bounded, Open, Periodic, World

__all__ = [
    "AllPairs",
    "Bounded",
    "CellArray",
    "DynamicGrid",
    "Nearest",
    "NeighborLists",
    "Neighbors",
    "Open",
    "Periodic",
    "Search",
    "Sight",
    "StaticGrid",
    "Tree",
    "World",
]
