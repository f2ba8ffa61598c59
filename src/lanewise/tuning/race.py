"""Candidates raced side by side: scores free of changes of the clock, slow ones left behind, the
best few once more at the end.
"""

from __future__ import annotations

import statistics
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, inf
from typing import Any, Generic, Protocol, TypeVar

from lanewise.launch.trial import Failure, Trial, duration
from lanewise.support.errors import LanewiseError

C = TypeVar("C", bound=Hashable)

SLOW = 1.5  # what took so much longer in its first round gets no second one
HOPELESS = 4.0  # what took so much longer in the run that checked it is not timed again
LONG = 0.05  # seconds: work that takes longer is warm after its first run, and needs no repetition
ROUNDS, FINAL_ROUNDS = 3, 9
FINALISTS, CLOSE = 5, 1.04
WORTH = 0.01  # less is noise: no reason to leave the default
SURELY_WORTH = 0.05  # the same where a finalist has fewer times than `ROUNDS`
# of the rounds of the last measurement, in which a plan has to be faster than the default: on a
# machine that does much else medians alone differ by luck
WINS = 0.85
# of the time: where the first run of the default takes more, every candidate is timed by the run
# that checks it, and a second time only if it may be the best
SLOW_SHARE = 0.02
SLOW_RUN = 0.2  # seconds: what takes less is never slow
LEAST_RUNS = 3  # the default again, another candidate, and that one again
FINAL_SHARE = 0.15  # of the time, kept for the last measurement


@dataclass(frozen=True, slots=True)
class FirstRun:
    """Seconds of the run that checked a candidate: of the call, and with all that is copied and
    compared around it.
    """

    call: float = 0.0
    whole: float = 0.0


class Measurer(Protocol[C]):
    """What a search asks of a machine. The first candidate of all that are prepared is the default:
    others are held against it.
    """

    def prepare(self, plans: Sequence[C], until: float = inf) -> dict[C, Failure | None]:
        """Compile each candidate, run it once and check its result; None for those that can be
        timed. Those whose run would begin after `until` are left out.
        """
        ...

    def first(self, plan: C) -> FirstRun:
        """What the run took that checked a prepared candidate."""
        ...

    def measure(self, plans: Sequence[C], rounds: int, until: float = inf) -> dict[C, list[float]]:
        """Seconds of one call, once a round; a round times every candidate once. After `until`
        nothing begins but the first call of the first candidate: others may have fewer times, or
        none.
        """
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
    untried: int = 0  # those left out of what was to be tried when the time was up
    # where a walk began: names of families, and points of them; the time allowed no others
    starts: tuple[tuple[str, Mapping[str, Any]], ...] = ()

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
    untried: int = 0
    slow: bool = False  # see `SLOW_SHARE`

    def begin(self, trial: Trial) -> None:
        """Measure the default. Raises `LanewiseError` when it gives other bits in every run, or
        takes so long that there is no time to compare anything with it.
        """
        self.best = self.default
        self.trials[self.default] = trial
        self.measurer.prepare([self.default])
        first = self.measurer.first(self.default)
        self.slow = first.whole > max(SLOW_SHARE * self.limit, SLOW_RUN)
        if self.slow:
            self._check_time(first)
            self._score(self.default, [first.call])
        else:
            once = self.measurer.measure([self.default], 1)[self.default]
            more = self.measurer.measure([self.default], ROUNDS - 1)[self.default]
            self._score(self.default, [*once, *more])
        if failure := self.measurer.confirm(self.default):
            raise LanewiseError(f"the default plan cannot be tuned: {failure.reason}")
        self.confirmed.add(self.default)

    def _check_time(self, first: FirstRun) -> None:
        gone = self.measurer.elapsed()
        if gone + LEAST_RUNS * first.whole <= self.limit:
            return
        besides = (
            f" ({duration(first.whole)} with all that is run and copied to compare it)"
            if first.whole > 1.1 * first.call
            else ""
        )
        raise LanewiseError(
            f"no plan can be compared with the default plan in {self.limit:.3g} s: a launch takes "
            f"{duration(first.call)}{besides}, {gone:.3g} s are gone after the first, and a "
            f"comparison takes {LEAST_RUNS} more; tune with fewer elements, or with "
            f"seconds={ceil(gone + 2 * LEAST_RUNS * first.whole)} or more"
        )

    def prepare(self, trials: dict[C, Trial]) -> list[C]:
        """Compile and check new candidates; those that can be timed."""
        ready: list[C] = []
        found = self.measurer.prepare(list(trials), self.elapsed_at_most())
        self._left(len(trials) - len(found))
        for plan, failure in found.items():
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
        if self.slow:
            for plan in plans:
                self._score(plan, [self.measurer.first(plan).call])
        else:
            self._side_by_side(plans)
        self.best = next(p for p in self._ranked() if self._confirm(p))  # the default is confirmed
        self._release([held, *(p for p in plans if p in self.scores)])

    def _side_by_side(self, plans: Sequence[C]) -> None:
        held = self.best
        calls = {p: self.measurer.first(p).call for p in plans}
        hopeless = [p for p, c in calls.items() if c > max(HOPELESS * self.scores[held], LONG)]
        for plan in hopeless:
            self._score(plan, [calls[plan]])
        plans = [p for p in plans if p not in hopeless]
        if not plans:
            return
        first = self.measurer.measure([held, *plans], 1, self.limit)
        timed = [p for p in plans if first.get(p)]
        for plan in plans:
            if plan not in timed:
                del self.trials[plan]
                self.measurer.release(plan)
        self._left(len(plans) - len(timed))
        fast = [p for p in timed if first[p][0] <= SLOW * first[held][0]]
        more = self.measurer.measure([held, *fast], ROUNDS - 1, self.limit) if fast else {}
        reference = statistics.median([*first[held], *more.get(held, [])])
        scale = self.scores[held] / reference
        for plan in timed:
            self._score(plan, [*first[plan], *more.get(plan, [])], scale)

    def _left(self, count: int) -> None:
        """So many candidates are not tried: the time is up."""
        self.untried += count
        self.complete = self.complete and not count

    def out_of_time(self, waiting: int) -> None:
        """The search ends with so many candidates that it would have tried next."""
        self.complete = False
        self.untried += waiting

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
        rounds = self._final_rounds(finalists)
        times = self.measurer.measure(finalists, rounds, self.limit) if rounds else {}
        # the time may be up before all of them have one
        if times.get(default) and times.get(self.best):
            finalists = [p for p in finalists if times.get(p)]
            times = {p: times[p] for p in finalists}
        else:
            times = {}  # what was measured first counts
        medians = {p: statistics.median(s) for p, s in times.items()}
        medians = medians or {p: self.scores[p] for p in finalists}
        gain = WORTH if min(map(len, times.values()), default=0) >= ROUNDS else SURELY_WORTH
        # the clock of now against that of the search
        now = medians[self.best] / self.scores[self.best]
        for plan, score in self.scores.items():
            trial = self.trials[plan]
            trial.samples, trial.seconds = times.get(plan, []), medians.get(plan, score * now)
        worth = [
            p
            for p in finalists
            if p == default
            or (medians[p] <= (1 - gain) * medians[default] and _wins(times, p, default))
        ]
        best = next(p for p in sorted(worth, key=lambda p: medians[p]) if self._confirm(p))
        return Outcome(best, default, self.trials, exhaustive, self.complete, self.untried)

    def _final_rounds(self, finalists: Sequence[C]) -> int:
        """As many as the time left allows, an odd number; none of a slow kernel where there is no
        time.
        """
        once = sum(max(self.scores[p], 0.02) for p in finalists)
        if self.slow:  # each round begins from the first state
            first = self.measurer.first(self.default)
            once += first.whole - first.call
        affordable = int(min(FINAL_ROUNDS, (self.limit - self.measurer.elapsed()) / once))
        if self.slow and (affordable < 1 or len(finalists) == 1):
            return 0
        return max(1, affordable - 1 | 1)

    def elapsed_at_most(self) -> float:
        """When the run of a candidate may begin for the last time.

        Of a slow one the run that confirms it takes what is kept for the last measurement.
        """
        if not self.slow:
            return (1 - FINAL_SHARE) * self.limit
        once = self.measurer.first(self.default).whole
        return self.limit - max(FINAL_SHARE * self.limit, once)

    def time_left(self) -> float:
        return self.elapsed_at_most() - self.measurer.elapsed()


def _wins(times: Mapping[C, Sequence[float]], plan: C, default: C) -> bool:
    """Whether a plan was faster in nearly all rounds; without any, nothing contradicts it."""
    pairs = list(zip(times.get(plan, ()), times.get(default, ()), strict=False))
    return sum(a < b for a, b in pairs) >= WINS * len(pairs)
