"""The plan that a kernel gets when its user fixes nothing: rules of thumb, each from a measurement (bench/results)."""

from __future__ import annotations

from dataclasses import dataclass

from lanewise.plan import Plan

WARP = 32


@dataclass(frozen=True, slots=True)
class Machine:
    """What the default plan asks of a device: its kind and how many multiprocessors (or cores) it has."""

    kind: str
    multiprocessors: int


CPU_TILE = 512  # sources that are summed in float32 before a float64 addition


def complete_plan(wanted: Plan | None, pattern: str, machine: Machine, targets: int) -> Plan:
    """The user's decisions, and defaults for the rest. Accumulation in float64 needs tiles, which a CPU has no other use for."""
    wanted = wanted or Plan()
    plan = wanted.filled(default_plan(pattern, machine, targets))
    return Plan(tile=CPU_TILE).filled(plan) if plan.accumulate == "f64" and wanted.tile is None and not plan.tile else plan


def default_plan(pattern: str, machine: Machine, targets: int) -> Plan:
    """Every field decided. `targets` is the number of elements that the launch computes."""
    if machine.kind != "cuda":
        # Four targets a SIMD loop: 12 sums and 12 coordinates fill the 32 vector registers of AVX-512 without spills.
        return Plan(targets=4, tile=0, slices=1, parts=1, unroll=1, block=0, min_blocks=0, accumulate="native", fast_math=False)
    if pattern != "pairwise":
        return Plan(targets=1, tile=0, slices=1, parts=1, unroll=1, block=256, min_blocks=0, accumulate="native", fast_math=False)
    return _cuda_pairwise(machine, targets)


def _cuda_pairwise(machine: Machine, targets: int) -> Plan:
    """Many targets: four a thread. Fewer: fewer a thread, then several slices a block, then several parts of the sources."""
    per_thread, slices, parts, block = 4, 1, 1, 128
    wanted = machine.multiprocessors * 16 * WARP  # threads that keep a GPU busy

    def threads() -> int:
        return -(-targets // per_thread) * slices * parts

    while threads() < wanted and slices < 8:
        slices *= 2
        block = 256 if slices > 2 else 128
    while threads() < wanted and per_thread > 1:
        per_thread //= 2
    while threads() < wanted and parts < 64:
        parts *= 2
    return Plan(
        targets=per_thread, tile=block, slices=slices, parts=parts, unroll=8, block=block, min_blocks=0, accumulate="native", fast_math=False
    )


