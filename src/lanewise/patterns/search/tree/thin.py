"""Whether the targets of a group lie along a line or in a sheet, where results cancel more often.

An accuracy is relative to each result, and the error of a far node to a typical one of a group. Of
results that point anywhere few are much smaller: in space one of a million is below a hundredth of
the typical one. Along a line there is one direction, so contributions from both sides leave less
than a hundredth in one result of a hundred, and 99 % are to be within the accuracy. So a group on a
line allows a sixteenth of it, and one in a sheet, where one in a hundred is below a tenth, 0.7 of
it. (Measured: 99 % errors of lines of 12,000 to 100,000 bodies were up to 7 times the accuracy,
those of sheets up to 1.1 times.)

S is the sum of d d^T over the group, with d from its first target, over its trace. Of a line it has
rank one: its principal minors of two rows are small. Of a sheet it has rank two, and its
determinant is small.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from functools import reduce

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.language.record import Leaf
from lanewise.language.types import COMPONENTS, Scalar
from lanewise.patterns.search.tree.group import GROUP_SIZE

THIN = 0.02  # minors of a line: it is about seven times as long as wide
FLAT = 1e-4  # the determinant of a sheet: it is about thirty times as wide as thick
OF_LINES, OF_SHEETS = 1 / 16, 0.7  # of the accuracy


def share_of_the_accuracy(
    target: str, position: Sequence[Leaf], place: ir.Expression, targets: ir.Expression
) -> tuple[ir.Block, ir.Expression]:
    """The part of the accuracy that a group allows, behind statements that find it out. place: of
    its first target, in the sorted order, whose position was loaded; targets: their number.
    """
    kind, index = position[0].type, place.type
    axes = COMPONENTS[: len(position)]
    first = [ir.Local(f"{target}.{x.name}", kind) for x in position]
    member, away = (_reals(n, axes, kind) for n in ("line.member", "line.away"))
    m, one = ir.Local(own("line.m"), index), ir.Literal(1, index)
    there = build.add(place, m)  # after the last target the first one, which adds nothing
    at = ir.Select(build.less(there, targets), there, place, index)
    reads = tuple((p.name, x.name) for p, x in zip(position, member, strict=True))
    pairs = tuple(itertools.combinations_with_replacement(range(len(axes)), 2))
    sums = {p: ir.Local(own(f"line.{axes[p[0]]}{axes[p[1]]}"), kind) for p in pairs}
    inner: list[ir.Statement] = [ir.LoadRecord(target, at, reads)]
    for d, x, start in zip(away, member, first, strict=True):
        inner.append(ir.Assign(d.name, build.minus(x, start)))
    for (a, b), total in sums.items():
        inner.append(ir.Assign(total.name, build.plus(total, build.times(away[a], away[b]))))
    trace = ir.Local(own("line.trace"), kind)
    diagonal: list[ir.Expression] = [sums[a, a] for a in range(len(axes))]
    shares = [ir.Assign(x.name, build.over(x, trace)) for x in sums.values()]
    minors = [
        build.minus(build.times(sums[a, a], sums[b, b]), build.times(sums[a, b], sums[a, b]))
        for a, b in itertools.combinations(range(len(axes)), 2)
    ]
    thin = ir.Compare("<", reduce(build.plus, minors), ir.Literal(THIN, kind))
    one_direction, every = ir.Literal(OF_LINES, kind), ir.Literal(1.0, kind)
    flat: ir.Expression = every
    if len(axes) == 3:
        few = ir.Compare("<", _determinant(sums), ir.Literal(FLAT, kind))
        flat = ir.Select(few, ir.Literal(OF_SHEETS, kind), every, kind)
    return (
        *(ir.Assign(x.name, build.zero(kind)) for x in sums.values()),
        ir.For(m.name, one, ir.Literal(GROUP_SIZE, index), one, tuple(inner)),
        ir.Assign(trace.name, reduce(build.plus, diagonal)),
        *shares,
    ), ir.Select(thin, one_direction, flat, kind)


def _determinant(s: Mapping[tuple[int, int], ir.Expression]) -> ir.Expression:
    """Of a symmetric matrix of three rows, from its upper half."""

    def minor(
        a: ir.Expression, b: ir.Expression, c: ir.Expression, d: ir.Expression
    ) -> ir.Expression:
        return build.minus(build.times(a, b), build.times(c, d))

    first = build.times(s[0, 0], minor(s[1, 1], s[2, 2], s[1, 2], s[1, 2]))
    second = build.times(s[0, 1], minor(s[0, 1], s[2, 2], s[1, 2], s[0, 2]))
    third = build.times(s[0, 2], minor(s[0, 1], s[1, 2], s[1, 1], s[0, 2]))
    return build.plus(build.minus(first, second), third)


def _reals(word: str, axes: Sequence[str], kind: Scalar) -> list[ir.Local]:
    return [ir.Local(own(f"{word}.{c}"), kind) for c in axes]
