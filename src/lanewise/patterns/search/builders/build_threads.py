"""How many threads the builds of a structure on the host take: as many as its first ones were
fastest with.

A pass hands its work over to threads that have slept since the last build. How long they need to
wake up depends on the machine, and on what the device does between builds, so a price fits some of
them alone: of 16 cores, four are faster within the steps of a flock on a GPU, and eight in builds
one after the other. What is built depends on no number of threads.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from time import perf_counter

from lanewise.runtime.cpu import at_most, threads_worth

FEWEST = 2  # threads that are tried: passes of little work take one anyway
ROUNDS = 4  # builds with each number
GAIN = 1.03  # how much faster a build must be with more threads


@dataclass(slots=True)
class _Tried:
    """The numbers of threads that builds are tried with, and the least seconds of each. builds: so
    far; the first one finds nothing compiled, and is not counted.
    """

    numbers: list[int]
    least: list[float]
    builds: int = 0

    @classmethod
    def up_to(cls, threads: int) -> _Tried:
        numbers = [threads]
        while numbers[-1] // 2 >= FEWEST:
            numbers.append(numbers[-1] // 2)
        return cls(numbers, [inf] * len(numbers))

    @property
    def is_over(self) -> bool:
        return self.builds > ROUNDS * len(self.numbers)

    @property
    def next(self) -> int:
        """The place of the number for the next build: in turns, then that of the fewest threads
        that were as fast as any.
        """
        if not self.is_over:
            return max(0, self.builds - 1) % len(self.numbers)
        fastest = min(self.least)
        return max(n for n, took in enumerate(self.least) if took <= GAIN * fastest)

    def add(self, place: int, seconds: float) -> None:
        """Note how long a build took."""
        if self.builds and not self.is_over:
            self.least[place] = min(self.least[place], seconds)
        self.builds += 1


@dataclass(slots=True)
class BuildThreads:
    """Of the builds of one structure: `with threads():` around all that its threads do.

    longest: the nanoseconds that its longest pass takes one thread. More threads than it pays for
    are not tried, and none where it pays for no more than `FEWEST`.
    """

    longest: float
    _tried: dict[int, _Tried] = field(default_factory=dict[int, _Tried], init=False)

    @contextmanager
    def __call__(self) -> Generator[None]:
        threads = threads_worth(self.longest)
        if threads <= FEWEST:
            yield
            return
        if (tried := self._tried.get(threads)) is None:
            self._tried[threads] = tried = _Tried.up_to(threads)
        place = tried.next
        begin = perf_counter()
        with at_most(tried.numbers[place]):
            yield
        tried.add(place, perf_counter() - begin)
