"""Which groups of targets each part of a mesh walks for: those of one device, dealt in blocks.

    sorted places of all targets:  block 0 | block 1 | block 2 | block 3 | ...
    part 0 of 2 has                block 0           | block 2           | ...
A block is a whole number of groups, and of groups of a sample walk. What a part leaves lies block
behind block, in the order of the tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.language.types import Scalar
from lanewise.patterns.search.tree.group import GROUP_SIZE
from lanewise.patterns.search.tree.shape import TreeShape

PART, PARTS = own("dealt.part"), own("dealt.parts")  # which part of how many this is
BLOCK = own("dealt.block")  # groups that follow each other
COUNT = own("dealt.count")  # targets of the part
SAMPLE_BLOCK, SAMPLE_COUNT = own("dealt.sample.block"), own("dealt.sample.count")
NUMBERS = (PART, PARTS, BLOCK, COUNT)  # of a kernel
SAMPLE = {BLOCK: SAMPLE_BLOCK, COUNT: SAMPLE_COUNT}  # by what a sample walk calls them
LEAST = GROUP_SIZE * GROUP_SIZE  # places of a block: targets of a group of a sample walk


@dataclass(frozen=True, slots=True)
class Dealt:
    """So many targets in blocks of so many places, dealt to the parts of a mesh in turn."""

    targets: int
    parts: int
    block: int

    @classmethod
    def in_turn(cls, targets: int, parts: int) -> Dealt:
        """Small blocks: every part has as much of a dense centre as any other."""
        return cls(targets, parts, LEAST)

    @classmethod
    def in_pieces(cls, targets: int, parts: int) -> Dealt:
        """One block a part: few nodes are above several of them."""
        blocks = -(-targets // LEAST)
        return cls(targets, parts, LEAST * max(-(-blocks // parts), 1))

    @property
    def room(self) -> int:
        """Places that no part has more of."""
        blocks = -(-self.targets // self.block)
        return -(-blocks // self.parts) * self.block

    def places(self, part: int) -> int:
        """How many targets a part has."""
        whole, rest = divmod(self.targets, self.block)
        blocks = whole // self.parts + (part < whole % self.parts)
        return blocks * self.block + (rest if whole % self.parts == part else 0)

    def values(self, part: int, group: int) -> dict[str, Any]:
        """The numbers of a part's kernels, for groups of so many targets."""
        places = self.places(part)
        return {
            PART: part,
            PARTS: self.parts,
            BLOCK: self.block // group,
            COUNT: places,
            SAMPLE_BLOCK: self.block // LEAST,
            SAMPLE_COUNT: -(-places // GROUP_SIZE),
        }

    def nodes(self, part: int, shape: TreeShape, slices: Callable[[int], int]) -> dict[str, Any]:
        """Of each height below the root the nodes above the targets of a part, which has one block
        at most: where they begin in the list of heights, how many there are, and how many threads.
        slices: threads that share a node of a height.
        """
        return dict(self._nodes(part, shape, slices))

    def _nodes(
        self, part: int, shape: TreeShape, slices: Callable[[int], int]
    ) -> Iterator[tuple[str, int]]:
        begin = part * self.block
        end = begin + self.places(part)
        first_leaf, last_leaf = begin // shape.leaf, -(-end // shape.leaf)
        listed, starts = shape.heights
        for height in range(shape.top):
            nodes = listed[starts[height] : starts[height + 1]]
            first = shape.table[nodes, 0]
            behind = first + shape.table[nodes, 1]
            low = int(np.searchsorted(behind, first_leaf, side="right"))
            high = max(int(np.searchsorted(first, last_leaf, side="left")), low)
            if begin == end:
                high = low
            name, count, threads = dealt_height(height)
            yield name, starts[height] + low
            yield count, high - low
            yield threads, (high - low) * slices(height)


def dealt_height(height: int) -> tuple[str, str, str]:
    """The numbers of a call that say which nodes of this height are above targets of the part, and
    how many threads share them.
    """
    of = f"dealt.height{height}"
    return own(f"{of}.first"), own(f"{of}.count"), own(f"{of}.threads")


def dealt_counts(index: Scalar) -> tuple[ir.Parameter, ...]:
    """What says which groups a kernel is launched for."""
    return tuple(ir.Parameter(name, index) for name in NUMBERS)


def group_of(number: ir.Local) -> ir.Expression:
    """The group, as one device counts them, that is this one of the part's."""
    part, parts, block = (ir.Local(name, number.type) for name in (PART, PARTS, BLOCK))
    before = build.add(build.multiply(build.divide(number, block), parts), part)
    return build.add(build.multiply(before, block), build.remainder(number, block))


def place_of(sorted_place: ir.Expression, room: ir.Expression, index: Scalar) -> ir.Expression:
    """Where the result of a sorted place lies among those of all parts, each with so much room.

    `BLOCK` counts places here.
    """
    parts, block = (ir.Local(name, index) for name in (PARTS, BLOCK))
    number = build.divide(sorted_place, block)
    before = build.add(
        build.multiply(build.remainder(number, parts), room),
        build.multiply(build.divide(number, parts), block),
    )
    return build.add(before, build.remainder(sorted_place, block))
