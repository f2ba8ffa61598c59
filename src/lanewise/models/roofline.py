"""The least time that a piece of work can take on a device: the busiest of its units at full speed,
and the bytes that it touches.

A step over the sites of a lattice takes what it moves through memory, over the bandwidth that such
kernels reach. That is a model of what sites do, not of the text of their kernels: there the
branches of special sites stand next to those of the bulk, and counting both would count every
population twice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from lanewise.analysis.regions import KernelWork
from lanewise.analysis.sampling import Known, value_of
from lanewise.ir import nodes as ir
from lanewise.ir.names import COUNT, count_of
from lanewise.models.devices import DeviceModel


@dataclass(frozen=True, slots=True)
class RooflineBound:
    """The least time in seconds, the unit that takes it (`limiter`), and the seconds that every
    unit needs (`details`).

    Units: "issue", "fp32", "fp64", "integer", "special", "conversion", "shared memory", "l1", "l2",
    "memory".
    """

    seconds: float
    limiter: str
    details: dict[str, float]


def bound_of(seconds: Mapping[str, float]) -> RooflineBound:
    """The bound of units that work side by side, each for its own number of seconds.

    Without any work it is zero, by "issue".
    """
    if not seconds:
        return RooflineBound(0.0, "issue", {})
    limiter = max(seconds, key=lambda unit: seconds[unit])
    return RooflineBound(seconds[limiter], limiter, dict(seconds))


def bound_in_sequence(bounds: list[RooflineBound]) -> RooflineBound:
    """The bound of several pieces of work, one after the other: times add, the limiter is that of
    the longest.
    """
    if not bounds:
        return bound_of({})
    longest = max(bounds, key=lambda b: b.seconds)
    units = {unit for b in bounds for unit in b.details}
    details = {unit: sum(b.details.get(unit, 0.0) for b in bounds) for unit in sorted(units)}
    return RooflineBound(sum(b.seconds for b in bounds), longest.limiter, details)


def footprint(work: KernelWork, key: str, counts: Mapping[str, float]) -> float | None:
    """Bytes of one buffer of an array, by its key in `Region.sectors`, without rows that nothing
    accesses; None when its length is not known.
    """
    name, number, _ = key.split("/")
    kernel = work.kernel
    array = next((a for a in kernel.arrays if a.name == name), None)
    if array is None or name in {s.array for s in kernel.scratch}:
        return None
    length = length_of(kernel, array, counts)
    if length is None:
        return None
    whole = float(array.arrangement.buffers[int(number)].bytes_for(int(length)))
    return whole * work.reached.get(key, 1.0)


def scratch_bytes(work: KernelWork, key: str, counts: Mapping[str, float]) -> float | None:
    """The same of a buffer of memory that a kernel needs besides its arguments."""
    name, number, _ = key.split("/")
    kernel = work.kernel
    kept = next((s for s in kernel.scratch if s.array == name), None)
    whole: Known = {n: np.asarray(int(x)) for n, x in counts.items() if math.isfinite(x)}
    if kept is None or (length := value_of(kept.length, whole)) is None:
        return None
    return float(kernel.array(name).arrangement.buffers[int(number)].bytes_for(int(length)))


def length_of(
    kernel: ir.Kernel, array: ir.ArrayArgument, counts: Mapping[str, float]
) -> float | None:
    """How many elements an array has, by the counts of a call; None where these do not say it."""
    if array.shape:
        lengths = [n if isinstance(n, int) else counts.get(n) for n in array.shape]
        extents = [n for n in lengths if n is not None]
        return math.prod(extents) if len(extents) == len(lengths) else None
    first = counts.get(kernel.counts[0].name) if kernel.counts else None
    return counts.get(count_of(array.name), counts.get(COUNT, first))


# The share of a copy's bandwidth that steps reach, by bytes of a stored number and copies of the
# populations: NVIDIA H200 (4.28 TB/s), D3Q19 in a cavity of 512 x 512 x 256 sites, words and bits
# counted as `SiteTraffic` does (bench/results/gpu_lbm.md). Float64: as float32.
GPU_SHARES = {(2, 2): 0.74, (2, 1): 0.63, (4, 2): 0.97, (4, 1): 0.86, (8, 2): 0.97, (8, 1): 0.86}
MERGED_SHARE = 0.95  # float16 and two copies, where a thread updates several sites
# of stencils, by axes: five and seven values per site (bench/results/gpu_stencil.md)
STENCIL_SHARES = {1: 0.97, 2: 0.98, 3: 0.91}
# where many sites are special: 30 % of them solid, grains of radius 8
DENSE_SHARES = {2: 0.54, 4: 0.75, 8: 0.75}
CPU_SHARE = 0.95  # D3Q19 on 120 x 120 x 120 sites in place, two cores of an AMD EPYC 9004

ASSUMED = (
    "every population is loaded and stored once per step, through memory: boxes that fit caches "
    "take less",
    "special sites do as much as the bulk; both sides of a branch of the function count as "
    "operations",
)


@dataclass(frozen=True, slots=True)
class SiteTraffic:
    """What a step over some sites moves.

    sites, fluid: all of them, and those that are updated; special: those that are not of the bulk.
    populations: of a site;
    storage: bytes of each. copies: of all populations. flags: every site reads 4 bytes about
    itself; bits: or that many bits, and a special site 4 bytes. values: bytes of values that vary
    from site to site. dense: many sites are special. axes: of the box of a stencil, whose sites
    hold fields instead of populations; 0 for all others.
    """

    sites: int
    fluid: int
    special: int
    populations: int
    storage: int
    copies: int
    flags: bool
    bits: int = 0
    values: int = 0
    dense: bool = False
    axes: int = 0

    @property
    def nbytes(self) -> float:
        """Bytes of a step."""
        about = (
            4 * self.sites
            if self.flags
            else self.bits * self.sites / 8 + (4 * self.special if self.bits else 0)
        )
        return self.fluid * (2 * self.populations * self.storage + self.values) + about


def step_time(
    traffic: SiteTraffic,
    operations: int,
    wide: bool,
    device: DeviceModel,
    sites_a_thread: int = 1,
    sure: float | None = None,
) -> tuple[RooflineBound, RooflineBound, float]:
    """The least time of a step, what its units are expected to do, and the time to expect, in
    seconds.

    `operations` are those of the function of a site, in float64 if `wide`. sure: instructions of a
    site that no compiler saves, which are all of the least time. A cache may keep what fits it from
    step to step: memory need not move that.
    """
    lanes = device.fp64_lanes if wide else device.fp32_lanes
    each = traffic.fluid / (device.cycles * lanes)  # seconds of an operation of all sites
    arithmetic = each * operations
    memory = traffic.nbytes / device.memory_bandwidth
    beyond = device.beyond_caches(traffic.nbytes) / device.most_bandwidth
    unit = "fp64" if wide else "fp32"
    bound = bound_of({"memory": beyond, unit: arithmetic if sure is None else each * sure})
    busy = bound_of({"memory": memory, unit: arithmetic})
    return (
        bound,
        busy,
        max(memory / _share(traffic, device, sites_a_thread), arithmetic)
        + device.loop_launch_seconds,
    )


def _share(traffic: SiteTraffic, device: DeviceModel, sites_a_thread: int) -> float:
    if not device.target.has_blocks:
        return CPU_SHARE
    if traffic.axes:
        return STENCIL_SHARES[traffic.axes]
    if traffic.dense:
        return DENSE_SHARES[traffic.storage]
    alone = GPU_SHARES[traffic.storage, traffic.copies]
    return max(alone, MERGED_SHARE) if sites_a_thread > 1 and traffic.storage == 2 else alone
