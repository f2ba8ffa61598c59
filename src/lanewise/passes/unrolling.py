"""Write the innermost loop over sources out several times: fewer tests and jumps, more loads in
flight.

    for k in range(T): ...   ->   for k in range(T): ...  # unroll 8
The loop is marked; the emitter spells it (`#pragma unroll`), and the compiler's own remainder loop
takes what is left over.
"""

from __future__ import annotations

from dataclasses import replace

from lanewise.ir import nodes as ir
from lanewise.ir.traverse import flat_map
from lanewise.passes.base import chosen, is_source_loop, refuse, source_loops


def legal(kernel: ir.Kernel, factor: int) -> str | None:
    """Why the pass does not apply, or None."""
    if factor < 0:
        return f"a factor of {factor}"
    return None if source_loops(kernel) else "it has no loop over sources"


def apply(kernel: ir.Kernel, factor: int) -> ir.Kernel:
    """Mark the loops over sources; raises `PlanError` when there are none."""
    if reason := legal(kernel, factor):
        raise refuse("unrolling", kernel, reason)
    return replace(
        kernel, body=flat_map(kernel.body, chosen(is_source_loop, lambda s: (_marked(s, factor),)))
    )


def _marked(s: ir.Statement, factor: int) -> ir.Statement:
    assert isinstance(s, ir.For)
    return replace(s, unroll=factor)
