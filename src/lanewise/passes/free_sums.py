"""Mark the sums of a thread's loop as free: a CPU may then add neighbouring rounds in the lanes of
SIMD registers.

    for k in range(n): s = s + a * x    ->   the same, with a sum that may be added in any order
Only the sum itself: what is added is computed as it is written. Legal where rounds can be shared
(analysis/reductions.py), and of use where the loop runs along rows alone.
"""

from __future__ import annotations

from dataclasses import replace

from lanewise.ir import nodes as ir
from lanewise.ir.folds import Fold
from lanewise.ir.traverse import flat_map, reads
from lanewise.passes.shared_loops import coalesced, shareable_loops


def apply(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel with free sums and products of floats; the same one where it has none."""
    loops = [x for x in shareable_loops(kernel).values() if x.folds]
    if not loops or coalesced(kernel)[1]:  # neighbouring points are what SIMD lanes are for
        return kernel

    def visit(s: ir.Statement) -> ir.Block:
        summing = next((x for x in loops if x.loop == s), None)
        if summing is None:
            return (s,)
        assert isinstance(s, ir.For)
        body = s.body
        for fold in summing.folds:
            body = flat_map(body, lambda x, fold=fold: (_freed(x, fold),))
        return (replace(s, body=body),)

    return replace(kernel, body=flat_map(kernel.body, visit))


def _freed(s: ir.Statement, fold: Fold) -> ir.Statement:
    if (
        not isinstance(s, ir.Assign)
        or s.name != fold.name
        or not fold.type.is_float
        or fold.operation not in ("+", "*")
    ):
        return s
    return replace(s, value=_free(s.value, fold.name))


def _free(e: ir.Expression, name: str) -> ir.Expression:
    """A chain of sums or products, with those free that the variable is in."""
    match e:
        case ir.Binary(operator="+" | "*", left=left, right=right) if name in reads(e):
            return replace(e, left=_free(left, name), right=_free(right, name), free=True)
        case ir.Binary(operator="-", left=left, right=right) if name in reads(left):
            return ir.Binary(
                "+", _free(left, name), ir.Unary("-", right, e.type), e.type, e.location, free=True
            )
        case _:
            return e
