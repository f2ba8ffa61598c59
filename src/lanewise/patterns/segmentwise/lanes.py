"""On a CPU: neighbouring cells of the dense axis side by side in SIMD registers, so that an item is
loaded once for all of them.

    parallel for cell: segment, place = ...; load template[place]; sum = 0
        for item: load sft[item]; sum += f(template, sft)
        store result[...] = sum
->  parallel for block: segment, tile = ...; first = tile * W; lanes = min(W, dense - first); sums:
f32[W]
        for item: load sft[item]
            for lane in range(lanes): place = first + lane; load template[place]; sums[lane] +=
            f(template, sft)
        for lane in range(lanes): place = first + lane; store result[...] = sums[lane]
Each cell adds its items in the same order as before.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.ir.traverse import rewrite_block, used_by, writes
from lanewise.language.types import LocalArray, Scalar
from lanewise.passes.base import is_source_loop, refuse
from lanewise.passes.side_by_side import over_lanes
from lanewise.passes.thread_merging import varying_names
from lanewise.patterns.segmentwise.names import CELL, DENSE, PLACE, SEGMENT, SEGMENTS

BLOCK, TILES, TILE, ORIGIN, LANES, LANE = (
    own(n) for n in ("block", "tiles", "tile", "origin", "lanes", "lane")
)
MOST = 4096  # cells of a loop: their sums stay in the first cache


def legal(kernel: ir.Kernel, width: int) -> str | None:
    """Why the pass does not apply, or None."""
    (loop,) = kernel.body
    if not isinstance(loop, ir.Parallel) or loop.variable != CELL:
        return "it has no dense axis: neighbouring segments have no items in common"
    if not 1 <= width <= MOST:
        return f"wanted 1 to {MOST} cells in a loop, found {width}"
    if sum(map(is_source_loop, loop.body)) != 1:
        return "it has more than one loop over the items"
    return None


def apply(kernel: ir.Kernel, width: int) -> ir.Kernel:
    """`width` cells in a loop; raises `PlanError` for a kernel without a dense axis."""
    if reason := legal(kernel, width):
        raise refuse("thread merging", kernel, reason)
    (loop,) = kernel.body
    assert isinstance(loop, ir.Parallel)
    # the first two statements find the segment and the place
    index, element = loop.extent.type, loop.body[2:]
    block, tiles, tile, segment, origin, lanes, lane, dense = (
        ir.Local(n, index) for n in (BLOCK, TILES, TILE, SEGMENT, ORIGIN, LANES, LANE, DENSE)
    )
    at = next(n for n, s in enumerate(element) if is_source_loop(s))
    sums = _sums(element[:at])
    # Every cell has its own sum, also where all add the same: what a function makes of the
    # item alone is computed once.
    varying = varying_names(ir.Parallel(PLACE, dense, element)) | sums.keys()
    of_cell = tuple(
        s
        for s in element[:at]
        if _touches(s, varying) and not (isinstance(s, ir.Assign) and s.name in sums)
    )
    of_all = tuple(
        s
        for s in element[:at]
        if not _touches(s, varying) and not (isinstance(s, ir.Assign) and s.name in sums)
    )
    items = element[at]
    assert isinstance(items, ir.For)
    shared = tuple(s for s in items.body if not _touches(s, varying))
    each = tuple(_stored(s, sums, lane) for s in items.body if _touches(s, varying))

    each_lane = partial(over_lanes, PLACE, origin, lane, lanes)
    head = (
        ir.Assign(TILES, build.ceil_divide(dense, width)),
        ir.Assign(SEGMENT, build.divide(block, tiles)),
        ir.Assign(TILE, build.subtract(block, build.multiply(segment, tiles))),
        ir.Assign(ORIGIN, build.multiply(tile, width)),
        ir.Assign(LANES, build.minimum(width, build.subtract(dense, origin))),
        *(ir.DeclareArray(n, LocalArray(kind, width)) for n, kind in sums.items()),
    )
    body = (
        *head, *of_all, replace(items, body=(*shared, each_lane((*of_cell, *each)))),
        each_lane(rewrite_block(element[at + 1 :], lambda e: _loaded(e, sums, lane))),
    )  # fmt: skip
    extent = build.multiply(ir.Local(SEGMENTS, index), build.ceil_divide(dense, width))
    return replace(kernel, body=(ir.Parallel(BLOCK, extent, body),))


def _sums(block: ir.Block) -> dict[str, Scalar]:
    """The variables that begin at zero, before the items."""
    return {
        s.name: s.value.type
        for s in block
        if isinstance(s, ir.Assign) and isinstance(s.value, ir.Literal)
    }


def _touches(s: ir.Statement, varying: set[str]) -> bool:
    """Whether a statement depends on the cell."""
    return bool((used_by(s) | set(writes(s))) & varying)


def _loaded(e: ir.Expression, sums: dict[str, Scalar], lane: ir.Local) -> ir.Expression:
    return (
        ir.Element(e.name, lane, sums[e.name]) if isinstance(e, ir.Local) and e.name in sums else e
    )


def _stored(s: ir.Statement, sums: dict[str, Scalar], lane: ir.Local) -> ir.Statement:
    """A statement of a cell, whose sum lies in an array."""
    (kept,) = rewrite_block((s,), lambda e: _loaded(e, sums, lane))
    if isinstance(kept, ir.Assign) and kept.name in sums:
        return ir.SetElement(kept.name, lane, kept.value)
    return kept
