"""Functions without loops: those of a few rounds that are known are written out."""

from __future__ import annotations

from dataclasses import replace

from lanewise.analysis.value_numbering import NotNumbered
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import ends_early, flat_map, rewrite_block, statements

MOST_ROUNDS = 32  # of all loops of a function
MOST_BRANCHES = 8  # what follows a branch is numbered once for each side


def straight(f: ir.Function) -> ir.Function:
    """The function with its loops written out.

    Raises `NotNumbered` for loops whose rounds are not known, or are many.
    """
    rounds = 0

    def visit(s: ir.Statement) -> ir.Block:
        nonlocal rounds
        if isinstance(s, ir.Apply):
            return (replace(s, function=straight(s.function)),)
        if not isinstance(s, ir.For):
            return (s,)
        bounds = (s.start, s.stop, s.step)
        if any(not isinstance(e, ir.Literal) for e in bounds) or ends_early(s.body):
            raise NotNumbered(f"{f.name} has a loop whose rounds are not known")
        values = range(*(int(e.value) for e in bounds if isinstance(e, ir.Literal)))
        rounds += len(values)
        if rounds > MOST_ROUNDS:
            raise NotNumbered(f"{f.name} has loops of more than {MOST_ROUNDS} rounds")
        return tuple(x for i in values for x in _round(s, i))

    result = replace(f, body=flat_map(f.body, visit))
    if sum(isinstance(s, ir.If) for s in statements(result.body)) > MOST_BRANCHES:
        raise NotNumbered(f"{f.name} has more than {MOST_BRANCHES} branches")
    return result


def _round(s: ir.For, i: int) -> ir.Block:
    def expression(e: ir.Expression) -> ir.Expression:
        return (
            ir.Literal(i, e.type, e.location)
            if isinstance(e, ir.Local) and e.name == s.variable
            else e
        )

    return rewrite_block(s.body, expression)
