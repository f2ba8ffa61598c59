"""How many warps of a kernel a multiprocessor holds at once, from the resources that the compiler reports.

The rules are the CUDA occupancy calculator's: registers are given in units of 256 a warp, a block's warps are rounded
up to a multiple of
4 for them, and every block takes 1 KiB of shared memory of its own from architecture 8.0 on.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one multiprocessor."""

    warps: int
    blocks: int
    shared_bytes: int
    registers: int = 65_536
    reserved_shared_bytes: int = 1024


LIMITS = {
    "sm_75": Limits(32, 16, 65_536, reserved_shared_bytes=0),
    "sm_80": Limits(64, 32, 167_936),
    "sm_86": Limits(48, 16, 102_400),
    "sm_89": Limits(48, 24, 102_400),
    "sm_90": Limits(64, 32, 233_472),
    "sm_100": Limits(64, 32, 233_472),
    "sm_120": Limits(48, 24, 102_400),
}
REGISTER_UNIT, WARP_UNIT, SHARED_UNIT = 256, 4, 128


def blocks_per_multiprocessor(arch: str, threads: int, registers: int, shared_bytes: int) -> int:
    """Blocks that one multiprocessor holds.

    A block has `threads` threads of `registers` registers each, and `shared_bytes` of shared memory.
    """
    limits = LIMITS[arch]
    warps = -(-threads // 32)
    by_warps = min(limits.blocks, limits.warps // warps)
    per_warp = -(-registers * 32 // REGISTER_UNIT) * REGISTER_UNIT
    usable = limits.registers // max(per_warp, 1) // WARP_UNIT * WARP_UNIT
    by_registers = usable // warps if registers else by_warps
    shared = -(-(shared_bytes + limits.reserved_shared_bytes) // SHARED_UNIT) * SHARED_UNIT
    return min(by_warps, by_registers, limits.shared_bytes // shared if shared else by_warps)


def occupancy(arch: str, threads: int, registers: int, shared_bytes: int) -> float:
    """The share of a multiprocessor's warps that can be resident, from 0 to 1."""
    return blocks_per_multiprocessor(arch, threads, registers, shared_bytes) * -(-threads // 32) / LIMITS[arch].warps
