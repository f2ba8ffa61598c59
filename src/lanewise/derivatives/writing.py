"""Numbered values written back as statements: the user's names where a value has one, and branches
where a derivative has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lanewise.analysis.algebra import Algebra
from lanewise.analysis.written_values import FREE, ValueWriter
from lanewise.derivatives.reverse import ConditionalSum
from lanewise.ir import nodes as ir
from lanewise.language.types import Scalar


def write_results(
    writer: ValueWriter, choices: Sequence[ConditionalSum], kinds: Sequence[Scalar]
) -> ir.Block:
    """Statements that compute the results and return them."""
    condition = _only_condition(choices)
    if condition is None:
        algebra = Algebra(writer.table)
        values = [c.merged(algebra, kind) for c, kind in zip(choices, kinds, strict=True)]
        writer.compute([v.number for v in values])
        writer.body.append(ir.Return(tuple(map(writer.value, values))))
        return tuple(writer.body)
    first, second = (
        [c.sides.get(condition, (ConditionalSum(), ConditionalSum()))[side] for c in choices]
        for side in (0, 1)
    )
    table = writer.table
    shared = table.below(_roots(first)) & table.below(_roots(second))
    needed = {condition} | {n for n in shared if table.nodes[n].operation not in FREE}
    writer.compute([*sorted(needed), condition])
    inner = replace(writer, body=[], names=dict(writer.names), taken=set(writer.taken))
    writer.body.append(ir.If(writer.number(condition), write_results(inner, first, kinds)))
    return write_results(writer, second, kinds)


def _roots(choices: Sequence[ConditionalSum]) -> set[int]:
    """The values and conditions of derivatives."""
    roots: set[int] = set()
    for c in choices:
        roots |= {c.value.number} if c.value is not None else set()
        roots |= {*c.sides}
        roots |= _roots([x for sides in c.sides.values() for x in sides])
    return roots


def _only_condition(choices: Sequence[ConditionalSum]) -> int | None:
    """The condition on which all that is not zero depends, if there is one."""
    conditions = {n for c in choices for n in c.sides}
    return (
        conditions.pop() if len(conditions) == 1 and all(c.value is None for c in choices) else None
    )
