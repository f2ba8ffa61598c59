"""The boxes of elements that the threads of a block read together in a tile of rounds.

load a[y#0, k], a[y#1, k], ...   by 16 threads of 8 rows, for 8 rounds   ->   128 x 8 elements from
a[$y.first, $k.start] on
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from math import prod

from lanewise.analysis.index_sums import IndexSum, index_sum
from lanewise.ir import nodes as ir
from lanewise.language.target import WARP
from lanewise.passes.points.shape import Shape, thread_of

BANKS = 32
WORD = 4  # bytes of a bank
WIDEST = 16  # bytes of an access


@dataclass(frozen=True, slots=True)
class Site:
    """A read: its indices as sums, and whether every thread reaches it in every round."""

    load: ir.LoadElement
    indices: tuple[IndexSum, ...]
    always: bool


@dataclass(frozen=True, slots=True)
class ReadBox:
    """What a group of reads touches: per dimension of the array the lowest constant, the extent,
    and the sums without constants.

    threads, rounds: how many values the variables of threads and of loops have. inner: the
    dimension that lies side by side in shared memory.
    """

    array: str
    sites: tuple[Site, ...]
    sums: tuple[IndexSum, ...]
    low: tuple[int, ...]
    extents: tuple[int, ...]
    threads: Mapping[str, int]
    rounds: Mapping[str, int]
    inner: int

    @property
    def elements(self) -> int:
        return prod(self.extents)

    @property
    def always(self) -> bool:
        return all(s.always for s in self.sites)

    def reads(self) -> int:
        """Of all threads in a tile."""
        return (
            len({tuple(i.constant for i in s.indices) for s in self.sites})
            * prod(self.threads.values())
            * prod(self.rounds.values())
        )

    def origin(self, d: int) -> IndexSum:
        """Where the box begins, as a sum of what all threads share; the loops are at their first
        round.
        """
        moving = {**self.threads, **self.rounds}
        shared = self.sums[d].without(moving)
        return IndexSum(self.low[d] + self._below(d)).plus(shared)

    def _below(self, d: int) -> int:
        moving = {**self.threads, **self.rounds}
        return sum(min(0, self.sums[d].coefficient(n) * (count - 1)) for n, count in moving.items())

    def place(self, site: Site, d: int) -> IndexSum:
        """Where a read lies in the box."""
        moving = {**self.threads, **self.rounds}
        own: dict[ir.Expression, int] = {
            e: c
            for e, c in self.sums[d].terms.items()
            if isinstance(e, ir.Local) and e.name in moving
        }
        return IndexSum(site.indices[d].constant - self.low[d] - self._below(d), own)


def boxes(
    sites: list[Site], shape: Shape, indices: tuple[str, ...], rounds: Mapping[str, int]
) -> list[ReadBox]:
    """Reads that differ by constants alone have a box together."""
    groups: dict[tuple[object, ...], list[Site]] = {}
    for s in sites:
        groups.setdefault((s.load.array, *(i.key() for i in s.indices)), []).append(s)
    threads = {thread_of(i): n for i, n in zip(indices, shape.threads, strict=True)}
    fast = thread_of(indices[shape.fast])
    return [_box(members, threads, rounds, fast) for members in groups.values()]


def _box(
    sites: list[Site], threads: Mapping[str, int], rounds: Mapping[str, int], fast: str
) -> ReadBox:
    rank = range(len(sites[0].indices))
    constants = [{s.indices[d].constant for s in sites} for d in rank]
    sums = tuple(IndexSum(0, sites[0].indices[d].terms) for d in rank)
    moving = {**threads, **rounds}
    extents = tuple(
        max(constants[d])
        - min(constants[d])
        + 1
        + sum(abs(sums[d].coefficient(n)) * (count - 1) for n, count in moving.items())
        for d in rank
    )
    along = [d for d in rank if sums[d].coefficient(fast)]
    several = max(rank, key=lambda d: (len(constants[d]), d))
    inner = along[-1] if along else several if len(constants[several]) > 1 else len(constants) - 1
    low = tuple(min(c) for c in constants)
    return ReadBox(sites[0].load.array, tuple(sites), sums, low, extents, threads, rounds, inner)


def wavefronts(words: list[int], width: int) -> int:
    """How often shared memory is accessed for a warp, each of whose threads touches `width` words
    from a place on.
    """
    lanes = WARP // width
    total = 0
    for first in range(0, len(words), lanes):
        banks: dict[int, set[int]] = {}
        for start in words[first : first + lanes]:
            for w in range(start, start + width):
                banks.setdefault(w % BANKS, set()).add(w)
        total += max(len(b) for b in banks.values())
    return total


def lanes_of(shape: Shape, indices: tuple[str, ...]) -> list[dict[str, int]]:
    """The variables of the threads of the first warp."""
    order = shape.order()
    sides = [range(shape.threads[d]) for d in reversed(order)]
    names = [thread_of(indices[d]) for d in reversed(order)]
    lanes = [dict(zip(names, values, strict=True)) for values in product(*sides)]
    return lanes[:WARP]


def value(sum_: IndexSum, variables: Mapping[str, int]) -> int:
    """A sum for definite values; other variables are zero."""
    return sum_.constant + sum(
        c * variables.get(e.name, 0) for e, c in sum_.terms.items() if isinstance(e, ir.Local)
    )


def sums_of(load: ir.LoadElement, definitions: Mapping[str, IndexSum]) -> tuple[IndexSum, ...]:
    """The indices of a read as sums."""
    return tuple(index_sum(i, definitions) for i in load.indices)
