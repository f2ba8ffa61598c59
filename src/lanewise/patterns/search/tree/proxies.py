"""Records at chosen points that stand for the sources of a group, for functions of which nothing is
known but that they are linear in the fields of the source.

    t_m = cos(pi m / n),  m = 0 ... n               points along an axis of the box of a group
    L_m(t) = product over l != m of (t - t_l) / (t_m - t_l)
    W_k = sum over sources of w L_kx(x) L_ky(y) L_kz(z)
A record has the place of its point, and W of every field w that results are linear in. The function
itself meets it as it meets a source, so a group of (n + 1)^axes records is exact where the function
is a polynomial of degree n along each axis of the box. Parents take the records of their children
for sources.

    parallel for (node, k): box of the sources or of the children; place of point k
        for its sources or the children's records: W_k = W_k + w L_k
Along an axis without extent all points lie in one place, and share what is there.

Method: L. Wang, R. Krasny and S. Tlupova 2020 (barycentric Lagrange treecode), as products.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from math import cos, pi, prod

from lanewise.analysis.far_field import FarProof
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import count_of, identifier, own
from lanewise.ir.values import record_array
from lanewise.language.record import Leaf
from lanewise.language.types import COMPONENTS, Scalar
from lanewise.layouts import Arrangement
from lanewise.patterns.search.tree.arguments import (
    HEIGHT_COUNT,
    HEIGHT_FIRST,
    LEAVES,
    TreeArguments,
)
from lanewise.patterns.search.tree.moments import MOMENTS
from lanewise.patterns.search.tree.nodes import LAYOUT, ROUNDING, NodeRecord, shape_arrays
from lanewise.patterns.search.tree.reading import read_whole
from lanewise.patterns.search.tree.shape import HEIGHTS, TREE

PROXIES = own("tree.proxies")  # the array of these records
SHARE = own("share")  # how many sources a record stands for, where a result counts them


@dataclass(frozen=True, slots=True)
class Proxies:
    """The records of a proof of tier P, points of polynomials of this degree."""

    proof: FarProof
    degree: int

    @property
    def count(self) -> int:
        """Records of a group."""
        return (self.degree + 1) ** self.proof.axes

    def leaves(self, arguments: TreeArguments) -> tuple[Leaf, ...]:
        """What a record has: its place, weights, and the number of sources that it stands for."""
        names = {p.name for p in self.proof.weights}
        source = arguments.source
        weights = [x for x in source.leaves if f"{source.name}.{x.name}" in names]
        share = [Leaf(SHARE, arguments.precision)] if self.proof.counted else []
        return (*arguments.position, *weights, *share)

    def array(self, arguments: TreeArguments, *, written: bool) -> ir.ArrayArgument:
        return record_array(PROXIES, self.leaves(arguments), LAYOUT, written=written)

    def arrangement(self, arguments: TreeArguments) -> Arrangement:
        return self.array(arguments, written=False).arrangement


def boxed_record(arguments: TreeArguments) -> NodeRecord:
    """A node whose sources lie in a box around its centre, and none farther than the radius."""
    precision = arguments.precision
    return NodeRecord(len(arguments.position), precision, precision, (), boxed=True)


def build_leaf_proxies(proxies: Proxies, arguments: TreeArguments, index: Scalar) -> ir.Kernel:
    """The kernel over the records of the leaves, from the sources in their sorted places."""
    return _Builder(proxies, arguments, index).leaves()


def build_parent_proxies(proxies: Proxies, arguments: TreeArguments, index: Scalar) -> ir.Kernel:
    """The kernel over the records of the nodes of one height, from those below."""
    return _Builder(proxies, arguments, index).parents()


class _Builder:
    def __init__(self, proxies: Proxies, arguments: TreeArguments, index: Scalar) -> None:
        self.proxies, self.a, self.index = proxies, arguments, index
        self.record, self.precision = boxed_record(arguments), arguments.precision
        self.element = ir.Local(own("element"), index)
        self.node, self.point = self._whole("node"), self._whole("point")
        self.source = arguments.source.name
        self.axes = COMPONENTS[: len(arguments.position)]
        places = {x.name for x in arguments.position}
        self.sums = [x for x in proxies.leaves(arguments) if x.name not in places]

    # ------------------------------------------------------------ the kernels

    def leaves(self) -> ir.Kernel:
        first, last = self._whole("first"), self._whole("last")
        leaf = build.divide(self.element, self.proxies.count)
        count = ir.Local(count_of(self.source), self.index)
        low, high = self._reals("low"), self._reals("high")
        ends = [(x, float("inf")) for x in low] + [(x, float("-inf")) for x in high]
        grown = [
            ir.Assign(x.name, join(x, place))
            for edge, join in ((low, build.minimum), (high, build.maximum))
            for x, place in zip(edge, self._place(), strict=True)
        ]
        body = (
            *read_whole(HEIGHTS, leaf, (("value", self.node),)),
            ir.Assign(first.name, build.multiply(leaf, self.a.leaf)),
            ir.Assign(last.name, build.minimum(build.add(first, self.a.leaf), count)),
            *(ir.Assign(x.name, ir.Literal(end, self.precision)) for x, end in ends),
            self._each(self.source, first, last, self._names(self.a.position), tuple(grown)),
            *self._box(),
            *self._start(),
            self._met(self.source, first, last),
            *self._stores(),
        )
        table = shape_arrays()[1]
        source = record_array(
            self.source, self.a.source.leaves, self.a.source.layout, written=False
        )
        return self._kernel("leaf", (source, table), (LEAVES, count.name), LEAVES, body)

    def parents(self) -> ir.Kernel:
        leaves, left, right = (self._whole(n) for n in ("leaves", "left", "right"))
        row = build.divide(self.element, self.proxies.count)
        at = build.add(ir.Local(HEIGHT_FIRST, self.index), row)
        half = build.ceil_divide(leaves, 2)
        body: list[ir.Statement] = [
            *read_whole(HEIGHTS, at, (("value", self.node),)),
            *read_whole(TREE, self.node, (("leaves", leaves),)),
            ir.Assign(left.name, build.add(self.node, 1)),
            ir.Assign(right.name, build.add(self.node, build.multiply(half, 2))),
        ]
        for side, child in (("left", left), ("right", right)):
            body.append(self.record.load(child, (*self.record.centre, *self.record.half), side))
        ends = (("low", build.minimum, build.minus), ("high", build.maximum, build.plus))
        for word, join, end in ends:
            edges = [
                [
                    end(self.record.local(c, side), self.record.local(h, side))
                    for c, h in zip(self.record.centre, self.record.half, strict=True)
                ]
                for side in ("left", "right")
            ]
            body += [
                ir.Assign(x.name, join(a, b))
                for x, a, b in zip(self._reals(word), *edges, strict=True)
            ]
        body += [*self._box(), *self._start()]
        for child in (left, right):
            begin = build.multiply(child, self.proxies.count)
            body.append(self._met(PROXIES, begin, build.add(begin, self.proxies.count)))
        body += self._stores()
        counts = (HEIGHT_COUNT, HEIGHT_FIRST)
        return self._kernel("parent", shape_arrays(), counts, HEIGHT_COUNT, tuple(body))

    def _kernel(
        self,
        what: str,
        arrays: Sequence[ir.ArrayArgument],
        counts: Sequence[str],
        rows: str,
        body: ir.Block,
    ) -> ir.Kernel:
        f = self.proxies.proof.function
        every = build.multiply(ir.Local(rows, self.index), self.proxies.count)
        point = ir.Assign(self.point.name, build.remainder(self.element, self.proxies.count))
        written = (
            self.record.array(written=True),
            self.proxies.array(self.a, written=True),
        )
        return ir.Kernel(
            identifier(f"{f.name}_{what}_proxies"),
            MOMENTS,
            (*arrays, *written),
            (),
            tuple(ir.Parameter(n, self.index) for n in counts),
            (ir.Parallel(self.element.name, every, (point, *body)),),
            location=f.location,
        )

    # ------------------------------------------------------------ boxes and points

    def _box(self) -> ir.Block:
        """Centre, half sides and radius of the node from the ends of its box, and the place of the
        point in it.
        """
        body: list[ir.Statement] = []
        squares: list[ir.Expression] = []
        zero, one = build.zero(self.precision), ir.Literal(1.0, self.precision)
        rows = zip(
            self._reals("low"),
            self._reals("high"),
            self._local(self.record.centre),
            self._local(self.record.half),
            strict=True,
        )
        for axis, (low, high, centre, half) in enumerate(rows):
            side = build.times(ir.Literal(0.5, self.precision), build.minus(high, low))
            inverse, t = self._real("inverse", axis), self._real("t", axis)
            some = ir.Compare(">", half, zero)
            place = build.plus(centre, build.times(half, t))
            body += [
                ir.Assign(half.name, side),
                ir.Assign(centre.name, build.plus(low, half)),
                ir.Assign(
                    inverse.name,
                    ir.Select(
                        some, ir.Binary("/", one, half, self.precision), zero, self.precision
                    ),
                ),
                ir.Assign(self._whole(f"m{axis}").name, self._number(axis)),
                ir.Assign(t.name, self._chosen(axis, self._points)),
                ir.Assign(self._real("scaling", axis).name, self._chosen(axis, self._scalings)),
                ir.Assign(self._real("point", axis).name, place),
            ]
            squares.append(build.times(half, half))
        room = ir.Literal(1.0 + ROUNDING[self.precision.size], self.precision)
        root = ir.Call("sqrt", (reduce(build.plus, squares),), self.precision)
        radius = self.record.local("radius")
        return (*body, ir.Assign(radius.name, build.times(root, room)))

    def _number(self, axis: int) -> ir.Expression:
        """Which of the points along an axis it is: the first axis counts fastest."""
        row = build.divide(self.point, (self.proxies.degree + 1) ** axis)
        return build.remainder(row, self.proxies.degree + 1)

    @property
    def _points(self) -> list[float]:
        n = self.proxies.degree
        return [cos(pi * m / n) for m in range(n + 1)] if n else [0.0]

    @property
    def _scalings(self) -> list[float]:
        t = self._points
        return [1 / prod(a - b for b in t if b != a) for a in t]

    def _chosen(self, axis: int, values: Sequence[float]) -> ir.Expression:
        """The value of this point's number."""
        m, precision = self._whole(f"m{axis}"), self.precision
        *others, last = enumerate(values)
        chosen: ir.Expression = ir.Literal(last[1], precision)
        for k, value in reversed(others):
            chosen = ir.Select(build.equal(m, k), ir.Literal(value, precision), chosen, precision)
        return chosen

    # ------------------------------------------------------------ sums

    def _start(self) -> ir.Block:
        return tuple(ir.Assign(own(f"sum.{x.name}"), build.zero(x.type)) for x in self.sums)

    def _met(self, array: str, first: ir.Expression, last: ir.Expression) -> ir.For:
        """What the record takes of sources, or of the records of a child."""
        read = [x for x in self.sums if x.name != SHARE or array == PROXIES]
        basis: list[ir.Statement] = []
        one = ir.Literal(1.0, self.precision)
        factors: list[ir.Expression] = []
        rows = zip(self._place(), self._local(self.record.centre), strict=True)
        for axis, (x, centre) in enumerate(rows):
            u, m = self._real("u", axis), self._whole(f"m{axis}")
            scaled = build.times(build.minus(x, centre), self._real("inverse", axis))
            basis.append(ir.Assign(u.name, scaled))
            apart = [
                ir.Select(
                    build.equal(m, k),
                    one,
                    build.minus(u, ir.Literal(t, self.precision)),
                    self.precision,
                )
                for k, t in enumerate(self._points)
            ]
            if self.proxies.degree:
                factors += [self._real("scaling", axis), *apart]
        value = ir.Local(own("basis"), self.precision)
        basis.append(ir.Assign(value.name, reduce(build.times, factors, one)))
        for leaf in self.sums:
            total = ir.Local(own(f"sum.{leaf.name}"), leaf.type)
            share: ir.Expression = build.cast(value, leaf.type)
            if leaf in read:
                there = ir.Local(own(f"met.{leaf.name}"), leaf.type)
                share = ir.Binary("*", there, share, leaf.type)
            basis.append(ir.Assign(total.name, ir.Binary("+", total, share, leaf.type)))
        names = (*self._names(self.a.position), *self._names(read))
        return self._each(array, first, last, names, tuple(basis))

    def _each(
        self,
        array: str,
        first: ir.Expression,
        last: ir.Expression,
        names: Sequence[str],
        body: ir.Block,
    ) -> ir.For:
        j = self._whole("j")
        load = ir.LoadRecord(array, j, tuple((n, own(f"met.{n}")) for n in names))
        return ir.For(j.name, first, last, ir.Literal(1, self.index), (load, *body))

    def _stores(self) -> ir.Block:
        """The record; and the node by the thread of its first point."""
        at = build.add(build.multiply(self.node, self.proxies.count), self.point)
        points = [self._real("point", axis) for axis in range(len(self.axes))]
        sums = [ir.Local(own(f"sum.{x.name}"), x.type) for x in self.sums]
        names = (*self._names(self.a.position), *self._names(self.sums))
        writes = tuple(zip(names, (*points, *sums), strict=True))
        node = ir.If(build.equal(self.point, 0), (self.record.store(self.node),))
        return (ir.StoreRecord(PROXIES, at, writes), node)

    # ------------------------------------------------------------ words

    def _whole(self, name: str) -> ir.Local:
        return ir.Local(own(name), self.index)

    def _real(self, word: str, axis: int) -> ir.Local:
        return ir.Local(own(f"{word}.{COMPONENTS[axis]}"), self.precision)

    def _reals(self, word: str) -> list[ir.Local]:
        return [self._real(word, axis) for axis in range(len(self.axes))]

    def _local(self, names: Sequence[str]) -> list[ir.Local]:
        return [self.record.local(n) for n in names]

    def _place(self) -> list[ir.Local]:
        return [ir.Local(own(f"met.{x.name}"), self.precision) for x in self.a.position]

    @staticmethod
    def _names(leaves: Sequence[Leaf]) -> tuple[str, ...]:
        return tuple(x.name for x in leaves)
