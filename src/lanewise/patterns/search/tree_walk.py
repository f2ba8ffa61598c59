"""How a kernel runs through a tree of boxes without a stack.

    node = 0
    while node < nodes or leaves wait:
        for the leaves that wait: for their sources: visit while node < nodes and fewer than
        `waiting` leaves wait:  near? node + 1, and a leaf waits : link
A node that is near is followed by its first child, which is the next in memory; from one that is
not the walk continues where the node's subtree ends, which is its link. A leaf (its link is -1 -
its number) is followed by the next node either way.

On a GPU. Neighbouring threads have neighbouring targets along the curve, so a warp reads nearly the
same nodes: two loads of 16 bytes that the first-level cache serves, three or four lines of it for
32 lanes. The inner loop has no branch but its end, so all lanes test boxes, then all lanes look at
sources; one loop with an `if` would make every lane wait at every leaf that any of them finds.
Lanes find leaves after different numbers of boxes, and each turn lasts as long as its slowest lane.
So leaves wait until there are four: of a million elements with two neighbours each a warp then
tests 136 boxes, with one 245, where one lane alone needs 67. Sharing the walk (one for a warp,
boxes in shared memory) would test the boxes that any of 32 targets needs: 231.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.language.types import Scalar
from lanewise.patterns.search.base import Visit, Walk
from lanewise.patterns.search.box_expressions import BoxExpressions
from lanewise.patterns.search.builders.tree import FAN

Begin = Literal["root", "own", "nearest"]
NODES = own("boxes.count")
LEAVES = own("boxes.leaves")
TOP = own("boxes.top")  # the level of the root
SOURCES = own("boxes.sources")
# the target of a kernel over a search; its sorted place where targets are sources
ELEMENT = own("i")
NONE = -1  # no leaf
NOWHERE = -(2**30)  # no leaf that any others are near


@dataclass(frozen=True, slots=True)
class TreeWalk(Walk):
    """The leaves of a tree that may hold a near source, each with `leaf` of them.

    begin: for lists of the nearest, whose bound is then tight from the start instead of being
    filled by the first leaves in memory. "own": at the leaf that has the target's number among its
    own, when its box has the target in it, as it always has where targets are sources. "nearest":
    there, or else at the leaf that going down to the nearest child leads to. `together` leaves
    around it are met first: enough to fill the list. waiting: leaves found before their sources are
    looked at.
    """

    index: Scalar
    precision: Scalar
    axes: int
    leaf: int
    periodic: bool
    begin: Begin
    together: int = 1
    waiting: int = 1

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
        node, count = b.whole("node"), self.count
        more = build.less(node, ir.Local(NODES, self.index))
        waits = ir.Compare(">", count, b.number(0))
        search = ir.While(
            ir.Logical("and", more, build.less(count, self.waiting)), self.step(place, bound2, node)
        )  # fmt: skip
        empty: ir.Block = tuple(ir.Assign(w.name, b.number(NONE)) for w in self.line)
        return (
            *b.start(place),
            *empty,
            ir.Assign(count.name, b.number(0)),
            *(self.beginning(place) if self.begin != "root" else ()),
            ir.Assign(node.name, b.number(0)),
            ir.While(
                ir.Logical("or", more, waits), (ir.While(waits, self.first_in_line(visit)), search)
            ),
        )

    @property
    def line(self) -> list[ir.Local]:
        """The leaves that wait: the one that came last is the first here."""
        return [self.boxes.whole(f"waits.{n}") for n in range(self.waiting)]

    @property
    def count(self) -> ir.Local:
        """How many leaves wait."""
        return self.boxes.whole("waiting")

    def step(self, place: Sequence[ir.Local], bound2: ir.Expression, node: ir.Local) -> ir.Block:
        """One box: if it is near and a leaf, that one waits; and the next node."""
        b = self.boxes
        leaf = b.whole("leaf")
        link = b.whole("next")
        near = b.flag("near")
        following = b.whole("following")
        reached: ir.Expression = ir.Logical("and", near, ir.Compare(">=", leaf, b.number(0)))
        if self.begin != "root":  # the sources of those were met at the beginning
            first = b.whole("first.leaf")
            other = ir.Logical(
                "or",
                build.less(leaf, first),
                ir.Compare(">=", leaf, build.add(first, self.together)),
            )
            reached = ir.Logical("and", reached, other)
        return (
            b.load(node),
            ir.Assign(link.name, build.index_of(b.link, self.index)),
            *b.distance(place),
            ir.Assign(near.name, b.near(bound2)),
            ir.Assign(leaf.name, build.subtract(b.number(NONE), link)),
            ir.Assign(b.flag("found").name, reached),
            *self.join(leaf, b.flag("found")),
            ir.Assign(following.name, build.add(node, 1)),
            ir.Assign(
                node.name, ir.Select(near, following, build.maximum(link, following), self.index)
            ),
        )

    def join(self, leaf: ir.Local, reached: ir.Local) -> ir.Block:
        """A leaf that was found waits from now on."""
        b, line = self.boxes, self.line
        moved = tuple(
            ir.Assign(to.name, ir.Select(reached, by, to, self.index))
            for to, by in reversed(list(zip(line, [leaf, *line[:-1]], strict=True)))
        )
        one = ir.Select(reached, b.number(1), b.number(0), self.index)
        return (*moved, ir.Assign(self.count.name, build.add(self.count, one)))

    def first_in_line(self, visit: Visit) -> ir.Block:
        """The sources of the leaf that has waited longest: leaves are met in the order of the
        curve, however many wait.
        """
        leaf, line = self.boxes.whole("leaf"), self.line
        longest: ir.Expression = line[0]
        for number, other in enumerate(line[1:], 2):
            longest = ir.Select(
                ir.Compare(">=", self.count, self.boxes.number(number)), other, longest, self.index
            )
        return (
            ir.Assign(leaf.name, longest),
            ir.Assign(self.count.name, build.subtract(self.count, 1)),
            *self.sources(leaf, visit),
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

    def beginning(self, place: Sequence[ir.Local]) -> ir.Block:
        """The leaf to begin with, if there is one, or the first of several: it waits."""
        b, own_leaf = self.boxes, self.boxes.whole("own.leaf")
        leaf, first = b.whole("leaf"), b.whole("first.leaf")
        number = build.divide(ir.Local(ELEMENT, self.index), self.leaf)
        last = build.subtract(ir.Local(LEAVES, self.index), 1)
        inside = ir.Compare("==", b.real("d2"), ir.Literal(0.0, self.precision))
        down = self.nearest_leaf(place) if self.begin == "nearest" else ()
        some = ir.Compare(">=", leaf, b.number(0))
        return (
            ir.Assign(leaf.name, b.number(NONE)),
            ir.Assign(own_leaf.name, build.minimum(number, last)),
            *self.place_of(own_leaf),
            b.load(b.whole("node")),
            *b.distance(place),
            ir.If(inside, (ir.Assign(leaf.name, own_leaf),), down),
            *(self.several(leaf) if self.together > 1 else ()),
            ir.Assign(first.name, ir.Select(some, leaf, b.number(NOWHERE), self.index)),
            ir.Assign(b.flag("found").name, some),
            *self.join(leaf, b.flag("found")),
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
        """`$walk.node`: where a leaf lies in memory, as `BoxTree.places` computes it."""
        b, top = self.boxes, ir.Local(TOP, self.index)
        node, number, nodes, level = (b.whole(n) for n in ("node", "number", "nodes", "level"))
        up = (
            ir.Assign(
                node.name, build.add(node, build.multiply(build.remainder(number, FAN), nodes))
            ),
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
        """Down from the root, each time to the child whose box is nearest, and of several to the
        one whose centre is.
        """
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
            b.load(child),
            ir.Assign(link.name, build.index_of(b.link, self.index)),
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
        return (
            self.boxes.load(node),
            ir.Assign(end.name, build.index_of(self.boxes.link, self.index)),
        )
