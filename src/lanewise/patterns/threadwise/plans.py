"""Default plans of threadwise kernels, read off their accesses.

What is read again along one index asks for several points of a thread along the other, and for
tiles where a loop goes over it; what neighbouring threads read or write apart in memory asks for
staging; what neighbours read together, for a few points of a thread; everything else for four
points in one access.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from math import ceil, inf, prod
from typing import Any

import numpy as np

from lanewise.analysis.access_groups import AccessGroup, groups
from lanewise.analysis.affine import AccessLoop, AffineAccess, accesses, nest, nest_of
from lanewise.ir import nodes as ir
from lanewise.ir.interpret import whole_of
from lanewise.ir.pattern import BLOCK, Call, Choice, Suggestions, Work
from lanewise.ir.traverse import reads, statements, writes
from lanewise.language.target import Machine, Target
from lanewise.passes import even_loops, panels
from lanewise.passes.points import bringing_back, slow_edges
from lanewise.passes.points.boxes import WIDEST
from lanewise.passes.points.shape import shape_of
from lanewise.passes.points.staging import SMALLEST_COPY
from lanewise.patterns.threadwise.candidates import Candidates
from lanewise.patterns.threadwise.host_plans import host_plan, suggested_on_host
from lanewise.patterns.threadwise.merged import FIELDS
from lanewise.patterns.threadwise.priced import OTHERS, chooser
from lanewise.patterns.threadwise.round_code import (
    is_far_too_much_code,
    is_much_code,
    slots_of,
    slots_of_a_round,
)
from lanewise.patterns.threadwise.shared import RESIDENT, sharing_plan
from lanewise.planning.plan import NEUTRAL, CompletePlan, Plan
from lanewise.support.errors import PlanError

SHAPING = (*FIELDS, "block", "min_blocks", "registers")
PANEL, LONG = 512, 256  # rounds of a panel; and of a recurrence that is long enough for panels
WAVES = 2  # blocks that each multiprocessor gets at least, or smaller ones are chosen
# threads of a block, above which each multiprocessor gets so many times as many of them at least
LARGE, MANY = 256, 8
FULL = 0.5  # share of the points of blocks that are there, at least
# times as full that blocks of 64 x 64 points have to be, as those of 64 x 128 do more for what they
# load: where a term is one instruction, and where it is several, which load less often
FULLER, FULLER_LONG = 1.25, 1.1

COPIED = (
    Plan(
        block=128, across=16, rows=8, targets=8, tile=16, prefetch="async", unroll=0, min_blocks=1
    ),
    Plan(block=256, rows=4, targets=4, tile=16, prefetch="async", unroll=0),
    Plan(block=64, across=8, rows=4, targets=4, tile=16, prefetch="async", unroll=0),
    Plan(block=64, across=8, rows=2, targets=2, tile=16, prefetch="async", unroll=0),
)
PRODUCTS = (
    *COPIED,
    Plan(block=128, across=16, rows=8, targets=8, tile=16, prefetch="registers", unroll=0),
    Plan(block=256, rows=8, targets=8, tile=16, unroll=0, min_blocks=2),
    Plan(block=256, rows=4, targets=4, tile=16, unroll=0),
    Plan(block=64, across=8, rows=4, targets=4, tile=16, unroll=0),
    Plan(block=64, across=8, rows=2, targets=2, tile=16, unroll=0),
)
BATCHES = (
    Plan(
        block=128,
        across=16,
        down=8,
        rows=8,
        targets=8,
        tile=8,
        prefetch="async",
        unroll=0,
        min_blocks=1,
    ),
    Plan(block=256, across=16, down=16, rows=4, targets=4, tile=16, unroll=0),
    Plan(block=64, across=4, down=4, rows=4, targets=4, tile=16, unroll=0),
)
# of terms that are taken by a branch, which 8 x 8 points of a thread go through one after the other
CHOSEN = (PRODUCTS[6:], BATCHES[1:])
# whose results are turned: less waits for the lines in which they come to memory
TURNED_BATCHES = BATCHES[1:]
# windows around a point, and weights that depend on another index: what each reads is used again by
# the other's points, and a tile would bring it no nearer
CHANNELS = (
    # without a bound it takes some 180 registers, and too few warps cover the latency of its loads
    Plan(block=128, across=32, down=4, rows=2, targets=4, layers=8, min_blocks=4),
    Plan(block=128, across=32, down=4, rows=2, targets=4, layers=4),
    Plan(block=128, across=32, down=4, rows=2, targets=2, layers=4),
)
WINDOWS = (
    Plan(block=128, across=4, rows=1, targets=16, adjacent=16, tile=16, unroll=0, min_blocks=1),
    Plan(block=128, across=4, rows=1, targets=8, adjacent=8, tile=16, unroll=0),
    Plan(block=128, across=16, targets=2, tile=8, unroll=0),
)
# that begin at multiples of 16 bytes
TURNED_ROWS = Plan(block=512, neighbours="first", across=16, rows=2, targets=4, tile=1)
TURNED = (
    Plan(block=256, neighbours="first", across=16, rows=4, targets=4, tile=1),
    Plan(block=256, neighbours="first", across=16, rows=2, targets=2, tile=1),
    Plan(block=256, neighbours="first", across=32, rows=4, tile=1),
)  # fmt: skip
APART = (
    Plan(block=256, across=16, rows=4, targets=4, tile=16),
    Plan(block=256, across=16, rows=2, targets=2, tile=16),
    Plan(block=256, across=32, rows=4, tile=16),
    Plan(block=128, tile=16),
)
NEAR = (
    Plan(block=256, across=32, rows=4, targets=4),
    Plan(block=256, across=32, rows=2, targets=4),
    Plan(block=256, across=32, targets=4),
)
# whose edges are tested: four rows of a thread take more registers than they save loads
STENCILS = NEAR[1:]
LAYERS = (Plan(block=128, across=64, layers=4, rows=2, targets=2), *NEAR)
# rows of which neighbours read every other element
STRIDED = (
    Plan(block=256, across=32, rows=4, targets=2, adjacent=1),
    Plan(block=256, across=32, rows=2, targets=2, adjacent=1),
    Plan(block=256, across=32, targets=2, adjacent=1),
)
# the same, read again by every point along the first of three indices
STRIDED_CHANNELS = (LAYERS[0], *STRIDED)
STREAMS = (
    Plan(block=256, across=32, rows=2, targets=4),
    Plan(block=256, across=32, targets=4),
    Plan(block=256, targets=4),
)
# loops whose ends depend on a point: those of neighbours along the last index are the same
UNEVEN = STREAMS[1:]
GROUPED = (STREAMS, NEAR, STENCILS, LAYERS, CHANNELS)  # whose groups of neighbours are one access
# what the model may choose instead of the plan that accesses suggest: for loops of fewer rounds
# than its tile, what has none; for fewer points than the blocks of other plans take, small tiles,
# threads that share a loop, and small boxes of windows
LOOPS: Mapping[Call, tuple[Plan, ...]] = {
    "short": (
        Plan(block=256),
        Plan(block=256, across=32, rows=2, targets=4, adjacent=1),
        CHANNELS[0],
    ),
    "small": (
        APART[1],
        Plan(block=256, slices=32, unroll=4),
        Plan(block=256, slices=256, unroll=4),
        LAYERS[0],
    ),
}
# of loops that end where their point says
UNEVEN_LOOPS: Mapping[Call, tuple[Plan, ...]] = dict.fromkeys(
    ("fits", "short", "small", "shared"), OTHERS
)
# windows whose edges are computed point by point: small blocks, so that few have an edge, and few
# points of a thread, which the last blocks of all compute one after the other
EDGED = STRIDED[0]
EDGED_BOX = Plan(block=128, across=32, down=4, rows=4, layers=2, targets=1)  # of three indices
MANY_EDGED = 1 << 26  # points of the index space, from which on edges no longer decide
# arithmetic instructions for each element that is read, from which on neither edges decide nor rows
# of odd lengths: what neighbouring points of a thread share takes fewer registers
LABORIOUS = 6


def default_plan(machine: Machine, work: Work, requested: Plan) -> CompletePlan:
    """Every field decided. A request about the shape of blocks or threads leaves everything else
    about it neutral.
    """
    if not machine.target.has_blocks:
        return host_plan(machine, work, requested)
    try:
        return _default_plan(machine, work, requested)
    finally:
        if work.suggested is not None:
            work.suggested.forget()


def _default_plan(machine: Machine, work: Work, requested: Plan) -> CompletePlan:
    if (together := sharing_plan(machine, work, requested)) is not None:
        shared = together.filled(NEUTRAL)
        free = all(getattr(requested, name) is None for name in (*SHAPING, "slices", "parts"))
        few = work.targets * shared.slices * shared.parts < machine.multiprocessors * RESIDENT
        if not free or work.suggested is None:
            return shared
        return work.suggested.chosen(shared, "small" if few else "shared")
    if work.rounds is not None and work.rounds.panels:
        return _panelled(machine, work, requested)
    plain = Plan(block=BLOCK).filled(NEUTRAL)
    shaped = any(getattr(requested, name) is not None for name in SHAPING)
    divided = any(getattr(requested, name) not in (None, 1) for name in ("slices", "parts"))
    if shaped or divided:
        return plain
    if work.suggested is None:
        return plain
    suggested = _largest(machine, work, work.targets // WAVES)
    if suggested is None:
        return work.suggested.chosen(plain, "small")
    return work.suggested.chosen(
        suggested, "short" if work.suggested.is_short(suggested) else "fits"
    )


def _panelled(machine: Machine, work: Work, requested: Plan) -> CompletePlan:
    """Long recurrences go by panels; what runs ahead of a panel has as many points as fill the
    GPU.
    """
    plain = Plan(block=BLOCK).filled(NEUTRAL)
    rounds = 0 if work.rounds is None else work.rounds.count
    shaped = any(getattr(requested, name) is not None for name in (*SHAPING, "slices", "parts"))
    panel = (
        requested.panel if requested.panel is not None else 0 if shaped or rounds < LONG else PANEL
    )
    if shaped or not panel:
        return replace(plain, panel=panel)
    points = work.targets * min(panel, rounds)
    return replace(_largest(machine, work, points) or plain, panel=panel)


def _largest(machine: Machine, work: Work, points: int) -> CompletePlan | None:
    """The first legal plan with a block for each multiprocessor."""
    least = machine.multiprocessors

    def fits(plan: Plan) -> bool:
        return (machine.copies or not _copies(plan)) and points >= _waves(plan) * _points(
            plan.filled(NEUTRAL)
        ) * least

    chosen = work.suggested and work.suggested.first(fits)
    return chosen.filled(NEUTRAL) if chosen else None


def _copies(plan: Plan) -> bool:
    return plan.prefetch is not None and plan.prefetch.startswith("async")


def _waves(plan: Plan) -> int:
    """Blocks of a multiprocessor, at least: one that waits at its barriers has others besides
    it.
    """
    return MANY if (plan.block or 0) > LARGE else 1


def _points(plan: CompletePlan) -> int:
    """Of a block."""
    return plan.block * plan.targets * plan.rows * plan.layers


def suggested(kernel: ir.Kernel, target: Target, written: ir.Kernel) -> Suggestions:
    """Plans of a kernel in normal form for such devices; on a GPU of a recurrence those of the
    kernel ahead of a panel. written: the same as its user wrote it, of which programs are made.
    """
    if not target.has_blocks:
        return suggested_on_host(kernel)
    whole = Candidates(kernel, written)
    if panels.legal(kernel, PANEL) is not None:
        return _suggested(kernel, target, whole, chooser(whole))
    ahead, _ = panels.apply(kernel, PANEL)
    return _suggested(ahead, target, Candidates(ahead, written), chooser(whole))


def _suggested(
    kernel: ir.Kernel, target: Target, candidates: Candidates, choose: Choice
) -> Suggestions:
    def is_legal(plan: Plan) -> bool:
        return candidates.is_legal(plan.filled(NEUTRAL))

    indices, body = nest_of(bringing_back.inside(kernel))
    all_accesses = accesses(body, indices)
    if any(isinstance(s, ir.While) for s in statements(body)):
        return Suggestions((), lambda plan: False)  # threads go their own ways
    if uneven := [x for a in all_accesses for x in a.loops if not x.shared]:
        if any(_ends_apart(x, indices[-1]) for x in uneven):
            return Suggestions((), lambda plan: False, choose=choose, others=UNEVEN_LOOPS)
        even = even_loops.apply(kernel)
        tiles = _suggested(even, target, candidates, choose).plans if even is not kernel else ()
        plans = (*(p for p in tiles if p.tile), *UNEVEN)
        return Suggestions(plans, is_legal, None, choose, UNEVEN_LOOPS, forget=candidates.forget)
    sizes = [a.leaves[0].type.size for a in kernel.arrays]
    family = _family(all_accesses, indices)
    if family in (PRODUCTS, BATCHES) and _is_chosen(body):
        family = CHOSEN[family is BATCHES]
    near = family in (NEAR, STENCILS, LAYERS)
    laborious = near and _is_laborious(body, sum(not a.is_store for a in all_accesses))
    if family is TURNED and all(
        a.multiple * a.leaves[0].type.size % WIDEST == 0 for a in kernel.arrays
    ):
        family = (TURNED_ROWS, *family)
    elif (
        family in GROUPED
        and not (family in (NEAR, STENCILS) and laborious)
        and not _is_wide(kernel, all_accesses, indices)
    ):
        family = tuple(replace(p, adjacent=1) for p in family)
    size = max(sizes, default=4)
    small = min(sizes, default=4) < SMALLEST_COPY
    plans = tuple(_narrower(p, size) for p in family if not (small and _copies(p)))
    slots = slots_of_a_round(body) if family in (PRODUCTS, BATCHES) else 0.0
    if family is PRODUCTS and not small and is_much_code(plans[0], slots):
        plans = (_narrower(BATCHES[0], size), *plans[1:])
    plans = tuple(p for p in plans if not is_far_too_much_code(p, slots)) or plans[-1:]
    edged = near and not laborious and _has_slow_edges(kernel, plans[0], len(indices))
    suited = partial(
        _suited,
        kernel,
        edged=_narrower(EDGED_BOX if len(indices) == 3 else EDGED, size) if edged else None,
        fuller=0.0 if family is not BATCHES else FULLER_LONG if slots > 1 else FULLER,
    )
    repeats = any(a.loops for a in all_accesses)
    return Suggestions(
        plans,
        is_legal,
        suited,
        choose if repeats else None,
        LOOPS,
        partial(_most_rounds, body),
        forget=candidates.forget,
    )


def _most_rounds(body: ir.Block, environment: Mapping[str, Any]) -> float:
    """Of the loops of a point; no end to those whose ends its counts do not tell."""
    found = 0.0
    for s in statements(body):
        if isinstance(s, ir.For):
            names = {*reads(s.start), *reads(s.stop)}
            if not names <= environment.keys():
                return inf
            values = {n: np.int64(environment[n]) for n in names}
            found = max(found, whole_of(s.stop)(values) - whole_of(s.start)(values))
    return found


def _is_laborious(body: ir.Block, loads: int) -> bool:
    return slots_of(body) >= LABORIOUS * max(1, loads)


def _is_chosen(body: ir.Block) -> bool:
    """Whether a round of a loop decides by what was found so far whether to change that: `if t > s:
    s = t`.
    """
    return any(
        isinstance(inner, ir.If)
        and set(reads(inner.condition)) & {n for s in inner.then for n in writes(s)}
        for s in statements(body)
        if isinstance(s, ir.For)
        for inner in statements(s.body)
    )


def _has_slow_edges(kernel: ir.Kernel, plan: Plan, rank: int) -> bool:
    try:
        return slow_edges.has_slow_edges(kernel, shape_of(plan.filled(NEUTRAL), rank))
    except PlanError:
        return False


def _suited(
    kernel: ir.Kernel,
    plans: tuple[Plan, ...],
    environment: Mapping[str, Any],
    edged: Plan | None = None,
    fuller: float = 0.0,
) -> tuple[Plan, ...]:
    """Those whose blocks are at least half full, at the end of each index too; else the one with
    the smallest blocks. edged: before them where the edges of so few points decide. fuller: times
    as full that blocks of the second plan have to be to come before those of the first, if at all.
    """
    loops, _ = nest(kernel)
    names = {n for loop in loops for n in reads(loop.extent)}
    if not plans or not names <= environment.keys():
        return plans
    values = {n: np.int64(environment[n]) for n in names}
    extents = [max(1, whole_of(loop.extent)(values)) for loop in loops]
    if edged is not None and prod(extents) < MANY_EDGED:
        plans = (edged, *plans)

    def full(plan: Plan) -> float:
        try:
            shape = shape_of(plan.filled(NEUTRAL), len(loops))
        except PlanError:  # no shape for so many indices, which makes it no legal plan either
            return 0.0
        sides = map(shape.side, range(len(loops)))
        return prod(n / (ceil(n / side) * side) for n, side in zip(extents, sides, strict=True))

    if fuller and len(plans) > 1 and full(plans[1]) > fuller * full(plans[0]):
        plans = (plans[1], plans[0], *plans[2:])
    return tuple(p for p in plans if full(p) >= FULL) or plans[-1:]


def _is_wide(
    kernel: ir.Kernel, accesses: tuple[AffineAccess, ...], indices: tuple[str, ...]
) -> bool:
    """Whether rows that neighbours read or write side by side begin at multiples of several
    elements. If none does, neighbours of a warp take neighbouring elements, not groups of them.
    """
    multiples = {a.name: a.multiple for a in kernel.arrays}
    rows = [a for a in accesses if a.way(indices[-1]) == "next" and len(a.indices) > 1]
    return not rows or any(multiples[a.array] > 1 for a in rows)


def _family(accesses: tuple[AffineAccess, ...], indices: tuple[str, ...]) -> tuple[Plan, ...]:
    last, rank = indices[-1], len(indices)
    loads, stores = [a for a in accesses if not a.is_store], [a for a in accesses if a.is_store]
    inside = [a for a in loads if a.loops]
    windows = any(a.slides(indices) for a in inside)
    if rank > 1 and windows:
        return WINDOWS
    if rank > 1 and any(_is_window(g, indices) for g in groups(tuple(inside))):
        return CHANNELS if rank == 3 else NEAR
    if (
        rank > 1
        and any(a.way(indices[-2]) == "same" for a in inside)
        and any(a.way(last) == "same" for a in inside)
    ):
        turned = any(a.way(last) in ("row", "apart") for a in stores)
        return PRODUCTS if rank == 2 else TURNED_BATCHES if turned else BATCHES
    if (
        rank == 2
        and any(a.way(last) in ("row", "apart") for a in stores)
        and all(a.way(last) in ("next", "same") for a in loads)
    ):
        return TURNED
    apart = [a for a in loads if a.way(last) in ("row", "apart")]
    if rank > 1 and apart and not any(a.loops for a in apart):
        if any(a.way(last) != "apart" for a in apart):
            return APART
        again = rank == 3 and any(a.way(indices[0]) == "same" for a in apart)
        return STRIDED_CHANNELS if again else STRIDED
    if apart:
        return APART
    near = any(len(g.accesses) > 1 and g.low != g.high for g in groups(tuple(loads)))
    if not near or rank == 1:
        return STREAMS
    if rank == 3:
        return LAYERS
    return STENCILS if any(a.guards for a in loads) else NEAR


def _ends_apart(loop: AccessLoop, index: str) -> bool:
    """Whether neighbours along an index run other rounds of a loop."""
    return any(end is None or index in end.variables for end in (loop.start, loop.stop))


def _is_window(group: AccessGroup, indices: tuple[str, ...]) -> bool:
    """Whether its places lie around a point of the index space."""
    one = group.accesses[0]
    return any(
        low != high and i is not None and i.variables & {*indices}
        for low, high, i in zip(group.low, group.high, one.indices, strict=True)
    )


def _narrower(plan: Plan, size: int) -> Plan:
    """Half as many points in each direction for numbers of 8 bytes."""
    if size <= 4:
        return plan
    halves = {
        n: max(1, v // 2)
        for n in ("rows", "targets", "adjacent")
        if (v := getattr(plan, n)) is not None
    }
    return replace(plan, **halves)
