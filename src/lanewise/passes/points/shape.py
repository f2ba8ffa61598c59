"""How the points of an index space are divided among blocks and threads."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.language.types import Scalar
from lanewise.planning.plan import CompletePlan
from lanewise.support.errors import PlanError

BLOCK, THREAD = own("block"), own("thread")
POINT = own("point")  # of a block whose points come one after the other


def first_of(index: str) -> str:
    """The value of an index at which a block begins."""
    return own(f"{index}.first")


def thread_of(index: str) -> str:
    """The place of a thread among those of its block along an index."""
    return own(f"{index}.thread")


def number_of(index: str) -> str:
    """The number of a block along an index."""
    return own(f"{index}.number")


@dataclass(frozen=True, slots=True)
class Shape:
    """Threads of a block and points of a thread along each index, the slowest first.

    fast: the index along which neighbouring threads lie (its position). A thread's points along it
    are groups of `adjacent` neighbours, a group of each thread before the second groups; along the
    others they are neighbours.
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


WIDE = 256  # threads of a block, beyond which 32 are neighbours


def shape_of(plan: CompletePlan, rank: int) -> Shape:
    """How a plan divides the points of an index space; raises `PlanError` for threads that make no
    rows.
    """
    fast = 0 if plan.neighbours == "first" else rank - 1
    across = plan.across or (
        plan.block if rank == 1 else 16 if plan.block <= WIDE and rank == 2 else min(32, plan.block)
    )
    if across < 1 or plan.block % across or (rank == 1 and across != plan.block):
        raise PlanError(
            f"Plan(block={plan.block}, across={across}): the threads of a block make no rows of "
            f"{across}"
        )
    if (rank < 2 and plan.rows != 1) or (rank < 3 and plan.layers != 1):
        name = "layers" if plan.layers != 1 else "rows"
        raise PlanError(
            f"Plan({name}={getattr(plan, name)}): the index space has {rank} "
            f"{'index' if rank == 1 else 'indices'}"
        )
    rest = plan.block // across
    down = plan.down or rest
    if down < 1 or rest % down or (rank < 3 and down != rest):
        raise PlanError(
            f"Plan(block={plan.block}, across={across}, down={down}): {rest} rows of threads are "
            f"not divided by {down}"
        )
    threads, points = [1] * rank, [1] * rank
    others = [d for d in range(rank) if d != fast]
    threads[fast], points[fast] = across, plan.targets
    if rank > 1:
        threads[others[-1]], points[others[-1]] = down, plan.rows
    if rank > 2:
        threads[others[0]], points[others[0]] = rest // down, plan.layers
    adjacent = plan.adjacent or next(n for n in (4, 2, 1) if plan.targets % n == 0)
    return Shape(tuple(threads), tuple(points), fast, adjacent)
