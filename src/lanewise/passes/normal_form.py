"""The form in which plans are read off a kernel with a thread for each index, and made.

What a user wrote as short loops, as local arrays or as an inner loop that writes is one program
with what another user wrote out: both get the same plans. Nothing here changes a bit of a result.
"""

from __future__ import annotations

from lanewise.analysis.affine import nest
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import statements
from lanewise.language.target import Target
from lanewise.passes import (
    constant_folding,
    constant_loops,
    dead_code,
    promotion,
    scalar_replacement,
)
from lanewise.planning.plan import CompletePlan


def apply(kernel: ir.Kernel, target: Target, plan: CompletePlan | None = None) -> ir.Kernel:
    """The kernel in normal form; the same object where it is in it already.

    On a CPU it stays as it is written: LLVM writes short loops out by itself, where that pays. So
    it does for a plan whose threads share the rounds of loops, which are to be there.
    """
    if not (target.has_blocks and kernel.pattern.over_points):
        return kernel
    if plan is not None and (plan.slices != 1 or plan.parts != 1):
        return kernel
    return promotion.apply(_written_out(kernel))


def points_of(kernel: ir.Kernel, target: Target) -> ir.Expression | None:
    """How many points the normal form has for each of the kernel, by counts and uniforms; None for
    one.
    """
    if not (target.has_blocks and kernel.pattern.over_points):
        return None
    return promotion.rounds_of(_written_out(kernel))


def sentences(kernel: ir.Kernel, target: Target, plan: CompletePlan) -> tuple[str, ...]:
    """What the normal form of a plan differs in from what was written, in words."""
    if apply(kernel, target, plan) is kernel:
        return ()
    written_out = _written_out(kernel)
    gone = _loops(kernel) - _loops(written_out)
    said = (f"the rounds of {name} one after the other, without a loop" for name in sorted(gone))
    added = {x.variable for x in nest(promotion.apply(written_out))[0]}
    added -= {x.variable for x in nest(kernel)[0]}
    indices = (f"{name.partition('.')[0].lstrip('$')} as an index of threads" for name in added)
    return (*said, *indices)


def _loops(kernel: ir.Kernel) -> set[str]:
    return {s.variable for s in statements(kernel.body) if isinstance(s, ir.For)}


def _written_out(kernel: ir.Kernel) -> ir.Kernel:
    written_out = constant_loops.apply(kernel)
    if written_out is kernel:
        return kernel
    # rounds have literals in their indices and tests now
    folded = constant_folding.apply(written_out)
    return dead_code.apply(scalar_replacement.apply(folded))
