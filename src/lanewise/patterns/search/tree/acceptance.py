"""Whether a node is far enough from a group of targets to be met as a whole.

    radius < theta * distance of its centre from the nearest of them, squared on both sides
A function with branches on the distance has an expansion only where all pairs of the two take the
same side. Where an accuracy is requested, the estimate of the node's error has to be small as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lanewise.derivatives.expansions.branches import LARGEST, LEAST, decided
from lanewise.derivatives.expansions.operators import Operators
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.language.types import BOOL, Scalar
from lanewise.patterns.search.tree.arguments import THETA
from lanewise.patterns.search.tree.estimates import limit_of, small_enough
from lanewise.patterns.search.tree.group import GroupBox, OwnPlace
from lanewise.patterns.search.tree.inlining import applied
from lanewise.patterns.search.tree.nodes import ROUNDING, NodeRecord
from lanewise.patterns.search.tree.proxies import Proxies

FAR = ir.Local(own("far"), BOOL)


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Statements that decide it. size: targets of a group; targets: the number of all. theta: None
    for that of the call. lanes: targets are lanes.
    """

    operators: Operators | Proxies
    record: NodeRecord
    box: GroupBox | OwnPlace
    group: ir.Local
    size: int
    targets: ir.Expression
    theta: float | None
    estimated: bool
    lanes: bool

    def opening(self) -> ir.Block:
        """Once for a group. The square of the angle is a little smaller: roundings never take a
        near node for far.
        """
        room = ir.Literal(1.0 - ROUNDING[self.precision.size], self.precision)
        theta: ir.Expression = ir.Local(THETA, self.precision)
        if self.theta is not None:
            theta = ir.Literal(self.theta, self.precision)
        square = build.times(build.times(theta, theta), room)
        limit = limit_of(self.group, self.size, self.targets, self.record) if self.estimated else ()
        return (ir.Assign(self._real("theta2").name, square), *limit)

    def test(self, node: ir.Local) -> ir.Block:
        """`FAR`, of a node whose place was loaded."""
        centre = [self.record.local(n) for n in self.record.centre]
        once = self._test(node)
        if isinstance(self.box, OwnPlace):
            return (*self.box.gap(centre), *once)
        no, hope = ir.Unary("not", FAR, BOOL), self._wide(self.box.first2(centre))
        again = ir.If(ir.Logical("and", no, hope), (*self.box.nearer(centre), *once))
        return (*self.box.gap(centre), *once, again)

    def _wide(self, distance2: ir.Expression) -> ir.Expression:
        """Whether the angle allows it."""
        radius = self.record.local("radius")
        reach = build.times(self._real("theta2"), distance2)
        return ir.Compare("<", build.times(radius, radius), reach)

    def _test(self, node: ir.Local) -> ir.Block:
        test: list[ir.Statement] = [ir.Assign(FAR.name, self._wide(self.box.gap2))]
        if isinstance(self.operators, Operators) and self.operators.radial.branches:
            test.append(ir.If(FAR, self._decide(self.operators)))
        if self.estimated:
            found, small = small_enough(self.box.gap2, self.record, node.type)
            load = self.record.load(node, ("size",))
            test.append(ir.If(FAR, (load, *found, ir.Assign(FAR.name, small))))
        return tuple(test)

    def _decide(self, operators: Operators) -> ir.Block:
        """Whether all pairs take the same side of every branch: from the least and the largest
        square of their distances.
        """
        f, kind = decided(operators), operators.kind
        radius, room = self.record.local("radius"), 4 * ROUNDING[self.precision.size]
        centre = [self.record.local(n) for n in self.record.centre]
        near = build.minus(build.root(self.box.gap2), radius)
        corner = build.root(self.box.corner2(centre))
        least, largest = self._real("least"), self._real("largest")
        given: Mapping[str, ir.Expression] = {
            LEAST: self._square(least, 1.0 - room, kind),
            LARGEST: self._square(largest, 1.0 + room, kind),
        }
        return (
            ir.Assign(least.name, build.maximum(near, build.zero(self.precision))),
            ir.Assign(largest.name, build.plus(corner, radius)),
            *applied(f, given, (FAR.name,), "decided", in_lanes=self.lanes),
        )

    @property
    def precision(self) -> Scalar:
        return self.record.precision

    def _real(self, name: str) -> ir.Local:
        return ir.Local(own(f"walk.{name}"), self.precision)

    def _square(self, e: ir.Expression, room: float, kind: Scalar) -> ir.Expression:
        wide = build.times(build.times(e, e), ir.Literal(room, self.precision))
        return build.cast(wide, kind)
