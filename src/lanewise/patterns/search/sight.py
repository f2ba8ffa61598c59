"""What a target sees: sources behind it are not met, and cells that lie behind it are left out.

A source at `off` from a target with the heading f is seen where f . off >= cosine |off|, or nearer
than `near` in any direction. The test compares squares with their signs, in an order of operations
that no structure changes, so that all meet the same sources.

Of a row of cells along x only the part is looked at that may be seen: within the radius r,
f . off >= min(cosine, 0) r holds for all that is, and with the largest f_y y + f_z z of the row
that bounds x on one side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.language.record import Leaf
from lanewise.language.types import COMPONENTS, Scalar
from lanewise.support.attributes import frozen
from lanewise.support.checks import finite, shown
from lanewise.support.errors import ArgumentError

COSINE2, NEAR2 = own("sight.cosine2"), own("sight.near2")  # the cosine's square has its sign
LEAST, NEAR = own("sight.least"), own("sight.near")
SLACK = 1e-3  # radii: more than rounding adds to the end of a row
STEEP = 0.05  # headings with less along x bound nothing


@frozen
@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """Sources that a target sees.

    heading: the field of the targets with their direction, of as many components as the position.
    cosine: the cosine of the largest angle to it. near: closer sources are met in any direction.
    """

    heading: str
    cosine: float
    near: float = 0.0

    def __post_init__(self) -> None:
        heading, cosine, near = (self.heading, self.cosine, self.near)
        if not isinstance(heading, str) or not heading:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError(
                f"Sight(heading={shown(heading)}): wanted the name of a field, such as 'forward'"
            )
        if not finite(cosine) or not -1 <= cosine <= 1:
            raise ArgumentError(f"Sight(cosine={shown(cosine)}): wanted a number from -1 to 1")
        if not finite(near) or near < 0:
            raise ArgumentError(f"Sight(near={shown(near)}): wanted a length, 0 or more")

    def in_words(self) -> str:
        """Which sources are seen."""
        near = f" or nearer than {self.near:g}" if self.near else ""
        return f"seen from {self.heading!r} with a cosine of {self.cosine:g} at least{near}"

    def values(self, precision: Scalar, radius: float) -> dict[str, Any]:
        """The uniform values that kernels read."""
        real = precision.dtype.type
        return {
            COSINE2: real(self.cosine * abs(self.cosine)),
            NEAR2: real(self.near * self.near),
            LEAST: real((min(self.cosine, 0.0) - SLACK) * radius),
            NEAR: real(self.near * (1 + SLACK)),
        }

    def leaves(
        self, what: str, leaves: Sequence[Leaf], position: Sequence[Leaf]
    ) -> tuple[Leaf, ...]:
        """The heading among the leaves of the targets. Raises `ArgumentError` if there is no such
        field.
        """
        found = tuple(x for x in leaves if x.field == self.heading)
        if [x.type for x in found] != [x.type for x in position]:
            raise ArgumentError(
                f"{what}: {self.in_words()}, and the targets have no field {self.heading!r} with "
                "as many components as the position, of its type"
            )
        return found


def check_sight(name: str, sight: Any, radius: float | None) -> None:
    """Refuse what is no sight, and one without a radius."""
    if sight is None:
        return
    if not isinstance(sight, Sight):
        raise ArgumentError(f"{name}(sight={shown(sight)}): wanted lw.Sight(...)")
    if radius is None:
        raise ArgumentError(f"{name}(sight=...): wanted a radius as well")


def heading(axis: int, precision: Scalar) -> ir.Local:
    """A component of where the target looks."""
    return ir.Local(own(f"sight.{COMPONENTS[axis]}"), precision)


def seen(axes: int, precision: Scalar, d2: ir.Local) -> tuple[ir.Block, ir.Expression]:
    """Whether the candidate is seen whose distance was computed last, and what finds that out."""
    total: ir.Expression | None = None
    for axis in range(axes):
        off = ir.Local(own(f"d.{COMPONENTS[axis]}"), precision)
        along = heading(axis, precision)
        total = (
            ir.Binary("*", along, off, precision)
            if total is None
            else ir.Call("fma", (along, off, total), precision)
        )
    assert total is not None
    ahead = ir.Local(own("sight.ahead"), precision)
    square = ir.Binary("*", ahead, ir.Call("abs", (ahead,), precision), precision)
    least = ir.Binary("*", ir.Local(COSINE2, precision), d2, precision)
    near = ir.Compare("<", d2, ir.Local(NEAR2, precision))
    return (ir.Assign(ahead.name, total),), ir.Logical("or", ir.Compare(">=", square, least), near)
