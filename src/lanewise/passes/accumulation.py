"""Add the sums of tiles in float64.

    for tile: for k: sum += f(...)
->  for tile: sum = 0; for k: sum += f(...); total += f64(sum) Within a tile the sum keeps the
precision of the result, so the inner loop costs what it did; rounding grows with the tile, not with
all sources. Sums of integers and of float64 stay as they are.
"""

from __future__ import annotations

from dataclasses import replace

from lanewise.ir import nodes as ir
from lanewise.ir.reductions import Accumulator, accumulators_of
from lanewise.ir.traverse import flat_map, rewrite_block
from lanewise.language.types import F64, Scalar
from lanewise.passes.base import has_tiles, refuse, source_loops


def legal(kernel: ir.Kernel) -> str | None:
    """Why the pass does not apply, or None."""
    if not has_tiles(kernel):
        return "its sources are not cut into tiles (Plan(tile=...))"
    return no_sums(kernel)


def no_sums(kernel: ir.Kernel) -> str | None:
    """Why float64 adds nothing to its reductions, or None."""
    words = dict.fromkeys(a.reduction.word for a in accumulators_of(kernel))
    if words and not any(a.reduction.widens for a in accumulators_of(kernel)):
        return f"it has no sums: float64 adds nothing to {', '.join(words)}"
    return None


def apply(kernel: ir.Kernel) -> ir.Kernel:
    """Add a float64 total around every tile; raises `PlanError` when that is not possible."""
    if reason := legal(kernel):
        raise refuse("float64 accumulation", kernel, reason)
    others = {x.name for a in accumulators_of(kernel) if not a.reduction.widens for x in a.state}
    sums = {
        n: k
        for loop in source_loops(kernel)
        for s in loop.body
        for n, k in _summed(s)
        if n not in others
    }
    wide = {n: ir.Local(n.replace("$sum", "$total", 1), F64) for n in sums}

    def total(e: ir.Expression) -> ir.Expression:
        return ir.Cast(wide[e.name], e.type) if isinstance(e, ir.Local) and e.name in wide else e

    def visit(s: ir.Statement) -> ir.Block:
        match s:
            case ir.For(role="tiles"):
                clear = tuple(ir.Assign(n, ir.Literal(0.0, kind)) for n, kind in sums.items())
                adds = tuple(
                    ir.Assign(w.name, ir.Binary("+", w, ir.Cast(ir.Local(n, sums[n]), F64), F64))
                    for n, w in wide.items()
                )
                return (replace(s, body=(*clear, *s.body, *adds)),)
            case ir.Assign(name=name, value=ir.Literal()) if name in sums:
                return (ir.Assign(wide[name].name, ir.Literal(0.0, F64)),)
            case ir.StoreRecord():
                return rewrite_block((s,), total)
            case _:
                return (s,)

    reductions = tuple(_widened(a, wide) for a in kernel.reductions)
    return replace(kernel, body=flat_map(kernel.body, visit), reductions=reductions)


def _widened(a: Accumulator, wide: dict[str, ir.Local]) -> Accumulator:
    """The totals instead of the sums, for passes that merge what threads have."""
    if not any(x.name in wide for x in a.state):
        return a
    state = tuple(wide[x.name] for x in a.state)
    return replace(a, state=state, identities=tuple(ir.Literal(0.0, x.type) for x in state))


def _summed(s: ir.Statement) -> list[tuple[str, Scalar]]:
    """The variable and its type, of a statement `x = x + ...` on floats narrower than float64."""
    match s:
        case ir.Assign(
            name=name, value=ir.Binary(operator="+", left=ir.Local(name=left), type=kind)
        ):
            return [(name, kind)] if name == left and kind.is_float and kind != F64 else []
        case _:
            return []
