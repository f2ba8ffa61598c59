"""Targets: what kinds of devices there are, and what each can do."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from lanewise.language.types import I32, I64, Scalar
from lanewise.support.errors import DeviceError


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A kind of device: what generated code can use there. Passes, plans and models ask it.

    name: as in the names of devices. compiled: kernels are generated for it; else they are
    interpreted. pipeline: whose plans and passes shape its kernels; the interpreter takes those of
    a CPU. has_blocks: its threads come in blocks, which share memory and wait for each other.
    has_constant_memory: of which all threads read one place at a time. converts_f16: to float32 in
    one instruction. streaming: how sites stream unless the caller says; in place memory counts,
    which caches make cheap.
    host_memory: its arrays lie in the memory of the host, as those of NumPy. index: the type of
    indices. lanes: elements of a block of `AoSoA`, a warp or a SIMD register. bits_of_layouts:
    results may have other bits in another layout of records, as compilers add in an order that
    depends on it. tuning_seconds: what tuning takes unless the caller says.
    """

    name: str
    compiled: bool
    pipeline: Literal["cuda", "cpu"]
    has_blocks: bool
    has_constant_memory: bool
    converts_f16: bool
    streaming: Literal["pull", "in-place"]
    host_memory: bool
    index: Scalar
    lanes: int
    bits_of_layouts: bool
    tuning_seconds: float = 0.0

    def __str__(self) -> str:
        return self.name


# 32-bit indices on a GPU, where 64-bit arithmetic costs several instructions; a CPU counts in 64
# bits.
CUDA = Target(
    name="cuda",
    compiled=True,
    pipeline="cuda",
    has_blocks=True,
    has_constant_memory=True,
    converts_f16=True,
    streaming="pull",
    host_memory=False,
    index=I32,
    lanes=32,
    bits_of_layouts=False,
    tuning_seconds=60.0,
)
CPU = Target(
    name="cpu",
    compiled=True,
    pipeline="cpu",
    has_blocks=False,
    has_constant_memory=False,
    converts_f16=False,
    streaming="in-place",
    host_memory=True,
    index=I64,
    lanes=16,
    bits_of_layouts=True,
    tuning_seconds=120.0,
)
PYTHON = replace(CPU, name="python", compiled=False, converts_f16=True, tuning_seconds=0.0)
UNKNOWN = (
    "unknown device {!r}; wanted 'cpu', 'cuda', 'cuda:1' (a number for each GPU) or 'python' (the "
    "interpreter)"
)
TARGETS = {t.name: t for t in (CUDA, CPU, PYTHON)}


@cache
def target_of(device: str) -> Target:
    """The target of a device by its name, or of a mesh by its spelling: "cuda:1" is a CUDA device.

    Raises `DeviceError` for a name that is none.
    """
    target = TARGETS.get(re.split("[:*]", device, maxsplit=1)[0])
    if target is None:
        raise DeviceError(UNKNOWN.format(device))
    return target


def is_gpu(device: str) -> bool:
    """Whether a device (or a kind of devices) is a GPU: its threads come in blocks, its memory is
    its own.
    """
    return target_of(device).has_blocks


def where_arrays_lie(device: str) -> str:
    """The device whose memory holds the arrays of a device: "cpu" for the interpreter."""
    return CPU.name if target_of(device).host_memory else device


def is_compiled(device: str) -> bool:
    """Whether kernels are generated for a device; else they are interpreted."""
    return target_of(device).compiled


WARP = 32  # threads of a GPU that run together
LINE = 64  # bytes of a line of a CPU's memory
# bytes: a core takes a load and an earlier store at the same place in two pages for one place, and
# waits
PAGE = 4096
LONG_IN_ORDER = (
    # lines of a row from which on its ends are worth streams, where those of rows follow each other
    # in memory
    4
)
ASYNCHRONOUS_COPIES = 80  # the first architecture that has them


def architecture_number(arch: str) -> int:
    """The number of a GPU's architecture: 90 of "sm_90" and of "sm_90a", 100 of "sm_100f"."""
    return int("".join(c for c in arch if c.isdigit()))


def copies_asynchronously(arch: str) -> bool:
    """Whether GPUs of an architecture, such as "sm_90" or "sm_90a", have asynchronous copies from
    global to shared memory.
    """
    return architecture_number(arch) >= ASYNCHRONOUS_COPIES


@dataclass(frozen=True, slots=True)
class Machine:
    """What default plans ask of a device: its target, how many multiprocessors (or cores) it has,
    its widest SIMD registers.

    copies: whether a GPU copies to shared memory past the registers, see `copies_asynchronously`.
    """

    kind: str
    multiprocessors: int
    vector_bits: int = 256
    copies: bool = True

    @property
    def target(self) -> Target:
        return TARGETS[self.kind]
