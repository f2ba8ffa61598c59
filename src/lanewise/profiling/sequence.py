"""Times of a sequence of launches that is repeated: whole, and launch by launch in the repetitions
that are sampled.

A step may take two microseconds, a reading of a clock a tenth of one. So only every n-th repetition
is measured launch by launch, n such that this takes at most `SHARE` of the time; all of them
together are measured by two readings around a run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise

SHARE = 0.005  # of the time of the steps that sampling may take


@dataclass(frozen=True, slots=True)
class SampleCost:
    """What a sample costs besides its launches, in nanoseconds: once, and for every launch of the
    sequence.
    """

    sample: int
    launch: int


# Measured, and rounded up: design/0005-profile.md.
HOST_COST = SampleCost(2_500, 700)
# An event in a graph, and asking for its time later; asking runs next to the device's work, but a
# loop of short graphs has no time of the host to spare.
DEVICE_COST = SampleCost(30_000, 4_000)


def interval(nanoseconds: int, launches: int, cost: SampleCost) -> int:
    """How many repetitions lie between two samples, when one takes that many nanoseconds: 1 samples
    all of them.
    """
    allowed = max(1.0, SHARE * nanoseconds)
    return max(1, math.ceil((cost.sample + launches * cost.launch) / allowed))


@dataclass(slots=True)
class ProfiledSequence:
    """What is known of a sequence.

    names: stage and name of its launches. steps: of the simulation, in one repetition. repetitions:
    of all.
    sampled: repetitions whose launches were measured; a sample stands for all repetitions since the
    one before, `weight` in all. parts: nanoseconds of each launch, so weighted: a first repetition,
    which meets cold caches, stands for itself alone.
    wait: repetitions until the next sample; interval: between two of them, by the last one; since:
    repetitions after it.
    """

    names: tuple[tuple[str, str], ...]
    steps: int
    cost: SampleCost
    repetitions: int = 0
    sampled: int = 0
    weight: int = 0
    parts: list[int] = field(default_factory=list[int])
    wait: int = 0
    interval: int = 1
    since: int = 0

    def __post_init__(self) -> None:
        self.parts = [0] * len(self.names)

    def passed(self, repetitions: int) -> None:
        """Count repetitions that have been launched."""
        self.wait -= repetitions
        self.since += repetitions

    def add(self, marks: list[int], weight: int) -> None:
        """Take up a sample that stands for `weight` repetitions: readings in ns, before the first
        launch and after each.
        """
        self.sampled += 1
        self.weight += weight
        for number, (before, after) in enumerate(pairwise(marks)):
            self.parts[number] += weight * (after - before)
        self.interval = interval(marks[-1] - marks[0], len(self.names), self.cost)

    def drawn(self) -> int:
        """Now that a repetition is sampled: how many it stands for.

        The next one comes after `interval`.
        """
        weight, self.since, self.wait = self.since + 1, 0, self.interval - 1
        return weight

    @property
    def estimate(self) -> float:
        """Nanoseconds of all repetitions, if all were as the samples are; 0 without any."""
        return sum(self.parts) / self.weight * self.repetitions if self.weight else 0.0

    def shares(self) -> list[float]:
        """The share of each launch in the time of the sequence; without a sample an equal one."""
        whole = sum(self.parts)
        return [p / whole for p in self.parts] if whole else [1 / len(self.parts)] * len(self.parts)


@dataclass(slots=True)
class ProfiledLoop:
    """Sequences that run in turn, such as steps and what is done after every 32 of them.

    nanoseconds: of all together.

    On a GPU the next one is launched before the last one is done, so they could not be measured
    apart without waiting.
    """

    sequences: list[ProfiledSequence] = field(default_factory=list[ProfiledSequence])
    nanoseconds: int = 0

    def sequence(
        self, names: tuple[tuple[str, str], ...], steps: int, cost: SampleCost
    ) -> ProfiledSequence:
        """Account for one more sequence."""
        made = ProfiledSequence(names, steps, cost)
        self.sequences.append(made)
        return made

    def divided(self) -> list[tuple[ProfiledSequence, float]]:
        """Those that were run, and the nanoseconds of each: those of all, divided as the samples
        say.
        """
        taken = [s for s in self.sequences if s.repetitions]
        estimates = [s.estimate for s in taken]
        whole = sum(estimates)
        return [
            (s, self.nanoseconds * (e / whole if whole else 1 / len(taken)))
            for s, e in zip(taken, estimates, strict=True)
        ]
