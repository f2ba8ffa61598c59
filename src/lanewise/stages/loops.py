"""Shape the loops of a kernel for a kind of device: pairs from one side, pairs from both sides, single elements."""

from __future__ import annotations

from typing import Any

from lanewise.errors import PlanError
from lanewise.ir import nodes as ir
from lanewise.passes import (
    accumulation,
    prefetching,
    reciprocity,
    shared_memory,
    slicing,
    splitting,
    thread_mapping,
    thread_merging,
    tiling,
    unrolling,
)
from lanewise.passes.base import refuse
from lanewise.plan import Plan
from lanewise.stages.base import Checked, Kernels, decided
from lanewise.target import Target

COMBINE_BLOCK = 128  # threads that add partial sums


def shape(kernel: ir.Kernel, plan: Plan, target: Target, checked: Checked) -> Kernels:
    """The kernels that do the work of one kernel, mapped to threads on a GPU."""
    if kernel.pattern.shape is not None:
        return kernel.pattern.shape(kernel, plan, target, checked)
    if not kernel.pattern.over_pairs:
        return _elements(kernel, plan, checked) if target.has_blocks else (kernel,)
    if plan.reciprocity not in (None, "off"):
        return _both_sides(kernel, plan, target, checked)
    tile = decided(plan.tile, "tile")
    if tile:
        kernel = checked("tiling", tiling.apply(kernel, tile))
    if plan.accumulate == "f64":  # before merging, while each sum has one name
        kernel = checked("float64 accumulation", accumulation.apply(kernel))
    if not target.has_blocks:
        return (checked("thread merging", thread_merging.apply(kernel, decided(plan.targets, "targets"), 1)),)
    return _one_thread(kernel, plan, checked) if plan.block == 1 else _one_side(kernel, plan, checked)


def _elements(kernel: ir.Kernel, plan: Plan, checked: Checked) -> Kernels:
    block, min_blocks, sites = (decided(getattr(plan, n), n) for n in ("block", "min_blocks", "targets"))
    if sites > 1 and kernel.pattern.merging is not None:
        kernel = checked("thread merging", kernel.pattern.merging.apply(kernel, sites))
    mapped = thread_mapping.apply(kernel, block, targets=sites, min_blocks=min_blocks)
    return (checked("mapping to threads", mapped),)


def _both_sides(kernel: ir.Kernel, plan: Plan, target: Target, checked: Checked) -> Kernels:
    """Pairs computed once: the tasks of single warps take the place of tiles and slices."""
    if not target.has_blocks:
        raise refuse(
            "reciprocity", kernel,
            "it is the threads of a GPU that exchange sums; the SIMD lanes of a CPU would have to scatter them",
        )  # fmt: skip
    targets, unroll, threads = (decided(getattr(plan, n), n) for n in ("targets", "unroll", "block"))
    mode: reciprocity.Mode = "scratch" if plan.reciprocity == "scratch" else "ordered"
    min_blocks, wide = decided(plan.min_blocks, "min_blocks"), plan.accumulate == "f64"
    main, *rest = reciprocity.apply(kernel, targets, mode, unroll, threads=threads, min_blocks=min_blocks, wide=wide)
    # After the pass: why a kernel has no reciprocity says more than what is wrong with the rest of its plan.
    fixed: dict[str, Any] = {"tile": 0, "slices": 1, "parts": 1, "hoist": False, "prefetch": "none"}
    for name, wanted in fixed.items():
        if getattr(plan, name) != wanted:
            reason = f"its tasks belong to single warps and need Plan({name}={wanted!r}), found {getattr(plan, name)!r}"
            raise refuse("reciprocity", kernel, reason)
    combine = (checked("mapping to threads", thread_mapping.apply(k, COMBINE_BLOCK)) for k in rest)
    return (checked("reciprocity", main), *combine)


def _one_thread(kernel: ir.Kernel, plan: Plan, checked: Checked) -> Kernels:
    """One thread of a GPU computes all targets: the first rung of a ladder."""
    if plan.prefetch not in (None, "none"):
        raise refuse("prefetching", kernel, prefetching.legal(kernel, plan.prefetch) or "")
    kernel = checked("unrolling", unrolling.apply(kernel, decided(plan.unroll, "unroll")))
    names = ("targets", "slices", "parts", "tile", "min_blocks")
    alone = thread_mapping.apply_serial(kernel, **{n: decided(getattr(plan, n), n) for n in names})
    return (checked("mapping to one thread", alone),)


def _one_side(kernel: ir.Kernel, plan: Plan, checked: Checked) -> Kernels:
    """Targets on threads, sources in tiles; slices and parts divide the sources."""
    targets, slices, parts = (decided(getattr(plan, n), n) for n in ("targets", "slices", "parts"))
    tile, threads = decided(plan.tile, "tile"), decided(plan.block, "block")
    if reason := thread_mapping.legal(kernel, threads):
        raise refuse("mapping to threads", kernel, reason)
    if slices < 1 or threads % slices or threads == slices:
        raise PlanError(
            f"Plan(block={threads}, slices={slices}): the threads of a block must divide evenly into slices of at least 2 threads"
        )
    lanes = threads // slices
    kernel = checked("thread merging", thread_merging.apply(kernel, targets, lanes))
    if slices > 1:  # after merging: the slices meet once for each target of a thread
        kernel = checked("slicing", slicing.apply(kernel, slices, tile))
    combine: Kernels = ()
    if parts != 1:
        kernel, second = splitting.apply(kernel, parts)
        kernel = checked("splitting of sources", kernel)
        combine = (checked("mapping to threads", thread_mapping.apply(second, threads)),)
    if (
        tile and shared_memory.source_fetch(kernel) is not None
    ):  # after slicing, which narrows loops but not the staging
        kernel = checked("shared-memory tiles", shared_memory.apply(kernel, tile, threads))
    if plan.prefetch not in (None, "none"):  # after everything that decides what is staged, and when
        kernel = checked("prefetching", prefetching.apply(kernel, plan.prefetch))
    kernel = checked("unrolling", unrolling.apply(kernel, decided(plan.unroll, "unroll")))
    min_blocks = decided(plan.min_blocks, "min_blocks")
    kernel = thread_mapping.apply(kernel, threads, targets=targets, lanes=lanes, min_blocks=min_blocks)
    return (checked("mapping to threads", kernel), *combine)
