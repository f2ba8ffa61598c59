"""How long a GPU needs for the work of a kernel: its busiest unit, slowed by what latency is left
uncovered.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lanewise.analysis.instructions import Instructions
from lanewise.analysis.regions import SECTOR, KernelWork, Region, RegionAccess
from lanewise.language.target import WARP
from lanewise.models.devices import DeviceModel
from lanewise.models.roofline import RooflineBound, bound_of, footprint, scratch_bytes
from lanewise.runtime.occupancy import LIMITS, Occupancy, resident

# Calibrated on an NVIDIA H200: the rows of bench/results/sweep_gpu_gravity.md and gpu_gravity.md
# from 16,384 bodies on.
# of its busiest unit that a saturated multiprocessor keeps busy (524,288 bodies, four targets a
# thread)
PEAK = 0.88
# issue slots that a load from shared memory costs (524,288 bodies, one target against four)
SHARED_LOAD_SLOTS = 2.0
TILE_CYCLES = 500.0  # until a tile is loaded, when nothing else runs (16,384 bodies, tiles of 256)
# The next three: naive array kernels of even seeds on an NVIDIA H200 (design note 64).
# the share of array kernels: tiles of registers read their operands unevenly, and a warp computes
# addresses, waits for its loads and stores in phases
PEAK_OF_ARRAYS = 0.78
# issue slots of a load or store of global memory, whose address has 64 bits
GLOBAL_ACCESS_SLOTS = 1.5
FURTHER_CYCLES = 70.0  # of each further load that a thread brings to the tile
# for blocks of several warps; of one warp, which only has to keep together
BARRIER_CYCLES = {True: 100.0, False: 20.0}
# units that are nearly as busy get in each other's way a little (16,384 bodies, mixed and float64)
NORM = 8.0
HIDING = 8.0  # how sharply enough warps turn into too few (16,384 bodies, float64)
# of an unrolled loop that a compiler interleaves (hand-written, 16,384 bodies, one target)
INDEPENDENT_TURNS = 16
# until a kernel's first load is there and its last store done (1,024 bodies, step in a graph)
START_SECONDS = 1e-6
# Calibrated with copies and sums of rows of 64 MB to 2 GB on an NVIDIA H200, which take 3.6 us and
# what their bytes take, and the naive array kernels of even seeds: until memory is as busy as it
# can be, and from then on to the end
MEMORY_START = 3.2e-6
# how sharply computing and memory turn from one that decides into both: warps that wait for memory
# compute nothing (naive array kernels of even seeds, design note 64)
OVERLAP = 2.4
# Calibrated with bench/results/optimiser_cuda.md (gathered):
# what memory moves for one place that data tell, beyond the cache: bursts of 64 bytes, three
# quarters of the rate
GATHER_BYTES = 85
CACHED_GATHER = 2.8  # times the bytes, where the cache holds the array
# Calibrated with bench/results/ladders/lbm.json (AoS and AoAS, 4096 x 4096 and 256 x 256 x 256
# sites):
# times more that the L2 cache does for a sector of which next to nothing is written at once
PART_OF_A_SECTOR = 1.5
# Not of stores to this many lines of 128 bytes: the next ones fill them before they are written
# (naive array kernels of even seeds, design note 64).
LINES_JOINED = 5
# Not fitted:
# cycles of a load that a loop starts with, here or in the L1 cache
LOAD_LATENCY = {"shared": 30.0, "global": 40.0}
BASE_REGISTERS = 23  # addresses and temporaries, besides the values that a loop holds


@dataclass(frozen=True, slots=True)
class KernelTime:
    """Seconds of one kernel without its launch; what its units are expected to do; its occupancy;
    the share of its busiest unit.
    """

    seconds: float
    busy: RooflineBound
    occupancy: Occupancy | None
    efficiency: float
    details: dict[str, float]


def estimated_registers(work: KernelWork) -> int:
    """Registers of a thread, guessed from the values that the innermost loop holds; for kernels
    that are not compiled.
    """
    words = max((r.words for r in work.regions), default=0)
    return min(255, -(-(BASE_REGISTERS + words) // 8) * 8)


def unit_cycles(
    instructions: Instructions, accesses: Iterable[tuple[RegionAccess, float]], device: DeviceModel
) -> dict[str, float]:
    """Cycles that each unit of a multiprocessor needs for these instructions and accesses (each so
    often) of one warp.
    """
    i = instructions
    # Tests have one pipe. Choices are also made where products are, once tests and choices are more
    # than twice these, and sums of integers wherever less is to do: NVRTC 13.5 for sm_90.
    tested = i["compare"] + i["extreme"] + i["select"]
    moved = min(i["select"], max(0.0, (tested - 2 * i.unit("fp32")) / 3))
    tested -= moved
    wavefronts = {"shared": 0.0, "global": 0.0}
    for access, times in accesses:
        wavefronts[access.space] += times * access.wavefronts
    return {
        "issue": i.slots / device.schedulers,
        "fp32": i.unit("fp32") * WARP / device.fp32_lanes,
        "fp64": i.unit("fp64") * WARP / device.fp64_lanes,
        "special": i["special"] * WARP / device.special_lanes
        + i["wide conversion"] * WARP / device.wide_conversion_lanes,
        "integer": max(tested, (tested + moved + i["integer"]) / 2) * WARP / device.int_lanes,
        "conversion": i["conversion"] * WARP / device.conversion_lanes,
        "shared memory": (wavefronts["shared"] + i["shuffle"])
        * 128
        / device.shared_bytes_per_cycle,
        "l1": wavefronts["global"],
    }


def busy_cycles(units: dict[str, float], instructions: Instructions, device: DeviceModel) -> float:
    """Cycles that a warp occupies its multiprocessor: those of the busiest unit, and more where
    several are busy.
    """
    loads = (SHARED_LOAD_SLOTS - 1) * instructions["shared load"] / device.schedulers
    through_l1 = instructions["global load"] + instructions["global store"]
    loads += (GLOBAL_ACCESS_SLOTS - 1) * through_l1 / device.schedulers
    return sum((c + loads * (u == "issue")) ** NORM for u, c in units.items()) ** (1 / NORM)


def memory_seconds(
    work: KernelWork,
    counts: dict[str, float],
    device: DeviceModel,
    warps_per_block: int,
    l1_bytes: float,
) -> dict[str, float]:
    """Seconds that the L2 cache and memory need for the whole kernel. l1_bytes: what a block has of
    the cache of its multiprocessor.
    """
    warps = work.blocks * warps_per_block
    l2, memory = 0.0, 0.0
    traffic: dict[str, float] = {}
    for r in work.regions:
        held = sum(r.together.values()) * warps_per_block * SECTOR
        shared_by = {a.buffer: a.pattern for a in r.accesses if a.space == "global"}
        for key, sectors in r.sectors.items():
            array = key.partition("/")[0]
            same = [p for b, p in shared_by.items() if _array_of(work, b) == array]
            # One place for all threads: the warps of a block find it in their L1 cache.
            filtered = warps_per_block if same and all(p == "broadcast" for p in same) else 1
            moved = r.executions * sectors * warps * SECTOR
            # what a warp of the block has brought, the others find in that cache
            once = r.together.get(key, sectors) if held <= l1_bytes and filtered == 1 else sectors
            requested = (
                r.executions * once * warps * SECTOR
                if key.endswith("/read")
                else r.executions * _store_sectors(work, r, key) * warps * SECTOR
            )
            size = footprint(work, key, counts)
            gathered = any(p == "gathered" for p in same)
            beyond = gathered and (size is None or size > device.l2_bytes)
            l2 += requested / filtered * (CACHED_GATHER if gathered and not beyond else 1)
            if beyond:  # what one access brought is gone before the next one wants it
                memory += moved * GATHER_BYTES / SECTOR
            else:
                traffic[key] = traffic.get(key, 0.0) + moved
    for key, moved in traffic.items():
        whole = footprint(work, key, counts) or scratch_bytes(work, key, counts)
        memory += min(moved, whole or moved)
    return {"l2": l2 / device.l2_bandwidth, "memory": memory / device.memory_bandwidth}


def _store_sectors(work: KernelWork, region: Region, key: str) -> float:
    """Sectors that the L2 cache is asked to write: no cache before it joins what several stores put
    into one sector.
    """
    keys = {b.name: f"{b.array}/{b.buffer}/write" for b in work.kernel.buffers}
    stores = [
        a for a in region.accesses if a.write and a.space == "global" and keys[a.buffer] == key
    ]
    # Places that depend on data have a separate price (`CACHED_GATHER`).
    filled = (
        1.0
        if a.pattern == "gathered" or a.lines <= LINES_JOINED
        else min(1.0, a.bytes * WARP / (a.sectors * SECTOR))
        for a in stores
    )
    return sum(
        a.sectors * (1 + PART_OF_A_SECTOR * (1 - f)) for a, f in zip(stores, filled, strict=True)
    )


def _array_of(work: KernelWork, buffer: str) -> str:
    return next(b.array for b in work.kernel.buffers if b.name == buffer)


def kernel_time(
    work: KernelWork,
    counts: dict[str, float],
    device: DeviceModel,
    registers: int,
    shared_bytes: int,
) -> KernelTime:
    """The time of one kernel: what its busiest multiprocessor does, wave by wave, besides what
    memory does.
    """
    warps_per_block = -(-work.threads // WARP)
    accesses = [(a, r.executions) for r in work.regions for a in r.accesses]
    cycles = unit_cycles(work.instructions, accesses, device)
    on_one = -(-work.blocks // device.multiprocessors)  # blocks of the busiest multiprocessor
    fits = resident(device.limits or device.arch, work.threads, registers, shared_bytes)
    at_once = max(1, min(fits.blocks, on_one))
    inner = work.inner_loop
    busy = busy_cycles(cycles, work.instructions, device)
    meeting = BARRIER_CYCLES[warps_per_block > 1]
    waits = sum(r.executions * (_staging(r.stages) + r.barriers * meeting) for r in work.regions)
    peak = PEAK_OF_ARRAYS if work.kernel.pattern.over_points else PEAK
    total = 0.0
    for blocks, times in ((at_once, on_one // at_once), (on_one % at_once, 1)):
        if blocks and times:
            rate = _reached(inner, blocks * warps_per_block, device, peak)
            total += times * (blocks * warps_per_block * busy / rate + waits / blocks)
    compute = total / device.clock_hz
    held = (device.limits or LIMITS[device.arch]).shared_bytes / at_once - shared_bytes
    outside = memory_seconds(work, counts, device, warps_per_block, held)
    beyond = outside["memory"] * device.memory_bandwidth / device.l2_bytes
    starting = outside["memory"] + MEMORY_START * min(1.0, beyond)
    waited = max(outside["l2"], starting)
    seconds = START_SECONDS + (compute**OVERLAP + waited**OVERLAP) ** (1 / OVERLAP)
    everything = work.blocks * warps_per_block / device.cycles
    expected = bound_of({**{u: c * everything for u, c in cycles.items()}, **outside})
    details = {
        "compute": compute,
        **outside,
        "blocks": float(work.blocks),
        "blocks at once": float(at_once),
        "blocks of the busiest": float(on_one),
        "registers": float(registers),
        "balance": work.blocks / (on_one * device.multiprocessors),
        **accesses_of(work),
    }
    return KernelTime(
        seconds, expected, fits, expected.seconds / seconds if seconds else 1.0, details
    )


def _staging(loads: int) -> float:
    """Cycles until what a thread brings to a tile by so many loads is there."""
    return TILE_CYCLES + (loads - 1) * FURTHER_CYCLES if loads else 0.0


def _reached(inner: Region | None, warps: float, device: DeviceModel, peak: float) -> float:
    """The share of a multiprocessor that `warps` warps keep busy, from 0 to 1: latency has to be
    covered by others' work. peak: what enough of them reach.
    """
    if inner is None:
        return peak
    spaces = {a.space for a in inner.accesses if not a.write}
    latency = inner.latency + max((LOAD_LATENCY[s] for s in spaces), default=0.0)
    turns = 1.0 if inner.instructions["branch"] > 1 else min(inner.unroll, INDEPENDENT_TURNS)
    units = unit_cycles(inner.instructions, [(a, 1.0) for a in inner.accesses], device)
    body = busy_cycles(units, inner.instructions, device) * turns
    if not body:  # a loop that computes nothing has no latency to cover
        return peak
    covered = warps * body / (latency + body * device.schedulers)
    return (peak**-HIDING + max(covered, 1e-9) ** -HIDING) ** (-1 / HIDING)


def accesses_of(work: KernelWork) -> dict[str, float]:
    """Loads and stores of all threads of a launch, by the memory; a wide access counts once."""
    threads = work.blocks * work.threads
    return {
        f"{space} accesses": threads
        * (work.instructions[f"{space} load"] + work.instructions[f"{space} store"])
        for space in ("global", "shared")
    }
