"""Refuse what a pattern or a kind of device does not have, instead of ignoring it; what a kernel does not allow its passes refuse."""

from __future__ import annotations

from typing import Any

from lanewise.errors import PlanError
from lanewise.ir import nodes as ir
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
from lanewise.plan import DECLARED, NEUTRAL, Decisions
from lanewise.target import Target

VECTOR_BITS = (0, 256, 512)
POINTS = ("tile", "unroll", "prefetch", "targets", "slices", "parts")  # that the points of an index space on a GPU have too
ONLY_POINTS = ("across", "rows", "layers", "adjacent", "neighbours", "order")  # that nothing else has


def check_device(kernel: ir.Kernel, plan: Decisions, target: Target) -> None:
    """Raise `PlanError` for decisions that this kind of device does not have."""
    if plan.vector_bits:
        if target.has_blocks:
            raise refuse("SIMD width", kernel, "SIMD registers belong to a CPU; on a GPU vector_bits is 0")
        if plan.vector_bits not in VECTOR_BITS:
            raise refuse("SIMD width", kernel, f"wanted 0, 256 or 512 bits, found {plan.vector_bits}")
    if target.has_blocks:
        return
    if plan.registers:
        raise refuse("register cap", kernel, register_cap.legal(kernel, plan.registers) or "")
    if plan.prefetch != "none":
        raise refuse("prefetching", kernel, "a CPU prefetches by itself")
    for name in ("slices", "parts"):
        if getattr(plan, name) != 1:
            raise PlanError(
                f"Plan({name}={getattr(plan, name)}): only a GPU divides the sources of one target; on a CPU {name} is 1"
            )


def check_pattern(kernel: ir.Kernel, plan: Decisions, target: Target) -> None:
    """Raise `PlanError` for decisions about pairs that a kernel without pairs is given."""
    for name in ONLY_POINTS:
        value = getattr(plan, name)
        if value != getattr(NEUTRAL, name) and not (kernel.pattern.over_points and target.has_blocks):
            reason = "its threads are no points of an index space" if target.has_blocks else "only a GPU has blocks of threads"
            raise refuse(DECLARED[name].name, kernel, reason)
    if kernel.pattern.over_pairs:
        return
    refusals: dict[str, tuple[str, str | None]] = {  # what others are chosen for comes first
        "accumulate": ("float64 accumulation", kernel.pattern.no_sums or accumulation.legal(kernel)),
        "tile": ("tiling", tiling.legal(kernel, plan.tile)),
        "slices": ("slicing", slicing.legal(kernel, plan.slices, plan.tile)),
        "parts": ("splitting of sources", splitting.legal(kernel, plan.parts)),
        "unroll": ("unrolling", unrolling.legal(kernel, plan.unroll)),
        "reciprocity": ("reciprocity", reciprocity.legal(kernel, 1)),
        "prefetch": ("prefetching", prefetching.legal(kernel, _prefetch(plan))),
    }
    own = ("slices", "unroll") if kernel.pattern.over_items else ()
    if kernel.pattern.over_points and target.has_blocks:
        own = POINTS
    for name, (title, reason) in refusals.items():
        if name in own:
            continue
        value: Any = getattr(plan, name)
        if value != getattr(NEUTRAL, name):
            raise refuse(title, kernel, reason or "it has no pairs")
    if plan.fission and (reason := kernel.pattern.whole(kernel)):
        raise refuse("loop splitting", kernel, reason)
    if plan.targets != 1 and not kernel.pattern.over_items and "targets" not in own:
        reason = _no_merging(kernel, plan.targets, target)
        if reason is not None:
            raise refuse("thread merging", kernel, reason)


def _no_merging(kernel: ir.Kernel, targets: int, target: Target) -> str | None:
    """Why a thread cannot compute several elements of a kernel without pairs, or None."""
    if kernel.pattern.merging is None:
        reason = "it has no sources that several of its elements could share"
        return thread_merging.legal(kernel, targets) or reason
    if not target.has_blocks:
        return "on a CPU neighbouring sites share SIMD registers"
    return kernel.pattern.merging.legal(kernel, targets)


def _prefetch(plan: Decisions) -> prefetching.How:
    return "async" if plan.prefetch == "async" else "registers"


def check_shared_memory(kernel: ir.Kernel, plan: Decisions) -> None:
    """Raise `PlanError` for more shared memory than a block has."""
    taken = shared_bytes(kernel)
    if taken > MAX_SHARED_BYTES:
        raise PlanError(
            f"Plan({_about(plan)}): {kernel.name} needs {taken:,} bytes of shared memory for a block, "
            f"and {MAX_SHARED_BYTES:,} are available; choose a smaller {_smaller(plan)}"
        )


def _about(plan: Decisions) -> str:
    names = ("targets", "block") if plan.reciprocity != "off" else ("tile", "block", "slices")
    return ", ".join(f"{n}={getattr(plan, n)}" for n in names)


def _smaller(plan: Decisions) -> str:
    return "block or fewer targets" if plan.reciprocity != "off" else "tile or block"
