"""How far a node is from targets that take one way through a tree: from their box, from the nearest
of them, or from a single one.

A node that is far from the box is far from all of them. Where it is not, the threads of the warp
(the lanes of a CPU) ask for the nearest: a group that goes round a cluster has a box of its size.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.language.record import Leaf
from lanewise.language.types import COMPONENTS, Scalar
from lanewise.patterns.search.tree.nodes import ROUNDING

GROUP = own("group")  # the number of a group
GROUP_SIZE = 32  # targets: a warp of a GPU, and on a CPU the lanes of a few SIMD registers
LARGEST = 64  # targets of the largest groups: two of each thread of a warp


@dataclass(frozen=True, slots=True)
class OwnPlace:
    """A target that takes its own way. place: its position, in variables."""

    number: ir.Local
    place: tuple[ir.Local, ...]

    @property
    def members(self) -> tuple[ir.Expression, ir.Expression]:
        """The number of the first target, and the one after the last."""
        return self.number, build.add(self.number, 1)

    @property
    def gap2(self) -> ir.Local:
        return ir.Local(own("walk.gap2"), self.place[0].type)

    def gap(self, centre: Sequence[ir.Expression]) -> ir.Block:
        """`gap2`: the square of the distance of a place."""
        return (ir.Assign(self.gap2.name, _square_distance(centre, self.place)),)

    def corner2(self, centre: Sequence[ir.Expression]) -> ir.Expression:
        """The square of the largest distance."""
        del centre
        return self.gap2


@dataclass(frozen=True, slots=True)
class GroupBox:
    """Statements and expressions about the box of a group. size: of its targets; position: the
    leaves of its field; place: the position of a target, in variables.
    """

    group: ir.Local
    size: int
    position: tuple[Leaf, ...]
    place: tuple[ir.Local, ...]

    @property
    def members(self) -> tuple[ir.Local, ir.Local]:
        """The number of the first target, and the one after the last."""
        index = self.group.type
        return ir.Local(own("group.first"), index), ir.Local(own("group.last"), index)

    def measure(self, target: str, count: ir.Expression, step: int = 1) -> ir.Block:
        """The middle of the box and half of its extents, from the positions of so many targets,
        which lie `step` sorted places apart. The half is larger by more than the roundings: a node
        that is one target of the group lies in the box, and is not far from it.
        """
        (first, last), m = self.members, ir.Local(own("group.m"), self.group.type)
        body: list[ir.Statement] = [
            ir.Assign(first.name, build.multiply(self.group, self.size)),
            ir.Assign(last.name, build.minimum(build.add(first, self.size), count)),
        ]
        for word, value in (("low", float("inf")), ("high", float("-inf"))):
            start = ir.Literal(value, self.precision)
            body += [ir.Assign(x.name, start) for x in self._reals(word)]
        members = self._reals("member")
        reads = tuple((p.name, x.name) for p, x in zip(self.position, members, strict=True))
        inner: list[ir.Statement] = [ir.LoadRecord(target, build.multiply(m, step), reads)]
        for low, high, x in zip(self._reals("low"), self._reals("high"), members, strict=True):
            inner += [
                ir.Assign(low.name, build.minimum(low, x)),
                ir.Assign(high.name, build.maximum(high, x)),
            ]
        one = ir.Literal(1, self.group.type)
        body.append(ir.For(m.name, first, last, one, tuple(inner)))
        ends = (self._reals(n) for n in ("low", "high", "half", "middle"))
        room = ir.Literal(ROUNDING[self.precision.size], self.precision)
        for low, high, half, middle in zip(*ends, strict=True):
            size = build.times(ir.Literal(0.5, self.precision), build.minus(high, low))
            away = build.maximum(*(ir.Call("abs", (x,), self.precision) for x in (low, high)))
            body += [
                ir.Assign(half.name, size),
                ir.Assign(middle.name, build.plus(low, half)),
                ir.Assign(half.name, build.plus(half, build.times(away, room))),
            ]
        return tuple(body)

    @property
    def gap2(self) -> ir.Local:
        return ir.Local(own("walk.gap2"), self.precision)

    def gap(self, centre: Sequence[ir.Expression]) -> ir.Block:
        """`gap2`: the square of the distance of a place from the box, zero inside of it."""
        body, gaps, none = list[ir.Statement](), self._reals("gap"), build.zero(self.precision)
        for gap, apart, half in zip(gaps, self._apart(centre), self._reals("half"), strict=True):
            beyond = build.maximum(build.minus(apart, half), none)
            body.append(ir.Assign(gap.name, beyond))
        return (*body, ir.Assign(self.gap2.name, self._squares(gaps)))

    def begin(self, target: str, step: int) -> ir.Block:
        """Every thread begins with the place of the first target; threads after the last one keep
        it, so that none of them is nearer to a node than the targets are.
        """
        first, place = build.multiply(self.group, self.size * step), self._reals("first")
        reads = tuple((p.name, x.name) for p, x in zip(self.position, place, strict=True))
        copies = zip(self.place, place, strict=True)
        return (
            ir.LoadRecord(target, first, reads),
            *(ir.Assign(own_place.name, x) for own_place, x in copies),
        )

    def first2(self, centre: Sequence[ir.Expression]) -> ir.Expression:
        """The square of the distance of a place from the first target: the nearest one is no
        farther.
        """
        return _square_distance(centre, self._reals("first"))

    def nearer(self, centre: Sequence[ir.Expression]) -> ir.Block:
        """`gap2`: the square of the distance of a place from the nearest target."""
        own2 = ir.Local(own("walk.own2"), self.precision)
        away = ir.Assign(own2.name, _square_distance(centre, self.place))
        return (away, ir.Least(self.gap2.name, own2))

    def corner2(self, centre: Sequence[ir.Expression]) -> ir.Expression:
        """The square of the distance of a place from the farthest corner."""
        halves = zip(self._apart(centre), self._reals("half"), strict=True)
        return self._squares([build.plus(apart, half) for apart, half in halves])

    @property
    def precision(self) -> Scalar:
        return self.position[0].type

    def _apart(self, centre: Sequence[ir.Expression]) -> list[ir.Expression]:
        both = zip(centre, self._reals("middle"), strict=True)
        return [ir.Call("abs", (build.minus(c, m),), self.precision) for c, m in both]

    def _reals(self, word: str) -> list[ir.Local]:
        axes = COMPONENTS[: len(self.position)]
        return [ir.Local(own(f"walk.{word}.{c}"), self.precision) for c in axes]

    def _squares(self, lengths: Iterable[ir.Expression]) -> ir.Expression:
        return reduce(build.plus, [build.times(x, x) for x in lengths])


def _square_distance(a: Sequence[ir.Expression], b: Sequence[ir.Expression]) -> ir.Expression:
    apart = [build.minus(x, y) for x, y in zip(a, b, strict=True)]
    squares: list[ir.Expression] = [build.times(x, x) for x in apart]
    return reduce(build.plus, squares)
