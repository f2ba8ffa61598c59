"""How long a CPU needs for the work of a kernel: its SIMD pipes, its divider, the loads that SIMD
lanes need, memory.
"""

from __future__ import annotations

from collections import Counter

from lanewise.analysis.regions import UNKNOWN_COUNT, KernelWork, Region
from lanewise.ir import nodes as ir
from lanewise.ir.names import WORK
from lanewise.ir.traverse import adds_in_order
from lanewise.models.devices import UNTOLD, DeviceModel
from lanewise.models.gpu_time import KernelTime
from lanewise.models.roofline import bound_of, footprint

# Calibrated with bench/results/cpu_gravity.md: 16,384 bodies, float32, one and two threads of an
# AMD EPYC 9004 at 3.7 GHz.
# of an addition that the pipes for multiplications see, which have others next to them (SoA)
ADD_SHARE = 0.5
ROOT_OPERATIONS = 4.0  # multiplications that refine an estimated reciprocal root of float32 (SoA)
GATHERED_CYCLES = 1.05  # for a scalar that a SIMD lane must load by itself (AoS, AoAS, AoSoA)
# for one that comes with a register of neighbours and is moved into its lane (SoAoAS)
SHUFFLED_CYCLES = 0.12
WIDEST_SHUFFLE = 4  # neighbours that a compiler separates by shuffles when it wants them all
# Not fitted: cycles of a SIMD register of 8 floats or 4 doubles in the divider, and of a call into
# the mathematics library.
DIVIDER = {("/", 4): 5.0, ("sqrt", 4): 5.0, ("/", 8): 5.0, ("sqrt", 8): 9.0, ("rsqrt", 8): 14.0}
DIVIDER_BITS = 256
CALIBRATED_BITS = 256  # what units are counted for
SCALAR_PIPES = 2.0  # operations a cycle of code that is not vectorised
# a conversion between float32 and float64, and the shuffle that joins or parts registers
CONVERSION_OPERATIONS = 1.0
CALL_CYCLES = 9.0
# Loops within elements, of which no lanes are made: instructions of several elements in the
# reorder buffer of a core, and cycles that a mispredicted end of a loop costs.
REORDERED = 256.0
MISPREDICTION = 20.0
LAST_CACHE_BYTES = 10.0  # a cycle and core from the last cache: 9 to 13 were measured


def cpu_kernel_time(
    work: KernelWork, counts: dict[str, float], device: DeviceModel, vector_bits: int = 0
) -> KernelTime:
    """The time of one kernel on the cores that it is worth handing to, its elements spread evenly.

    `vector_bits` is the plan's: 512 gains what `DeviceModel.vector_gain` says, 0 is what the
    compiler prefers (`preferred_bits`).
    """
    seconds = cpu_units(work, device, vector_bits)
    pieces = -(-work.blocks // _grain(work, counts))
    if adds_in_order(work.kernel.body):
        pieces = work.kernel.parts
    cores = max(1, min(device.multiprocessors, pieces))
    keys = {key for r in work.regions if r.executions for key in r.sectors}
    # What is read and written comes from memory once. How it returns holds no core up: a copy is
    # as slow by what its stores fetch (an AMD EPYC: of each byte fetched, copies take 1 / 28 ns,
    # changes in place 1 / 27 and sums 1 / 32).
    fetched: dict[str, float] = {}
    for key in keys:
        buffer, _, _ = key.rpartition("/")
        fetched[buffer] = max(fetched.get(buffer, 0.0), footprint(work, key, counts) or 0.0)
    seconds["memory"] = _memory_seconds(sum(fetched.values()), device)
    # Loads and arithmetic issue side by side; what lanes gather by themselves takes the issue slots
    # of both.
    pipes = sum(seconds.get(u, 0.0) for u in ("fp32", "fp64", "conversion"))
    compute = max(pipes, seconds.get("special", 0.0)) + seconds.get("loads", 0.0)
    compute = max(compute, seconds.get("integer", 0.0)) + seconds.get("calls", 0.0)
    compute = max(compute, seconds.get("latency", 0.0))
    compute *= device.multiprocessors / cores
    busy = bound_of({u: s for u, s in seconds.items() if s})
    total = max(compute, seconds["memory"])
    details = {
        "elements": float(work.blocks),
        "cores": float(cores),
        "compute": compute,
        "memory": seconds["memory"],
    }
    return KernelTime(total, busy, None, min(1.0, busy.seconds / total) if total else 1.0, details)


def _memory_seconds(nbytes: float, device: DeviceModel) -> float:
    """What calls take to read and write so many bytes, one after the other: what fits into half of
    the last cache comes from there, and the more of it comes from memory the more it is.
    """
    caches = device.last_cache_bytes if 0 < device.last_cache_bytes < UNTOLD else device.l2_bytes
    if nbytes <= device.l2_bytes * device.multiprocessors:
        return nbytes / device.l2_bandwidth
    missed = min(1.0, max(0.0, 2 * nbytes / caches - 1))
    return nbytes * max(missed / device.memory_bandwidth, 1 / (LAST_CACHE_BYTES * device.cycles))


def cpu_units(work: KernelWork, device: DeviceModel, vector_bits: int = 0) -> dict[str, float]:
    """Seconds that every unit of all cores together works, memory aside."""
    units: Counter[str] = Counter()
    lanes = _lanes(work.kernel.body)
    without = _without_lanes(work) if lanes == 1 else []
    apart = {id(r) for r in without}
    if waiting := _waiting(without):
        units.update({"latency": waiting})
    for r in work.regions:
        cycles = _region_cycles(
            r, device, points=work.kernel.pattern.over_points, apart=id(r) in apart
        )
        units.update(
            {u: c * r.executions * (lanes if u in _OF_EACH_LANE else 1) for u, c in cycles.items()}
        )
    bits = vector_bits or device.preferred_bits
    gain = device.vector_gain if bits == device.vector_bits > CALIBRATED_BITS else 1.0
    return {
        u: c * work.blocks / device.cycles / (gain if u in _VECTORISED and not apart else 1.0)
        for u, c in units.items()
    }


def _without_lanes(work: KernelWork) -> list[Region]:
    """What runs one element, or one pair, at a time, because a loop within it stays a loop."""
    found: dict[int, Region] = {}
    for r in work.regions:
        if r.alone:
            around = r
            while around.parent is not None and around.role != "loop over sources":
                around = around.parent
            found |= {id(inner): inner for inner in around.walk()}
    return list(found.values())


def _waiting(apart: list[Region]) -> float:
    """Cycles of an element in which loops wait for what they have just computed. A core continues
    with the next elements meanwhile, as far as it sees where a loop ends.
    """
    loops = [r for r in apart if r.alone]
    inside = [r for r in apart if any(r.inside(loop) for loop in loops)]
    cycles = sum(r.latency * r.executions for r in inside)
    ends = sum(r.executions / r.trips for r in loops if r.data_end and r.trips)
    if ends:
        return cycles + MISPREDICTION * ends
    entries = sum(r.executions / r.trips for r in loops if r.trips)
    each = sum(r.instructions.slots * r.executions for r in inside) / max(1.0, entries)
    return cycles / max(1.0, REORDERED / each) if each else cycles


def _lanes(block: ir.Block) -> int:
    """The lanes that run the statements of an element together, where a pass has made some: they
    are written once for all of them.
    """
    match block:
        case (ir.Parallel(body=(ir.Parallel(extent=ir.Literal(value=lanes)),)),):
            return int(lanes)
        case _:
            return 1


def _grain(work: KernelWork, counts: dict[str, float]) -> int:
    """Elements that are worth a separate thread, as `launch.executable` divides them."""
    kernel = work.kernel
    last = kernel.counts[-1].name if kernel.counts else ""
    grain = kernel.pattern.grain(max(1, int(counts.get(WORK, counts.get(last, UNKNOWN_COUNT)))))
    if kernel.pattern.inlined:
        return grain
    cells = counts.get(kernel.counts[0].name, 0.0)
    return (
        max(1, int(grain * work.blocks / cells)) if kernel.pattern.over_items and cells else grain
    )


def _region_cycles(
    r: Region, device: DeviceModel, *, points: bool, apart: bool
) -> dict[str, float]:
    """Cycles of one core for one element's (or source's) share of a region, by unit. points: of
    an index space, which read so much of each other's that whole registers count as well. apart:
    it runs without lanes.
    """
    i = r.instructions
    calls = sum(n for (operation, _), n in r.operations.items() if operation in _LIBRARY)
    scalar = apart or calls > 0  # what is not vectorised
    lanes = SCALAR_PIPES if scalar else float(device.fp32_lanes)
    wide = SCALAR_PIPES if scalar else float(device.fp64_lanes)
    divider = sum(
        DIVIDER[key] * n * (1.0 if scalar else key[1] * 8 / DIVIDER_BITS)
        for key, n in r.operations.items() if key in DIVIDER
    )  # fmt: skip
    roots = ROOT_OPERATIONS * r.operations.get(("rsqrt", 4), 0.0)
    simple = {k: r.operations.get((k, 4), 0.0) for k in _ARITHMETIC}
    doubles = {k: r.operations.get((k, 8), 0.0) for k in _ARITHMETIC}
    single, double = (
        sum(
            n * _FUNCTIONS[f][k]
            for (f, size), n in r.operations.items()
            if f in _FUNCTIONS and size == bytes_
        )
        for k, bytes_ in enumerate((4, 8))
    )  # fmt: skip
    return {
        "fp32": (_pipes(simple) + roots + single) / lanes,
        "fp64": (_pipes(doubles) + double) / wide,
        "special": divider,
        "integer": (i["integer"] + i["compare"] + i["select"] + i["extreme"])
        / (SCALAR_PIPES if scalar else device.int_lanes),
        "conversion": (i["conversion"] + CONVERSION_OPERATIONS * i["wide conversion"]) / wide,
        "loads": _load_cycles(r, GATHERED_CYCLES / device.fp32_lanes if points else 0.0),
        "calls": calls * CALL_CYCLES,
    }


_VECTORISED = frozenset({"fp32", "fp64", "conversion", "integer"})
# places are computed for all lanes at once
_OF_EACH_LANE = frozenset({"fp32", "fp64", "conversion", "special", "calls"})
_ARITHMETIC = ("+", "-", "*", "fused", "min", "max", "select", "fma", "mix", "abs")
_LIBRARY = frozenset(["gamma"])
# operations of SIMD registers that a function takes for float32 and for float64
# (runtime/mathematics)
_FUNCTIONS = {
    "exp": (27, 32),
    "exp2": (22, 28),
    "expm1": (31, 36),
    "log": (32, 35),
    "log2": (38, 42),
    "log10": (38, 42),
    "log1p": (40, 43),
    "sin": (45, 53),
    "cos": (45, 53),
    "tan": (48, 56),
    "asin": (22, 30),
    "acos": (26, 34),
    "atan": (24, 31),
    "atan2": (46, 53),
    "sinh": (40, 50),
    "cosh": (32, 37),
    "tanh": (45, 50),
    "erf": (59, 83),
    "erfc": (61, 85),
    "cbrt": (33, 41),
    "hypot": (9, 43),
    "pow": (118, 133),
}


def _pipes(operations: dict[str, float]) -> float:
    """Operations as the pipes for multiplications see them."""
    return sum(n * (ADD_SHARE if k in ("+", "-") else 1.0) for k, n in operations.items())


def _load_cycles(r: Region, streamed: float) -> float:
    """What it costs to bring scalars into SIMD lanes that do not lie side by side, and so much
    for each that does.
    """
    together: Counter[tuple[str, float]] = Counter()
    for a in r.accesses:
        if a.pattern in ("strided", "gathered"):
            together[a.buffer.partition("/")[0], a.wavefronts] += 1
    return streamed * sum(a.pattern == "streamed" for a in r.accesses) + sum(
        n
        * (SHUFFLED_CYCLES if 1 < distance <= WIDEST_SHUFFLE and n >= distance else GATHERED_CYCLES)
        for (_, distance), n in together.items()
    )
