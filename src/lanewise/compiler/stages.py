"""The stages of the pipeline: which passes a plan asks for, in which order, on which kind of
device, and what is refused.

First functions: arithmetic, division into kernels, and what is lifted out of the loop over sources.
Then the loops of a kernel: pairs from one side, pairs from both sides, single elements. What a
pattern or a kind of device does not have is refused instead of ignored; what a kernel does not
allow its passes refuse.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lanewise.analysis.self_term import Proof
from lanewise.ir import nodes as ir
from lanewise.ir.pattern import Checked
from lanewise.ir.shared import shared_bytes
from lanewise.ir.traverse import scatters
from lanewise.language.target import Target
from lanewise.passes import (
    accumulation,
    branch_splitting,
    fission,
    fma_rearrangement,
    independent_loops,
    invariant_code_motion,
    prefetching,
    reciprocal_square_root,
    reciprocity,
    register_cap,
    self_term,
    shared_memory,
    side_by_side,
    slicing,
    splitting,
    sums_in_parts,
    thread_mapping,
    thread_merging,
    tiling,
    unrolling,
)
from lanewise.passes.base import refuse
from lanewise.passes.thread_mapping import MAX_SHARED_BYTES
from lanewise.planning.plan import DECLARED, NEUTRAL, OPTIMISATIONS, CompletePlan
from lanewise.support.errors import PlanError


def arrange(kernel: ir.Kernel, plan: CompletePlan, checked: Checked) -> ir.Kernel:
    """Rewrite the arithmetic of the functions, first of all: whatever divides or moves them takes
    the new form.
    """
    if plan.rsqrt != "written":
        kernel = checked("reciprocal square root", reciprocal_square_root.apply(kernel, plan.rsqrt))
    return checked("FMA rearrangement", fma_rearrangement.apply(kernel)) if plan.fma else kernel


def divide(kernel: ir.Kernel, plan: CompletePlan, target: Target, checked: Checked) -> Kernels:
    """One kernel or several that run one after the other.

    Before everything that shapes loops, which each of them has for itself.
    """
    parts, fast_math = (kernel,), plan.fast_math
    if plan.fission:
        parts = _split_loops(kernel, fast_math, checked)
    if plan.branches != "apart":
        return parts
    if kernel.pattern.divide is not None:
        return tuple(k for p in parts for k in kernel.pattern.divide(p, target, checked, fast_math))
    reasons = [branch_splitting.legal(k, fast_math=fast_math) for k in parts]
    if all(reasons):  # a part without a branch stays whole, when another one has a branch
        raise refuse("branch splitting", kernel, reasons[0] or "")
    done: list[ir.Kernel] = []
    for k, reason in zip(parts, reasons, strict=True):
        sides = () if reason else branch_splitting.apply(k, fast_math=fast_math)
        done += [checked("branch splitting", s) for s in sides] or [k]
    return tuple(done)


def _split_loops(kernel: ir.Kernel, fast_math: bool, checked: Checked) -> Kernels:
    """A kernel for each independent result, where results are divided; else, and in each of them,
    loops over independent data divided.
    """
    parts, title = (kernel,), "loop splitting"
    if kernel.pattern.over_pairs or kernel.pattern.whole(kernel) is None:
        reason = fission.legal(kernel, fast_math=fast_math)
        if reason is None or kernel.pattern.over_pairs:
            parts = fission.apply(kernel, fast_math=fast_math)
        elif independent_loops.legal(kernel) is not None:
            raise refuse(title, kernel, reason)
    if not kernel.pattern.over_pairs:
        parts = tuple(
            k if independent_loops.legal(k) is not None else independent_loops.apply(k)
            for k in parts
        )
    return tuple(checked(title, k) for k in parts)


def lighten_loops(parts: Kernels, plan: CompletePlan, checked: Checked) -> Kernels:
    """Lighten the loop over sources while there is one in each kernel: before it is cut into tiles,
    and before targets are merged.

    A kernel in which a pass changes nothing stays as it is, provided that the pass changes another
    one.
    """
    tested = _tested(parts)
    if plan.self_term != "test":
        choice, targets, tile = plan.self_term, plan.targets, plan.tile
        parts = tuple(
            checked("self term", self_term.apply(k, choice, targets, tile)) if k in tested else k
            for k in parts
        )
    if plan.hoist:
        moving = [k for k in parts if invariant_code_motion.legal(k) is None] or parts
        parts = tuple(
            checked("invariant code motion", invariant_code_motion.apply(k)) if k in moving else k
            for k in parts
        )
    return parts


def conditions(parts: Kernels, plan: CompletePlan) -> Proof:
    """What the values of the uniforms have to be for the plan, whose passes were all applied."""
    proofs = [self_term.proof(k, plan.self_term) for k in _tested(parts)]
    return Proof(
        tuple(dict.fromkeys(c for p in proofs if isinstance(p, Proof) for c in p.conditions))
    )


def _tested(parts: Kernels) -> Kernels:
    """The kernels that self_term is about: those with a test for a pair of an element with itself,
    or all when none has one.
    """
    return tuple(k for k in parts if self_term.has_test(k)) or parts


COMBINE_BLOCK = 128  # threads that add partial sums


def shape(
    kernel: ir.Kernel, plan: CompletePlan, target: Target, checked: Checked
) -> Iterable[ir.Kernel]:
    """The kernels that do the work of one kernel, mapped to threads on a GPU; panels as they are
    requested.
    """
    if kernel.pattern.shape is not None:
        return kernel.pattern.shape(kernel, plan, target, checked)
    if not kernel.pattern.over_pairs:
        return elements(kernel, plan, checked) if target.has_blocks else (kernel,)
    if plan.reciprocity != "off":
        return _both_sides(kernel, plan, target, checked)
    if plan.across and not target.has_blocks:
        return (checked("targets side by side", _side_by_side(kernel, plan)),)
    if plan.tile:
        kernel = checked("tiling", tiling.apply(kernel, plan.tile))
    if plan.accumulate == "f64":  # before merging, while each sum has one name
        kernel = checked("float64 accumulation", accumulation.apply(kernel))
    if not target.has_blocks:
        return (checked("thread merging", thread_merging.apply(kernel, plan.targets, 1)),)
    return (
        _one_thread(kernel, plan, checked) if plan.block == 1 else _one_side(kernel, plan, checked)
    )


def _side_by_side(kernel: ir.Kernel, plan: CompletePlan) -> ir.Kernel:
    """Targets in SIMD lanes, in the place of tiles and of targets that are merged."""
    for name in ("tile", "targets"):
        if getattr(plan, name) != getattr(NEUTRAL, name):
            reason = (
                "its loop over sources is as it is written, and needs "
                f"Plan({name}={getattr(NEUTRAL, name)!r})"
            )
            raise refuse("targets side by side", kernel, reason)
    return side_by_side.apply(kernel, plan.across)


def elements(kernel: ir.Kernel, plan: CompletePlan, checked: Checked) -> Kernels:
    """Elements in a row, one of each thread or several neighbours."""
    sites = plan.targets
    if sites > 1 and kernel.pattern.merging is not None:
        kernel = checked("thread merging", kernel.pattern.merging.apply(kernel, sites))
    mapped = thread_mapping.apply(kernel, plan.block, targets=sites, min_blocks=plan.min_blocks)
    return (checked("mapping to threads", mapped),)


def _both_sides(kernel: ir.Kernel, plan: CompletePlan, target: Target, checked: Checked) -> Kernels:
    """Pairs computed once: the tasks of single warps take the place of tiles and slices."""
    if not target.has_blocks:
        raise refuse(
            "reciprocity",
            kernel,
            "it is the threads of a GPU that exchange sums; the SIMD lanes of a CPU would have to "
            "scatter them",
        )
    mode = plan.reciprocity
    assert isinstance(mode, str)
    assert mode != "off"
    main, *rest = reciprocity.apply(
        kernel, plan.targets, mode, plan.unroll,
        threads=plan.block, min_blocks=plan.min_blocks, wide=plan.accumulate == "f64",
    )  # fmt: skip
    # After the pass: why a kernel has no reciprocity says more than what is wrong with the rest of
    # its plan.
    for name, needed in DECLARED["reciprocity"].needs:
        if getattr(plan, name) != needed:
            reason = (
                f"its tasks belong to single warps and need Plan({name}={needed!r}), found "
                f"{getattr(plan, name)!r}"
            )
            raise refuse("reciprocity", kernel, reason)
    combine = (checked("mapping to threads", thread_mapping.apply(k, COMBINE_BLOCK)) for k in rest)
    return (checked("reciprocity", main), *combine)


def _one_thread(kernel: ir.Kernel, plan: CompletePlan, checked: Checked) -> Kernels:
    """One thread of a GPU computes all targets: the first rung of a ladder."""
    if plan.prefetch != "none":
        raise refuse("prefetching", kernel, prefetching.legal(kernel, plan.prefetch) or "")
    kernel = checked("unrolling", unrolling.apply(kernel, plan.unroll))
    alone = thread_mapping.apply_serial(
        kernel,
        targets=plan.targets,
        slices=plan.slices,
        parts=plan.parts,
        tile=plan.tile,
        min_blocks=plan.min_blocks,
    )
    return (checked("mapping to one thread", alone),)


def _one_side(kernel: ir.Kernel, plan: CompletePlan, checked: Checked) -> Kernels:
    """Targets on threads, sources in tiles; slices and parts divide the sources."""
    targets, slices, parts = plan.targets, plan.slices, plan.parts
    tile, threads = plan.tile, plan.block
    if reason := thread_mapping.legal(kernel, threads):
        raise refuse("mapping to threads", kernel, reason)
    if slices < 1 or threads % slices or threads == slices:
        raise PlanError(
            f"Plan(block={threads}, slices={slices}): the threads of a block must divide evenly "
            "into slices of at least 2 threads"
        )
    lanes = threads // slices
    in_turn = plan.schedule == "written"
    kernel = checked(
        "thread merging", thread_merging.apply(kernel, targets, lanes, in_turn=in_turn)
    )
    if slices > 1:  # after merging: the slices meet once for each target of a thread
        kernel = checked("slicing", slicing.apply(kernel, slices, tile))
    combine: Kernels = ()
    if parts != 1:
        kernel, second = splitting.apply(kernel, parts)
        kernel = checked("splitting of sources", kernel)
        combine = (checked("mapping to threads", thread_mapping.apply(second, threads)),)
    # after slicing, which narrows loops but not the staging
    if tile and shared_memory.source_load(kernel) is not None:
        kernel = checked("shared-memory tiles", shared_memory.apply(kernel, tile, threads))
    if plan.prefetch != "none":  # after everything that decides what is staged, and when
        kernel = checked("prefetching", prefetching.apply(kernel, plan.prefetch))
    kernel = checked("unrolling", unrolling.apply(kernel, plan.unroll))
    kernel = thread_mapping.apply(
        kernel, threads, targets=targets, lanes=lanes, min_blocks=plan.min_blocks
    )
    return (checked("mapping to threads", kernel), *combine)


Kernels = tuple[ir.Kernel, ...]


__all__ = ["Checked", "Kernels"]


VECTOR_BITS = (0, 256, 512)
# that the points of an index space on a GPU have too
POINTS = ("tile", "unroll", "prefetch", "targets", "slices", "parts")
# that nothing else has
ONLY_POINTS = ("across", "down", "rows", "layers", "adjacent", "neighbours", "order", "panel")
ON_A_CPU = ("across", "rows", "layers")  # of these
BOXES = tuple(o.field for o in OPTIMISATIONS if o.boxes)  # that elements in a box have too
# that the points of an index space on a CPU have too
HOST_POINTS = ("tile", "targets", "slices", "unroll")


def check_device(kernel: ir.Kernel, plan: CompletePlan, target: Target) -> None:
    """Raise `PlanError` for decisions that this kind of device does not have."""
    if plan.vector_bits:
        if target.has_blocks:
            raise refuse(
                "SIMD width", kernel, "SIMD registers belong to a CPU; on a GPU vector_bits is 0"
            )
        if plan.vector_bits not in VECTOR_BITS:
            raise refuse(
                "SIMD width", kernel, f"wanted 0, 256 or 512 bits, found {plan.vector_bits}"
            )
    if target.has_blocks:
        return
    if plan.registers:
        raise refuse("register cap", kernel, register_cap.legal(kernel, plan.registers) or "")
    if plan.schedule != "free":
        raise refuse(
            "instruction order", kernel, "LLVM has no such switch; on a CPU schedule is 'free'"
        )
    if plan.prefetch != "none":
        raise refuse("prefetching", kernel, "a CPU prefetches by itself")
    if plan.segments != "apart":
        raise refuse(
            "segment packing",
            kernel,
            "a CPU has no blocks to fill: its cores take cells of any segment",
        )
    has = {"slices": kernel.pattern.over_points, "parts": kernel.pattern.in_order}
    for name, own in has.items():
        if getattr(plan, name) != 1 and not own:
            also = (
                ", but for floats that are added in order, lw.scatter_add(..., exact=False)"
                if name == "parts" and scatters(kernel.body)
                else ""
            )
            raise PlanError(
                f"Plan({name}={getattr(plan, name)}): only a GPU divides the sources of one "
                f"target; on a CPU {name} is 1{also}"
            )


def check_pattern(kernel: ir.Kernel, plan: CompletePlan, target: Target) -> None:
    """Raise `PlanError` for decisions about pairs that a kernel without pairs is given, or about
    lists without lists.
    """
    if plan.segments != "apart" and not kernel.pattern.over_items:
        raise refuse("segment packing", kernel, "it has no segments")
    for name in ONLY_POINTS:
        value = getattr(plan, name)
        has_it = target.has_blocks or name in ON_A_CPU
        pairs = DECLARED[name].lanes and kernel.pattern.over_pairs and not target.has_blocks
        boxes = name in BOXES and kernel.pattern.in_boxes and target.has_blocks
        if (
            value != getattr(NEUTRAL, name)
            and not pairs
            and not boxes
            and not (kernel.pattern.over_points and has_it)
        ):
            reason = (
                "its threads are no points of an index space"
                if has_it
                else "only a GPU has blocks of threads"
            )
            raise refuse(DECLARED[name].name, kernel, reason)
    if kernel.pattern.over_pairs:
        return
    refusals: dict[str, tuple[str, str | None]] = {  # what others are chosen for comes first
        "accumulate": (
            "float64 accumulation",
            kernel.pattern.no_sums or accumulation.legal(kernel),
        ),
        "tile": ("tiling", tiling.legal(kernel, plan.tile)),
        "slices": ("slicing", slicing.legal(kernel, plan.slices, plan.tile)),
        "parts": (sums_in_parts.NAME, _no_parts(kernel, plan.parts, target)),
        "unroll": ("unrolling", unrolling.legal(kernel, plan.unroll)),
        "reciprocity": ("reciprocity", reciprocity.legal(kernel, 1)),
        "prefetch": ("prefetching", prefetching.legal(kernel, _prefetch(plan))),
    }
    own = ("slices", "unroll") if kernel.pattern.over_items else ()
    if kernel.pattern.over_points:
        own = POINTS if target.has_blocks else HOST_POINTS
    if kernel.pattern.in_order and not target.has_blocks:
        own = (*own, "parts")
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


def _no_parts(kernel: ir.Kernel, parts: int, target: Target) -> str | None:
    """Why a kernel without pairs has no parts, or None."""
    if target.has_blocks and scatters(kernel.body):
        return "a GPU adds floats exactly, in any order: no parts have their own sums"
    return splitting.legal(kernel, parts)


def _no_merging(kernel: ir.Kernel, targets: int, target: Target) -> str | None:
    """Why a thread cannot compute several elements of a kernel without pairs, or None."""
    if kernel.pattern.merging is None:
        reason = "it has no sources that several of its elements could share"
        return thread_merging.legal(kernel, targets) or reason
    if not target.has_blocks:
        return (
            f"on a CPU neighbouring {'sites' if kernel.pattern.in_boxes else 'elements'} share "
            "SIMD registers"
        )
    return kernel.pattern.merging.legal(kernel, targets)


def _prefetch(plan: CompletePlan) -> prefetching.How:
    return "async" if plan.prefetch == "async" else "registers"


def check_shared_memory(kernel: ir.Kernel, plan: CompletePlan) -> None:
    """Raise `PlanError` for more shared memory than a block has."""
    taken = shared_bytes(kernel)
    if taken > MAX_SHARED_BYTES:
        raise PlanError(
            f"Plan({_about(plan)}): {kernel.name} needs {taken:,} bytes of shared memory for a "
            f"block, and {MAX_SHARED_BYTES:,} are available; choose a smaller {_smaller(plan)}"
        )


def _about(plan: CompletePlan) -> str:
    names = ("targets", "block") if plan.reciprocity != "off" else ("tile", "block", "slices")
    return ", ".join(f"{n}={getattr(plan, n)}" for n in names)


def _smaller(plan: CompletePlan) -> str:
    return "block or fewer targets" if plan.reciprocity != "off" else "tile or block"
