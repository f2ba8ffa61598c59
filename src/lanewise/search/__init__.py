"""The structures that `pairwise` runs over: one file each."""

from lanewise.search.all_pairs import AllPairs
from lanewise.search.base import Search

__all__ = ["AllPairs", "Search"]
