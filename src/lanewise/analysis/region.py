"""What a kernel consists of for the models: pieces that run equally often, what each costs and touches."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

from lanewise.analysis.instructions import Instructions, mix
from lanewise.ir import nodes as ir

SECTOR = 32  # bytes that memory moves at least
Pattern = Literal["streamed", "strided", "broadcast", "gathered"]


@dataclass(frozen=True, slots=True)
class Access:
    """One load or store: `bytes` of one thread, of which `useful` bytes are wanted.

    `sectors` are the 32-byte sectors that a warp touches with it, `wavefronts` the passes of 128 bytes through the L1
    cache or shared memory (on a CPU: the distance of neighbours in elements, 0 for no single one). `pattern`:
    neighbouring threads access neighbouring places ("streamed"), places with gaps ("strided"), one place ("broadcast"),
    or places that data tell ("gathered").
    """

    buffer: str
    space: str
    write: bool
    bytes: int
    useful: int
    pattern: Pattern
    sectors: float
    wavefronts: float
    names: tuple[str, ...] = ()


@dataclass(slots=True)
class Region:
    """What runs together. `executions` are those of one warp (of one element on a CPU), on average over the launch."""

    role: str
    parent: Region | None
    executions: float
    trips: float = 1.0
    unroll: float = 1.0
    depth: int = 0  # loops around it
    instructions: Instructions = field(default_factory=Instructions)
    accesses: list[Access] = field(default_factory=list[Access])
    children: list[Region] = field(default_factory=list["Region"])
    barriers: int = 0
    stages: int = 0  # times that a turn waits for what it loads itself into shared memory
    sectors: dict[str, float] = field(default_factory=dict[str, float])  # "array/buffer/read": a sector counts once
    operations: dict[tuple[str, int], float] = field(
        default_factory=dict[tuple[str, int], float]
    )  # of floats, by bytes
    applications: int = 0  # of functions, directly in it
    latency: float = 0.0  # cycles of its longest chain of operations, one after the other
    words: int = 0  # 32-bit values that it holds from outside, or carries from one turn to the next

    @property
    def is_loop(self) -> bool:
        return self.role.startswith("loop")

    def add(self, role: str, executions: float, *, depth: int, unroll: float = 1.0) -> Region:
        """A new region within this one."""
        self.children.append(Region(role, self, executions, depth=depth, unroll=unroll))
        return self.children[-1]

    def note_staging(self) -> None:
        """The loop around waits for a load from global memory before it can go on."""
        region = self
        while not region.is_loop and region.parent is not None:
            region = region.parent
        region.stages += 1

    def walk(self) -> list[Region]:
        """This region and all within it, outer ones first."""
        return [self, *(r for c in self.children for r in c.walk())]

    def inside(self, ancestor: Region) -> bool:
        return self is ancestor or (self.parent is not None and self.parent.inside(ancestor))


@dataclass(frozen=True, slots=True)
class KernelWork:
    """The regions of a kernel, and its launch: blocks of `threads` threads, or elements on a CPU (`threads` 1)."""

    kernel: ir.Kernel
    root: Region
    blocks: int
    threads: int

    @property
    def regions(self) -> list[Region]:
        return self.root.walk()

    @property
    def instructions(self) -> Instructions:
        """All instructions of one warp, on average."""
        total: Counter[str] = Counter()
        for r in self.regions:
            total.update({k: n * r.executions for k, n in r.instructions.counts.items()})
        return mix(total)

    @property
    def inner_loop(self) -> Region | None:
        """The loop that takes most instructions, with what is in it counted to it."""
        innermost = [r for r in self.regions if r.is_loop and not any(c.is_loop for c in r.walk()[1:])]
        return max(innermost, key=lambda r: r.executions * r.instructions.slots, default=None)
