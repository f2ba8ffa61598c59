"""Walks along a row whose blocks test whether they are inside: loops over those that are, and
others over those at its ends.

    for x_number in range(begin, end): x_first = ...; if rows_are_inside and x_first + 16 <= w and 0
    <= x_first: A else: C
->  for x_side in range(2):  # before and behind
      for x_number in range(x_outer if x_side else begin, end if x_side else x_inner): x_first =
      ...; C for x_number in range(x_inner, x_inner if x_side else x_outer): x_first = ...; A
A test in the loop costs a stencil in the caches a fifth of its time: LLVM computes the place of
every load anew then. Where blocks at the ends may load early (`else: if ...: B else: C`), and there
is one at most at either end, nothing is tested in a row:
    if rows_may_load_early and ...:
      if begin < x_inner: x_number = begin; x_first = ...; B
      for x_number in range(x_inner, x_outer): x_first = ...; A
      if x_outer < end: x_number = x_outer; x_first = ...; B
    else: as above
A core foresees such rows, and continues to the next one while memory is waited for.
"""

from __future__ import annotations

from dataclasses import dataclass

from lanewise.analysis.index_sums import IndexSum, index_sum, single_definitions
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import reads, statements, written_in


@dataclass(frozen=True, slots=True)
class Bounds:
    """Which blocks of a walk pass a test: from all of `least` to before all of `most`, if `gate`
    holds. They may lie beyond its ends.
    """

    gate: ir.Expression | None
    least: tuple[ir.Expression, ...]
    most: tuple[ir.Expression, ...]


@dataclass(frozen=True, slots=True)
class Early:
    """Blocks at the ends of a row that load before their tests."""

    bounds: Bounds
    block: ir.Block


@dataclass(frozen=True, slots=True)
class SplitWalk:
    """A walk in several loops: blocks within `bounds` are `inside`, the others `edges`, or
    early.
    """

    head: ir.Block  # of each round
    bounds: Bounds
    inside: ir.Block
    early: Early | None
    edges: ir.Block


def walk_of(s: ir.For) -> SplitWalk | None:
    """A loop whose last branch has tests that hold from one round to another; None for others, and
    for blocks with their own loops.
    """
    if not s.body or s.step != ir.Literal(1, s.step.type):
        return None
    *head, branch = s.body
    if (
        not isinstance(branch, ir.If)
        or not branch.otherwise
        or any(isinstance(x, ir.For) for x in statements(s.body))
    ):
        return None
    bounds = _bounds(s, branch.condition)
    if bounds is None or not (bounds.least or bounds.most):
        return None
    match branch.otherwise:
        case (ir.If(condition=test, then=then, otherwise=edges),) if edges and (
            early := _bounds(s, test)
        ):
            return SplitWalk(tuple(head), bounds, branch.then, Early(early, then), edges)
        case edges:
            return SplitWalk(tuple(head), bounds, branch.then, None, edges)


def _bounds(s: ir.For, condition: ir.Expression) -> Bounds | None:
    """Which rounds of a loop pass a test; None where they need not follow each other."""
    kind, changed = s.start.type, written_in((s,))
    definitions = single_definitions(
        s.body[:-1], {s.variable: IndexSum(0, {ir.Local(s.variable, kind): 1})}
    )
    gates, least, most = list[ir.Expression](), list[ir.Expression](), list[ir.Expression]()
    for test in build.conjuncts(condition):
        if changed.isdisjoint(reads(test)):
            gates.append(test)
            continue
        if (
            not isinstance(test, ir.Compare)
            or test.operator not in ("<", "<=")
            or not test.left.type.is_integer
        ):
            return None
        # 0 or more where the test holds
        room = index_sum(test.right, definitions).plus(index_sum(test.left, definitions), -1)
        room = room.plus(IndexSum(int(test.operator == "<")), -1)
        moved, rest = room.coefficient(s.variable), room.without([s.variable])
        if not moved or any(not changed.isdisjoint(reads(e)) for e in rest.terms):
            return None
        if moved > 0:
            least.append(build.ceil_divide(IndexSum().plus(rest, -1).expression(kind), moved))
        else:
            most.append(build.add(build.divide(rest.expression(kind), -moved), 1))
    return Bounds(
        build.all_of(*gates) if gates else None,
        tuple(dict.fromkeys(least)),
        tuple(dict.fromkeys(most)),
    )
