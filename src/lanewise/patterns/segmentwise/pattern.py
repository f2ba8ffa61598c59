"""The pattern of sums over segments: a thread of a GPU has cells that are neighbours on the dense
axis, a block those of one segment.

    parallel for cell: segment, place = ...; for item: sum += f(place, item)
->  parallel for block: segment = block / tiles; tile = block - segment * tiles
        parallel for lane: place#0, place#1 = ...; for item: load item; sum#0 += f(place#0, item);
        sum#1 += f(place#1, item)
The threads of a block run the same loop over the same items: what they load of an item is one load
for all. Where the dense axis is shorter than a block, or there is none, neighbouring cells fill it,
of whichever segments they are (`segments="packed"`): ->  parallel for block: parallel for lane:
cell = ...; segment, place = ...; for item: sum += f(place, item)
"""

from __future__ import annotations

from dataclasses import replace

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.ir.pattern import Checked, HostCode, Pattern, Work
from lanewise.ir.traverse import rename
from lanewise.language.target import CPU, Machine, Target
from lanewise.passes import slicing, thread_mapping, thread_merging, unrolling
from lanewise.passes.base import refuse
from lanewise.patterns.segmentwise import lanes as lanes_of
from lanewise.patterns.segmentwise.names import CELL, DENSE, PLACE, SEGMENT, SEGMENTS
from lanewise.planning.plan import NEUTRAL, CompletePlan, Plan

GRAIN_ITEMS = 8_192  # items worth handing to another thread of a CPU: each takes some nanoseconds
SIDE_BY_SIDE, FEWEST = 64, 32  # cells of a loop on a CPU, and how many are worth one
BLOCK = 128
FULL = 1024  # threads of a multiprocessor that hide the time of a load
TILES, TILE, LANE, SLOT = own("tiles"), own("tile"), own("lane"), own("slot")


def grain(items: int) -> int:
    """Cells worth handing to another thread, where a segment has that many items."""
    return max(1, GRAIN_ITEMS // max(1, items))


def default_plan(machine: Machine, work: Work, requested: Plan) -> CompletePlan:
    """Every field decided. Few cells leave a GPU idle, unless several threads share each; on a CPU
    cells lie side by side.

    More threads than a list has items would share nothing. A dense axis that leaves half of a block
    idle shares it with other lists.
    """
    if not machine.target.has_blocks:
        if machine.target is not CPU or work.alike < FEWEST or requested.hoist is True:
            return NEUTRAL
        # Cells side by side are as many as the widest registers hold several times over: here they
        # are worth their lower clock.
        return Plan(
            targets=SIDE_BY_SIDE, vector_bits=512 if machine.vector_bits == 512 else 0
        ).filled(NEUTRAL)
    slices = 1
    while (
        slices < min(32, work.items) and work.targets * slices * 2 <= machine.multiprocessors * FULL
    ):
        slices *= 2
    lanes = (BLOCK if requested.block is None else requested.block) // (
        slices if requested.slices is None else requested.slices
    )
    packed = 1 < work.alike <= lanes // 2 and requested.targets in (None, 1)
    return Plan(block=BLOCK, slices=slices, segments="packed" if packed else "apart").filled(
        NEUTRAL
    )


def shape(
    kernel: ir.Kernel, plan: CompletePlan, target: Target, checked: Checked
) -> tuple[ir.Kernel, ...]:
    """One kernel, mapped to threads on a GPU."""
    targets, slices, unroll = plan.targets, plan.slices, plan.unroll
    if not target.has_blocks:
        return (_on_cpu(kernel, plan, checked),)
    threads, min_blocks = plan.block, plan.min_blocks
    if reason := thread_mapping.legal(kernel, threads):
        raise refuse("mapping to threads", kernel, reason)
    if slices < 1 or threads % slices:
        raise refuse(
            "slicing", kernel, f"a block of {threads} threads does not divide into {slices} slices"
        )
    (loop,) = kernel.body
    assert isinstance(loop, ir.Parallel)
    dense = loop.variable == CELL
    packed = plan.segments == "packed"
    if packed and not dense:
        raise refuse(
            "segment packing",
            kernel,
            "it has no dense axis: a block has as many segments as threads, or groups of them",
        )
    if targets != 1 and (packed or not dense):
        reason = (
            "cells of one thread may lie in several"
            if packed
            else "it has no dense axis: neighbouring"
        )
        raise refuse(
            "thread merging",
            kernel,
            f"{reason} segments{', which' if packed else ''} have no items in common",
        )
    lanes = threads // slices
    if packed:
        kernel = checked("segment packing", _packed(kernel, loop, lanes))
    else:
        kernel = checked("thread merging", _blocks(kernel, loop, targets, lanes))
    if slices > 1:  # after merging: the slices meet once for each cell of a thread
        kernel = checked("slicing", slicing.apply_to_lists(kernel, slices))
    kernel = checked("unrolling", unrolling.apply(kernel, unroll))
    (outer,) = kernel.body
    assert isinstance(outer, ir.Parallel)
    mapped = thread_mapping.apply(kernel, threads, lanes=lanes, min_blocks=min_blocks)
    if dense and not packed:
        mapped = replace(mapped, grid=ir.Grid(outer.extent, 1, threads, 1, min_blocks))
    return (checked("mapping to threads", mapped),)


def _on_cpu(kernel: ir.Kernel, plan: CompletePlan, checked: Checked) -> ir.Kernel:
    """Cells side by side in SIMD lanes, if there are several."""
    if plan.unroll != 1:
        raise refuse("unrolling", kernel, "on a CPU LLVM decides how often a loop is written out")
    if plan.targets == 1:
        return kernel
    if plan.hoist:
        reason = (
            "cells side by side would keep what moves out in memory; LLVM moves what all of them "
            "share"
        )
        raise refuse("invariant code motion", kernel, f"{reason}; choose hoist=False or targets=1")
    return checked("thread merging", lanes_of.apply(kernel, plan.targets))


def _packed(kernel: ir.Kernel, loop: ir.Parallel, lanes: int) -> ir.Kernel:
    """Blocks of lanes over all cells. Threads past the last cell go with it, and store nothing: all
    reach every barrier.
    """
    index = loop.extent.type
    block, lane, slot = (ir.Local(n, index) for n in (own("block"), LANE, SLOT))
    inside = build.less(slot, loop.extent)
    body = (
        ir.Assign(SLOT, build.add(build.multiply(block, lanes), lane)),
        ir.Assign(CELL, build.minimum(slot, build.subtract(loop.extent, 1))),
        *(ir.If(inside, (s,)) if isinstance(s, ir.StoreRecord) else s for s in loop.body),
    )
    threads = ir.Parallel(LANE, ir.Literal(lanes, index), body)
    return replace(
        kernel, body=(ir.Parallel(block.name, build.ceil_divide(loop.extent, lanes), (threads,)),)
    )


def _blocks(kernel: ir.Kernel, loop: ir.Parallel, targets: int, lanes: int) -> ir.Kernel:
    """Blocks of lanes over the dense axis of one segment, or over the segments where there is
    none.
    """
    if loop.variable != CELL:
        return _with_lane(thread_merging.apply(kernel, targets, lanes), lanes)
    # the first two statements find the segment and the place
    index, element = loop.extent.type, loop.body[2:]
    over_places = ir.Parallel(PLACE, ir.Local(DENSE, index), element)
    merged = _with_lane(
        thread_merging.apply(replace(kernel, body=(over_places,)), targets, lanes), lanes
    )
    (blocks,) = merged.body
    assert isinstance(blocks, ir.Parallel)
    block, tiles, segment = (ir.Local(n, index) for n in (blocks.variable, TILES, SEGMENT))
    head = (
        ir.Assign(TILES, blocks.extent),
        ir.Assign(SEGMENT, build.divide(block, tiles)),
        ir.Assign(TILE, build.subtract(block, build.multiply(segment, tiles))),
    )
    body = (*head, *rename(blocks.body, {blocks.variable: TILE}))
    extent = build.multiply(ir.Local(SEGMENTS, index), blocks.extent)
    return replace(merged, body=(ir.Parallel(blocks.variable, extent, body),))


def _with_lane(kernel: ir.Kernel, lanes: int) -> ir.Kernel:
    """A block of one cell for all its threads still has a lane, which the slices divide."""
    (outer,) = kernel.body
    assert isinstance(outer, ir.Parallel)
    if lanes > 1:
        return kernel
    lane = ir.Parallel(LANE, ir.Literal(1, outer.extent.type), outer.body)
    return replace(kernel, body=(replace(outer, body=(lane,)),))


SEGMENTWISE = Pattern(
    "segmentwise", over_items=True, host=HostCode(inline=True, widest_stride=None, separate=True),
    default_plan=default_plan, grain=grain, shape=shape,
    no_sums="its sums have the type of the result: return lw.f64 for wider ones",
)  # fmt: skip
