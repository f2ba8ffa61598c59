"""The kernels that fill the nodes of a tree.

    parallel for leaf: centre = mean of its positions; radius = largest distance from it;
        for its sources: moments = moments + P2M(source)
    parallel for a node of a height: centre = mean of the children's, by their elements;
        radius = largest distance to the end of a child, or to a corner of the box of all, whichever
        is less; moments = M2M(left) + M2M(right)
The ends of children reach a little farther with every level, and boxes do not: without them a body
of a million met three times as many groups.
Sources are in sorted places. What is not a number stays in the nodes above it, whose radius is no
number, so that no walk takes them for far.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce

from lanewise.derivatives.expansions.operators import Operators
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import count_of, identifier, own
from lanewise.ir.pattern import HostCode, Pattern
from lanewise.ir.values import record_array
from lanewise.language.types import COMPONENTS, Scalar
from lanewise.patterns.search.tree.arguments import (
    HEIGHT_COUNT,
    HEIGHT_FIRST,
    LEAVES,
    TreeArguments,
)
from lanewise.patterns.search.tree.estimates import Spread
from lanewise.patterns.search.tree.nodes import CLOSEST, ROUNDING, node_record, shape_arrays
from lanewise.patterns.search.tree.reading import read_whole
from lanewise.patterns.search.tree.shape import HEIGHTS, TREE

GRAIN_NODES = 64  # of a CPU's piece of work: some microseconds
MOMENTS = Pattern(
    "moments", host=HostCode(inline=True, widest_stride=None), grain=lambda count: GRAIN_NODES
)
"""A pattern of elements that have nothing to do with each other: nodes of one height."""


def build_leaf_moments(operators: Operators, arguments: TreeArguments, index: Scalar) -> ir.Kernel:
    """The kernel over the leaves, from the sources in their sorted places."""
    return _Builder(operators, arguments, index).leaves()


def build_parent_moments(
    operators: Operators, arguments: TreeArguments, index: Scalar
) -> ir.Kernel:
    """The kernel over the nodes of one height, from those below."""
    return _Builder(operators, arguments, index).parents()


class _Builder:
    def __init__(self, operators: Operators, arguments: TreeArguments, index: Scalar) -> None:
        self.operators, self.a, self.index = operators, arguments, index
        self.record = node_record(operators, arguments)
        self.precision = arguments.precision
        self.source = arguments.source
        self.spread = Spread(operators, self.record) if arguments.estimated else None
        self.count = ir.Local(count_of(self.source.name), index)

    # ------------------------------------------------------------ leaves

    def leaves(self) -> ir.Kernel:
        leaf, node, first, last = (self.whole(n) for n in ("leaf", "node", "first", "last"))
        zero = ir.Literal(0.0, self.precision)
        totals = [ir.Local(own(f"total.{c}"), self.precision) for c in self.axes]
        centre, farthest = self.centre(), ir.Local(own("farthest2"), self.precision)
        elements = build.subtract(last, first)
        each = ir.Binary(
            "/", ir.Literal(1.0, self.precision), ir.Cast(elements, self.precision), self.precision
        )
        p2m = self.operators.p2m()
        body = (
            *self.read(HEIGHTS, leaf, node),
            ir.Assign(first.name, build.multiply(leaf, self.a.leaf)),
            ir.Assign(last.name, build.minimum(build.add(first, self.a.leaf), self.count)),
            *(ir.Assign(x.name, zero) for x in totals),
            self.each(first, last, self.places(), self.added(totals, self.place())),
            ir.Assign(own("each"), each),
            *(
                ir.Assign(c.name, build.times(x, ir.Local(own("each"), self.precision)))
                for c, x in zip(centre, totals, strict=True)
            ),
            ir.Assign(farthest.name, zero),
            *(ir.Assign(x.name, c) for x, c in zip(self.corner("low"), centre, strict=True)),
            *(ir.Assign(x.name, c) for x, c in zip(self.corner("high"), centre, strict=True)),
            self.each(
                first,
                last,
                self.places(),
                (
                    ir.Assign(
                        farthest.name,
                        build.maximum(farthest, self.square_distance(self.place(), centre)),
                    ),
                    *self.widened(self.place(), self.place()),
                ),
            ),
            *self.radius(build.root(farthest)),
            *self.scale(),
            *(ir.Assign(m.name, ir.Literal(0.0, m.type)) for m in self.moments()),
            *(self.spread.start() if self.spread else ()),
            self.each(first, last, self.asked(p2m), self.met(p2m)),
            *(self.spread.leaf() if self.spread else ()),
            self.record.store(node),
        )
        return self.kernel("leaf", ir.Parallel(leaf.name, ir.Local(LEAVES, self.index), body))

    def each(self, first: ir.Local, last: ir.Local, names: Iterable[str], body: ir.Block) -> ir.For:
        """A loop over sources, with some of their fields loaded."""
        j, name = self.whole("j"), self.source.name
        load = ir.LoadRecord(name, j, tuple((n, f"{name}.{n}") for n in names))
        return ir.For(j.name, first, last, ir.Literal(1, self.index), (load, *body))

    def met(self, p2m: ir.Function) -> ir.Block:
        """What a leaf takes of one source."""
        away = self.square_distance(self.place(), self.centre())
        spread = self.spread.source(away) if self.spread else ()
        return (*self.apply(p2m, {}), *spread)

    def places(self) -> tuple[str, ...]:
        return tuple(x.name for x in self.a.position)

    def asked(self, p2m: ir.Function) -> tuple[str, ...]:
        """The fields of a source that its leaf takes something of."""
        places = self.places() if self.spread else ()
        return tuple(dict.fromkeys((*places, *self.used(p2m))))

    def used(self, f: ir.Function) -> tuple[str, ...]:
        """The fields of a source that a function reads."""
        parameters = {p.name for p in f.parameters}
        name = self.source.name
        return tuple(x.name for x in self.source.leaves if f"{name}.{x.name}" in parameters)

    def place(self) -> list[ir.Local]:
        return [ir.Local(f"{self.source.name}.{n}", self.precision) for n in self.places()]

    # ------------------------------------------------------------ parents

    def parents(self) -> ir.Kernel:
        t, node, leaves = (self.whole(n) for n in ("t", "node", "leaves"))
        left, right = self.whole("left"), self.whole("right")
        at = build.add(ir.Local(HEIGHT_FIRST, self.index), t)
        half, every = build.ceil_divide(leaves, 2), tuple(x.name for x in self.record.leaves)
        centre = self.centre()
        share = ir.Local(own("share"), self.precision)
        m2m, body = self.operators.m2m(), list[ir.Statement]()
        body += [
            *self.read(HEIGHTS, at, node),
            *self.read_shape(node),
            ir.Assign(left.name, build.add(node, 1)),
            ir.Assign(right.name, build.add(node, build.multiply(half, 2))),
            self.record.load(left, every, "left"),
            self.record.load(right, every, "right"),
            *self.share_of_the_right(share),
        ]
        for c, a, b in zip(centre, self.centre("left"), self.centre("right"), strict=True):
            apart = ir.Binary("-", b, a, self.precision)
            body.append(ir.Assign(c.name, build.plus(a, build.times(apart, share))))
        ways = {side: ir.Local(own(f"{side}.way"), self.precision) for side in ("left", "right")}
        for side, way in ways.items():
            away = build.root(self.square_distance(self.centre(side), centre))
            body.append(ir.Assign(way.name, away))
        ends = [build.plus(way, self.record.local("radius", side)) for side, way in ways.items()]
        lows, highs = ([self.corner(n, s) for s in ("left", "right")] for n in ("low", "high"))
        body += [ir.Assign(x.name, a) for x, a in zip(self.corner("low"), lows[0], strict=True)]
        body += [ir.Assign(x.name, a) for x, a in zip(self.corner("high"), highs[0], strict=True)]
        body += self.widened(lows[1], highs[1])
        body += self.within(build.maximum(*ends))
        body += self.spread.parent(dict(ways)) if self.spread else ()
        body += self.scale()
        body += [ir.Assign(m.name, ir.Literal(0.0, m.type)) for m in self.moments()]
        for side in ("left", "right"):
            body += self.apply(m2m, self.of_child(side))
        body.append(self.record.store(node))
        loop = ir.Parallel(t.name, ir.Local(HEIGHT_COUNT, self.index), tuple(body))
        return self.kernel("parent", loop)

    def within(self, ends: ir.Expression) -> ir.Block:
        """The radius. Where the ends of the children are no numbers it is none."""
        of_ends, corner = (ir.Local(own(n), self.precision) for n in ("ends", "corner"))
        squares: list[ir.Expression] = []
        sides = zip(self.centre(), self.corner("low"), self.corner("high"), strict=True)
        for c, low, high in sides:
            below = ir.Binary("-", c, low, self.precision)
            side = build.maximum(below, ir.Binary("-", high, c, self.precision))
            squares.append(build.times(side, side))
        shorter = ir.Compare("<", corner, of_ends)
        return (
            ir.Assign(of_ends.name, ends),
            ir.Assign(corner.name, build.root(reduce(build.plus, squares))),
            *self.radius(ir.Select(shorter, corner, of_ends, self.precision)),
        )

    def share_of_the_right(self, share: ir.Local) -> ir.Block:
        """Of the elements of a node those that lie in its right child, as a fraction."""
        first, leaves, middle, last = (self.whole(n) for n in ("first", "leaves", "middle", "last"))

        def begin(leaf: ir.Expression) -> ir.Expression:
            return build.minimum(build.multiply(leaf, self.a.leaf), self.count)

        def number(e: ir.Expression) -> ir.Expression:
            return ir.Cast(e, self.precision)

        beyond = build.add(first, build.ceil_divide(leaves, 2))
        right, all_of_it = (
            number(build.subtract(last, middle)),
            number(build.subtract(last, build.multiply(first, self.a.leaf))),
        )
        return (
            ir.Assign(middle.name, begin(beyond)),
            ir.Assign(last.name, begin(build.add(first, leaves))),
            ir.Assign(share.name, ir.Binary("/", right, all_of_it, self.precision)),
        )

    def of_child(self, side: str) -> Mapping[str, ir.Expression]:
        """What a shift reads of a child and its parent, by the names of its parameters."""
        given: dict[str, ir.Expression] = {
            own("child.scale"): self.record.local("scale", side),
            own("parent.scale"): self.record.local("scale"),
        }
        for a, c in enumerate(self.axes):
            given[own(f"child.{c}")] = self.centre(side)[a]
            given[own(f"parent.{c}")] = self.centre()[a]
        return given | {own(m): self.record.local(m, side) for m in self.record.moments}

    # ------------------------------------------------------------ what both have

    @property
    def axes(self) -> str:
        return COMPONENTS[: len(self.a.position)]

    def whole(self, name: str) -> ir.Local:
        return ir.Local(own(name), self.index)

    def centre(self, prefix: str = "") -> list[ir.Local]:
        return [self.record.local(n, prefix) for n in self.record.centre]

    def corner(self, which: str, prefix: str = "") -> list[ir.Local]:
        """The corner "low" or "high" of the box of a node."""
        return [self.record.local(n, prefix) for n in getattr(self.record, which)]

    def widened(self, lows: list[ir.Local], highs: list[ir.Local]) -> ir.Block:
        """The box, so that it holds this one as well."""
        least = zip(self.corner("low"), lows, strict=True)
        most = zip(self.corner("high"), highs, strict=True)
        return (
            *(ir.Assign(x.name, build.minimum(x, v)) for x, v in least),
            *(ir.Assign(x.name, build.maximum(x, v)) for x, v in most),
        )

    def moments(self) -> list[ir.Local]:
        return [self.record.local(m) for m in self.record.moments]

    def apply(self, f: ir.Function, given: Mapping[str, ir.Expression]) -> ir.Block:
        """Add the results of an operator to the moments."""
        arguments = tuple(given.get(p.name, ir.Local(p.name, p.type)) for p in f.parameters)
        parts = [ir.Local(own(f"part.{m}"), self.operators.kind) for m in self.record.moments]
        added = zip(self.moments(), parts, strict=True)
        return (
            ir.Apply(f, arguments, tuple(x.name for x in parts)),
            *(ir.Assign(m.name, build.plus(m, x)) for m, x in added),
        )

    def radius(self, length: ir.Expression) -> ir.Block:
        """A little larger than it is, by more than all roundings."""
        room = ir.Literal(1.0 + ROUNDING[self.precision.size], self.precision)
        radius = self.record.local("radius")
        return (ir.Assign(radius.name, build.times(length, room)),)

    def scale(self) -> ir.Block:
        """The power of two at or below the radius; of sources in one place, far below the distance
        of that from the origin.
        """
        kind, size = self.operators.kind, ir.Local(own("extent"), self.precision)
        away = reduce(
            build.maximum,
            [ir.Call("abs", (c,), self.precision) for c in self.centre()],
        )
        least = ir.Literal(CLOSEST[self.precision.size], self.precision)
        one, scale = ir.Literal(1.0, kind), self.record.local("scale")
        logarithm = ir.Call("floor", (ir.Call("log2", (ir.Cast(size, kind),), kind),), kind)
        some = ir.Compare(">", scale, ir.Literal(0.0, kind))
        return (
            ir.Assign(
                size.name, build.maximum(self.record.local("radius"), build.times(away, least))
            ),
            ir.Assign(scale.name, ir.Call("exp2", (logarithm,), kind)),
            ir.Assign(scale.name, ir.Select(some, scale, one, kind)),
        )

    def added(self, totals: list[ir.Local], values: list[ir.Local]) -> ir.Block:
        both = zip(totals, values, strict=True)
        return tuple(ir.Assign(x.name, build.plus(x, v)) for x, v in both)

    def square_distance(
        self, here: Iterable[ir.Expression], there: Iterable[ir.Expression]
    ) -> ir.Expression:
        squares: list[ir.Expression] = []
        for a, b in zip(here, there, strict=True):
            apart = ir.Binary("-", a, b, self.precision)
            squares.append(build.times(apart, apart))
        return reduce(build.plus, squares)

    # ------------------------------------------------------------ memory

    def read(self, array: str, place: ir.Expression, into: ir.Local) -> ir.Block:
        """An integer of 32 bits, as an index."""
        return read_whole(array, place, (("value", into),))

    def read_shape(self, node: ir.Local) -> ir.Block:
        return read_whole(
            TREE, node, (("first", self.whole("first")), ("leaves", self.whole("leaves")))
        )

    def kernel(self, what: str, loop: ir.Parallel) -> ir.Kernel:
        of_leaves = what == "leaf"
        source = record_array(
            self.source.name, self.source.leaves, self.source.layout, written=False
        )
        table, heights = shape_arrays()
        arrays = (source, heights) if of_leaves else (table, heights)
        # the first one says how many threads there are
        numbers = (LEAVES,) if of_leaves else (HEIGHT_COUNT, HEIGHT_FIRST)
        counts = (*numbers, self.count.name)
        return ir.Kernel(
            identifier(f"{self.operators.proof.function.name}_{what}_moments"),
            MOMENTS,
            (*arrays, self.record.array(written=True)),
            (),
            tuple(ir.Parameter(n, self.index) for n in counts),
            (loop,),
            location=self.operators.proof.function.location,
        )
