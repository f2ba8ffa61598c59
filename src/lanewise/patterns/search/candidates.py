"""Sources that a walk offers to a target: where they are seen, how far away, which are near enough,
and which are the k nearest.

    for j in walk: load position; move it to the nearest image; d2 = |source - target|^2;  if it is
    near: visit j
The k nearest are kept in registers, in a sorted list that is never addressed, only shifted:

    before_m = d2 < best_m  for every m, of the old list;  best_m = best_(m-1) if before_(m-1) else
    new if before_m else best_m
(d2, index) is the order, so that ties in d2 go to the smaller index whatever the order in which
candidates come. Ties are rare: the caller's indices are loaded only when there is one. Empty places
hold the bound itself, which no candidate at the bound displaces: that makes the radius strict.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.language.types import BOOL, I32, Scalar, component
from lanewise.patterns.search.base import ORDER, Visit, Walk

MOST_NESTED = 4  # axes of one expression
Keep = Callable[[ir.Local], ir.Expression]


def period(axis: int) -> str:
    """The uniform with the size of a periodic world along an axis."""
    return own(f"period.{component(axis)}")


def inverse_period(axis: int) -> str:
    """The uniform with one over the size of a periodic world along an axis."""
    return own(f"period.inverse.{component(axis)}")


@dataclass(frozen=True, slots=True)
class Candidates:
    """The sources in the array `name`, with one leaf an axis, around a target whose coordinates are
    locals.
    """

    name: str
    leaves: tuple[str, ...]
    place: tuple[ir.Local, ...]
    precision: Scalar
    periodic: bool

    @property
    def d2(self) -> ir.Local:
        """The squared distance of the candidate that was loaded last."""
        return ir.Local(own("d2"), self.precision)

    def coordinate(self, axis: int) -> ir.Local:
        return ir.Local(f"{self.name}.{self.leaves[axis]}", self.precision)

    def uniforms(self) -> tuple[ir.Parameter, ...]:
        """The sizes of a periodic world, and one over each."""
        axes = range(len(self.leaves) if self.periodic else 0)
        return tuple(
            ir.Parameter(f(axis), self.precision) for axis in axes for f in (period, inverse_period)
        )

    def look(self, j: ir.Local) -> ir.Block:
        """LoadRecord a candidate's position, seen at its nearest image, and assign the squared
        distance.
        """
        reads = tuple((leaf, self.coordinate(axis).name) for axis, leaf in enumerate(self.leaves))
        return (ir.LoadRecord(self.name, j, reads), *self.images(), *self.distance())

    def images(self) -> ir.Block:
        """Move the candidate that was loaded last to its nearest image, in a periodic world."""
        axes = range(len(self.leaves) if self.periodic else 0)
        return tuple(s for axis in axes for s in self._image(axis))

    def _image(self, axis: int) -> ir.Block:
        """The coordinate of the nearest image along an axis: whole sizes off, as many as bring it
        nearest.
        """
        kind, source = self.precision, self.coordinate(axis)
        size, inverse = ir.Local(period(axis), kind), ir.Local(inverse_period(axis), kind)
        sizes = ir.Binary("*", ir.Binary("-", self.place[axis], source, kind), inverse, kind)
        whole = ir.Call("floor", (ir.Binary("+", sizes, ir.Literal(0.5, kind), kind),), kind)
        number = ir.Local(own(f"sizes.{component(axis)}"), kind)
        return (
            ir.Assign(number.name, whole),
            ir.Assign(source.name, ir.Call("fma", (number, size, source), kind)),
        )

    def distance(self) -> ir.Block:
        """The squared distance, in an order of operations that no compiler changes: all structures
        find the same.
        """
        kind, body = self.precision, list[ir.Statement]()
        total: ir.Expression | None = None
        for axis in range(len(self.leaves)):
            d = ir.Local(own(f"d.{component(axis)}"), kind)
            body.append(
                ir.Assign(d.name, ir.Binary("-", self.coordinate(axis), self.place[axis], kind))
            )
            total = (
                ir.Binary("*", d, d, kind) if total is None else ir.Call("fma", (d, d, total), kind)
            )
            if axis % MOST_NESTED == MOST_NESTED - 1 and axis + 1 < len(self.leaves):
                so_far = ir.Local(own(f"d2.{axis}"), kind)
                body.append(ir.Assign(so_far.name, total))
                total = so_far
        assert total is not None
        return (*body, ir.Assign(self.d2.name, total))

    def met(self, walk: Walk, bound2: ir.Expression, keep: Keep, visit: Visit) -> ir.Block:
        """`visit(j)`, which finds the distance in `d2`, for each source that `keep(j)` says is
        near.
        """
        return walk.around(self.place, bound2, lambda j: (*self.look(j), ir.If(keep(j), visit(j))))


EMPTY = -1  # instead of a source that was not taken


@dataclass(frozen=True, slots=True)
class Nearest:
    """A list of k candidates: d2, and the place to read the source from.

    ranked: `$order` has the caller's indices of places; else places are those indices, and are
    visited from the smallest on.
    """

    k: int
    precision: Scalar
    index: Scalar
    ranked: bool

    def d2(self, m: int) -> ir.Local:
        return ir.Local(own(f"best.d2.{m}"), self.precision)

    def place(self, m: int) -> ir.Local:
        return ir.Local(own(f"best.place.{m}"), self.index)

    def before(self, m: int) -> ir.Local:
        return ir.Local(own(f"before.{m}"), BOOL)

    @property
    def bound2(self) -> ir.Local:
        """The squared distance beyond which no candidate gets in."""
        return self.d2(self.k - 1)

    def start(self, bound2: ir.Expression) -> ir.Block:
        """An empty list, for candidates nearer than the bound."""
        empty: list[ir.Statement] = []
        for m in range(self.k):
            empty.append(ir.Assign(self.d2(m).name, bound2))
            empty.append(ir.Assign(self.place(m).name, ir.Literal(EMPTY, self.index)))
        return tuple(empty)

    def enters(self, d2: ir.Expression) -> ir.Expression:
        """Whether a candidate may get in: at the bound only a smaller index does."""
        return ir.Compare("<=" if self.ranked else "<", d2, self.bound2)

    def insert(self, d2: ir.Local, place: ir.Local) -> ir.Block:
        """Put a candidate where it belongs; the last one falls out."""
        slots = range(self.k)
        tests: ir.Block = tuple(
            ir.Assign(self.before(m).name, ir.Compare("<", d2, self.d2(m))) for m in slots
        )
        shifts = tuple(s for m in reversed(slots) for s in self.shift(m, d2, place))
        if not self.ranked:
            return (*tests, *shifts)
        tie: ir.Expression = build.equal(d2, self.d2(0))
        for m in slots[1:]:
            tie = ir.Logical("or", tie, build.equal(d2, self.d2(m)))
        settle = self.settle(d2, place)
        if self.index == I32:
            # On a GPU: tests that nothing overwrites stay in predicates, which cost no registers
            # and no instructions to test again.
            return (ir.If(tie, (*tests, *settle, *shifts), (*tests, *shifts)),)
        return (*tests, ir.If(tie, settle), *shifts)

    def settle(self, d2: ir.Local, place: ir.Local) -> ir.Block:
        """Compare the caller's indices where distances are equal."""
        rank, zero = ir.Local(own("rank"), I32), ir.Literal(0, self.index)
        body: list[ir.Statement] = [ir.LoadRecord(ORDER, place, (("value", rank.name),))]
        for m in range(self.k):
            other = ir.Local(own(f"rank.{m}"), I32)
            taken = ir.Logical(
                "and", build.equal(d2, self.d2(m)), ir.Compare(">=", self.place(m), zero)
            )
            smaller = (
                ir.LoadRecord(ORDER, self.place(m), (("value", other.name),)),
                ir.Assign(self.before(m).name, ir.Compare("<", rank, other)),
            )
            body.append(ir.If(taken, smaller))
        return tuple(body)

    def shift(self, m: int, d2: ir.Local, place: ir.Local) -> ir.Block:
        """What stands in slot m from now on; from the last slot on, so that the one before still
        has its old value.
        """
        done: list[ir.Statement] = []
        for column, new in ((self.d2, d2), (self.place, place)):
            value: ir.Expression = ir.Select(self.before(m), new, column(m), new.type)
            if m:
                value = ir.Select(self.before(m - 1), column(m - 1), value, new.type)
            done.append(ir.Assign(column(m).name, value))
        return tuple(done)

    def each(self, visit: Callable[[ir.Local], ir.Block]) -> ir.Block:
        """Visit the places of those found, from the nearest to the farthest; the list is used
        up.
        """
        count, m = ir.Local(own("found"), self.index), ir.Local(own("m"), self.index)
        zero, one = ir.Literal(0, self.index), ir.Literal(1, self.index)
        total: ir.Expression = zero
        for n in range(self.k):
            taken = ir.Compare(">=", self.place(n), zero)
            total = build.add(total, ir.Select(taken, one, zero, self.index))
        shift = tuple(ir.Assign(self.place(n).name, self.place(n + 1)) for n in range(self.k - 1))
        loop = ir.For(m.name, zero, count, one, (*visit(self.place(0)), *shift))
        return (ir.Assign(count.name, total), loop)
