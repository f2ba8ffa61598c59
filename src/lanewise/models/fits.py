"""Whether a device has what a kernel asks for, and which resource it has too little of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from lanewise.ir import nodes as ir
from lanewise.ir.shared import shared_bytes
from lanewise.models.devices import DeviceModel
from lanewise.models.occupancy import MAX_REGISTERS, MAX_THREADS, REGISTER_UNIT, WARP, WARP_UNIT, resident
from lanewise.pipeline import Program

STATIC_SHARED_BYTES = 49_152  # of a block that declares its shared memory, as generated kernels do


class Taken(Protocol):
    """What a compiler reports of a kernel: `runtime.nvrtc.Resources` is one."""

    @property
    def registers(self) -> int: ...
    @property
    def shared_bytes(self) -> int: ...


def fits(
    work: ir.Kernel | Program, device: DeviceModel, resources: Taken | Sequence[Taken] | None = None
) -> str | None:
    """Which resource a kernel (or a kernel of a program) lacks on a device, how much it asks for and how much there is.

    None when everything fits. `resources` are the compiler's figures, in the order of the kernels; without them only
    what the IR tells is checked: threads and shared memory.
    """
    kernels = work.kernels if isinstance(work, Program) else (work,)
    given = list(resources) if isinstance(resources, Sequence) else [resources] if resources is not None else []
    for n, kernel in enumerate(kernels):
        if reason := _lacks(kernel, device, given[n] if n < len(given) else None):
            return reason
    return None


def _lacks(kernel: ir.Kernel, device: DeviceModel, taken: Taken | None) -> str | None:
    if kernel.grid is None or device.limits is None:
        return None
    threads, limits = kernel.grid.threads, device.limits
    if threads > MAX_THREADS:
        return f"{kernel.name} asks for blocks of {threads:,} threads, and {device.name} has {MAX_THREADS:,} at most"
    shared = max(shared_bytes(kernel), taken.shared_bytes if taken else 0)
    there = min(STATIC_SHARED_BYTES, limits.block_shared_bytes)
    if shared > there:
        return f"{kernel.name} asks for {shared:,} bytes of shared memory a block, and {device.name} gives {there:,}"
    if taken is None:
        return None
    if taken.registers > MAX_REGISTERS:
        return f"{kernel.name} asks for {taken.registers} registers a thread, and {device.name} has {MAX_REGISTERS} at most"
    if resident(limits, threads, taken.registers, shared).blocks == 0:
        warps = -(-threads // WARP)
        per_warp = -(-taken.registers * WARP // REGISTER_UNIT) * REGISTER_UNIT
        asked = per_warp * -(-warps // WARP_UNIT) * WARP_UNIT
        return (
            f"{kernel.name} asks for {asked:,} registers a block ({threads} threads of {taken.registers}), "
            f"and {device.name} has {limits.block_registers:,}"
        )
    return None
