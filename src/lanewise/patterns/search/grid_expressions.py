"""What walks through grids share: the names of their values, and the expressions for cells, rows
and distances.

A coordinate counted in cells is (position - low) / side, in the precision of the positions, as the
builder computes it. It is monotone, rounding included: a source between two positions lies in a
cell between theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.ir.values import value_array
from lanewise.language.types import COMPONENTS, I32, Scalar
from lanewise.patterns.search.base import Visit, Walk
from lanewise.patterns.search.builders.geometry import Geometry

STARTS = own("starts")  # the first sorted place of every cell, and the number of sources
REACH = own("grid.reach")
# units in the last place that the position of a border may be off, for each cell of the grid
ROUNDING = 16


def low(axis: int) -> str:
    """The lowest corner of the grid along an axis."""
    return own(f"grid.low.{COMPONENTS[axis]}")


def inverse(axis: int) -> str:
    """One over the side of a cell."""
    return own(f"grid.inverse.{COMPONENTS[axis]}")


def side(axis: int) -> str:
    """The side of a cell."""
    return own(f"grid.side.{COMPONENTS[axis]}")


def margin(axis: int) -> str:
    """What rounding may move a border by, in cells."""
    return own(f"grid.margin.{COMPONENTS[axis]}")


def size(axis: int) -> str:
    """The size of a periodic world."""
    return own(f"grid.size.{COMPONENTS[axis]}")


def inverse_size(axis: int) -> str:
    """One over the size of a periodic world."""
    return own(f"grid.size.inverse.{COMPONENTS[axis]}")


def cells(axis: int) -> str:
    """The number of cells along an axis."""
    return own(f"grid.cells.{COMPONENTS[axis]}")


def grid_uniforms(geometry: Geometry, radius: float | None, precision: Scalar) -> dict[str, Any]:
    """The values that the walks below read."""
    real, epsilon = precision.dtype.type, _epsilon(precision)
    values: dict[str, Any] = {REACH: real((radius or 0.0) * (1 + 8 * epsilon))}
    for axis, (a, s, n) in enumerate(zip(geometry.low, geometry.side, geometry.cells, strict=True)):
        values |= {
            low(axis): real(a),
            inverse(axis): real(1 / s),
            side(axis): real(s),
            cells(axis): n,
        }
        values |= {
            margin(axis): real(ROUNDING * epsilon * n),
            size(axis): real(s * n),
            inverse_size(axis): real(1 / (s * n)),
        }
    return values


@cache
def _epsilon(precision: Scalar) -> float:
    """NumPy takes as long to look it up as a launch takes."""
    return float(np.finfo(precision.dtype.name).eps)


@dataclass(frozen=True, slots=True)
class GridExpressions:
    """The expressions that walks through grids share."""

    index: Scalar
    precision: Scalar
    axes: int

    def real(self, name: str) -> ir.Local:
        return ir.Local(own(f"walk.{name}"), self.precision)

    def whole(self, name: str) -> ir.Local:
        return ir.Local(own(f"walk.{name}"), self.index)

    def value(self, name: str) -> ir.Local:
        return ir.Local(name, self.precision)

    def cells(self, axis: int) -> ir.Local:
        return ir.Local(cells(axis), self.index)

    def number(self, value: float) -> ir.Literal:
        return ir.Literal(float(value), self.precision)

    def binary(
        self, operator: ir.BinaryOperator, a: ir.Expression, b: ir.Expression
    ) -> ir.Expression:
        return ir.Binary(operator, a, b, a.type)

    def at_least(self, a: ir.Expression, b: ir.Expression) -> ir.Expression:
        """The larger one of two numbers that are numbers."""
        return ir.Select(ir.Compare(">", a, b), a, b, a.type)

    def at_most(self, a: ir.Expression, b: ir.Expression) -> ir.Expression:
        return ir.Select(ir.Compare("<", a, b), a, b, a.type)

    def scaled(self, place: ir.Expression, axis: int) -> ir.Expression:
        """A coordinate counted in cells from the lowest corner."""
        return self.binary(
            "*", self.binary("-", place, self.value(low(axis))), self.value(inverse(axis))
        )

    def wrapped(self, name: str, place: ir.Expression, axis: int) -> ir.Block:
        """Assign a coordinate of a periodic world, from 0 to its size."""
        w, zero, whole = self.real(name), self.number(0), self.value(size(axis))
        away = self.binary("-", place, self.value(low(axis)))
        sizes = ir.Call(
            "floor", (self.binary("*", w, self.value(inverse_size(axis))),), self.precision
        )
        less = ir.Unary("-", sizes, self.precision)
        return (
            ir.Assign(w.name, away),
            ir.Assign(w.name, ir.Call("fma", (less, whole, w), self.precision)),
            # The quotient is rounded: it may be one off.
            ir.If(ir.Compare("<", w, zero), (ir.Assign(w.name, self.binary("+", w, whole)),)),
            ir.If(ir.Compare(">=", w, whole), (ir.Assign(w.name, self.binary("-", w, whole)),)),
        )

    def cut_off(self, value: ir.Local, axis: int, beyond: int) -> ir.Block:
        """Keep a coordinate within the grid: from 0 to the number of cells less `beyond`; what is
        no number becomes 0.
        """
        top = ir.Cast(build.subtract(self.cells(axis), beyond), self.precision)
        return (
            ir.Assign(value.name, self.at_least(value, self.number(0))),
            ir.Assign(value.name, self.at_most(value, top)),
        )

    def cell(self, name: str, place: ir.Expression, axis: int) -> ir.Block:
        """Assign the cell that a coordinate lies in."""
        value = self.real(f"{name}.real")
        return (
            ir.Assign(value.name, self.scaled(place, axis)),
            *self.cut_off(value, axis, 1),
            ir.Assign(self.whole(name).name, build.index_of(value, self.index)),
        )

    def range(
        self, row: ir.Expression, first: ir.Expression, last: ir.Expression, visit: Visit
    ) -> ir.Block:
        """Visit the sources of the cells `first` to `last` of a row, which lie side by side."""
        begin = ir.Local(own("walk.begin"), I32)
        end = ir.Local(own("walk.end"), I32)
        j = self.whole("j")
        start = self.whole("row")
        loop = ir.For(
            j.name,
            build.cast(begin, self.index),
            build.cast(end, self.index),
            ir.Literal(1, self.index),
            visit(j),
        )
        return (
            ir.Assign(start.name, row),
            ir.LoadRecord(STARTS, build.add(start, first), (("value", begin.name),)),
            ir.LoadRecord(STARTS, build.add(build.add(start, last), 1), (("value", end.name),)),
            loop,
        )

    def row(self, coordinates: Sequence[ir.Expression]) -> ir.Expression:
        """The number of the first cell of a row, from its y and z."""
        number: ir.Expression = coordinates[-1]
        for axis in range(len(coordinates) - 1, 0, -1):
            number = build.add(build.multiply(number, self.cells(axis)), coordinates[axis - 1])
        return build.multiply(number, self.cells(0))

    def loop(self, name: str, first: ir.Expression, last: ir.Expression, body: ir.Block) -> ir.For:
        return ir.For(
            own(f"walk.{name}"), first, build.add(last, 1), ir.Literal(1, self.index), body
        )

    def gap(self, name: str, c: ir.Local, scaled: ir.Expression, axis: int) -> ir.Block:
        """Assign the distance of a position to the cells c along an axis, in units of length, less
        what rounding may add.
        """
        at, gap, above = ir.Cast(c, self.precision), self.real(name), self.real(f"{name}.above")
        return (
            ir.Assign(gap.name, self.binary("-", at, scaled)),
            ir.Assign(above.name, self.binary("-", scaled, self.binary("+", at, self.number(1)))),
            ir.Assign(gap.name, self.at_least(gap, above)),
            *self.surely(gap, axis),
        )

    def surely(self, gap: ir.Local, axis: int) -> ir.Block:
        """What a distance in cells is at least, whatever rounding did, in units of length."""
        return (
            ir.Assign(gap.name, self.binary("-", gap, self.value(margin(axis)))),
            ir.Assign(
                gap.name,
                self.binary("*", self.at_least(gap, self.number(0)), self.value(side(axis))),
            ),
        )

    def arguments(self, constant: int = 0) -> tuple[ir.ArrayArgument, ...]:
        """The starts of cells; `constant` of them in constant memory."""
        return (replace(value_array(STARTS, I32, written=False), constant=constant),)

    def uniforms(self) -> tuple[ir.Parameter, ...]:
        """All that a walk may read; kernels keep what they use."""
        names = [(REACH, self.precision)]
        for axis in range(self.axes):
            names += [
                (name(axis), self.precision)
                for name in (low, inverse, side, margin, size, inverse_size)
            ]
            names.append((cells(axis), self.index))
        return tuple(ir.Parameter(name, kind) for name, kind in names)

    def near(self, gaps: Sequence[ir.Expression], bound2: ir.Expression) -> ir.Expression:
        """Whether what lies these distances away along the axes may be within the bound."""
        total: ir.Expression = self.binary("*", gaps[0], gaps[0])
        for gap in gaps[1:]:
            total = ir.Call("fma", (gap, gap, total), self.precision)
        return ir.Compare("<=", total, bound2)


@dataclass(frozen=True, slots=True)
class CellWalk(Walk):
    """What walks through the cells of a grid have in common.

    constant: the number of starts of cells in constant memory; 0: they lie in global memory.
    """

    grid: GridExpressions
    constant: int

    def arguments(self) -> tuple[ir.ArrayArgument, ...]:
        return self.grid.arguments(self.constant)

    def uniforms(self) -> tuple[ir.Parameter, ...]:
        return self.grid.uniforms()
