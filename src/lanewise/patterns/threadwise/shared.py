"""Plans by which several threads share the loops of a point: which way, how many threads of a
block, how many blocks.
"""

from __future__ import annotations

from lanewise.ir import nodes as ir
from lanewise.ir.pattern import Checked, Rounds, Work
from lanewise.language.target import WARP, Machine
from lanewise.passes import loop_sharing, loop_splitting, shared_loops, thread_mapping
from lanewise.passes.base import refuse
from lanewise.passes.shared_loops import Sharing, Way
from lanewise.patterns.threadwise.merged import FIELDS
from lanewise.planning.plan import NEUTRAL, CompletePlan, Plan

COMBINE = 256  # threads of a block that join parts
SHORT = 32  # rounds that are not worth sharing
SHORT_RUN = 8  # the same, where a thread alone would write its row element by element
LONG_RUN = 1024  # threads at most of a row that reads running values
EACH = 16  # rounds at least that a thread keeps
RESIDENT = 2048  # threads of a multiprocessor
MOST_PARTS = 4096
UNROLL = 4
FEW = 8  # times as many points would fill the GPU: too few to share what several of them read
COLUMNS = 64  # neighbouring points of a block, whose loads fill whole lines of memory
ROW_BYTES = 32_768  # of a row that a block keeps in shared memory
# fields of plans whose threads have several points
OTHERS = tuple(n for n in FIELDS if n not in ("tile", "unroll"))


def is_shared(plan: CompletePlan) -> bool:
    """Whether a plan divides the loops of a point."""
    return plan.slices != 1 or plan.parts != 1


def shared(kernel: ir.Kernel, plan: CompletePlan, checked: Checked) -> tuple[ir.Kernel, ...]:
    """The kernels of such a plan, mapped to threads; raises `PlanError` where it does not fit."""
    for name in OTHERS:
        if getattr(plan, name) != getattr(NEUTRAL, name):
            raise refuse(
                "slicing",
                kernel,
                f"threads that share a point have one: {name} has to be {getattr(NEUTRAL, name)!r}",
            )
    sharing = _sharing(kernel, plan)
    if plan.parts == 1:
        mapped = loop_sharing.apply(kernel, sharing, min_blocks=plan.min_blocks, running=True)
        return (checked("slicing", mapped),)
    first, second = (
        checked("splitting of loops", k) for k in loop_splitting.apply(kernel, plan.parts)
    )
    done = loop_sharing.apply(first, sharing, min_blocks=plan.min_blocks)
    return checked("slicing", done), checked(
        "slicing", loop_sharing.apply(second, _joining(second, plan.parts))
    )


def _sharing(kernel: ir.Kernel, plan: CompletePlan) -> Sharing:
    threads, slices = plan.block, plan.slices
    if reason := thread_mapping.legal(kernel, threads):
        raise refuse("mapping to threads", kernel, reason)
    if reason := loop_sharing.legal(kernel, running=plan.parts == 1):
        raise refuse("slicing", kernel, reason)
    if slices < 1 or threads % slices:
        raise refuse(
            "slicing", kernel, f"a block of {threads} threads does not divide into {slices} slices"
        )
    way = shared_loops.best_way(kernel, running=plan.parts == 1)
    if way == "row" and slices & (slices - 1):
        raise refuse(
            "slicing", kernel, f"neighbours of a warp meet in powers of two, and {slices} is none"
        )
    return Sharing(way, slices, threads // slices, plan.unroll, plan.tile)


def _joining(kernel: ir.Kernel, parts: int) -> Sharing:
    """How the threads of the second kernel share the parts: all of a block where there is one
    point, else a few for each.
    """
    (outer,) = kernel.body
    assert isinstance(outer, ir.Parallel)
    alone = isinstance(outer.extent, ir.Literal)
    way: Way = "row" if alone else "column"
    slices = 1
    while slices * 2 <= min(parts, COMBINE if alone else COMBINE // WARP):
        slices *= 2
    if alone:
        slices = max(slices, WARP)
    return Sharing(way, slices, 1 if alone else COMBINE // slices, UNROLL)


# ------------------------------------------------------------ default plans


def sharing_plan(machine: Machine, work: Work, requested: Plan) -> Plan | None:
    """Slices and parts for calls of few points and long loops; None where a thread for each point
    is as good.
    """
    rounds = work.rounds
    if rounds is None or rounds.panels or not machine.target.has_blocks:
        return None
    if any(getattr(requested, name) is not None for name in OTHERS) or (
        requested.slices == 1 and requested.parts in (None, 1)
    ):
        return None
    most_threads, threads = machine.multiprocessors * RESIDENT, requested.block or COMBINE
    if rounds.alone:
        slices = requested.slices or _power(min(threads, max(WARP, rounds.count // EACH)))
        parts = _power(max(1, min(MOST_PARTS, work.targets // (slices * EACH))))
        return Plan(block=max(slices, WARP), slices=slices, parts=parts, unroll=UNROLL)
    if (
        requested.slices is not None or requested.parts is not None
    ):  # the rest is as neutral as it can be
        return Plan(block=max(threads, requested.slices or 1), slices=1, parts=1, unroll=UNROLL)
    if (
        requested.tile is not None
        or rounds.count < (SHORT_RUN if rounds.running else SHORT)
        or (rounds.reused and work.targets * FEW >= most_threads)
    ):
        return None
    if rounds.running:
        return _running(work.targets, rounds, most_threads, requested.block)
    if rounds.columns:
        return _columns(work.targets, rounds, most_threads, threads)
    return _rows(work.targets, rounds, most_threads, threads)


def _columns(points: int, rounds: Rounds, most_threads: int, threads: int) -> Plan | None:
    """A thread for each column, coalesced as it is: more threads only where there are few
    columns.
    """
    short = -(-most_threads // max(1, points))
    if short <= 1:
        return None
    most = max(1, rounds.count // EACH)
    slices = _power(min(short, most, max(1, threads // COLUMNS)))
    parts = (
        _power(min(MOST_PARTS, -(-short * 2 // slices), max(1, most // slices)))
        if rounds.divided
        else 1
    )
    if slices * parts == 1:
        return None
    return Plan(block=threads, slices=slices, parts=parts, unroll=UNROLL * 2)


def _rows(points: int, rounds: Rounds, most_threads: int, threads: int) -> Plan | None:
    """Neighbouring threads along the row, whose loads are coalesced; a block for each row where
    rows are long, or are kept.
    """
    slices = _power(min(WARP, max(1, rounds.count // 4)))
    row = _power(rounds.count * 2 - 1)
    keep = row if rounds.wide and rounds.kept and row * rounds.kept <= ROW_BYTES else 0
    # several loops over one row have as many more rounds
    while slices < threads and rounds.count >= slices * 2 * EACH // (2 if rounds.kept else 1):
        slices *= 2
    if keep:
        keep = max(keep, slices * 4)
        keep = keep if keep * rounds.kept * (threads // slices) <= ROW_BYTES else 0
    parts = 1
    if rounds.divided and points * slices < most_threads:
        parts = _power(
            max(
                1,
                min(
                    MOST_PARTS,
                    -(-most_threads // (max(1, points) * slices)),
                    rounds.count // (slices * EACH),
                ),
            )
        )
    return Plan(block=threads, slices=slices, parts=parts, tile=keep, unroll=UNROLL)


def _running(points: int, rounds: Rounds, most_threads: int, block: int | None) -> Plan:
    """A warp for each row, in which running values meet by shuffles alone; a block for each where
    rows are few.
    """
    slices = _power(min(WARP, max(1, rounds.count // 4)))
    most = block or LONG_RUN
    while slices < most and points * slices < most_threads and rounds.count >= slices * 2 * EACH:
        slices *= 2
    alone = slices if slices > WARP else COMBINE
    return Plan(block=block or alone, slices=slices, unroll=UNROLL)


def _power(n: int) -> int:
    """The largest power of two that is not larger."""
    return 1 << (max(1, n).bit_length() - 1)
