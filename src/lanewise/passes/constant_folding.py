"""Compute at compile time what has only literals in it, and drop branches that cannot be taken.

    if 2.0 * 3.0 > 5.0: a = x * 1.0   ->   a = x
Float identities are used only where they are exact for every value: `x * 1` is, `x + 0` (minus
zero) and `x * 0` (NaN) are not.
"""

from __future__ import annotations

from lanewise.analysis.folding import fold
from lanewise.ir import nodes as ir
from lanewise.ir.functions import map_functions
from lanewise.ir.traverse import flat_map, rewrite, rewrite_statement


def apply(kernel: ir.Kernel) -> ir.Kernel:
    """Fold every function of the kernel."""
    return map_functions(kernel, fold_function)


def fold_function(f: ir.Function) -> ir.Function:
    """Fold the body of one function."""
    return ir.Function(f.name, f.parameters, f.results, fold_block(f.body), f.location)


def fold_block(block: ir.Block) -> ir.Block:
    """Fold the statements of a block, nested ones first."""
    return flat_map(block, _statement)


def _statement(s: ir.Statement) -> ir.Block:
    s = rewrite_statement(s, lambda e: rewrite(e, fold), lambda b: b)
    match s:
        case ir.If(condition=ir.Literal(value=value)):
            return s.then if value else s.otherwise
        case ir.While(condition=ir.Literal(value=False)):
            return ()
        case _:
            return (s,)
