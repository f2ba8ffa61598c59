"""The structures that `pairwise` runs over: one file each."""

from lanewise.search.all_pairs import AllPairs
from lanewise.search.base import Search
from lanewise.search.worlds import Bounded, Open, Periodic, World

__all__ = ["AllPairs", "Bounded", "Open", "Periodic", "Search", "World"]
