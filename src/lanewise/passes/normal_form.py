"""The form in which plans are read off a kernel with a thread for each index, and made.

What a user wrote as short loops, as local arrays or as an inner loop that writes is one program
with what another user wrote out: both get the same plans. Nothing here changes a bit of a result.
"""

from __future__ import annotations

from lanewise.analysis.affine import nest
from lanewise.ir import nodes as ir
from lanewise.ir.names import MARK
from lanewise.ir.traverse import statements
from lanewise.language.target import Target
from lanewise.passes import (
    constant_folding,
    constant_loops,
    dead_code,
    promotion,
    repeated_loads,
    scalar_replacement,
    tests_in_steps,
)
from lanewise.passes.points import wrapping
from lanewise.planning.plan import CompletePlan


def apply(kernel: ir.Kernel, target: Target, plan: CompletePlan | None = None) -> ir.Kernel:
    """The kernel in normal form; the same object where it is in it already.

    On a CPU loops stay as they are written: LLVM writes short ones out by itself, where that pays.
    So they do for a plan whose threads share the rounds of loops, which are to be there.
    """
    if not kernel.pattern.over_points:
        return kernel
    if not target.has_blocks:
        return wrapping.in_place(kernel)
    if plan is not None and (plan.slices != 1 or plan.parts != 1):
        return kernel
    written_out = tests_in_steps.apply(_written_out(kernel))
    return promotion.apply(repeated_loads.apply(written_out))


def points_of(kernel: ir.Kernel, normal: ir.Kernel) -> ir.Expression | None:
    """How many points a kernel's normal form has for each point, by counts and uniforms; None
    for one.
    """
    return next((x.extent for x in _added(kernel, normal)), None)


def sentences(kernel: ir.Kernel, normal: ir.Kernel) -> tuple[str, ...]:
    """What a kernel's normal form differs in from what was written, in words."""
    indices = [x.variable.partition(".")[0].removeprefix(MARK) for x in _added(kernel, normal)]
    gone = sorted(_loops(kernel) - _loops(normal) - {*indices})
    said = (f"the rounds of {name} one after the other, without a loop" for name in gone)
    return (*said, *(f"{name} as an index of threads" for name in indices))


def _added(kernel: ir.Kernel, normal: ir.Kernel) -> list[ir.Parallel]:
    known = {x.variable for x in nest(kernel)[0]}
    return [x for x in nest(normal)[0] if x.variable not in known]


def _loops(kernel: ir.Kernel) -> set[str]:
    return {s.variable for s in statements(kernel.body) if isinstance(s, ir.For)}


def _written_out(kernel: ir.Kernel) -> ir.Kernel:
    written_out = constant_loops.apply(kernel)
    if written_out is kernel:
        return kernel
    # rounds have literals in their indices and tests now
    folded = constant_folding.apply(written_out)
    return dead_code.apply(scalar_replacement.apply(folded))
