"""Two loads on the two sides of a branch become one load from a selected place.

    if cut: load f[a]: $x; v = $x  else: load f[b]: $y; v = $y      ->      load f[cut ? a : b]: $y;
    v = $y
A warp whose lanes part at a branch issues both loads one after the other, and waits at the places
where lanes meet again; with one load no lane parts. What both places have in common is computed
once. Each lane still loads what it loaded before, and nothing else.
"""

from __future__ import annotations

from dataclasses import replace

from lanewise.ir import nodes as ir
from lanewise.ir.traverse import flat_map


def apply(kernel: ir.Kernel) -> ir.Kernel:
    """Merge the branches that do nothing but load a value each from one buffer.

    Runs after layout lowering.
    """
    return replace(kernel, body=flat_map(kernel.body, _statement))


def _statement(s: ir.Statement) -> ir.Block:
    match s:
        case ir.If(
            condition=condition,
            then=(ir.Load() as first, *taken),
            otherwise=(ir.Load() as second, *also),
        ) if (
            first.buffer == second.buffer
            and (into := _taken(first, taken))
            and into == _taken(second, also)
        ):
            return (
                ir.Load(
                    second.buffer, selected(condition, first.index, second.index), second.names
                ),
                *also,
            )
        case _:
            return (s,)


def _taken(load: ir.Load, then: list[ir.Statement]) -> tuple[str, ...]:
    """The variables that take what a load brings, lane by lane; none if anything else is done
    there.
    """
    into = [s.name for s in then if isinstance(s, ir.Assign)]
    read = [
        s.value.name for s in then if isinstance(s, ir.Assign) and isinstance(s.value, ir.Local)
    ]
    return tuple(into) if len(into) == len(then) and tuple(read) == load.names else ()


def selected(condition: ir.Expression, one: ir.Expression, other: ir.Expression) -> ir.Expression:
    """`one` where the condition holds, else `other`, selecting as little as possible."""
    if one == other:
        return one
    match one, other:
        case ir.Binary(operator="+" | "*" as operator), ir.Binary() if operator == other.operator:
            left = selected(condition, one.left, other.left)
            return replace(one, left=left, right=selected(condition, one.right, other.right))
        case ir.Cast(), ir.Cast() if one.operand.type == other.operand.type:
            return replace(one, operand=selected(condition, one.operand, other.operand))
        case _:
            return ir.Select(condition, one, other, one.type)
