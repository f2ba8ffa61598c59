"""How many warps of a kernel a multiprocessor holds at once, and what keeps it from holding more:
as the driver counts.

The rules are those of NVIDIA's occupancy calculator. A warp takes registers in units of 256. A
block's warps are dealt to four parts of the multiprocessor, each with a quarter of the registers,
so what fits is counted in units of four warps. Shared memory comes in units of 128 bytes (256 on
7.5), and from 8.0 on the system takes 1 KiB for every block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lanewise.language.target import WARP, architecture_number

Limiter = Literal["threads", "blocks", "registers", "shared memory"]
REGISTER_UNIT, WARP_UNIT = 256, 4
MAX_THREADS, MAX_REGISTERS = 1024, 255  # of a block, of a thread


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one multiprocessor, and of one block on it.

    `shared_bytes` can be given to blocks; one block may have `block_shared_bytes` of it when it
    asks for them (opts in), 48 KiB when it does not.
    """

    warps: int
    blocks: int
    shared_bytes: int
    block_shared_bytes: int
    registers: int = 65_536
    block_registers: int = 65_536
    reserved_shared_bytes: int = 1024
    shared_unit: int = 128


def _kib(warps: int, blocks: int, shared: int) -> Limits:
    """An architecture from 8.0 on, with `shared` KiB of shared memory."""
    return Limits(warps, blocks, shared * 1024, (shared - 1) * 1024)


# CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
LIMITS = {
    "sm_75": Limits(32, 16, 65_536, 65_536, reserved_shared_bytes=0, shared_unit=256),
    "sm_80": _kib(64, 32, 164),
    "sm_86": _kib(48, 16, 100),
    "sm_87": _kib(48, 16, 164),
    "sm_89": _kib(48, 24, 100),
    "sm_90": _kib(64, 32, 228),
    "sm_100": _kib(64, 32, 228),
    "sm_103": _kib(64, 32, 228),
    "sm_120": _kib(48, 24, 100),
    "sm_121": _kib(48, 24, 100),
}


def limits_of(arch: str) -> Limits:
    """The limits of an architecture; those of the newest one that is known, where it is newer."""
    return LIMITS.get(arch) or LIMITS[max(LIMITS, key=architecture_number)]


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Resident blocks and warps of one multiprocessor, their share of what it can hold, and the
    resource that limits them.
    """

    blocks: int
    warps: int
    share: float
    limiter: Limiter


def resident(arch: str | Limits, threads: int, registers: int, shared_bytes: int) -> Occupancy:
    """What one multiprocessor holds of a kernel.

    A block has `threads` threads of `registers` registers each, and `shared_bytes` of shared
    memory, static and dynamic. A block that does not fit at all gives 0 blocks, limited by what it
    lacks. Raises `KeyError` for an unknown `arch`.
    """
    limits = LIMITS[arch] if isinstance(arch, str) else arch
    warps = max(1, -(-threads // WARP))
    shared = _up(shared_bytes + limits.reserved_shared_bytes, limits.shared_unit)
    fits: dict[Limiter, int] = {
        "threads": limits.warps // warps if threads <= MAX_THREADS else 0,
        "blocks": limits.blocks,
        "registers": _by_registers(limits, warps, registers),
        "shared memory": _by_shared(limits, shared, shared_bytes),
    }
    # of equals the first: what no compiler can change
    limiter = min(fits, key=lambda name: fits[name])
    blocks = fits[limiter]
    return Occupancy(blocks, blocks * warps, blocks * warps / limits.warps, limiter)


def _by_registers(limits: Limits, warps: int, registers: int) -> int:
    if registers <= 0:
        return limits.blocks
    per_warp = _up(registers * WARP, REGISTER_UNIT)
    if registers > MAX_REGISTERS or per_warp * _up(warps, WARP_UNIT) > limits.block_registers:
        return 0
    return limits.registers // per_warp // WARP_UNIT * WARP_UNIT // warps


def _by_shared(limits: Limits, shared: int, asked: int) -> int:
    if asked > limits.block_shared_bytes:
        return 0
    return limits.shared_bytes // shared if shared else limits.blocks


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def occupancy(arch: str | Limits, threads: int, registers: int, shared_bytes: int) -> float:
    """The share of a multiprocessor's warps that can be resident, from 0 to 1."""
    return resident(arch, threads, registers, shared_bytes).share
