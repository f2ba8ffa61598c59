"""What a node of the tree keeps: where its sources are, and their moments.

    centre: the mean of the positions     radius: no source is farther from the centre
    scale: a power of two near half the radius, the unit of the moments
    low, high: the corners of the box of its sources, which parents are made of
A node is one record, padded to loads of 16 bytes: a walk reads the first of them of every node that
it looks at, and all the rest of those that it takes, never a field of many nodes. Thirty-two
targets read the same node at the same time, so that the loads of a warp are one.
"""

from __future__ import annotations

from dataclasses import dataclass

from lanewise.derivatives.expansions.operators import Operators
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.ir.values import record_array, value_array
from lanewise.language.record import Leaf
from lanewise.language.types import COMPONENTS, I32, Scalar
from lanewise.layouts import AoAS, Arrangement
from lanewise.patterns.search.tree.arguments import TreeArguments
from lanewise.patterns.search.tree.shape import HEIGHTS, TREE, tree_arrangement

RECORDS = own("tree.nodes")  # the array of nodes
LAYOUT = AoAS()
ROUNDING = {4: 2.0**-20, 8: 2.0**-48}  # more than all roundings of a length, by bytes of a number
# the least scale of sources that lie in one place, in units of how far that is from the origin:
# targets elsewhere are not much nearer
CLOSEST = {4: 2.0**-20, 8: 2.0**-48}


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """The fields of a node. precision: of places; kind: of moments; estimated: its error is; boxed:
    its sources lie in a box around its centre, whose half sides it has.
    """

    axes: int
    precision: Scalar
    kind: Scalar
    moments: tuple[str, ...]
    estimated: bool = False
    boxed: bool = False

    @property
    def half(self) -> tuple[str, ...]:
        return tuple(f"half.{COMPONENTS[a]}" for a in range(self.axes))

    @property
    def low(self) -> tuple[str, ...]:
        return tuple(f"low.{COMPONENTS[a]}" for a in range(self.axes))

    @property
    def high(self) -> tuple[str, ...]:
        return tuple(f"high.{COMPONENTS[a]}" for a in range(self.axes))

    @property
    def centre(self) -> tuple[str, ...]:
        return tuple(f"centre.{COMPONENTS[a]}" for a in range(self.axes))

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        spread = ("size", "weight", "spread") if self.estimated else ()
        place = [Leaf(n, self.precision) for n in (*self.centre, "radius", *spread)]
        if self.boxed:
            return (*place, *(Leaf(n, self.precision) for n in self.half))
        moments = (Leaf(n, self.kind) for n in ("scale", *self.moments))
        return (*place, *moments, *(Leaf(n, self.precision) for n in (*self.low, *self.high)))

    @property
    def arrangement(self) -> Arrangement:
        return LAYOUT.arrange(self.leaves)

    def array(self, *, written: bool) -> ir.ArrayArgument:
        return record_array(RECORDS, self.leaves, LAYOUT, written=written)

    def local(self, name: str, prefix: str = "") -> ir.Local:
        """The variable that a field is read into."""
        kind = next(x.type for x in self.leaves if x.name == name)
        return ir.Local(own(f"{prefix}.{name}" if prefix else name), kind)

    def load(self, index: ir.Expression, names: tuple[str, ...], prefix: str = "") -> ir.LoadRecord:
        reads = tuple((n, self.local(n, prefix).name) for n in names)
        return ir.LoadRecord(RECORDS, index, reads)

    def store(self, index: ir.Expression) -> ir.StoreRecord:
        """All fields, each from its variable."""
        writes = tuple((x.name, self.local(x.name)) for x in self.leaves)
        return ir.StoreRecord(RECORDS, index, writes)


def node_record(operators: Operators, arguments: TreeArguments) -> NodeRecord:
    """The record of the nodes of a call."""
    moments = tuple(p.name.removeprefix(own("")) for p in operators.moments())
    axes = len(arguments.position)
    return NodeRecord(axes, arguments.precision, operators.kind, moments, arguments.estimated)


def shape_arrays() -> tuple[ir.ArrayArgument, ...]:
    """The arrays that say which nodes there are."""
    table = tree_arrangement()
    leaves = tuple(Leaf(s.leaf, s.type) for s in table.slots)
    return ir.ArrayArgument(TREE, leaves, table), value_array(HEIGHTS, I32, written=False)
