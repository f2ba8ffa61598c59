"""The time that an access takes under a layout: the model behind `choose_layout`, calibrated by
measurements.

A GPU moves sectors of 32 bytes, at one rate when neighbours are read together and at another when
each comes from elsewhere; a CPU moves lines of 64 bytes and needs more instructions for values that
do not lie side by side.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from lanewise.language.target import Target, target_of
from lanewise.layouts.base import Arrangement, Slot
from lanewise.layouts.traffic import Traffic, gathered, streamed

Role = Literal["streamed", "broadcast", "gathered"]
Placement = Literal["contiguous", "packed", "strided", "blocked"]


@dataclass(frozen=True, slots=True)
class ArrayUse:
    """How one kernel uses the records of one array.

    Attributes:
        kernel: its name and the parameter, for reports.
        role: "streamed" (each element in turn), "broadcast" (every element meets every other one:
        the sources of
            all pairs), "gathered" (elements in no order).
        read: leaves that are read.
        written: leaves that are written.
        weight: how often it happens in one step.
        operations: arithmetic of one element, or of one pair.
    """

    kernel: str
    role: Role
    read: tuple[str, ...]
    written: tuple[str, ...]
    weight: float = 1.0
    operations: int = 0


@dataclass(frozen=True, slots=True)
class MemoryModel:
    """What the cost of a layout depends on.

    Attributes:
        name: the device, and where its figures come from.
        kind: "cuda" or "cpu".
        unit: bytes that memory moves at least.
        streamed: bytes a second of neighbouring units from memory.
        gathered: seconds a byte of units here and there from memory, and `gathered_setup` bytes
        more an element.
        cache_bytes: what fits the last-level cache, and the same three figures for it.
        lines: lines of 128 bytes a second that a GPU's first-level caches serve; 0 on a CPU.
        operations: arithmetic operations a second.
        clock_hz: cycles a second.
        reuse: targets that share each source of all pairs that comes from the cache.
    """

    name: str
    kind: Literal["cuda", "cpu"]
    unit: int
    streamed: float
    gathered: float
    cache_bytes: int
    cached_streamed: float
    cached_gathered: float
    lines: float
    operations: float
    clock_hz: float
    gathered_setup: int = 0
    reuse: int = 1
    scalar_cycles: dict[Placement, float] = field(default_factory=dict[Placement, float])
    lane_cycles: dict[Placement, float] = field(default_factory=dict[Placement, float])

    @property
    def target(self) -> Target:
        """What generated code can use there."""
        return target_of(self.kind)


@dataclass(frozen=True, slots=True)
class AccessCost:
    """Seconds of one access to all elements, the unit that limits it, and what it moves and issues
    for an element.
    """

    seconds: float
    limiter: str
    traffic: Traffic


# One thread of an AMD EPYC (Zen 4) at 3.7 GHz. Bytes, lines and cycles a leaf of streamed elements:
# `lanewise ladder memory`, where contiguous values come by vector loads (with signed indices LLVM
# gathers them instead, in 1.7 cycles). Cycles a leaf in the loop over sources:
# bench/results/cpu_gravity.md, where a load serves one target under SoA and four elsewhere.
CPU = MemoryModel(
    name="AMD EPYC, one thread",
    kind="cpu",
    unit=64,
    streamed=42e9,
    gathered=64 / 3.5e-9,
    cache_bytes=32 << 20,
    cached_streamed=200e9,
    cached_gathered=64 / 0.63e-9,
    lines=0.0,
    operations=17 * 3.7e9,
    clock_hz=3.7e9,
    gathered_setup=2 * 64,
    scalar_cycles={"contiguous": 0.21, "packed": 0.57, "strided": 0.57, "blocked": 0.58},
    lane_cycles={"contiguous": 0.0, "packed": 0.028, "strided": 0.25, "blocked": 0.29},
)

# of the rate of a copy, 4.28 TB/s on an NVIDIA H200: 4.42 and 1.84 TB/s
STREAMED_SHARE, GATHERED_SHARE = 1.033, 0.43
LINES = 4  # whose tags a first-level cache compares in a cycle
TARGETS = 512  # that share a tile of sources: 256 threads with two each


def memory_model(device: str) -> MemoryModel:
    """The model of a device. Without a GPU "cuda" is an NVIDIA H200, which its name says."""
    return CPU if target_of(device).host_memory else _gpu(device)


def _gpu(device: str) -> MemoryModel:
    from lanewise.models.devices import device_model, table_model
    from lanewise.runtime.devices import missing_for_cuda

    absent = bool(missing_for_cuda())
    d = table_model("sm_90") if absent else device_model(device)
    return MemoryModel(
        name=f"{d.name} (from the table: there is no GPU here)" if absent else d.name,
        kind="cuda",
        unit=32,
        streamed=STREAMED_SHARE * d.memory_bandwidth,
        gathered=GATHERED_SHARE * d.memory_bandwidth,
        cache_bytes=d.l2_bytes,
        cached_streamed=d.l2_bandwidth,
        cached_gathered=d.l2_bandwidth,
        lines=LINES * d.cycles,
        operations=d.fp32_operations,
        clock_hz=d.clock_hz,
        reuse=TARGETS,
    )


def cost(arrangement: Arrangement, access: ArrayUse, model: MemoryModel, count: int) -> AccessCost:
    """The time of one access to `count` elements (all pairs of them when broadcast), without its
    weight.
    """
    vector = model.target.has_blocks
    cached = arrangement.nbytes(count) <= model.cache_bytes
    if access.role == "gathered":
        traffic = gathered(arrangement, access.read, access.written, model.unit, vector=vector)
        rate = model.cached_gathered if cached else model.gathered
        moved = (traffic.nbytes + model.gathered_setup) / rate
    else:
        traffic = streamed(arrangement, access.read, access.written, model.unit, vector=vector)
        rate = model.cached_streamed if cached or access.role == "broadcast" else model.streamed
        moved = traffic.nbytes / rate
    limits = {"memory": moved, "issue": _issue(arrangement, access, model, traffic)}
    if access.role == "broadcast":
        return _all_pairs(access, model, count, limits, traffic)
    limits["arithmetic"] = access.operations / model.operations
    # a CPU overlaps them in part
    total = max(limits.values()) if vector else math.hypot(*limits.values())
    return AccessCost(count * total, max(limits, key=lambda name: limits[name]), traffic)


def _issue(
    arrangement: Arrangement, access: ArrayUse, model: MemoryModel, traffic: Traffic
) -> float:
    """Seconds that the instructions of one element's accesses take."""
    if model.target.has_blocks:
        return traffic.lines / model.lines
    cycles = model.lane_cycles if access.role == "broadcast" else model.scalar_cycles
    slots = [arrangement.slot(leaf) for leaf in (*access.read, *access.written)]
    return sum(cycles[placement(arrangement, s)] for s in slots) / model.clock_hz


def _all_pairs(
    access: ArrayUse, model: MemoryModel, count: int, limits: dict[str, float], traffic: Traffic
) -> AccessCost:
    """A GPU loads every source once for each tile's targets, a CPU for each register of targets,
    from its cache.
    """
    arithmetic = access.operations / model.operations
    if model.target.has_blocks:
        loading = max(limits.values()) / model.reuse
        return AccessCost(
            count**2 * (arithmetic + loading),
            "arithmetic" if arithmetic > loading else "memory",
            traffic,
        )
    pair = arithmetic + limits["issue"]
    return AccessCost(
        count**2 * pair, "arithmetic" if arithmetic > limits["issue"] else "issue", traffic
    )


def placement(arrangement: Arrangement, slot: Slot) -> Placement:
    """How the values of a leaf lie for SIMD lanes: side by side, in small structures, with a
    stride, or in blocks.
    """
    buffer = arrangement.buffers[slot.buffer]
    if buffer.width > 1:
        return "blocked"
    if buffer.block == slot.type.size:
        return "contiguous"
    return "packed" if buffer.block <= 16 and buffer.block & (buffer.block - 1) == 0 else "strided"
