"""Mark the sums of a thread's loop as free: a CPU may then add neighbouring rounds in the lanes of
SIMD registers.

    for k in range(n): s = s + a * x    ->   the same, with a sum that may be added in any order
Only the sum itself: what is added is computed as it is written. Legal where rounds can be shared
(analysis/reductions.py), and of use where the loop runs along rows alone. A loop in loops may do
other things in its rounds as well: what gathers there is read by its own updates alone.
"""

from __future__ import annotations

from dataclasses import replace

from lanewise.analysis.reductions import first_access, fold_of
from lanewise.ir import nodes as ir
from lanewise.ir.folds import Fold
from lanewise.ir.traverse import (
    blocks,
    flat_map,
    reads,
    rewrite_statement,
    statements,
    writes,
)
from lanewise.passes.shared_loops import coalesced, shareable_loops


def apply(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel with free sums and products of floats; the same one where it has none."""
    loops = {id(x.loop): x.folds for x in shareable_loops(kernel).values() if x.folds}
    if coalesced(kernel)[1]:  # neighbouring points are what SIMD lanes are for
        return kernel
    for s in statements(kernel.body):
        if isinstance(s, ir.For) and any(isinstance(x, ir.For) for x in s.body):
            loops |= {id(x): _gathered(x) for x in s.body if isinstance(x, ir.For)}

    def visit(block: ir.Block) -> ir.Block:
        return tuple(one(s) if blocks(s) else s for s in block)

    def one(s: ir.Statement) -> ir.Statement:
        done = rewrite_statement(s, lambda e: e, visit)
        for fold in loops.get(id(s), ()):
            assert isinstance(done, ir.For)
            freed = flat_map(done.body, lambda x, fold=fold: (_freed(x, fold),))
            done = replace(done, body=freed)
        return done

    body = visit(kernel.body) if loops else kernel.body
    return replace(kernel, body=body)


def _gathered(loop: ir.For) -> tuple[Fold, ...]:
    """The sums and products of floats that an innermost loop gathers."""
    inside = list(statements(loop.body))
    if any(isinstance(s, ir.For | ir.While | ir.Break | ir.Apply) for s in inside):
        return ()
    names = dict.fromkeys(n for s in inside if isinstance(s, ir.Assign) for n in writes(s))
    carried = (n for n in names if first_access(loop.body, n) == "read")
    return tuple(f for f in (fold_of(loop.body, n) for n in carried) if f is not None)


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
