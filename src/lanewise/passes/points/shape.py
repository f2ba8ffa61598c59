"""How the points of an index space are divided among blocks and threads."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.types import Scalar

BLOCK, THREAD = own("block"), own("thread")


def first_of(index: str) -> str:
    """The value of an index at which a block begins."""
    return own(f"{index}.first")


def thread_of(index: str) -> str:
    """The place of a thread among those of its block along an index."""
    return own(f"{index}.thread")


@dataclass(frozen=True, slots=True)
class Shape:
    """Threads of a block and points of a thread along each index, the slowest first.

    fast: the index along which neighbouring threads lie (its position). A thread's points along it are groups of `adjacent` neighbours,
    a group of each thread before the second groups; along the others they are neighbours.
    """

    threads: tuple[int, ...]
    points: tuple[int, ...]
    fast: int
    adjacent: int = 1

    @property
    def total(self) -> int:
        """Threads of a block."""
        return prod(self.threads)

    def side(self, d: int) -> int:
        """Points of a block along an index."""
        return self.threads[d] * self.points[d]

    def group(self, d: int) -> int:
        """Neighbouring points of a thread along an index."""
        return min(self.adjacent, self.points[d]) if d == self.fast else self.points[d]

    def place(self, d: int, p: int, index: str, kind: Scalar) -> ir.Expression:
        """Where point `p` of a thread lies in its block along an index."""
        group = self.group(d)
        start = build.multiply(ir.Local(thread_of(index), kind), group)
        return build.add(start, p // group * group * self.threads[d] + p % group)

    def order(self) -> tuple[int, ...]:
        """The positions of the indices, that of neighbouring threads first."""
        return (self.fast, *(d for d in reversed(range(len(self.threads))) if d != self.fast))
