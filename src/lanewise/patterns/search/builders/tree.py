"""The tree of boxes over leaves of consecutive elements: its shape, which follows from three
numbers.

Level 0 are the leaves, each with `leaf` elements; a node of the next level has `fan` nodes of the
one below; only the last node of a level may have fewer. Nodes lie in memory in the order in which a
walk meets them: a node, then all below it. So the next node to look at is the next one in memory,
or, when nothing below is near, the node's link: where its subtree ends. A leaf's link is -1 - its
number.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.language.record import Leaf
from lanewise.language.types import F32, Scalar
from lanewise.layouts import AoAS, Arrangement

# fewest boxes are tested: about 60 for a target that meets two of a million elements, against 62
# with 2 and 74 with 8
FAN = 4
FEW = 1024  # leaves of trees whose shapes are kept
EXACT_LINKS = {4: 2**24, 8: 2**53}  # integers that a float of 4 or 8 bytes holds


@dataclass(frozen=True, slots=True)
class BoxTree:
    """The shape of the tree of `count` elements."""

    count: int
    leaf: int
    fan: int = FAN

    @property
    def levels(self) -> tuple[int, ...]:
        """The number of nodes of each level, from the leaves to the root."""
        counts = [-(-self.count // self.leaf)]
        while counts[-1] > 1:
            counts.append(-(-counts[-1] // self.fan))
        return tuple(counts)

    @property
    def nodes(self) -> int:
        return sum(self.levels)

    def subtree(self, level: int) -> int:
        """The nodes of a complete subtree whose root is of this level."""
        return _subtree(level, self.fan)

    def places(self) -> list[NDArray[np.int64]]:
        """Where the nodes of each level lie."""
        return list((_few if self.levels[0] <= FEW else _shape)(self.levels, self.fan)[0])

    def links(self) -> NDArray[np.int64]:
        """The link of each node, in the order of memory."""
        return (_few if self.levels[0] <= FEW else _shape)(self.levels, self.fan)[1]


def _shape(
    levels: tuple[int, ...], fan: int
) -> tuple[tuple[NDArray[np.int64], ...], NDArray[np.int64]]:
    """Where the nodes of each level lie, and the link of each node in the order of memory."""
    places = [np.zeros(1, np.int64)]
    for level in range(len(levels) - 2, -1, -1):
        index = np.arange(levels[level])
        places.append(places[-1][index // fan] + 1 + index % fan * _subtree(level, fan))
    places.reverse()
    links = np.empty(sum(levels), np.int64)
    for level, place in enumerate(places):
        links[place] = place + _subtree(level, fan) if level else -1 - np.arange(len(place))
        if level:
            links[place[-1]] = len(links)
    return tuple(places), links


_few = lru_cache(maxsize=64)(_shape)


def _subtree(level: int, fan: int) -> int:
    """The nodes of a complete subtree whose root is of this level."""
    return (fan ** (level + 1) - 1) // (fan - 1)


def fitting_leaf(count: int, asked: int, precision: Scalar) -> int:
    """The leaf size, doubled until all links are exact in the precision of the boxes."""
    leaf = asked
    while BoxTree(count, leaf).nodes >= EXACT_LINKS[precision.size]:
        leaf *= 2
    return leaf


def node_leaves(dimension: int, precision: Scalar) -> tuple[Leaf, ...]:
    """The record of a node: centre and half extents of its box, and its link, in the order in which
    loads take them.
    """
    axes = "xyz"[:dimension]
    centre = [Leaf(f"centre.{c}", precision) for c in axes]
    half = [Leaf(f"half.{c}", precision) for c in axes]
    link = Leaf("link", precision)
    return tuple([*centre, link, *half] if dimension == 3 else [*centre, *half, link])


def node_arrangement(dimension: int, precision: Scalar) -> Arrangement:
    """Loads of 16 bytes: two a node of single precision."""
    return AoAS().arrange(node_leaves(dimension, precision))


def columns_of(data: Any, arrangement: Arrangement, count: int) -> dict[str, Any]:
    """The leaves of an array of nodes on the host, as strided views."""
    (buffer,) = arrangement.buffers
    return {
        s.leaf: np.ndarray((count,), s.type.dtype, data, s.offset, (buffer.block,))
        for s in arrangement.slots
    }


def margin(precision: Scalar) -> float:
    """What boxes grow by, of their distance from the origin and their size: more than all roundings
    of a walk.
    """
    return 2.0**-22 if precision == F32 else 2.0**-51
