"""Groups of sources meet groups of targets: what they give is an expansion around the targets.

    for a node a, from the root down: its expansion = L2L of its parent's
        for each node of the list that its parent left:
            walk through what is below it:
                far from a, radius + radius < theta * distance:
                    into a's queue; behind its subtree
                a leaf, or smaller than a, which is none:  into a's list; behind its subtree
                else:                                      its left child
        whenever the queue is full, and at last: add M2L of all in it
M2L is most of the work. The threads of a warp find what is far in different steps, and would wait
for each other at every one; with queues all of them have about as much to add at the same time.

Near the root there are few nodes, and one thread each would leave a GPU idle for as long as one of
them takes. There several threads share a node (`slices_of`): each has every so manieth entry of the
parent's list, and leaves what it finds to a second kernel, which puts it together in their order.

So each pair of elements is met once: by M2L of two groups that they are in, or from the list of a
leaf as pairs. A list has room for `ROOM` nodes. Where it is full a node is left as it is, for the
children of a, and at last for the walk, which opens it: no result depends on the room. Nor does one
on the room of a queue, for nodes are added in the order in which they are found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

from lanewise.derivatives.expansions.branches import LARGEST, LEAST, decided
from lanewise.derivatives.expansions.operators import Operators
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import identifier, own
from lanewise.ir.values import record_array, uniform_leaves, value_array
from lanewise.language.record import Leaf
from lanewise.language.types import COMPONENTS, I32, I64, Scalar
from lanewise.layouts import AoAS, Arrangement
from lanewise.patterns.search.tree.acceptance import FAR
from lanewise.patterns.search.tree.arguments import (
    HEIGHT_COUNT,
    HEIGHT_FIRST,
    THETA,
    TreeArguments,
)
from lanewise.patterns.search.tree.moments import MOMENTS
from lanewise.patterns.search.tree.nodes import ROUNDING, node_record, shape_arrays
from lanewise.patterns.search.tree.reading import read_whole
from lanewise.patterns.search.tree.shape import HEIGHTS, PARENTS, TREE

LOCALS = own("tree.locals")  # the expansions around the targets of nodes
LISTS, LENGTHS = own("tree.lists"), own("tree.lengths")  # of each node what it left, and how many
QUEUES = own("tree.queues")  # of each thread what is far from its node and was not added yet
QUEUE = 128  # nodes of a queue: 16 bytes per element of a tree with leaves of 32
HOST_QUEUE = 8  # the same on a CPU, whose threads do not wait for each other
ROOM = 128  # nodes of a list: 64 bytes per element of a tree with leaves of 16
SLICES = 8  # threads that share a node, at most
# threads of a height whose nodes are shared, as far as they go: they fill a GPU once
THREADS, HOST_THREADS = 2**15, 0
HEIGHT_SLICES = own("height.slices")
LAYOUT = AoAS()
TARGET, ABOVE = "target", "above"  # prefixes of the fields of a node of targets, and of its parent


@dataclass(frozen=True, slots=True)
class LocalRecord:
    """The coefficients of a node's local expansions."""

    operators: Operators

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        return tuple(Leaf(p.name.removeprefix(own("")), p.type) for p in self.operators.locals())

    @property
    def arrangement(self) -> Arrangement:
        return LAYOUT.arrange(self.leaves)

    def array(self, *, written: bool) -> ir.ArrayArgument:
        return record_array(LOCALS, self.leaves, LAYOUT, written=written)

    def variables(self, prefix: str = "") -> tuple[ir.Local, ...]:
        """Without a prefix they have the names that operators give them."""
        before = f"{prefix}." if prefix else ""
        return tuple(ir.Local(own(f"{before}{x.name}"), x.type) for x in self.leaves)

    def load(self, node: ir.Expression, prefix: str = "") -> ir.LoadRecord:
        fields = zip(self.leaves, self.variables(prefix), strict=True)
        return ir.LoadRecord(LOCALS, node, tuple((x.name, v.name) for x, v in fields))

    def store(self, node: ir.Expression) -> ir.StoreRecord:
        fields = zip(self.leaves, self.variables(), strict=True)
        return ir.StoreRecord(LOCALS, node, tuple((x.name, v) for x, v in fields))


def queue_of(index: Scalar) -> int:
    """The nodes of a queue, of a kernel that counts in these."""
    return HOST_QUEUE if index == I64 else QUEUE


def slices_of(height: int, top: int, index: Scalar) -> int:
    """How many threads share a node of this height, of a kernel that counts in these: a power of
    two. No height has more of them than half of all leaves: what they find lies where leaves will
    have theirs, which come last.
    """
    threads = HOST_THREADS if index == I64 else THREADS
    most = min(SLICES, threads >> (top - height), (1 << height) // 2)
    return max(most, 1)


def list_arrays(*, written: bool) -> tuple[ir.ArrayArgument, ...]:
    """The lists of all nodes, and their lengths."""
    return tuple(value_array(n, I32, written=written) for n in (LISTS, LENGTHS))


def read_list(node: ir.Local, length: ir.Local) -> ir.Block:
    """How many nodes the list of a node has. That of the root has the root."""
    root = ir.Assign(length.name, ir.Literal(1, length.type))
    return (ir.If(build.equal(node, 0), (root,), read_whole(LENGTHS, node, (("value", length),))),)


def read_entry(node: ir.Local, e: ir.Local, entry: ir.Local) -> ir.Block:
    """A node of this list."""
    root = ir.Assign(entry.name, ir.Literal(0, entry.type))
    place = build.add(build.multiply(node, ROOM), e)
    return (ir.If(build.equal(node, 0), (root,), read_whole(LISTS, place, (("value", entry),))),)


def build_group_pairs(operators: Operators, arguments: TreeArguments, index: Scalar) -> ir.Kernel:
    """The kernel over the nodes of one height, as targets, after those above."""
    return _Builder(operators, arguments, index).kernel()


def build_slices(operators: Operators, arguments: TreeArguments, index: Scalar) -> ir.Kernel:
    """The same where several threads share a node."""
    return _Builder(operators, arguments, index, sliced=True).kernel()


def build_collected(operators: Operators, arguments: TreeArguments, index: Scalar) -> ir.Kernel:
    """The kernel over the same threads that puts together what they found of each node."""
    return _Builder(operators, arguments, index, sliced=True).collected()


class _Builder:
    def __init__(
        self,
        operators: Operators,
        arguments: TreeArguments,
        index: Scalar,
        *,
        sliced: bool = False,
    ) -> None:
        self.operators, self.a, self.index, self.sliced = operators, arguments, index, sliced
        self.record, self.locals = node_record(operators, arguments), LocalRecord(operators)
        self.precision = arguments.precision
        self.target, self.above, self.length = (self.whole(n) for n in (TARGET, ABOVE, "length"))
        self.node, self.entries, self.e = (self.whole(n) for n in ("node", "entries", "e"))
        self.end, self.queued = (self.whole(n) for n in ("end", "queued"))
        # where several threads share a node: the row of this one's expansion, the row of the lists
        # of all of them, and how many nodes each may leave
        self.thread, self.slice, self.room = (self.whole(n) for n in ("t", "slice", "room"))
        self.row = self.whole("row") if sliced else self.target
        self.segments = self.whole("segments")

    def kernel(self) -> ir.Kernel:
        body = (
            *self.found(),
            self.record.load(self.target, (*self.record.centre, "radius", "scale"), TARGET),
            *self.opening(),
            *(self.nothing() if self.sliced else self.shifted()),
            *read_list(self.above, self.entries),
            *self.starting(),
            ir.While(self.more(), (*self.filled(), *self.emptied())),
            self.written(LENGTHS, self.row, self.length),
            self.locals.store(self.row),
        )
        functions = [self.operators.m2l()]
        if self.operators.radial.branches:
            functions.append(decided(self.operators))
        uniforms = dict(self.a.uniforms)
        read = {p.name: p for f in functions for p in uniform_leaves(f, uniforms)}
        theta = ir.Parameter(THETA, self.precision)
        queues = value_array(QUEUES, I32, written=True)
        name = "slices" if self.sliced else "pairs"
        return self.over_threads(f"{name}_of_groups", body, (queues,), (theta, *read.values()))

    def over_threads(
        self,
        name: str,
        body: ir.Block,
        more: tuple[ir.ArrayArgument, ...] = (),
        uniforms: tuple[ir.Parameter, ...] = (),
    ) -> ir.Kernel:
        """The kernel of this body for each thread of a height."""
        function, numbers = self.operators.proof.function, [HEIGHT_COUNT, HEIGHT_FIRST]
        if self.sliced:
            numbers.append(HEIGHT_SLICES)
        return ir.Kernel(
            identifier(f"{function.name}_{name}"),
            MOMENTS,
            (
                *shape_arrays(),
                value_array(PARENTS, I32, written=False),
                self.record.array(written=False),
                self.locals.array(written=True),
                *list_arrays(written=True),
                *more,
            ),
            uniforms,
            tuple(ir.Parameter(n, self.index) for n in numbers),
            (ir.Parallel(self.thread.name, ir.Local(HEIGHT_COUNT, self.index), body),),
            location=function.location,
        )

    def found(self) -> ir.Block:
        """The node of the thread, its parent, and what is written where."""
        first, n = ir.Local(HEIGHT_FIRST, self.index), self.thread
        sliced = ()
        if self.sliced:
            n, slices = self.whole("n"), ir.Local(HEIGHT_SLICES, self.index)
            room = build.divide(ir.Literal(ROOM, self.index), slices)
            sliced = (
                ir.Assign(n.name, build.divide(self.thread, slices)),
                ir.Assign(
                    self.slice.name,
                    build.subtract(self.thread, build.multiply(n, slices)),
                ),
                ir.Assign(self.room.name, room),
                *read_whole(HEIGHTS, self.thread, (("value", self.row),)),
                *read_whole(HEIGHTS, n, (("value", self.segments),)),
            )
        return (
            *sliced,
            *read_whole(HEIGHTS, build.add(first, n), (("value", self.target),)),
            *read_whole(PARENTS, self.target, (("value", self.above),)),
            *self.shape(self.target, self.whole("target.leaves")),
        )

    def opening(self) -> ir.Block:
        """The square of the angle, a little smaller than it is."""
        theta, room = ir.Local(THETA, self.precision), 1.0 - ROUNDING[self.precision.size]
        square = build.times(build.times(theta, theta), ir.Literal(room, self.precision))
        return (ir.Assign(self.real("theta2").name, square),)

    # ------------------------------------------------------------ from above

    def shifted(self) -> ir.Block:
        """The parent's expansion around the centre of the node; the root has none."""
        given: dict[str, ir.Expression] = {
            own("child.scale"): self.record.local("scale", TARGET),
            own("parent.scale"): self.record.local("scale", ABOVE),
        }
        for c, name in zip(COMPONENTS, self.record.centre, strict=False):
            given[own(f"child.{c}")] = self.record.local(name, TARGET)
            given[own(f"parent.{c}")] = self.record.local(name, ABOVE)
        results = self.locals.variables()
        for v, up in zip(results, self.locals.variables(ABOVE), strict=True):
            given[v.name] = up
        shift = (
            self.record.load(self.above, (*self.record.centre, "scale"), ABOVE),
            self.locals.load(self.above, ABOVE),
            self.apply(self.operators.l2l(), given, tuple(v.name for v in results)),
        )
        return (*self.nothing(), ir.If(build.less(0, self.above), shift))

    def nothing(self) -> ir.Block:
        return tuple(ir.Assign(v.name, build.zero(v.type)) for v in self.locals.variables())

    # ------------------------------------------------------------ threads that share a node

    def collected(self) -> ir.Kernel:
        """The lists of all threads of a node, one after the other, and the sum of expansions."""
        zero, one = (ir.Literal(n, self.index) for n in (0, 1))
        slices, k, row = ir.Local(HEIGHT_SLICES, self.index), self.whole("k"), self.whole("other")
        first = self.whole("slices.first")
        length, other, entry = (self.whole(n) for n in ("length", "other.length", "entry"))
        begin, totals = self.whole("begin"), self.locals.variables()
        row_of = read_whole(HEIGHTS, build.add(first, k), (("value", row),))
        parts = self.locals.variables("part")
        before = (*row_of, *read_whole(LENGTHS, row, (("value", other),)))
        moved = (
            *read_whole(LISTS, build.add(self.segment, k), (("value", entry),)),
            self.written(
                LISTS, build.add(build.multiply(self.target, ROOM), build.add(begin, k)), entry
            ),
        )
        added = (
            *row_of,
            self.locals.load(row, "part"),
            *(ir.Assign(v.name, build.plus(v, p)) for v, p in zip(totals, parts, strict=True)),
        )
        last = build.equal(self.slice, build.subtract(slices, 1))
        body = (
            *self.found(),
            ir.Assign(first.name, build.subtract(self.thread, self.slice)),
            ir.Assign(begin.name, zero),
            ir.For(
                k.name, zero, self.slice, one,
                (*before, ir.Assign(begin.name, build.add(begin, other))),
            ),
            *read_whole(LENGTHS, self.row, (("value", length),)),
            ir.For(k.name, zero, length, one, moved),
            ir.Assign(length.name, build.add(begin, length)),
            ir.If(last, (self.written(LENGTHS, self.target, length),)),
            ir.If(
                build.equal(self.slice, 0),
                (
                    self.record.load(self.target, (*self.record.centre, "scale"), TARGET),
                    *self.shifted(),
                    ir.For(k.name, zero, slices, one, added),
                    self.locals.store(self.target),
                ),
            ),
        )  # fmt: skip
        return self.over_threads("collected_groups", body)

    @property
    def list(self) -> ir.Expression:
        """Where what a thread leaves begins."""
        return self.segment if self.sliced else build.multiply(self.target, ROOM)

    @property
    def segment(self) -> ir.Expression:
        """Where the list of a thread begins."""
        behind = build.multiply(self.slice, self.room)
        return build.add(build.multiply(self.segments, ROOM), behind)

    @property
    def left(self) -> ir.Expression:
        """How many nodes of the parent's list are still to be looked at."""
        return self.whole("left") if self.sliced else build.subtract(self.entries, self.e)

    # ------------------------------------------------------------ the queue

    def starting(self) -> ir.Block:
        zero = ir.Literal(0, self.index)
        open_ = self.whole("open")
        variables = (self.length, self.e, self.queued, self.node, self.end, open_)
        none = tuple(ir.Assign(v.name, zero) for v in variables)
        if not self.sliced:
            return none
        slices = ir.Local(HEIGHT_SLICES, self.index)
        others = build.subtract(build.add(self.entries, slices), build.add(self.slice, 1))
        return (
            *none,
            ir.Assign(self.e.name, self.slice),
            ir.Assign(self.whole("left").name, build.divide(others, slices)),
        )

    def more(self) -> ir.Expression:
        """Whether any source is still to be looked at."""
        return ir.Logical("or", build.less(self.e, self.entries), build.less(self.node, self.end))

    def filled(self) -> ir.Block:
        """Look at nodes until the queue is full."""
        room = ir.Logical("and", build.less(self.queued, queue_of(self.index)), self.more())
        below = build.less(self.node, self.end)
        return (ir.While(room, (ir.If(below, self.step(), self.following_entry()),)),)

    def following_entry(self) -> ir.Block:
        entry, of_entry = self.whole("entry"), self.whole("entry.leaves")
        below = build.subtract(build.multiply(of_entry, 2), 1)
        step: ir.Expression = ir.Literal(1, self.index)
        counted: ir.Block = ()
        if self.sliced:
            step, left = ir.Local(HEIGHT_SLICES, self.index), self.whole("left")
            counted = (ir.Assign(left.name, build.subtract(left, 1)),)
        return (
            *read_entry(self.above, self.e, entry),
            *self.shape(entry, of_entry),
            ir.Assign(self.node.name, entry),
            ir.Assign(self.end.name, build.add(entry, below)),
            ir.Assign(self.whole("open").name, ir.Literal(1, self.index)),
            ir.Assign(self.e.name, build.add(self.e, step)),
            *counted,
        )

    def emptied(self) -> ir.Block:
        """Add what the nodes of the queue give, in the order in which they were found."""
        zero, one = (ir.Literal(n, self.index) for n in (0, 1))
        i, far = self.whole("i"), self.whole("far.node")
        read = read_whole(QUEUES, self.queue_place(i), (("value", far),))
        added = ir.For(i.name, zero, self.queued, one, (*read, *self.met(far)))
        return (added, ir.Assign(self.queued.name, zero))

    def queue_place(self, i: ir.Local) -> ir.Expression:
        """No height has more nodes than there are leaves."""
        return build.add(build.multiply(self.whole("t"), queue_of(self.index)), i)

    # ------------------------------------------------------------ one node of sources

    def step(self) -> ir.Block:
        following, leaves, of_target = (
            self.whole(n) for n in ("following", "leaves", "target.leaves")
        )
        beyond = build.add(self.node, build.subtract(build.multiply(leaves, 2), 1))
        open_, one = self.whole("open"), 1
        radius, own_radius = self.record.local("radius"), self.record.local("radius", TARGET)
        smaller = build.all_of(build.less(1, of_target), ir.Compare("<", radius, own_radius))
        room: int | ir.Expression = build.subtract(self.room, 1) if self.sliced else ROOM - 1
        full = build.less(room, build.add(build.add(self.length, open_), self.left))
        stays = ir.Logical("or", build.equal(leaves, 1), ir.Logical("or", smaller, full))
        return (
            self.record.load(self.node, (*self.record.centre, "radius")),
            *self.shape(self.node, leaves),
            ir.Assign(following.name, beyond),
            *self.test(),
            ir.If(
                FAR,
                (
                    self.written(QUEUES, self.queue_place(self.queued), self.node),
                    ir.Assign(self.queued.name, build.add(self.queued, one)),
                    ir.Assign(open_.name, build.subtract(open_, one)),
                ),
                (
                    ir.If(
                        stays,
                        (
                            self.written(LISTS, build.add(self.list, self.length), self.node),
                            ir.Assign(self.length.name, build.add(self.length, one)),
                            ir.Assign(open_.name, build.subtract(open_, one)),
                        ),
                        (
                            ir.Assign(following.name, build.add(self.node, one)),
                            ir.Assign(open_.name, build.add(open_, one)),
                        ),
                    ),
                ),
            ),
            ir.Assign(self.node.name, following),
        )

    def test(self) -> ir.Block:
        """`FAR`, of the node whose centre and radius are loaded."""
        reach, apart = self.real("reach"), self.real("apart2")
        squares = list[ir.Expression]()
        for name in self.record.centre:
            to, of = self.record.local(name, TARGET), self.record.local(name)
            difference = ir.Binary("-", of, to, self.precision)
            squares.append(build.times(difference, difference))
        both = ir.Binary(
            "+", self.record.local("radius"), self.record.local("radius", TARGET), self.precision
        )
        total = reduce(lambda a, b: ir.Binary("+", a, b, self.precision), squares)
        wide = build.times(self.real("theta2"), apart)
        return (
            ir.Assign(apart.name, total),
            ir.Assign(reach.name, both),
            ir.Assign(FAR.name, ir.Compare("<", build.times(reach, reach), wide)),
            *((ir.If(FAR, self.decide()),) if self.operators.radial.branches else ()),
        )

    def decide(self) -> ir.Block:
        """Whether all pairs of the two take the same side of every branch."""
        room, kind = 4 * ROUNDING[self.precision.size], self.operators.kind
        least, largest, reach = (self.real(n) for n in ("least", "largest", "reach"))
        distance = ir.Call("sqrt", (self.real("apart2"),), self.precision)
        near = ir.Binary("-", distance, reach, self.precision)

        def square(x: ir.Local, factor: float) -> ir.Expression:
            factored = build.times(build.times(x, x), ir.Literal(factor, self.precision))
            return build.cast(factored, kind)

        given = {LEAST: square(least, 1.0 - room), LARGEST: square(largest, 1.0 + room)}
        return (
            ir.Assign(least.name, build.maximum(near, build.zero(self.precision))),
            ir.Assign(largest.name, ir.Binary("+", distance, reach, self.precision)),
            self.apply(decided(self.operators), given, (FAR.name,)),
        )

    def met(self, node: ir.Local) -> ir.Block:
        """Add what a node gives."""
        given: dict[str, ir.Expression] = {
            own("source.scale"): self.record.local("scale"),
            own("target.scale"): self.record.local("scale", TARGET),
        }
        for c, name in zip(COMPONENTS, self.record.centre, strict=False):
            given[own(f"source.{c}")] = self.record.local(name)
            given[own(f"target.{c}")] = self.record.local(name, TARGET)
        totals, parts = self.locals.variables(), self.locals.variables("part")
        return (
            self.record.load(node, (*self.record.centre, "scale", *self.record.moments)),
            self.apply(self.operators.m2l(), given, tuple(p.name for p in parts)),
            *(ir.Assign(v.name, build.plus(v, p)) for v, p in zip(totals, parts, strict=True)),
        )

    # ------------------------------------------------------------ words

    def apply(
        self, f: ir.Function, given: Mapping[str, ir.Expression], results: tuple[str, ...]
    ) -> ir.Apply:
        arguments = tuple(given.get(p.name, ir.Local(p.name, p.type)) for p in f.parameters)
        return ir.Apply(f, arguments, results)

    def shape(self, node: ir.Local, leaves: ir.Local) -> ir.Block:
        return read_whole(TREE, node, (("leaves", leaves),))

    def written(self, array: str, place: ir.Expression, value: ir.Local) -> ir.StoreRecord:
        return ir.StoreRecord(array, place, (("value", build.index_of(value, I32)),))

    def whole(self, name: str) -> ir.Local:
        return ir.Local(own(name), self.index)

    def real(self, name: str) -> ir.Local:
        return ir.Local(own(f"pairs.{name}"), self.precision)
