"""Sources that a walk offers to a target: where they are seen, how far away, and which of them are near enough.

for j in walk: load position; move it to the nearest image; d2 = |source - target|^2;  if it is near: visit j
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.patterns.search.base import Visit, Walk
from lanewise.types import COMPONENTS, Scalar

Keep = Callable[[ir.Local], ir.Expression]


def period(axis: int) -> str:
    """The uniform with the size of a periodic world along an axis."""
    return own(f"period.{COMPONENTS[axis]}")


def inverse_period(axis: int) -> str:
    """The uniform with one over the size of a periodic world along an axis."""
    return own(f"period.inverse.{COMPONENTS[axis]}")


@dataclass(frozen=True, slots=True)
class Candidates:
    """The sources in the array `name`, with one leaf an axis, around a target whose coordinates are locals."""

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
        return tuple(ir.Parameter(f(axis), self.precision) for axis in axes for f in (period, inverse_period))

    def look(self, j: ir.Local) -> ir.Block:
        """LoadRecord a candidate's position, seen at its nearest image, and assign the squared distance."""
        reads = tuple((leaf, self.coordinate(axis).name) for axis, leaf in enumerate(self.leaves))
        return (ir.LoadRecord(self.name, j, reads), *self.images(), *self.distance())

    def images(self) -> ir.Block:
        """Move the candidate that was loaded last to its nearest image, in a periodic world."""
        axes = range(len(self.leaves) if self.periodic else 0)
        return tuple(s for axis in axes for s in self._image(axis))

    def _image(self, axis: int) -> ir.Block:
        """The coordinate of the nearest image along an axis: whole sizes off, as many as bring it nearest."""
        kind, source = self.precision, self.coordinate(axis)
        size, inverse = ir.Local(period(axis), kind), ir.Local(inverse_period(axis), kind)
        sizes = ir.Binary("*", ir.Binary("-", self.place[axis], source, kind), inverse, kind)
        whole = ir.Call("floor", (ir.Binary("+", sizes, ir.Literal(0.5, kind), kind),), kind)
        number = ir.Local(own(f"sizes.{COMPONENTS[axis]}"), kind)
        return (
            ir.Assign(number.name, whole),
            ir.Assign(source.name, ir.Call("fma", (number, size, source), kind)),
        )

    def distance(self) -> ir.Block:
        """The squared distance, in an order of operations that no compiler changes: all structures find the same."""
        kind, body = self.precision, list[ir.Statement]()
        total: ir.Expression | None = None
        for axis in range(len(self.leaves)):
            d = ir.Local(own(f"d.{COMPONENTS[axis]}"), kind)
            body.append(ir.Assign(d.name, ir.Binary("-", self.coordinate(axis), self.place[axis], kind)))
            total = ir.Binary("*", d, d, kind) if total is None else ir.Call("fma", (d, d, total), kind)
        assert total is not None
        return (*body, ir.Assign(self.d2.name, total))

    def met(self, walk: Walk, bound2: ir.Expression, keep: Keep, visit: Visit) -> ir.Block:
        """`visit(j)`, which finds the distance in `d2`, for each source that `keep(j)` says is near."""
        return walk.around(self.place, bound2, lambda j: (*self.look(j), ir.If(keep(j), visit(j))))
