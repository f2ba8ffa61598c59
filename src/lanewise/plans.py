"""The plan that a kernel gets when its user fixes nothing: rules of thumb, each from a measurement (bench/results)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

from lanewise.ir import nodes as ir
from lanewise.passes.base import refuse
from lanewise.passes.thread_mapping import MAX_SHARED_BYTES
from lanewise.patterns.sitewise.passes import merging as site_merging
from lanewise.patterns.sitewise.passes import splitting as site_splitting
from lanewise.plan import NEUTRAL, Plan
from lanewise.work import Work

WARP = 32
LEAST_MERGED = 1 << 18  # sites that fill a GPU when a thread updates several of them
MOST_POPULATIONS = 40  # that a thread with four sites may hold
SEARCH_BLOCK = 128  # threads that walk: few enough that a slow warp holds back few others
CPU_TILE = 512  # sources that are summed in the result's precision before a float64 addition


@dataclass(frozen=True, slots=True)
class Machine:
    """What the default plan asks of a device: its kind, how many multiprocessors (or cores) it has, its widest SIMD registers."""

    kind: str
    multiprocessors: int
    vector_bits: int = 256


def complete_plan(wanted: Plan | None, machine: Machine, work: Work) -> Plan:
    """The user's decisions, and defaults for the rest."""
    wanted = wanted or Plan()
    plan = wanted.filled(default_plan(machine, work, wanted))
    if wanted.block is not None and wanted.tile is None and plan.tile:
        plan = Plan(tile=plan.block).filled(plan)  # one source a thread stages a tile
    needs_tiles = plan.accumulate == "f64" and plan.reciprocity == "off" and wanted.tile is None and not plan.tile
    return Plan(tile=CPU_TILE).filled(plan) if needs_tiles else plan


def default_plan(machine: Machine, work: Work, wanted: Plan | None = None) -> Plan:
    """Every field decided, in a way that goes with what the user `wanted`."""
    wanted = wanted or Plan()
    if work.pattern == "search":
        return Plan(block=SEARCH_BLOCK if machine.kind == "cuda" else 0).filled(NEUTRAL)
    if machine.kind != "cuda":
        # SIMD lanes run over sources. One target a loop is fastest when a load brings a whole register of them; sources that
        # have to be gathered first should serve four (bench/results/cpu_gravity.md).
        targets = 4 if work.strided else 1
        return Plan(targets=targets).filled(NEUTRAL)
    if work.pattern != "pairwise":
        return Plan(block=256).filled(NEUTRAL)
    if _reciprocal(machine, work, wanted):
        return _reciprocal_plan(machine, work, wanted)
    plan = _one_sided_plan(machine, work)
    # Who wants no tiles wants nothing that divides them.
    return Plan(slices=1, parts=1).filled(plan) if wanted.tile == 0 else plan


def complete_site_plan(wanted: Plan | None, machine: Machine, naive: ir.Kernel, count: int = LEAST_MERGED) -> Plan:
    """As `complete_plan`, for a kernel over so many sites of a lattice.

    One plan serves all phases of a streaming form: one whose sites all do the same has one class of sites, which is together and apart.
    Raises `PlanError` for a wish to keep classes apart that the kernel does not allow.
    """
    wanted = wanted or Plan()
    on_gpu = machine.kind == "cuda"
    undivided = site_splitting.legal(naive)
    divided = undivided is None
    default = Plan(
        targets=_sites_of_a_thread(naive) if on_gpu and count >= LEAST_MERGED else 1,
        # Many loads of few bytes, or sites that all read their word first: small blocks wait less for each other.
        block=0
        if not on_gpu
        else 64
        if naive.arrays[0].leaves[0].type.size == 2 or undivided == site_splitting.DENSE
        else 256,
        # SIMD loops run over the bulk alone; on a GPU the marks cost less than lists (bench/results/gpu_lbm.md).
        branches="apart" if divided and not on_gpu else "together",
        # In place every line that is stored was read, and whole registers pay; two copies leave the width to the compiler.
        vector_bits=512 if not on_gpu and machine.vector_bits == 512 and _in_place(naive) else 0,
    ).filled(NEUTRAL)
    plan = wanted.filled(default)
    if on_gpu and site_merging.is_first(naive):
        plan = Plan(targets=1).filled(plan)
    if plan.branches != "apart" or undivided == site_splitting.ALIKE:
        return Plan(branches="together").filled(plan)
    if undivided is not None:
        raise refuse("branch splitting", naive, undivided)
    if not on_gpu:
        return plan
    if wanted.targets not in (None, 1):
        raise refuse("thread merging", naive, "with its branches apart special sites come from lists, one a thread")
    return Plan(targets=1).filled(plan)


def _sites_of_a_thread(naive: ir.Kernel) -> int:
    """With two bytes a population accesses of single sites are too small; a thread has registers for so many (bench/results/gpu_lbm.md)."""
    leaves = naive.arrays[0].leaves
    if leaves[0].type.size != 2:
        return 1
    wanted = 4 if 4 * len(leaves) <= MOST_POPULATIONS else 2
    return next((n for n in (wanted, 2) if site_merging.legal(naive, n) is None), 1)


def _in_place(naive: ir.Kernel) -> bool:
    """Whether the populations are written where they are read."""
    return naive.arrays[0].written


# ---------------------------------------------------------------- one side of a pair


def _one_sided_plan(machine: Machine, work: Work) -> Plan:
    shapes = [s for s in _SHAPES if s[0] == 256 and s[2] <= 2] if work.wide else _SHAPES
    shapes = [s for s in shapes if _shared_bytes(work, s[0], s[1]) <= MAX_SHARED_BYTES] or [_SMALLEST]
    block, slices, merged = max(shapes, key=lambda shape: _throughput(machine, work.targets, *shape))
    blocks = -(-work.targets // (block // slices * merged))
    return Plan(
        targets=merged, tile=block, slices=slices, parts=min(64, max(1, machine.multiprocessors // blocks)),
        unroll=4 if work.wide else 16, block=block, fma=work.rearranged,
    ).filled(NEUTRAL)  # fmt: skip


# (threads of a block, slices, targets a thread) that were best at some size on an NVIDIA H200:
# bench/results/sweep_gpu_gravity.md
_SHAPES = [
    (block, slices, merged)
    for block, slices, merged in product((256, 512, 1024), (1, 2, 4, 8, 16), (1, 2, 4))
    if block // slices >= WARP and (block < 1024 or slices == 16)
]
_SMALLEST = (32, 1, 1)
_REUSE = {1: 0.88, 2: 0.97, 4: 1.0}  # share of the best rate with this many targets to every load of a source


def _shared_bytes(work: Work, block: int, slices: int) -> int:
    """A tile of sources, and the sums of slices."""
    return block * (work.source_bytes + (work.result_bytes if slices > 1 else 0))


def _throughput(machine: Machine, targets: int, block: int, slices: int, merged: int) -> float:
    """A relative rate of a shape.

    It knows how evenly blocks fill the multiprocessors, how many warps hide latency, how often a source is used.
    """
    per_block = block // slices * merged
    blocks = -(-targets // per_block)
    rounds = -(-blocks // machine.multiprocessors)  # blocks on the busiest multiprocessor
    balance = targets / (rounds * machine.multiprocessors * per_block)
    warps = min(rounds * block // WARP, 2048 // WARP)
    hiding = warps / (warps + 2.5)
    meeting = 1 - 0.0015 * (slices - 1) * merged / max(rounds, 1)  # the slices of a block meet once for each target
    return balance * hiding * _REUSE[merged] * meeting


# ---------------------------------------------------------------- both sides of a pair

_NEEDED: dict[str, Any] = {"tile": 0, "slices": 1, "parts": 1, "hoist": False, "prefetch": "none"}
LIGHT = 32  # operations for both directions, up to which threads have registers for many targets
MOST_TASKS = 2**31 - 2**16  # a launch counts them with 32 bits
SCRATCH_BYTES = 64 << 20  # of partial sums; with more, tasks take turns
# So many targets a thread pay from so many tasks on every multiprocessor: fewer targets make more tasks, and a task alone takes the
# longer the more targets it has (measured on an NVIDIA H200, 2,048 to 524,288 elements).
_TASKS_FLOAT64 = {6: 200, 4: 4, 2: 4}
_TASKS_LONG = {4: 40, 2: 12}
_TASKS_LIGHT = {12: 1000, 8: 12, 4: 4}
_TASKS_CONVERTING = {8: 200, 4: 12, 2: 4}


def _reciprocal(machine: Machine, work: Work, wanted: Plan) -> bool:
    """Whether pairs are computed once: asked for, or possible, not in the way of other wishes, and of use."""
    if wanted.reciprocity is not None:
        return wanted.reciprocity != "off"
    if not work.both_ways or any(getattr(wanted, n) not in (None, v) for n, v in _NEEDED.items()):
        return False
    if wanted.self_term == "loops":
        return False
    return _targets(machine, work) > 1


def _tasks(work: Work) -> dict[int, int]:
    if work.wide:
        return _TASKS_FLOAT64
    if _is_long(work):
        return _TASKS_LONG
    return _TASKS_CONVERTING if work.converts else _TASKS_LIGHT


def _is_long(work: Work) -> bool:
    return work.sequences or work.both_ways > LIGHT


def _targets(machine: Machine, work: Work) -> int:
    """As many targets a thread as pay; 1 where none do."""
    for targets, least in _tasks(work).items():
        tiles = -(-work.targets // (WARP * targets))
        tasks = tiles * (tiles + 1) // 2
        if least * machine.multiprocessors <= tasks <= MOST_TASKS:
            return targets
    return 1


def _reciprocal_plan(machine: Machine, work: Work, wanted: Plan) -> Plan:
    targets = _targets(machine, work)
    scratch = work.targets * -(-work.targets // (WARP * targets)) * work.result_bytes <= SCRATCH_BYTES
    rolled = targets == 8 or _is_long(work) if scratch else work.wide or work.converts or _is_long(work)
    if scratch and targets == 2:
        rolled = False
    return Plan(
        targets=targets, block=WARP, unroll=4 if rolled else 8, fma=work.rearranged,
        registers=0 if wanted.min_blocks else _registers(work, targets, scratch),
        reciprocity="scratch" if scratch else "ordered",
    ).filled(NEUTRAL)  # fmt: skip


def _registers(work: Work, targets: int, scratch: bool) -> int:
    """A cap that lets the compiler take more registers than it does for a block of one warp by itself (measured)."""
    if scratch:
        return 168 if work.wide else 128
    return 128 if targets >= 10 else 0
