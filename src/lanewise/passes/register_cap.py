"""Cap the registers of a thread, so that more threads fit a multiprocessor; what does not fit is
spilled to memory.

    grid 256 threads                        __global__ void __launch_bounds__(256)
    gravity_kernel(...)
->  grid 256 threads of 40 registers        __global__ void __maxnreg__(40) gravity_kernel(...) The
compiler's option for a whole file is no use here: it is ignored for every kernel that has launch
bounds.
"""

from __future__ import annotations

from dataclasses import replace

from lanewise.ir import nodes as ir
from lanewise.passes.base import refuse

FEWEST, MOST = 16, 255  # registers of a thread
REGISTERS = 65_536  # of a block at most, on every GPU that the compiler knows
UNIT = 8  # registers are handed out in these steps


def legal(kernel: ir.Kernel, registers: int) -> str | None:
    """Why the pass does not apply, or None."""
    if kernel.grid is None:
        return "only the compiler of a GPU takes a cap; on a CPU registers is 0"
    if not FEWEST <= registers <= MOST:
        return f"a thread has {FEWEST} to {MOST} registers; a cap of {registers} was requested"
    if kernel.grid.min_blocks:
        return f"min_blocks={kernel.grid.min_blocks} caps the registers too; choose one cap"
    taken = -(-registers // UNIT) * UNIT * kernel.grid.threads
    if taken > REGISTERS:
        return (
            f"{registers} registers for each of the {kernel.grid.threads:,} threads of a block are "
            f"{taken:,}, and a block has {REGISTERS:,}"
        )
    return None


def apply(kernel: ir.Kernel, registers: int) -> ir.Kernel:
    """Mark a kernel that is mapped to threads; raises `PlanError` for a cap that cannot be kept."""
    if reason := legal(kernel, registers):
        raise refuse("register cap", kernel, reason)
    assert kernel.grid is not None
    return replace(kernel, grid=replace(kernel.grid, registers=registers))
