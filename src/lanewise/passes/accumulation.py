"""Add the sums of tiles in float64.

    for tile: for k: sum += f(...)
->  for tile: sum = 0; for k: sum += f(...); total += f64(sum)
Within a tile the sum keeps the precision of the result, so the inner loop costs what it did; rounding grows with the tile, not with all sources.
"""

from __future__ import annotations

from dataclasses import replace

from lanewise.ir import nodes as ir
from lanewise.ir.traverse import flat_map, rewrite_block
from lanewise.passes.base import refuse, source_loops
from lanewise.types import F64


def legal(kernel: ir.Kernel) -> str | None:
    """Why the pass does not apply, or None."""
    if not any(isinstance(s, ir.For) and s.role == "tiles" for s in _top(kernel)):
        return "its sources are not cut into tiles (Plan(tile=...))"
    return None


def apply(kernel: ir.Kernel) -> ir.Kernel:
    if reason := legal(kernel):
        raise refuse("float64 accumulation", kernel, reason)
    sums = {s.name: s.value.type for loop in source_loops(kernel) for s in loop.body if _adds(s) and isinstance(s, ir.Assign)}
    wide = {n: ir.Local(n.replace("sum.", "total.", 1), F64) for n in sums}

    def visit(s: ir.Statement) -> ir.Block:
        match s:
            case ir.For(role="tiles"):
                clear = tuple(ir.Assign(n, ir.Literal(0.0, kind)) for n, kind in sums.items())
                add = tuple(
                    ir.Assign(w.name, ir.Binary("+", w, ir.Cast(ir.Local(n, sums[n]), F64), F64)) for n, w in wide.items()
                )
                return (replace(s, body=(*clear, *s.body, *add)),)
            case ir.Assign(name=name, value=ir.Literal()) if name in sums:
                return (ir.Assign(wide[name].name, ir.Literal(0.0, F64)),)
            case ir.Commit():
                narrow = rewrite_block((s,), lambda e: ir.Cast(wide[e.name], e.type) if isinstance(e, ir.Local) and e.name in wide else e)
                return narrow
            case _:
                return (s,)

    return replace(kernel, body=flat_map(kernel.body, visit))


def _adds(s: ir.Statement) -> bool:
    """Whether a statement is `x = x + ...` on floats narrower than float64."""
    match s:
        case ir.Assign(name=name, value=ir.Binary(operator="+", left=ir.Local(name=left), type=kind)):
            return name == left and kind.is_float
        case _:
            return False


def _top(kernel: ir.Kernel) -> ir.Block:
    return tuple(x for s in kernel.body for x in (s.body if isinstance(s, ir.Parallel) else (s,)))
