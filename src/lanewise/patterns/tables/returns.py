"""A thread that ends early, as conditions: what follows a return is not done.

if i >= n: return; c[i] = 1.0       ->  if i < n: c[i] = 1.0
Where a branch may or may not return, a flag says whether it did.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.ir.traverse import returns, statements
from lanewise.language.types import BOOL
from lanewise.support.errors import CompileError

GONE = own("gone")  # whether the thread has ended


def without_returns(block: ir.Block) -> ir.Block:
    """The same statements without a return. Raises `CompileError` for one in a loop."""
    _check(block)
    body, flagged = _without(block)
    return (ir.Assign(GONE, ir.Literal(False, BOOL)), *body) if flagged else body


def _without(block: ir.Block) -> tuple[ir.Block, bool]:
    """The block, and whether it sets the flag."""
    for n, s in enumerate(block):
        if isinstance(s, ir.Return):
            return block[:n], False
        if not isinstance(s, ir.If) or not returns(s):
            continue
        before, rest = block[:n], block[n + 1 :]
        ends = _ends(s.then), _ends(s.otherwise)
        if any(ends) or not rest:  # the rest belongs to the side that continues
            then, one = _without(s.then if ends[0] else (*s.then, *rest))
            otherwise, other = _without(
                s.otherwise if ends[1] or not ends[0] else (*s.otherwise, *rest)
            )
            if not then:
                return (
                    *before,
                    replace(s, condition=negated(s.condition), then=otherwise, otherwise=()),
                ), one or other
            return (*before, replace(s, then=then, otherwise=otherwise)), one or other
        then, otherwise = _flagging(s.then), _flagging(s.otherwise)
        after, _ = _without(rest)
        goes_on = ir.If(ir.Unary("not", ir.Local(GONE, BOOL), BOOL), after, (), s.location)
        return (*before, replace(s, then=then, otherwise=otherwise), goes_on), True
    return block, False


def _flagging(block: ir.Block) -> ir.Block:
    """A block that sets the flag where it returned."""
    for n, s in enumerate(block):
        if isinstance(s, ir.Return):
            return (*block[:n], ir.Assign(GONE, ir.Literal(True, BOOL), s.location))
        if isinstance(s, ir.If) and returns(s):
            branch = replace(s, then=_flagging(s.then), otherwise=_flagging(s.otherwise))
            rest = _flagging(block[n + 1 :])
            test = ir.Unary("not", ir.Local(GONE, BOOL), BOOL)
            return (*block[:n], branch, *((ir.If(test, rest, (), s.location),) if rest else ()))
    return block


_OPPOSITE: dict[ir.CompareOperator, ir.CompareOperator] = {
    "==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">",
}  # fmt: skip


def negated(e: ir.Expression) -> ir.Expression:
    """The opposite of a condition, as comparisons where they have one: no comparison of floats has,
    because of NaN.
    """
    match e:
        case ir.Compare() if not e.left.type.is_float:
            return replace(e, operator=_OPPOSITE[e.operator])
        case ir.Logical():
            return replace(
                e,
                operator="or" if e.operator == "and" else "and",
                left=negated(e.left),
                right=negated(e.right),
            )
        case ir.Unary(operator="not"):
            return e.operand
        case _:
            return ir.Unary("not", e, BOOL, e.location)


def _ends(block: ir.Block) -> bool:
    """Whether every path through a block returns."""
    return any(
        isinstance(s, ir.Return) or (isinstance(s, ir.If) and _ends(s.then) and _ends(s.otherwise))
        for s in block
    )


def _check(block: ir.Block) -> None:
    for s in _in_loops(block):
        if isinstance(s, ir.Return):
            raise CompileError(
                "a thread does not return from within a loop", s.location, found="return in a loop",
                wanted="return at the top level of the function or in a branch of it",
                hint="leave the loop with break, and test a variable behind it",
            )  # fmt: skip


def _in_loops(block: ir.Block) -> Iterator[ir.Statement]:
    """The statements of all loops."""
    for s in statements(block):
        if isinstance(s, ir.For | ir.While):
            yield from statements(s.body)
