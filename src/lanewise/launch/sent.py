"""What the parts of a mesh copy to each other, as data: by how many rows each part has, so that it
can also be said of parts that are not there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class Sent:
    """What parts copy `times` in every `every`-th step.

    nbytes: from one part to another one, by their numbers. shared: parts on one device have it
    once; parts then also send to themselves. hidden: GPUs compute meanwhile what does not need it.
    """

    name: str
    nbytes: Mapping[tuple[int, int], int]
    every: int = 1
    shared: bool = False
    times: int = 1
    hidden: bool = False

    def between(self, devices: Sequence[str]) -> Iterator[tuple[str, str, int]]:
        """The copies when parts lie on these devices."""
        for (p, q), nbytes in self.nbytes.items():
            if nbytes and not (self.shared and devices.index(devices[q]) != q):
                yield devices[p], devices[q], nbytes

    def total(self, devices: Sequence[str]) -> int:
        """Bytes that are copied at once."""
        return sum(nbytes for _, _, nbytes in self.between(devices))

    def received(self, part: int) -> float:
        """Bytes that come to a part from others in a step, on average."""
        came = sum(nbytes for (p, q), nbytes in self.nbytes.items() if q == part != p)
        return came * self.a_step

    @property
    def a_step(self) -> float:
        """How often it is copied in a step, on average."""
        return self.times / self.every

    def when(self, of: str = "step") -> str:
        """The same in words. of: what is counted."""
        return rhythm_text(self.times, self.every, of)


def rhythm_text(times: int, every: int, of: str) -> str:
    """How often something happens in so many steps."""
    rhythm = f"every {of}" if every == 1 else f"{every} {of}s"
    if times > 1:
        return f"{times} times in {rhythm}"
    return f"in {rhythm}" if every == 1 else f"once in {rhythm}"


Law = Callable[[Sequence[int]], Sent]
"""What is copied, by how many rows each part has."""


@dataclass(frozen=True, slots=True)
class RowsToAll:
    """Rows of so many bytes, which every device gets from all parts. count: None for those of the
    parts; else so many of another array, whose parts are cut elsewhere: they count as sent by the
    first part.
    """

    name: str
    row: int
    count: int | None = None

    def __call__(self, rows: Sequence[int]) -> Sent:
        parts = range(len(rows))
        if self.count is not None:
            return Sent(self.name, {(0, q): self.count * self.row for q in parts}, shared=True)
        return Sent(
            self.name, {(p, q): rows[p] * self.row for p in parts for q in parts}, shared=True
        )


def even(count: int, parts: int) -> tuple[int, ...]:
    """So many rows in parts of equal length, to one row, as a mesh has them."""
    ends = [count * part // parts for part in range(parts + 1)]
    return tuple(b - a for a, b in pairwise(ends))


Grown = Callable[[tuple[int, ...]], tuple[Sent, ...]]
