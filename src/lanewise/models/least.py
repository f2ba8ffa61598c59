"""The least time that a program can take on a device: only what is certain to be done counts, each
unit at full speed.

Branches and loops that data decide count as left out, and places that data tell as one place for
all. Of memory counts what the last cache cannot have kept from the launch before. So no run is
faster, whatever the arguments hold and however they are cached. Where caches hold nothing of the
arguments (`cold`), every byte counts.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from lanewise.analysis.instructions import mix
from lanewise.analysis.regions import SECTOR, KernelWork, RegionAccess, Unknown, analyse
from lanewise.compiler.pipeline import Program
from lanewise.ir.names import MARK, is_own
from lanewise.ir.series import typical
from lanewise.language.target import WARP
from lanewise.models.cpu_time import cpu_units
from lanewise.models.devices import DeviceModel
from lanewise.models.gpu_time import unit_cycles
from lanewise.models.roofline import RooflineBound, bound_in_sequence, bound_of, footprint

L2_PEAK = 64  # bytes that a multiprocessor takes from the L2 cache in a cycle at most
LINE = 128  # bytes of a pass through the L1 cache or shared memory
# units whose cycles are those of the hardware; others are fitted
SURE_ON_A_CPU = ("fp32", "fp64", "special")
# Instructions that no compiler saves of values that are all different. Indices it adds to
# addresses, carries from turn to turn, compares once for several, and selects by predicates.
SURE_KINDS = (
    "fp32 add",
    "fp32 mul",
    "fp32 fma",
    "fp64 add",
    "fp64 mul",
    "fp64 fma",
    "special",
    "wide conversion",
    "conversion",
)


def least_time(
    program: Program,
    environment: Mapping[str, object],
    device: DeviceModel,
    *,
    cold: bool = False,
) -> RooflineBound:
    """The least time for given counts and uniform arguments, by their names in the IR, without
    launches. cold: of a launch before which other data went through the caches.
    """
    bounds: list[RooflineBound] = []
    for kernel in program.kernels:
        counts, launches = typical(kernel, environment) if kernel.series else (environment, 1)
        work = analyse(kernel, counts, fast_math=bool(program.plan.fast_math), least=True)
        numbers = {
            n: float(v) for n, v in counts.items() if isinstance(v, (int, float, np.generic))
        }
        bits = program.plan.vector_bits or 0
        one = bound_of(least_seconds(work, numbers, device, bits, cold=cold))
        bounds += [one] * launches
    return bound_in_sequence(bounds)


LOOPS_OF_SITES = (
    "no bound and no prediction: the model of steps over sites knows bytes and operations, not "
    "these loops of a function"
)
NOT_NOMINAL = "no bound: this CPU's highest clock, execution units and memory bandwidth are unknown"


def why_no_bound(unknown: Unknown, device: DeviceModel) -> str:
    """Why no least time is reported, and what a prediction takes for granted; "" where there is a
    bound.

    `unknown` are the loops of the program (`Prediction.unknown`).
    """
    if unknown.guessed:
        return "no bound and no prediction: how often its loops run depends on data"
    if unknown.expected:
        turns = ", ".join(f"{_plain(name)} {n:.3g}" for name, n in unknown.expected)
        if any(is_own(name) for name, _ in unknown.expected):
            return (
                "no bound: how often its loops run depends on positions; on average, as predicted: "
                f"{turns}"
            )
        return (
            "no bound: how often its loops run depends on data; on average over some elements, as "
            f"predicted and counted: {turns}"
        )
    if unknown.early:
        return (
            "no bound: its loops may end early, depending on data; predicted is the time with "
            "every turn"
        )
    return "" if device.is_nominal else NOT_NOMINAL


def _plain(variable: str) -> str:
    """The variable of a loop as the generated source has it."""
    return variable.removeprefix(MARK).replace(".", "_")


def reported_bound(
    program: Program, environment: Mapping[str, object], device: DeviceModel, unknown: Unknown
) -> RooflineBound | None:
    """The least time that reports and ladders print; None where `why_no_bound` has a reason."""
    if why_no_bound(unknown, device):
        return None
    return least_time(program, environment, device)


def least_seconds(
    work: KernelWork,
    counts: Mapping[str, float],
    device: DeviceModel,
    vector_bits: int = 0,
    *,
    cold: bool = False,
) -> dict[str, float]:
    """Seconds that each unit needs at least for the work of one kernel, which was found with
    `least`. cold: see `least_time`.
    """
    moved = _moved(work, counts)
    nbytes = sum(moved.values())
    beyond = nbytes if cold else device.beyond_caches(nbytes)
    memory = {"memory": beyond / device.most_bandwidth}
    if not device.target.has_blocks:
        units = cpu_units(work, device, vector_bits)
        return {**{u: units.get(u, 0.0) for u in SURE_ON_A_CPU}, **memory}
    accesses = [(a, r.executions) for r in work.regions for a in r.accesses]
    kinds = SURE_KINDS if device.takes_three else (*SURE_KINDS, "extreme")
    sure = mix({kind: work.instructions[kind] for kind in kinds})
    cycles = unit_cycles(sure, (), device)
    for space, unit in (("shared", "shared memory"), ("global", "l1")):
        cycles[unit] = sum(times * _passes(a) for a, times in accesses if a.space == space)
    launched = work.blocks * -(-work.threads // WARP) / device.cycles
    l2 = sum(moved.values()) / (device.cycles * L2_PEAK)
    return {**{u: c * launched for u, c in cycles.items()}, "l2": l2, **memory}


def _passes(access: RegionAccess) -> float:
    """Passes of an access through the L1 cache or shared memory that no lie of its places saves.

    Threads beyond the last element make none.
    """
    apart = access.pattern in ("streamed", "strided")
    return min(access.wavefronts, max(1.0, access.bytes * WARP / LINE)) if apart else 1.0


def _moved(work: KernelWork, counts: Mapping[str, float]) -> dict[str, float]:
    """Bytes of every buffer that surely go through the L2 cache: no more than the buffer has, each
    once.
    """
    warps = work.blocks * -(-work.threads // WARP)
    moved: dict[str, float] = {}
    for r in work.regions:
        for key, sectors in r.sectors.items():
            moved[key] = moved.get(key, 0.0) + r.executions * sectors * warps * SECTOR
    held = {key: footprint(work, key, counts) for key in moved}
    return {key: min(n, held[key] or 0.0) for key, n in moved.items()}
