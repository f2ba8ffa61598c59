"""Default plans of threadwise kernels on a CPU, read off their accesses.

Points whose neighbours read neighbours are lanes of SIMD registers. What several rows read again
asks for several rows and registers of points, whose sums stay in registers, and is packed; columns
ask for loops that change places with their points, so that rows are read in long pieces, or for
many registers where there are few of them; windows and stencils ask for a line of memory at once,
row by row. Rows that are another array's columns are turned in squares, in tiles of a core's own
where rows begin anywhere in a line of memory. Where a point's own loop runs along memory its rounds
are the lanes, what several such loops compute is kept, and a loop that writes runs along with one
of the next point.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import ceil
from typing import Any

from lanewise.analysis.access_groups import groups
from lanewise.analysis.affine import AffineAccess, accesses, nest_of
from lanewise.ir import nodes as ir
from lanewise.ir.pattern import Suggestions, Work
from lanewise.ir.traverse import statements
from lanewise.language.target import Machine
from lanewise.passes import loop_sharing, shared_loops
from lanewise.passes.points import interchange, lanes, line_starts, packing, squares, wrapping
from lanewise.patterns.threadwise.host import (
    SHAPING,
    SLICES,
    changes_places,
    shape_of,
    sliced_problem,
    writes_rounds,
)
from lanewise.planning.plan import NEUTRAL, CompletePlan, Plan

FIELDS = ("across", "slices", *SHAPING)
BYTES = 64  # of a SIMD register of 512 bits
SHORT = 64  # rounds that are not worth sharing
SHORT_NESTED = 8  # the same, if each of them has a loop inside and writes what that gathers
WAVES = 2  # blocks that each core gets at least, or smaller ones are chosen
# Bytes of a row of squares in a tile of a core's own: a page, behind which nothing is fetched
# ahead; or half of one.
TILES = (1 << 12, 1 << 11)
# Rounds whose values are kept where several loops compute them: with the row they fit a core's
# second cache.
KEPT = 16_384
# registers whose functions are computed at once: one alone waits for each of its operations
SEVERAL = 4
# rows that are read together: what else all of them read is read once, and a core follows as
# many
SIDE_BY_SIDE = 8
# points whose loops overlap: what is left of the first and the last one is then a sixteenth
BEHIND = 16
# rounds, of more than which that is worth it: what a row begins and ends with takes its own time
OVERLAPPED = 2048
PACKED = 2048  # rounds: what is packed of them fits half of a core's second cache
# 32 registers, or 16
PRODUCT = Plan(rows=8, targets=3, tile=PACKED)
PRODUCT_OF_16 = Plan(rows=6, targets=2, tile=PACKED)
BATCH = Plan(rows=8)
WINDOW = Plan(rows=4, targets=2)
COLUMNS = Plan(targets=16)
# Variables of a tile's points, which take half of a core's first cache, or less where there would
# be no tiles for all cores.
POINTS = (1 << 14, 1 << 13, 1 << 12)  # bytes
TOGETHER = 8  # rounds at once: as many rows are read side by side
IDLE = 1.25  # times as long as with equal work for all cores: more is not worth longer pieces
# A whole line of memory at once; what rows share the first cache holds, and several are no stream
# any more.
NEAR = Plan(rows=1)
# in a plane of long rows that are whole lines: half of the loads of a row for each point
NEAR_OF_512 = Plan(rows=2)
# registers of a line where points read several planes: most loads of 64 bytes lie in two lines, of
# 32 every other one
HALVES = 2
# of several rows no store past the caches has its line of memory to itself
STREAM = Plan(targets=2)
# Several lines at once: of rows of one index, and of what tests of edges leave out where it is not
# in the order of memory, so no stream.
LINE = Plan(targets=4)
PLAIN = Plan()  # for few points: one kernel serves all small calls


def host_plan(machine: Machine, work: Work, requested: Plan) -> CompletePlan:
    """Every field decided. A request about lanes or their points leaves everything else about them
    neutral.
    """
    if any(getattr(requested, name) is not None for name in FIELDS):
        return NEUTRAL
    bits = requested.vector_bits or machine.vector_bits
    shared = None if work.rounds is None or work.rounds.running else work.rounds
    rounds = 0 if shared is None else shared.count

    def is_even(points: int) -> bool:
        """Whether blocks of so many points give all cores nearly equal work."""
        together = points * machine.multiprocessors
        return ceil(work.targets / together) * together <= IDLE * work.targets

    def fits(suggestion: Plan) -> bool:
        plan = suggestion.filled(NEUTRAL)
        if (plan.vector_bits == 512) != (bits == 512):
            return False
        if plan.unroll > 1:
            return is_even(plan.tile) and (shared is None or rounds >= SHORT)
        points = max(1, plan.across) * plan.targets * plan.rows * plan.layers
        if plan.tile and plan.rows == plan.across:
            return work.targets >= plan.tile**2 // squares.FLAT * machine.multiprocessors * WAVES
        enough = work.targets >= points * machine.multiprocessors * WAVES
        if plan.slices > 1 and plan.targets == BEHIND:
            return rounds > OVERLAPPED and enough and is_even(BEHIND)
        if plan.slices > 1 and shared and shared.nested and rounds < SHORT:
            return rounds >= SHORT_NESTED and suggestion == _holding(rounds, bits, work)
        if plan.slices > 1:
            return rounds >= SHORT and (enough or plan.targets == 1)
        return enough or (plan.targets == 1 and plan.rows in (1, plan.across))

    chosen = work.suggested and work.suggested.first(fits)
    return chosen.filled(NEUTRAL) if chosen else NEUTRAL


def _holding(rounds: int, bits: int, work: Work) -> Plan | None:
    """The plan whose lanes are the fewest that hold all rounds, or the most that there are."""
    plans = [
        p
        for p in (work.suggested.plans if work.suggested else ())
        if (p.vector_bits == 512) == (bits == 512) and p.slices and not (p.targets or p.tile)
    ]
    plans.sort(key=lambda p: p.slices or 0)
    enough = [p for p in plans if (p.slices or 0) >= rounds]
    return next(iter(enough or plans[-1:]), None)


def suggested_on_host(kernel: ir.Kernel) -> Suggestions:
    """Plans of a reference kernel for a CPU, all legal: for registers of 512 bits and of 256, the
    largest blocks of points first.
    """

    def turned(plans: tuple[Plan, ...], lengths: Mapping[str, Any]) -> tuple[Plan, ...]:
        return (
            tuple(p for p in plans if not p.tile)
            if squares.rows_are_lines(kernel, lengths)
            else plans
        )

    def window(plans: tuple[Plan, ...], lengths: Mapping[str, Any]) -> tuple[Plan, ...]:
        whole = squares.rows_are_lines(kernel, lengths) and line_starts.rows_are_long(
            kernel, lengths
        )
        return plans if whole else tuple(p for p in plans if p.rows != NEAR_OF_512.rows)

    is_window = _is_window(wrapping.inside(kernel))
    plans = tuple(p for bits in (512, 256) for p in _of_width(kernel, bits, is_window=is_window))
    return Suggestions(
        plans, lambda plan: True, turned if lanes.turned(kernel) else window if is_window else None
    )


def _of_width(kernel: ir.Kernel, bits: int, *, is_window: bool) -> tuple[Plan, ...]:
    size = max((a.leaves[0].type.size for a in kernel.arrays), default=4)
    count = BYTES // max(4, size) * bits // 512
    inner = wrapping.inside(kernel)
    indices, body = nest_of(inner)
    kept = replace(Plan(), vector_bits=512 if bits == 512 else 0)
    if lanes.legal(kernel, shape_of(kernel, Plan(across=count).filled(NEUTRAL))) is None:
        if any(isinstance(s, ir.DeclareArray) for s in statements(body)):
            return (replace(PLAIN, across=count, vector_bits=kept.vector_bits),)
        best = _family(inner, accesses(body, indices), indices, bits, count)
        line = (
            BYTES // max(4, size) // (HALVES if bits == 512 and len(indices) > 2 else 1)
            if best is NEAR
            else count
        )
        rows = ((NEAR_OF_512, count),) if bits == 512 and best is NEAR and is_window else ()
        plans = (
            *((p, count) for p in _in_rows(kernel, indices, body, count) if inner is kernel),
            *rows,
            (best, line),
            (PLAIN, count),
        )
        return tuple(
            replace(p, across=n, vector_bits=kept.vector_bits) for p, n in dict.fromkeys(plans)
        )
    square = Plan(across=count, rows=count, vector_bits=kept.vector_bits)
    if len(indices) == 2 and lanes.legal(kernel, shape_of(kernel, square.filled(NEUTRAL))) is None:
        return (*(replace(square, tile=n // max(4, size)) for n in TILES), square)
    slices = replace(kept, slices=2 * count)
    if loop_sharing.legal(kernel) is not None:
        return ()
    if shared_loops.best_way(kernel) == "column":
        return ()
    several = min(SLICES[-1], SEVERAL * count)
    rows = (replace(kept, slices=count, targets=SIDE_BY_SIDE),) if _read_alike(kernel) else ()
    each = (replace(slices, slices=several, tile=KEPT), slices)
    few = (replace(kept, slices=count), replace(kept, slices=several))
    if writes_rounds(kernel):
        each = tuple(p for base in each for p in (replace(base, targets=BEHIND), base))
    plans = (*rows, *each, *few)
    return tuple(p for p in plans if sliced_problem(kernel, p.filled(NEUTRAL)) is None)


def _read_alike(kernel: ir.Kernel) -> bool:
    """Whether neighbours along the last index read the same elements in shared loops, besides their
    own rows.
    """
    indices, body = nest_of(kernel)
    shared = shared_loops.shareable_loops(kernel).values()
    loops = {id(x.inner) for x in shared if not x.stores}
    ways = {
        a.way(indices[-1])
        for a in accesses(body, indices)
        if any(id(x.statement) in loops for x in a.loops)
    }
    return "same" in ways and len(ways) > 1


def _in_rows(
    kernel: ir.Kernel, indices: tuple[str, ...], body: ir.Block, count: int
) -> tuple[Plan, ...]:
    """Plans whose rounds run around the points: where all that a loop reads of a row is read once,
    by points of one row.
    """
    each = max(interchange.kept_bytes(kernel), 4)
    size = max((a.leaves[0].type.size for a in kernel.arrays), default=4)
    loops = {id(x): x.variable for x in interchange.loops_of(kernel)}
    around = [
        (a, a.loops[0].variable)
        for a in accesses(body, indices)
        if a.loops and id(a.loops[0].statement) in loops
    ]
    rows = [
        a
        for a, k in around
        if not a.is_store and a.way(indices[-1]) == "next" and a.way(k) == "row"
    ]
    if not rows or any(a.way(i) == "same" for a in rows for i in indices):
        return ()
    line = max(1, BYTES // max(4, size) // count)  # registers of a line of memory
    plans = tuple(
        Plan(targets=line, tile=n // each // (line * count) * line * count, unroll=TOGETHER)
        for n in POINTS
    )
    return tuple(p for p in plans if _is_in_rows(kernel, replace(p, across=count).filled(NEUTRAL)))


def _is_in_rows(kernel: ir.Kernel, plan: CompletePlan) -> bool:
    is_one = changes_places(kernel, plan)
    return (
        is_one and interchange.legal(kernel, shape_of(kernel, plan), plan.tile, plan.unroll) is None
    )


def _family(
    kernel: ir.Kernel,
    all_accesses: tuple[AffineAccess, ...],
    indices: tuple[str, ...],
    bits: int,
    count: int,
) -> Plan:
    rank, loads = len(indices), [a for a in all_accesses if not a.is_store]
    inside = [a for a in loads if a.loops]
    if rank == 1:
        return COLUMNS if inside else LINE
    product = PRODUCT if bits == 512 else PRODUCT_OF_16
    shape = shape_of(kernel, replace(product, across=count).filled(NEUTRAL))
    if (
        rank == 2
        and packing.operands(kernel, shape, PACKED)
        and lanes.legal(kernel, shape, PACKED) is None
    ):
        return product
    if any(a.way(indices[-2]) == "same" for a in inside):
        return WINDOW if rank == 2 else BATCH
    if _is_in_order(kernel):
        return NEAR
    near = _reads_neighbours(loads)
    if rank > 2 and any(a.guards for a in all_accesses if a.is_store):
        return LINE
    if near or rank > 2:
        return NEAR_OF_512 if bits == 512 and rank == 2 else NEAR
    return STREAM


def _is_in_order(kernel: ir.Kernel) -> bool:
    line = BYTES // max(4, *(a.leaves[0].type.size for a in kernel.arrays))
    return line_starts.in_order(
        kernel, shape_of(kernel, NEAR.filled(replace(NEUTRAL, across=line)))
    )


def _reads_neighbours(loads: list[AffineAccess]) -> bool:
    return any(len(g.accesses) > 1 and g.low != g.high for g in groups(tuple(loads)))


def _is_window(kernel: ir.Kernel) -> bool:
    """Whether points of a plane read neighbours and write one row after the other, without a test
    of edges.
    """
    indices, body = nest_of(kernel)
    every = accesses(body, indices)
    plain = not any(a.loops or (a.is_store and a.guards) for a in every)
    return (
        len(indices) == 2
        and plain
        and _reads_neighbours([a for a in every if not a.is_store])
        and _is_in_order(kernel)
    )
