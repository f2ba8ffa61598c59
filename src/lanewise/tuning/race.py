"""Candidates raced side by side: scores free of changes of the clock, slow ones left behind, the
best few once more at the end.
"""

from __future__ import annotations

import statistics
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from lanewise.launch.trial import Failure, Trial
from lanewise.support.errors import LanewiseError

C = TypeVar("C", bound=Hashable)

SLOW = 1.5  # what took so much longer in its first round gets no second one
ROUNDS, FINAL_ROUNDS = 3, 9
FINALISTS, CLOSE = 5, 1.04
WORTH = 0.01  # less is noise: no reason to leave the default
SLOW_SHARE = 0.02  # of the time: a default that takes more is timed once before the others
FINAL_SHARE = 0.15  # of the time, kept for the last measurement


class Measurer(Protocol[C]):
    """What a search asks of a machine. The first candidate of all that are prepared is the default:
    others are held against it.
    """

    def prepare(self, plans: Sequence[C]) -> dict[C, Failure | None]:
        """Compile each candidate, run it once and check its result; None for those that can be
        timed.
        """
        ...

    def measure(self, plans: Sequence[C], rounds: int) -> dict[C, list[float]]:
        """Seconds of one call, once a round; a round times every candidate once."""
        ...

    def confirm(self, plan: C) -> Failure | None:
        """Run a prepared candidate again from the same state: it must give the same bits."""
        ...

    def release(self, plan: C) -> None:
        """A candidate that will not be measured again: its memory can go."""
        ...

    def elapsed(self) -> float:
        """Seconds since the search began."""
        ...

    @property
    def compilers(self) -> int:
        """How many candidates compile at the same time."""
        ...


@dataclass(slots=True)
class Outcome(Generic[C]):
    """What a search found: the best candidate, the default, and every one that was looked at."""

    best: C
    default: C
    trials: dict[C, Trial]
    exhaustive: bool
    complete: bool  # none was left out for want of time

    def seconds(self, plan: C) -> float:
        measured = self.trials[plan].seconds
        assert measured is not None
        return measured


@dataclass
class Race(Generic[C]):
    """The measurements of one search: candidates are added as it continues, the default first."""

    default: C
    measurer: Measurer[C]
    limit: float
    trials: dict[C, Trial] = field(default_factory=dict[C, Trial])
    # seconds, on one scale (see `time`)
    scores: dict[C, float] = field(default_factory=dict[C, float])
    confirmed: set[C] = field(default_factory=set[C])
    best: C = field(init=False)
    complete: bool = True

    def begin(self, trial: Trial) -> None:
        """Measure the default. Raises `LanewiseError` when it gives other bits in every run."""
        self.best = self.default
        self.trials[self.default] = trial
        self.measurer.prepare([self.default])
        self._score(self.default, self._first())
        if failure := self.measurer.confirm(self.default):
            raise LanewiseError(f"the default plan cannot be tuned: {failure.reason}")
        self.confirmed.add(self.default)

    def _first(self) -> list[float]:
        """The first times of the default: one if it is so slow that little time is left for
        others.
        """
        once = self.measurer.measure([self.default], 1)[self.default]
        if once[0] > SLOW_SHARE * self.limit:
            return once
        return [*once, *self.measurer.measure([self.default], ROUNDS - 1)[self.default]]

    def prepare(self, trials: dict[C, Trial]) -> list[C]:
        """Compile and check new candidates; those that can be timed."""
        ready: list[C] = []
        for plan, failure in self.measurer.prepare(list(trials)).items():
            trial = trials[plan]
            if failure is None:
                ready.append(plan)
            else:
                trial.status, trial.reason = failure.status, failure.reason
            self.trials[plan] = trial
        return ready

    def time(self, plans: Sequence[C]) -> None:
        """Time candidates side by side with the best one so far.

        Their score is relative to it: a clock that went down since the beginning makes none look
        worse.
        """
        if not plans:
            return
        held = self.best
        first = self.measurer.measure([held, *plans], 1)
        fast = [p for p in plans if first[p][0] <= SLOW * first[held][0]]
        more = self.measurer.measure([held, *fast], ROUNDS - 1) if fast else {}
        reference = statistics.median([*first[held], *more.get(held, [])])
        scale = self.scores[held] / reference
        for plan in plans:
            self._score(plan, [*first[plan], *more.get(plan, [])], scale)
        self.best = next(p for p in self._ranked() if self._confirm(p))  # the default is confirmed
        self._release([held, *(p for p in plans if p in self.scores)])

    def _ranked(self) -> list[C]:
        return sorted(self.scores, key=lambda p: self.scores[p])

    def _confirm(self, plan: C) -> bool:
        """Whether a candidate gives the same bits again; one that does not is out."""
        if plan not in self.confirmed:
            if failure := self.measurer.confirm(plan):
                self.trials[plan].status, self.trials[plan].reason = failure.status, failure.reason
                del self.scores[plan]
                return False
            self.confirmed.add(plan)
        return True

    def _score(self, plan: C, samples: list[float], scale: float = 1.0) -> None:
        self.scores[plan] = self.trials[plan].score = statistics.median(samples) * scale

    def _release(self, plans: Iterable[C]) -> None:
        """Free the memory of those that can no longer be among the best: the best one only gets
        faster.
        """
        for plan in plans:
            if plan != self.default and self.scores[plan] > CLOSE * self.scores[self.best]:
                self.measurer.release(plan)

    def finish(self, exhaustive: bool) -> Outcome[C]:
        """The best few and the default once more; the default stays unless another one is faster by
        more than noise.
        """
        default = self.default
        close = [p for p in self._ranked() if self.scores[p] <= CLOSE * self.scores[self.best]]
        finalists = [default, self.best, *(p for p in close if p != self.best)]
        finalists = list(dict.fromkeys(finalists))[:FINALISTS]
        if self._final_rounds(finalists) < ROUNDS:
            finalists = list(dict.fromkeys(finalists[:2]))
        times = self.measurer.measure(finalists, self._final_rounds(finalists))
        medians = {p: statistics.median(s) for p, s in times.items()}
        # the clock of now against that of the search
        now = medians[self.best] / self.scores[self.best]
        for plan, score in self.scores.items():
            trial = self.trials[plan]
            trial.samples, trial.seconds = times.get(plan, []), medians.get(plan, score * now)
        worth = [
            p for p in finalists if p == default or medians[p] <= (1 - WORTH) * medians[default]
        ]
        best = next(p for p in sorted(worth, key=lambda p: medians[p]) if self._confirm(p))
        return Outcome(best, default, self.trials, exhaustive, self.complete)

    def _final_rounds(self, finalists: Sequence[C]) -> int:
        """As many as the time left allows, an odd number."""
        once = sum(max(self.scores[p], 0.02) for p in finalists)
        affordable = int(min(FINAL_ROUNDS, (self.limit - self.measurer.elapsed()) / once))
        return max(1, affordable - 1 | 1)

    def time_left(self) -> float:
        return (1 - FINAL_SHARE) * self.limit - self.measurer.elapsed()
