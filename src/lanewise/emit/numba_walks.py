"""Walks along a row whose blocks test whether they are inside: one loop over those that are, and one over the others.

    for x_number in range(begin, end): x_first = ...; if rows_are_inside and x_first + 16 <= w and 0 <= x_first: A else: B
->  for x_side in range(2):  # before and behind
      for x_number in range(x_outer if x_side else begin, end if x_side else x_inner): x_first = ...; B
      for x_number in range(x_inner, x_inner if x_side else x_outer): x_first = ...; A
A test in the loop costs a stencil in the caches a fifth of its time: LLVM computes the place of every load anew then.
"""

from __future__ import annotations

from dataclasses import dataclass

from lanewise.analysis.index_sums import IndexSum, index_sum, single_definitions
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import reads, statements, writes


@dataclass(frozen=True, slots=True)
class Walk:
    """A walk in two loops. Blocks from all of `least` to before all of `most` are inside, if `gate` holds; they may lie beyond its ends."""

    head: ir.Block  # of each round
    branch: ir.If
    gate: ir.Expression | None
    least: tuple[ir.Expression, ...]
    most: tuple[ir.Expression, ...]


def walk_of(s: ir.For) -> Walk | None:
    """A loop whose last branch has tests that hold from one round to another; None for others, and for blocks with loops of their own."""
    if not s.body or s.step != ir.Literal(1, s.step.type):
        return None
    *head, branch = s.body
    if not isinstance(branch, ir.If) or not branch.otherwise or any(isinstance(x, ir.For) for x in statements(s.body)):
        return None
    kind, changed = s.start.type, {n for x in statements((s,)) for n in writes(x)}
    definitions = single_definitions(tuple(head), {s.variable: IndexSum(0, {ir.Local(s.variable, kind): 1})})
    gates, least, most = list[ir.Expression](), list[ir.Expression](), list[ir.Expression]()
    for test in build.conjuncts(branch.condition):
        if changed.isdisjoint(reads(test)):
            gates.append(test)
            continue
        if not isinstance(test, ir.Compare) or test.operator not in ("<", "<=") or not test.left.type.is_integer:
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
    if not least and not most:
        return None
    gate = build.all_of(*gates) if gates else None
    return Walk(tuple(head), branch, gate, tuple(dict.fromkeys(least)), tuple(dict.fromkeys(most)))
