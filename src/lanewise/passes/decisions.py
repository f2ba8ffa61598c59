"""Decisions that two kernels may take in two ways: tests of floats, and steps from floats to whole numbers, of rounded arithmetic.

    r2 = x * x + y * y; if r2 < limit: ...
One compilation may fuse the product with the sum and another one may not, as their surroundings suggest; a borderline element would then
be on both sides of such a test. Comparisons of fields, whole numbers, and single operations come out the same everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable

from lanewise.ir import nodes as ir
from lanewise.ir.functions import functions
from lanewise.ir.printer import print_expression
from lanewise.ir.traverse import children, expressions, reads, statements, subexpressions, writes

_EXACT_CALLS = frozenset({"min", "max", "abs", "clamp", "floor", "ceil", "trunc", "isnan", "isinf", "isfinite"})
_STEPS = frozenset({"floor", "ceil", "trunc"})


def inexact(found: Iterable[ir.Expression], *, fast_math: bool = False) -> str | None:
    """What in these expressions (with all below them) compilers may round in several ways, or None."""
    every = [x for e in found for x in subexpressions(e)]
    real = [x for x in every if isinstance(x, ir.Binary | ir.Call) and x.type.is_float]
    if calls := [x.intrinsic for x in real if isinstance(x, ir.Call) and x.intrinsic not in _EXACT_CALLS]:
        return f"computes {calls[0]}"
    operators = {x.operator for x in real if isinstance(x, ir.Binary)}
    if "*" in operators and operators & {"+", "-"}:
        return "adds products"
    if odd := operators & {"%", "//"}:
        return f"computes {min(odd)} of floats"
    if fast_math and any(x.type.is_float for x in every):
        return "compares floats under fast_math"
    return None


def decisions(block: ir.Block, *, fast_math: bool = False) -> set[tuple[str, str]]:
    """The place and the text of every such decision in the functions that a block applies."""
    found: set[tuple[str, str]] = set()
    outer = {s.function.name for s in statements(block) if isinstance(s, ir.Apply)}
    for f in functions(block).values():
        for x in (x for e in _of(f.body) for x in subexpressions(e)):
            # What a helper is given may be rounded already.
            if _decides(x) and (f.name not in outer or inexact(_behind(f.body, x), fast_math=fast_math)):
                found.add((str(x.location), print_expression(x)))
    return found


def _decides(x: ir.Expression) -> bool:
    real = any(c.type.is_float for c in children(x))
    match x:
        case ir.Compare():
            return real
        case ir.Cast():
            return real and not x.type.is_float
        case ir.Call():
            return real and x.intrinsic in _STEPS
        case ir.Binary():
            return real and x.operator in ("%", "//")
        case _:
            return False


def _of(block: ir.Block) -> list[ir.Expression]:
    return [e for s in statements(block) for e in expressions(s)]


def _behind(block: ir.Block, x: ir.Expression) -> list[ir.Expression]:
    """The expression and everything that its value comes from."""
    needed = set(reads(x))
    while True:
        used = tuple(s for s in statements(block) if not isinstance(s, ir.For) and not needed.isdisjoint(writes(s)))
        wider = needed | {n for s in used for e in expressions(s) for n in reads(e)}
        if wider == needed:
            helpers = (e for f in functions(used).values() for e in _of(f.body))
            return [x, *(e for s in used for e in expressions(s)), *helpers]
        needed = wider
