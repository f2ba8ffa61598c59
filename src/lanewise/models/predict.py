"""How long a program takes on a device, and whether the device has what it asks for.

Both follow from what its kernels do: nothing is compiled or run.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from lanewise.analysis.regions import KernelWork, Unknown, analyse
from lanewise.compiler.pipeline import Program
from lanewise.ir import nodes as ir
from lanewise.ir.series import typical
from lanewise.ir.shared import shared_bytes
from lanewise.language.target import WARP
from lanewise.models.cpu_time import cpu_kernel_time
from lanewise.models.devices import DeviceModel
from lanewise.models.gpu_time import KernelTime, estimated_registers, kernel_time
from lanewise.models.roofline import RooflineBound, bound_in_sequence
from lanewise.planning.plan import CompletePlan
from lanewise.runtime.occupancy import (
    MAX_REGISTERS,
    MAX_THREADS,
    REGISTER_UNIT,
    WARP_UNIT,
    Occupancy,
    resident,
)

NOTHING_UNKNOWN = Unknown()
ALONE_SECONDS = 1e-6  # a call that stays on the thread that makes it, on a CPU


@dataclass(frozen=True, slots=True)
class Analyses:
    """The work of kernels, each found out once, for the counts and arguments of one call."""

    _met: dict[tuple[int, bool], KernelWork] = field(
        default_factory=dict[tuple[int, bool], KernelWork]
    )
    _found: dict[Hashable, list[KernelWork]] = field(
        default_factory=dict[Hashable, list[KernelWork]]
    )

    def of(self, kernel: ir.Kernel, counts: Mapping[str, object], *, fast_math: bool) -> KernelWork:
        """The work of a kernel. What caps its registers changes nothing of it."""
        key = id(kernel), fast_math
        if key not in self._met:
            # which it holds
            self._met[key] = replace(
                self._equal(_uncapped(kernel), counts, fast_math), kernel=kernel
            )
        return self._met[key]

    def _equal(
        self, kernel: ir.Kernel, counts: Mapping[str, object], fast_math: bool
    ) -> KernelWork:
        """The work of a kernel like this one. Kernels differ early, and take long to hash."""
        alike = self._found.setdefault((kernel.name, kernel.grid, fast_math), [])
        found = next((w for w in alike if w.kernel == kernel), None)
        if found is None:
            found = analyse(kernel, counts, fast_math=fast_math)
            alike.append(found)
        return found


def _uncapped(kernel: ir.Kernel) -> ir.Kernel:
    if kernel.grid is None or not (kernel.grid.registers or kernel.grid.min_blocks):
        return kernel
    return replace(kernel, grid=replace(kernel.grid, registers=0, min_blocks=0))


@dataclass(frozen=True, slots=True)
class Prediction:
    """The expected time of a program in seconds, launches included.

    `busy` says how long its units are expected to work, and which one does longest (the least time
    is another: `models.least`). `occupancy` (None on a CPU) and `efficiency`, the time of the
    busiest unit over the whole, are those of the kernel that takes longest. `details` holds figures
    by name, those of later kernels with their name in front. `unknown` are the loops whose turns no
    count tells. `each`: of the whole, what each kernel takes with its launches.
    """

    seconds: float
    busy: RooflineBound
    occupancy: Occupancy | None
    efficiency: float
    details: dict[str, float]
    unknown: Unknown = NOTHING_UNKNOWN
    each: tuple[float, ...] = ()


def predict(
    program: Program,
    environment: Mapping[str, object],
    device: DeviceModel,
    resources: Taken | Sequence[Taken] | None = None,
    *,
    in_graph: bool = False,
    analyses: Analyses | None = None,
) -> Prediction:
    """The time of a program for given counts and uniform arguments, by their names in the IR
    (`$target.count`, `softening2`).

    `resources` are the compiler's figures of its kernels, in order, or of the first one; without
    them registers are estimated. `in_graph`: its launches are part of a graph. `analyses`: what was
    found out about kernels for the same counts and arguments, to which those of this program are
    added.
    """
    compiled = _in_order(resources)
    analyses = Analyses() if analyses is None else analyses
    times: list[KernelTime] = []
    often: list[int] = []  # launches of each kernel
    unknown: list[Unknown] = []
    for n, kernel in enumerate(program.kernels):
        counts, launches = typical(kernel, environment) if kernel.series else (environment, 1)
        work = analyses.of(kernel, counts, fast_math=bool(program.plan.fast_math))
        unknown.append(work.unknown)
        times.append(
            _time(work, counts, device, compiled[n] if n < len(compiled) else None, program.plan)
        )
        often.append(launches)
    longest, _ = max(zip(times, often, strict=True), key=lambda t: t[0].seconds * t[1])
    launch = device.graph_launch_seconds if in_graph else device.launch_seconds
    each = tuple(
        n * (t.seconds + (ALONE_SECONDS if t.details.get("cores") == 1 else launch))
        for t, n in zip(times, often, strict=True)
    )
    details = dict(times[0].details)
    for kernel, t in zip(program.kernels[1:], times[1:], strict=True):
        details |= {f"{kernel.name} {name}": value for name, value in t.details.items()}
    busy = bound_in_sequence([t.busy for t, n in zip(times, often, strict=True) for _ in range(n)])
    return Prediction(
        sum(each), busy, longest.occupancy, longest.efficiency, details, _all_unknown(unknown), each
    )


def _all_unknown(every: Sequence[Unknown]) -> Unknown:
    return Unknown(
        tuple(dict.fromkeys(n for u in every for n in u.guessed)),
        tuple(dict(x for u in every for x in u.expected).items()),
        tuple(dict.fromkeys(n for u in every for n in u.early)),
    )


def _time(
    work: KernelWork,
    environment: Mapping[str, object],
    device: DeviceModel,
    taken: Taken | None,
    plan: CompletePlan,
) -> KernelTime:
    counts = {
        n: float(v) for n, v in environment.items() if isinstance(v, (int, float, np.generic))
    }
    if not device.target.has_blocks:
        return cpu_kernel_time(work, counts, device, plan.vector_bits or 0)
    registers = (
        taken.registers if taken else min(estimated_registers(work), _cap(work, device, plan))
    )
    shared = taken.shared_bytes if taken else shared_bytes(work.kernel)
    return kernel_time(work, counts, device, registers, shared)


def _cap(work: KernelWork, device: DeviceModel, plan: CompletePlan) -> int:
    """The most registers that a plan and its launch bounds leave a thread; what does not fit is
    spilled, and not counted.
    """
    available = device.limits.registers if device.limits else MAX_REGISTERS * work.threads
    blocks = max(1, work.kernel.grid.min_blocks if work.kernel.grid else 1)
    # warps are dealt to four parts of a multiprocessor
    quarters = -(-work.threads // (WARP * WARP_UNIT))
    held = available // (blocks * quarters * WARP * WARP_UNIT) // 8 * 8
    return min(plan.registers or MAX_REGISTERS, MAX_REGISTERS, held)


STATIC_SHARED_BYTES = 49_152  # of a block that declares its shared memory, as generated kernels do


class Taken(Protocol):
    """What a compiler reports of a kernel: `runtime.nvrtc.Resources` is one."""

    @property
    def registers(self) -> int: ...
    @property
    def shared_bytes(self) -> int: ...


def _in_order(resources: Taken | Sequence[Taken] | None) -> list[Taken]:
    """The figures of kernels, of which there may be those of the first alone, or none."""
    if resources is None:
        return []
    return list(resources) if isinstance(resources, Sequence) else [resources]


def fits(
    work: ir.Kernel | Program, device: DeviceModel, resources: Taken | Sequence[Taken] | None = None
) -> str | None:
    """Which resource a kernel (or a kernel of a program) lacks on a device, how much it asks for
    and how much there is.

    None when everything fits. `resources` are the compiler's figures, in the order of the kernels;
    without them only what the IR tells is checked: threads and shared memory.
    """
    kernels = work.kernels if isinstance(work, Program) else (work,)
    compiled = _in_order(resources)
    for n, kernel in enumerate(kernels):
        if reason := _lacks(kernel, device, compiled[n] if n < len(compiled) else None):
            return reason
    return None


def _lacks(kernel: ir.Kernel, device: DeviceModel, taken: Taken | None) -> str | None:
    if kernel.grid is None or device.limits is None:
        return None
    threads, limits = kernel.grid.threads, device.limits
    if threads > MAX_THREADS:
        return (
            f"{kernel.name} asks for blocks of {threads:,} threads, and {device.name} has "
            f"{MAX_THREADS:,} at most"
        )
    shared = max(shared_bytes(kernel), taken.shared_bytes if taken else 0)
    there = min(STATIC_SHARED_BYTES, limits.block_shared_bytes)
    if shared > there:
        return (
            f"{kernel.name} asks for {shared:,} bytes of shared memory per block, and "
            f"{device.name} gives {there:,}"
        )
    if taken is None:
        return None
    if taken.registers > MAX_REGISTERS:
        return (
            f"{kernel.name} asks for {taken.registers} registers per thread, and {device.name} has "
            f"{MAX_REGISTERS} at most"
        )
    if resident(limits, threads, taken.registers, shared).blocks == 0:
        warps = -(-threads // WARP)
        per_warp = -(-taken.registers * WARP // REGISTER_UNIT) * REGISTER_UNIT
        asked = per_warp * -(-warps // WARP_UNIT) * WARP_UNIT
        return (
            f"{kernel.name} asks for {asked:,} registers per block ({threads} threads of "
            f"{taken.registers}), "
            f"and {device.name} has {limits.block_registers:,}"
        )
    return None
