"""Refuse what a pattern or a kind of device does not have, instead of ignoring it; what a kernel does not allow its passes refuse."""

from __future__ import annotations

from typing import Any

from lanewise.errors import PlanError
from lanewise.ir import nodes as ir
from lanewise.ir.names import is_own, own
from lanewise.ir.shared import shared_bytes
from lanewise.passes import (
    accumulation,
    prefetching,
    reciprocity,
    register_cap,
    slicing,
    splitting,
    thread_merging,
    tiling,
    unrolling,
)
from lanewise.passes.base import refuse
from lanewise.passes.thread_mapping import MAX_SHARED_BYTES
from lanewise.patterns.sitewise.passes import merging as site_merging
from lanewise.plan import NEUTRAL, Plan
from lanewise.stages.base import decided

VECTOR_BITS = (0, 256, 512)
NO_SUMS = "its sites sum nothing over sources"
DEPARTING = "what departs from a site is computed from all that arrives there: no population is a result by itself"


def check_device(kernel: ir.Kernel, plan: Plan, device_kind: str) -> None:
    """Raise `PlanError` for decisions that this kind of device does not have."""
    if plan.vector_bits:
        if device_kind == "cuda":
            raise refuse("SIMD width", kernel, "SIMD registers belong to a CPU; on a GPU vector_bits is 0")
        if plan.vector_bits not in VECTOR_BITS:
            raise refuse("SIMD width", kernel, f"wanted 0, 256 or 512 bits, found {plan.vector_bits}")
    if device_kind == "cuda":
        return
    if plan.registers:
        raise refuse("register cap", kernel, register_cap.legal(kernel, plan.registers) or "")
    if plan.prefetch not in (None, "none"):
        raise refuse("prefetching", kernel, "a CPU prefetches by itself")
    for name in ("slices", "parts"):
        if decided(getattr(plan, name), name) != 1:
            raise PlanError(
                f"Plan({name}={getattr(plan, name)}): only a GPU divides the sources of one target; on a CPU {name} is 1"
            )


def check_pattern(kernel: ir.Kernel, plan: Plan, device_kind: str) -> None:
    """Raise `PlanError` for decisions about pairs that a kernel without pairs is given."""
    if kernel.pattern == "pairwise":
        return
    refusals: dict[str, tuple[str, str | None]] = {
        "tile": ("tiling", tiling.legal(kernel, plan.tile or 0)),
        "slices": ("slicing", slicing.legal(kernel, plan.slices or 0, plan.tile or 0)),
        "parts": ("splitting of sources", splitting.legal(kernel, plan.parts or 0)),
        "unroll": ("unrolling", unrolling.legal(kernel, plan.unroll or 0)),
        "accumulate": ("float64 accumulation", NO_SUMS if kernel.pattern == "sitewise" else accumulation.legal(kernel)),
        "reciprocity": ("reciprocity", reciprocity.legal(kernel, 1)),
        "prefetch": ("prefetching", prefetching.legal(kernel, _prefetch(plan))),
    }
    for name, (title, reason) in refusals.items():
        value: Any = getattr(plan, name)
        if value is not None and value != getattr(NEUTRAL, name):
            raise refuse(title, kernel, reason or "it has no pairs")
    if plan.fission and _departs(kernel):
        raise refuse("loop splitting", kernel, DEPARTING)
    if plan.targets is not None and plan.targets != 1:
        reason = _no_merging(kernel, plan.targets, device_kind)
        if reason is not None:
            raise refuse("thread merging", kernel, reason)


def _no_merging(kernel: ir.Kernel, targets: int, device_kind: str) -> str | None:
    """Why a thread cannot compute several elements of a kernel without pairs, or None."""
    if kernel.pattern != "sitewise":
        reason = "it has no sources that several of its elements could share"
        return thread_merging.legal(kernel, targets) or reason
    if device_kind != "cuda":
        return "on a CPU neighbouring sites share SIMD registers"
    return site_merging.legal(kernel, targets)


def _departs(kernel: ir.Kernel) -> bool:
    """Whether populations depart from the sites of a kernel; an observer only looks."""
    populations = (a for a in kernel.arrays if a.written and (not is_own(a.name) or a.name == own("next")))
    return kernel.pattern == "sitewise" and any(populations)


def _prefetch(plan: Plan) -> prefetching.How:
    return "async" if plan.prefetch == "async" else "registers"


def check_shared_memory(kernel: ir.Kernel, plan: Plan) -> None:
    """Raise `PlanError` for more shared memory than a block has."""
    taken = shared_bytes(kernel)
    if taken > MAX_SHARED_BYTES:
        raise PlanError(
            f"Plan({_about(plan)}): {kernel.name} needs {taken:,} bytes of shared memory for a block, "
            f"and {MAX_SHARED_BYTES:,} are available; choose a smaller {_smaller(plan)}"
        )


def _about(plan: Plan) -> str:
    names = ("targets", "block") if plan.reciprocity not in (None, "off") else ("tile", "block", "slices")
    return ", ".join(f"{n}={getattr(plan, n)}" for n in names)


def _smaller(plan: Plan) -> str:
    return "block or fewer targets" if plan.reciprocity not in (None, "off") else "tile or block"
