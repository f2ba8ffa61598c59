"""The plan that a kernel gets when its user fixes nothing: rules of thumb, each from a measurement (bench/results)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from lanewise.plan import NEUTRAL, Plan

WARP = 32
CPU_TILE = 512  # sources that are summed in the result's precision before a float64 addition


@dataclass(frozen=True, slots=True)
class Machine:
    """What the default plan asks of a device: its kind and how many multiprocessors (or cores) it has."""

    kind: str
    multiprocessors: int


@dataclass(frozen=True, slots=True)
class Work:
    """What it asks of a launch: the pattern, the number of elements, and whether they are `wide` (float64)."""

    pattern: str
    targets: int
    wide: bool = False
    strided: bool = False  # neighbouring sources do not lie side by side in memory


def complete_plan(wanted: Plan | None, machine: Machine, work: Work) -> Plan:
    """The user's decisions, and defaults for the rest."""
    wanted = wanted or Plan()
    plan = wanted.filled(default_plan(machine, work))
    if wanted.block is not None and wanted.tile is None and plan.tile:
        plan = Plan(tile=plan.block).filled(plan)  # one source a thread stages a tile
    return (
        Plan(tile=CPU_TILE).filled(plan) if plan.accumulate == "f64" and wanted.tile is None and not plan.tile else plan
    )


def default_plan(machine: Machine, work: Work) -> Plan:
    """Every field decided."""
    if machine.kind != "cuda":
        # SIMD lanes run over sources. One target a loop is fastest when a load brings a whole register of them; sources that
        # have to be gathered first should serve four (bench/results/cpu_gravity.md).
        targets = 4 if work.strided else 1
        return Plan(targets=targets).filled(NEUTRAL)
    if work.pattern != "pairwise":
        return Plan(block=256).filled(NEUTRAL)
    shapes = [s for s in _SHAPES if s[0] == 256 and s[2] <= 2] if work.wide else _SHAPES
    block, slices, merged = max(shapes, key=lambda shape: _throughput(machine, work.targets, *shape))
    blocks = -(-work.targets // (block // slices * merged))
    return Plan(
        targets=merged, tile=block, slices=slices, parts=min(64, max(1, machine.multiprocessors // blocks)),
        unroll=4 if work.wide else 16, block=block,
    ).filled(NEUTRAL)  # fmt: skip


# (threads of a block, slices, targets a thread) that were best at some size on an NVIDIA H200:
# bench/results/sweep_gpu_gravity.md
_SHAPES = [
    (block, slices, merged)
    for block, slices, merged in product((256, 512, 1024), (1, 2, 4, 8, 16), (1, 2, 4))
    if block // slices >= WARP and (block < 1024 or slices == 16)
]
_REUSE = {1: 0.88, 2: 0.97, 4: 1.0}  # share of the best rate with this many targets to every load of a source


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
