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
from typing import Literal

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.search.base import Visit, Walk
from lanewise.search.box_expressions import BoxExpressions
from lanewise.search.build.tree import FAN
from lanewise.types import Scalar

Begin = Literal["root", "own", "nearest"]
NODES = own("boxes.count")
LEAVES = own("boxes.leaves")
TOP = own("boxes.top")  # the level of the root
SOURCES = own("boxes.sources")
ELEMENT = own("i")  # the target of a kernel over a search; its sorted place where targets are sources
NONE = -1  # no leaf
NOWHERE = -(2**30)  # no leaf that any others are near


@dataclass(frozen=True, slots=True)
class TreeWalk(Walk):
    """The leaves of a tree that may hold a near source, each with `leaf` of them.

    begin: for lists of the nearest, whose bound is then tight from the start instead of being filled by the first leaves in memory.
    "own": at the leaf that has the target's number among its own, when its box has the target in it, as it always has where
    targets are sources. "nearest": there, or else at the leaf that going down to the nearest child leads to. `together`
    leaves around it are met first: enough to fill the list.
    """

    index: Scalar
    precision: Scalar
    axes: int
    leaf: int
    periodic: bool
    begin: Begin
    together: int = 1

    def arguments(self) -> tuple[ir.ArrayArgument, ...]:
        return (self.boxes.boxes(),)

    def uniforms(self) -> tuple[ir.Parameter, ...]:
        names = (NODES, SOURCES) if self.begin == "root" else (NODES, SOURCES, LEAVES, TOP)
        return (*self.boxes.uniforms(), *(ir.Parameter(n, self.index) for n in names))

    @property
    def boxes(self) -> BoxExpressions:
        return BoxExpressions(self.index, self.precision, self.axes, self.periodic)

    def around(self, place: Sequence[ir.Local], bound2: ir.Expression, visit: Visit) -> ir.Block:
        b = self.boxes
        node, leaf, first = b.whole("node"), b.whole("leaf"), b.whole("first.leaf")
        more, none = build.less(node, ir.Local(NODES, self.index)), build.less(leaf, 0)
        search = ir.While(ir.Logical("and", more, none), self.step(place, bound2, node, leaf))
        visits = ir.If(ir.Compare(">=", leaf, b.number(0)), self.sources(leaf, visit))
        begins = self.begin != "root"
        rest = ir.Logical("or", more, ir.Compare(">=", leaf, b.number(0))) if begins else more
        return (
            *b.start(place),
            ir.Assign(leaf.name, b.number(NONE)),
            *(self.beginning(place, leaf, first) if begins else ()),
            ir.Assign(node.name, b.number(0)),
            ir.While(rest, (search, visits, ir.Assign(leaf.name, b.number(NONE)))),
        )

    def step(self, place: Sequence[ir.Local], bound2: ir.Expression, node: ir.Local, leaf: ir.Local) -> ir.Block:
        """One box: the leaf that it is, if it is near and one, and the next node."""
        b = self.boxes
        link, near, following = b.whole("next"), b.flag("near"), b.whole("following")
        number = build.maximum(build.subtract(b.number(NONE), link), NONE)
        found: ir.Expression = ir.Select(near, number, b.number(NONE), self.index)
        skipped: ir.Block = ()
        if self.begin != "root":  # the sources of that leaf were met at the beginning
            first = b.whole("first.leaf")
            met = ir.Logical(
                "and", ir.Compare(">=", leaf, first), build.less(leaf, build.add(first, self.together))
            )  # fmt: skip
            skipped = (ir.Assign(leaf.name, ir.Select(met, b.number(NONE), leaf, self.index)),)
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
        """The sources of a leaf, or of the first leaves together; the last leaf may have fewer."""
        b, j, first, last = (self.boxes, *(self.boxes.whole(n) for n in ("j", "first", "last")))
        size: ir.Expression = b.number(self.leaf)
        then: ir.Block = ()
        if self.begin != "root" and self.together > 1:
            size = b.whole("size")
            then = (ir.Assign(b.whole("size").name, b.number(self.leaf)),)
        end = build.minimum(build.add(first, size), ir.Local(SOURCES, self.index))
        return (
            ir.Assign(first.name, build.multiply(leaf, self.leaf)),
            ir.Assign(last.name, end),
            ir.For(j.name, first, last, b.number(1), visit(j)),
            *then,
        )

    # ------------------------------------------------------------ where to begin

    def beginning(self, place: Sequence[ir.Local], leaf: ir.Local, first: ir.Local) -> ir.Block:
        """The leaf to begin with, if there is one, or the first of several."""
        b, own_leaf = self.boxes, self.boxes.whole("own.leaf")
        number = build.divide(ir.Local(ELEMENT, self.index), self.leaf)
        last = build.subtract(ir.Local(LEAVES, self.index), 1)
        inside = ir.Compare("==", b.real("d2"), ir.Literal(0.0, self.precision))
        down = self.nearest_leaf(place) if self.begin == "nearest" else ()
        return (
            ir.Assign(own_leaf.name, build.minimum(number, last)),
            *self.place_of(own_leaf),
            b.fetch(b.whole("node")),
            *b.distance(place),
            ir.If(inside, (ir.Assign(leaf.name, own_leaf),), down),
            *(self.several(leaf) if self.together > 1 else ()),
            ir.Assign(first.name, ir.Select(build.less(leaf, 0), b.number(NOWHERE), leaf, self.index)),
        )

    def several(self, leaf: ir.Local) -> ir.Block:
        """Instead of one leaf, the first of those around it."""
        b = self.boxes
        last = build.subtract(ir.Local(LEAVES, self.index), self.together)
        around = build.maximum(build.minimum(build.subtract(leaf, self.together // 2), last), 0)
        return (
            ir.Assign(b.whole("size").name, b.number(self.leaf * self.together)),
            ir.If(
                ir.Compare(">=", leaf, b.number(0)),
                (ir.Assign(leaf.name, around),),
                (ir.Assign(b.whole("size").name, b.number(self.leaf)),),
            ),
        )

    def place_of(self, leaf: ir.Local) -> ir.Block:
        """`$walk.node`: where a leaf lies in memory, as `Tree.places` computes it."""
        b, top = self.boxes, ir.Local(TOP, self.index)
        node, number, nodes, level = (b.whole(n) for n in ("node", "number", "nodes", "level"))
        up = (
            ir.Assign(node.name, build.add(node, build.multiply(build.remainder(number, FAN), nodes))),
            ir.Assign(number.name, build.divide(number, FAN)),
            ir.Assign(nodes.name, build.add(build.multiply(nodes, FAN), 1)),
        )
        return (
            ir.Assign(node.name, top),
            ir.Assign(number.name, leaf),
            ir.Assign(nodes.name, b.number(1)),
            ir.For(level.name, b.number(0), top, b.number(1), up),
        )

    def nearest_leaf(self, place: Sequence[ir.Local]) -> ir.Block:
        """Down from the root, each time to the child whose box is nearest, and of several to the one whose centre is."""
        b = self.boxes
        node, child, link, end = (b.whole(n) for n in ("node", "child", "next", "end"))
        d2, best, middle, best_middle = (b.real(n) for n in ("d2", "best", "middle", "best.middle"))
        tie = ir.Logical("and", ir.Compare("==", d2, best), ir.Compare("<", middle, best_middle))
        take = (
            ir.Assign(best.name, d2),
            ir.Assign(best_middle.name, middle),
            ir.Assign(node.name, child),
        )
        look = (
            b.fetch(child),
            ir.Assign(link.name, ir.Cast(b.link, self.index)),
            *b.distance(place),
            *b.distance_of_centre(place),
            ir.If(ir.Logical("or", ir.Compare("<", d2, best), tie), take),
            ir.Assign(child.name, build.maximum(link, build.add(child, 1))),
        )
        infinite = ir.Literal(float("inf"), self.precision)
        down = (
            ir.Assign(child.name, build.add(node, 1)),
            ir.Assign(node.name, child),
            ir.Assign(best.name, infinite),
            ir.Assign(best_middle.name, infinite),
            ir.While(build.less(child, end), look),
            *self.end_of(node, end),
        )
        return (
            ir.Assign(node.name, b.number(0)),
            *self.end_of(node, end),
            ir.While(ir.Compare(">=", end, b.number(0)), down),
            ir.Assign(b.whole("leaf").name, build.subtract(b.number(NONE), end)),
        )

    def end_of(self, node: ir.Local, end: ir.Local) -> ir.Block:
        """Where the subtree of a node ends; of a leaf, -1 - its number."""
        return (self.boxes.fetch(node), ir.Assign(end.name, ir.Cast(self.boxes.link, self.index)))
