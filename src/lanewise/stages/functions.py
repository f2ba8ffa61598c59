"""The stages before loops are shaped: arithmetic, division into kernels, and what is lifted out of the loop over sources."""

from __future__ import annotations

from lanewise.analysis.self_term import Proof
from lanewise.ir import nodes as ir
from lanewise.passes import (
    branch_splitting,
    fission,
    fma_rearrangement,
    invariant_code_motion,
    reciprocal_square_root,
    self_term,
)
from lanewise.passes.base import refuse
from lanewise.plan import Decisions
from lanewise.stages.base import Checked, Kernels
from lanewise.target import Target


def arrange(kernel: ir.Kernel, plan: Decisions, checked: Checked) -> ir.Kernel:
    """Rewrite the arithmetic of the functions, first of all: whatever divides or moves them takes the new form."""
    if plan.rsqrt != "written":
        kernel = checked("reciprocal square root", reciprocal_square_root.apply(kernel, plan.rsqrt))
    return checked("FMA rearrangement", fma_rearrangement.apply(kernel)) if plan.fma else kernel


def divide(kernel: ir.Kernel, plan: Decisions, target: Target, checked: Checked) -> Kernels:
    """One kernel or several that run one after the other. Before everything that shapes loops, which each of them has for itself."""
    parts, fast_math = (kernel,), plan.fast_math
    if plan.fission:
        parts = tuple(checked("loop splitting", k) for k in fission.apply(kernel, fast_math=fast_math))
    if plan.branches != "apart":
        return parts
    if kernel.pattern.divide is not None:
        return kernel.pattern.divide(kernel, target, checked)
    reasons = [branch_splitting.legal(k, fast_math=fast_math) for k in parts]
    if all(reasons):  # a part without a branch stays whole, when another one has a branch
        raise refuse("branch splitting", kernel, reasons[0] or "")
    done: list[ir.Kernel] = []
    for k, reason in zip(parts, reasons, strict=True):
        sides = () if reason else branch_splitting.apply(k, fast_math=fast_math)
        done += [checked("branch splitting", s) for s in sides] or [k]
    return tuple(done)


def lighten_loops(parts: Kernels, plan: Decisions, checked: Checked) -> Kernels:
    """Lighten the loop over sources while there is one in each kernel: before it is cut into tiles, and before targets are merged.

    A kernel in which a pass changes nothing stays as it is, provided that the pass changes another one.
    """
    tested = _tested(parts)
    if plan.self_term != "test":
        choice, targets, tile = plan.self_term, plan.targets, plan.tile
        parts = tuple(
            checked("self term", self_term.apply(k, choice, targets, tile)) if k in tested else k for k in parts
        )
    if plan.hoist:
        moving = [k for k in parts if invariant_code_motion.legal(k) is None] or parts
        parts = tuple(
            checked("invariant code motion", invariant_code_motion.apply(k)) if k in moving else k for k in parts
        )
    return parts


def conditions(parts: Kernels, plan: Decisions) -> Proof:
    """What the values of the uniforms have to be for the plan, whose passes were all applied."""
    proofs = [self_term.proof(k, plan.self_term) for k in _tested(parts)]
    return Proof(tuple(dict.fromkeys(c for p in proofs if isinstance(p, Proof) for c in p.conditions)))


def _tested(parts: Kernels) -> Kernels:
    """The kernels that self_term is about: those with a test for a pair of an element with itself, or all when none has one."""
    return tuple(k for k in parts if self_term.has_test(k)) or parts
