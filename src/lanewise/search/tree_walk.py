"""How a kernel runs through a tree of boxes without a stack.

    node = 0
    while node < nodes:
        while node < nodes and no leaf was found:  near? node + 1, and a leaf is found : link
        for the sources of the leaf: visit
A node that is near is followed by its first child, which is the next in memory; from one that is not the walk goes on where the
node's subtree ends, which is its link. A leaf (its link is -1 - its number) is followed by the next node either way.

On a GPU. Neighbouring threads have neighbouring targets along the curve, so a warp reads nearly the same nodes: two loads of 16 bytes
that the first-level cache serves, and most of them once for all lanes. The inner loop has no branch but its end, so all lanes
test boxes, then all lanes look at sources; one loop with an `if` would make every lane wait at every leaf that any of them finds.
Sharing the walk (one for a warp, boxes in shared memory) would visit what any of 32 targets needs: with a few neighbours a target that is
about eight times as many sources as one target needs, more than the divergence costs. It would pay with dense neighbourhoods.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.search.base import Visit, Walk
from lanewise.search.box_expressions import BoxExpressions
from lanewise.types import Scalar

NODES = own("boxes.count")
SOURCES = own("boxes.sources")
NONE = -1  # no leaf


@dataclass(frozen=True, slots=True)
class TreeWalk(Walk):
    """The leaves of a tree that may hold a near source, each with `leaf` of them.

    begin_near: go down to the nearest leaf first, so that the bound is tight from the start; for lists of the nearest without a
    radius, where the first leaves in memory would fill the list with sources that are far.
    """

    index: Scalar
    precision: Scalar
    axes: int
    leaf: int
    periodic: bool
    begin_near: bool

    def arguments(self) -> tuple[ir.ArrayArgument, ...]:
        return (self.boxes.boxes(),)

    def uniforms(self) -> tuple[ir.Parameter, ...]:
        return (*self.boxes.uniforms(), ir.Parameter(NODES, self.index), ir.Parameter(SOURCES, self.index))

    @property
    def boxes(self) -> BoxExpressions:
        return BoxExpressions(self.index, self.precision, self.axes, self.periodic)

    def around(self, place: Sequence[ir.Local], bound2: ir.Expression, visit: Visit) -> ir.Block:
        b = self.boxes
        node, leaf, found = b.whole("node"), b.whole("leaf"), b.whole("found")
        more, none = build.less(node, ir.Local(NODES, self.index)), build.less(leaf, 0)
        search = ir.While(ir.Logical("and", more, none), self.step(place, bound2, node, leaf, found))
        visits = ir.If(ir.Compare(">=", leaf, b.number(0)), self.sources(leaf, visit))
        rest: ir.Expression = more
        if self.begin_near:
            rest = ir.Logical("or", more, ir.Compare(">=", leaf, b.number(0)))
        first = self.nearest_leaf(place, node, leaf) if self.begin_near else (ir.Assign(leaf.name, b.number(NONE)),)
        return (
            *b.start(place),
            *first,
            *((ir.Assign(found.name, leaf),) if self.begin_near else ()),
            ir.Assign(node.name, b.number(0)),
            ir.While(rest, (search, visits, ir.Assign(leaf.name, b.number(NONE)))),
        )

    def step(
        self, place: Sequence[ir.Local], bound2: ir.Expression, node: ir.Local, leaf: ir.Local, first: ir.Local
    ) -> ir.Block:
        """One box: the leaf that it is, if it is near and one, and the next node."""
        b = self.boxes
        link, near, following = b.whole("next"), b.flag("near"), b.whole("following")
        number = build.maximum(build.subtract(b.number(NONE), link), NONE)
        found: ir.Expression = ir.Select(near, number, b.number(NONE), self.index)
        skipped: ir.Block = ()
        if self.begin_near:  # its sources were met at the beginning
            skipped = (ir.Assign(leaf.name, ir.Select(build.equal(leaf, first), b.number(NONE), leaf, self.index)),)
        return (
            b.fetch(node),
            ir.Assign(link.name, ir.Cast(b.link, self.index)),
            *b.distance(place),
            ir.Assign(near.name, b.near(bound2)),
            ir.Assign(leaf.name, found),
            *skipped,
            ir.Assign(following.name, build.add(node, 1)),
            ir.Assign(node.name, ir.Select(near, following, build.maximum(link, following), self.index)),
        )

    def sources(self, leaf: ir.Local, visit: Visit) -> ir.Block:
        """The sources of a leaf; the last leaf may have fewer."""
        b, j = self.boxes, self.boxes.whole("j")
        first, last = b.whole("first"), b.whole("last")
        end = build.minimum(build.add(first, self.leaf), ir.Local(SOURCES, self.index))
        return (
            ir.Assign(first.name, build.multiply(leaf, self.leaf)),
            ir.Assign(last.name, end),
            ir.For(j.name, first, last, b.number(1), visit(j)),
        )

    def nearest_leaf(self, place: Sequence[ir.Local], node: ir.Local, leaf: ir.Local) -> ir.Block:
        """Down from the root to a leaf, each time to the child that is nearest, and of those the first."""
        b = self.boxes
        link, child, end, best = b.whole("next"), b.whole("child"), b.whole("end"), b.real("best")
        nearer = ir.Compare("<", b.real("d2"), best)
        take = (ir.Assign(best.name, b.real("d2")), ir.Assign(node.name, child))
        look = (
            b.fetch(child),
            ir.Assign(link.name, ir.Cast(b.link, self.index)),
            *b.distance(place),
            ir.If(nearer, take),
            ir.Assign(child.name, build.maximum(link, build.add(child, 1))),
        )
        down = (
            ir.Assign(child.name, build.add(node, 1)),
            ir.Assign(node.name, child),
            ir.Assign(best.name, ir.Literal(float("inf"), self.precision)),
            ir.While(build.less(child, end), look),
            *self._end_of(node, end),
        )
        return (
            ir.Assign(node.name, b.number(0)),
            *self._end_of(node, end),
            ir.While(ir.Compare(">=", end, b.number(0)), down),
            ir.Assign(leaf.name, build.subtract(b.number(NONE), end)),
        )

    def _end_of(self, node: ir.Local, end: ir.Local) -> ir.Block:
        b = self.boxes
        return (b.fetch(node), ir.Assign(end.name, ir.Cast(b.link, self.index)))
