"""What walks through boxes share: the array of boxes, and whether a box is near.

A box is its centre and half of its extents, so that its distance along an axis is |centre - place|
- half where that is positive: three operations. In a periodic world the centre is moved to its
nearest image first. Boxes are built a little larger than their contents (`builders/tree.py`), and
the bound is widened by a few units in the last place: no source that is near is ever in a box that
is not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.language.types import BOOL, COMPONENTS, Scalar
from lanewise.patterns.search.builders.tree import margin, node_arrangement, node_leaves
from lanewise.patterns.search.worlds import Periodic, World

BOXES = own("boxes")


def size(axis: int) -> str:
    """The uniform with the size of a periodic world along an axis."""
    return own(f"boxes.size.{COMPONENTS[axis]}")


def inverse_size(axis: int) -> str:
    """The uniform with one over the size of a periodic world along an axis."""
    return own(f"boxes.size.inverse.{COMPONENTS[axis]}")


def box_uniforms(world: World, precision: Scalar) -> Mapping[str, Any]:
    """The values that the tests of boxes read."""
    if not isinstance(world, Periodic):
        return {}
    real = precision.dtype.type
    sizes = {size(axis): real(s) for axis, s in enumerate(world.size)}
    return sizes | {inverse_size(axis): real(1 / s) for axis, s in enumerate(world.size)}


@dataclass(frozen=True, slots=True)
class BoxExpressions:
    """Statements and expressions of a walk through boxes."""

    index: Scalar
    precision: Scalar
    axes: int
    periodic: bool

    def real(self, name: str) -> ir.Local:
        return ir.Local(own(f"walk.{name}"), self.precision)

    def whole(self, name: str) -> ir.Local:
        return ir.Local(own(f"walk.{name}"), self.index)

    def flag(self, name: str) -> ir.Local:
        return ir.Local(own(f"walk.{name}"), BOOL)

    def number(self, value: int) -> ir.Literal:
        return ir.Literal(value, self.index)

    def boxes(self) -> ir.ArrayArgument:
        leaves = node_leaves(self.axes, self.precision)
        return ir.ArrayArgument(BOXES, leaves, node_arrangement(self.axes, self.precision))

    def uniforms(self) -> tuple[ir.Parameter, ...]:
        if not self.periodic:
            return ()
        names = [f(axis) for axis in range(self.axes) for f in (size, inverse_size)]
        return tuple(ir.Parameter(n, self.precision) for n in names)

    @property
    def link(self) -> ir.Local:
        return self.real("link")

    def load(self, box: ir.Expression) -> ir.LoadRecord:
        """Read a box, with its link."""
        return ir.LoadRecord(
            BOXES,
            box,
            tuple((x.name, own(f"walk.{x.name}")) for x in node_leaves(self.axes, self.precision)),
        )

    def start(self, place: Sequence[ir.Local]) -> ir.Block:
        """Once for a target: how far rounding may be off where a position far outside a periodic
        world is brought back.
        """
        if not self.periodic:
            return ()
        body: list[ir.Statement] = []
        for axis, p in enumerate(place):
            room = ir.Literal(margin(self.precision), self.precision)
            off = build.times(ir.Call("abs", (p,), self.precision), room)
            body.append(ir.Assign(self.real(f"off.{COMPONENTS[axis]}").name, off))
        return tuple(body)

    def distance(self, place: Sequence[ir.Local], axes: Sequence[int] | None = None) -> ir.Block:
        """`$walk.d2`: the squared distance of the box that was loaded, along all axes or some."""
        body, total = list[ir.Statement](), None
        for axis in axes or range(self.axes):
            gap = self.real(f"gap.{COMPONENTS[axis]}")
            body += self.gap(place[axis], axis)
            total = (
                build.times(gap, gap)
                if total is None
                else ir.Call("fma", (gap, gap, total), self.precision)
            )
        assert total is not None
        return (*body, ir.Assign(self.real("d2").name, total))

    def distance_of_centre(self, place: Sequence[ir.Local]) -> ir.Block:
        """`$walk.middle`: the squared distance of the centre of the box whose distance was
        computed.
        """
        total: ir.Expression | None = None
        for axis, p in enumerate(place):
            c = COMPONENTS[axis]
            apart = build.minus(self.real(f"moved.{c}" if self.periodic else f"centre.{c}"), p)
            square = build.times(apart, apart)
            total = square if total is None else build.plus(total, square)
        assert total is not None
        return (ir.Assign(self.real("middle").name, total),)

    def gap(self, place: ir.Local, axis: int) -> ir.Block:
        c = COMPONENTS[axis]
        centre, half, gap = self.real(f"centre.{c}"), self.real(f"half.{c}"), self.real(f"gap.{c}")
        body: list[ir.Statement] = []
        apart = build.minus(centre, place)
        if self.periodic:
            moved, scale = self.real(f"moved.{c}"), ir.Local(inverse_size(axis), self.precision)
            sizes = build.plus(build.times(apart, scale), ir.Literal(0.5, self.precision))
            whole = ir.Call("floor", (sizes,), self.precision)
            image = ir.Call(
                "fma",
                (
                    ir.Unary("-", whole, self.precision),
                    ir.Local(size(axis), self.precision),
                    centre,
                ),
                self.precision,
            )
            body.append(ir.Assign(moved.name, image))
            apart = build.minus(moved, place)
            half = build.plus(half, self.real(f"off.{c}"))
        beyond = build.minus(ir.Call("abs", (apart,), self.precision), half)
        zero = ir.Literal(0.0, self.precision)
        positive = ir.Select(ir.Compare(">", gap, zero), gap, zero, self.precision)
        return (*body, ir.Assign(gap.name, beyond), ir.Assign(gap.name, positive))

    def near(self, bound2: ir.Expression) -> ir.Expression:
        """Whether the box whose distance was computed may hold a source at the bound or nearer."""
        room = ir.Literal(1.0 + 4 * margin(self.precision), self.precision)
        return ir.Compare("<=", self.real("d2"), build.times(bound2, room))
