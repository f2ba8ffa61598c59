"""What the kernels of a call over a tree are specialised to."""

from __future__ import annotations

from dataclasses import dataclass

from lanewise.ir.names import own
from lanewise.language import types as t
from lanewise.language.array_types import ArrayType
from lanewise.language.record import Leaf
from lanewise.patterns.search.build import Side

LEAVES, NODES = own("leaves"), own("nodes")  # numbers of the tree
HEIGHT_FIRST, HEIGHT_COUNT = own("height.first"), own("height.count")  # in `shape.HEIGHTS`
THETA = own("theta")  # the opening angle, in the precision of the positions
ACCURACY = own("accuracy")  # of what one group gives, in the same precision
# distances in the table of estimates; their number, as that of the kernel that fills it
ENTRIES, ENTRY_COUNT = 640, own("sizes.count")
TARGET_ORDER, TARGET_SORTED = own("target.order"), own("target.sorted")


@dataclass(frozen=True, slots=True)
class TreeArguments:
    """A call over a tree.

    target, source: sorted copies, the position first. uniforms: of the call. position: the leaves
    of the position's field, one an axis. identical: targets and sources are one array, and one
    sorted copy; parts: they are different parts of one. tables: what the function reads by index.
    order: of the expansions. leaf: elements of a leaf. group: targets that take one way, so many
    for each thread of a warp. estimated: nodes are far where the error that is estimated of them is
    small enough (`estimates.py`), and not by their angle alone. pairs: groups of sources meet
    groups of targets (`pairs.py`), and not each target. dealt: it walks for some of the groups
    (`dealt.py`), and leaves their results in the order of the tree.
    """

    target: Side
    source: Side
    uniforms: tuple[tuple[str, t.ValueType], ...]
    position: tuple[Leaf, ...]
    identical: bool
    order: int
    leaf: int
    group: int
    tables: tuple[tuple[str, ArrayType], ...] = ()
    parts: bool = False
    estimated: bool = False
    pairs: bool = False
    dealt: bool = False

    @property
    def precision(self) -> t.Scalar:
        return self.position[0].type
