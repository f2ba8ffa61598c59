"""Find the fastest plan of a space with few measurements.

A small space is measured whole. In a large one the search starts from the default plan and from the plans that the
model expects most of, then goes along one axis at a time from the best plan so far (coordinate descent), until a round
over all axes brings nothing. At the end the best few and the default are measured once more, longer and side by side.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from lanewise.errors import LanewiseError
from lanewise.plan import Plan
from lanewise.tuning.measure import Measurer
from lanewise.tuning.space import Family, Point, Space
from lanewise.tuning.trial import Trial

SMALL = 60  # plans that are all measured
ENUMERABLE = 128  # points that are all examined (built, not compiled) to see whether so few are legal
SHAPE = ("targets", "block", "slices")  # the axes that the model is asked about to choose where to start
STARTS = 8
WARP = 32
PROMISING = 2.0  # a plan that the model expects to take longer than this many times the best expected one is left out
SLOW = 1.5  # a plan that took so much longer in its first round gets no second one
ROUNDS, FINAL_ROUNDS = 3, 9
FINALISTS, CLOSE = 5, 1.04
GAIN = 0.005  # less is noise: no reason to move on
WORTH = 0.01  # less is noise: no reason to leave the default plan
SLOW_SHARE = 0.02  # of the time: a default plan that takes more is timed once before the others
LOOKING_SHARE = 0.1  # of the time, for building programs to choose where to start, in each family
FINAL_SHARE = 0.15  # of the time, kept for the last measurement


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a search is: plans measured and refused so far, seconds gone, factor of the best plan over the default."""

    measured: int
    refused: int
    elapsed: float
    seconds: float
    factor: float
    doing: str


@dataclass(slots=True)
class Found:
    """What a search found: the best plan, the default, and every plan that was looked at."""

    best: Plan
    default: Plan
    trials: dict[Plan, Trial]
    exhaustive: bool
    complete: bool  # no plan was left out for want of time

    def seconds(self, plan: Plan) -> float:
        measured = self.trials[plan].seconds
        assert measured is not None
        return measured


def search(
    space: Space, measurer: Measurer, *, seconds: float, progress: Callable[[Progress], None] = lambda state: None
) -> Found:
    """The fastest plan that can be found in about `seconds`, of which the last part goes to confirming it."""
    return _Search(space, measurer, seconds, progress).run()


@dataclass
class _Search:
    space: Space
    measurer: Measurer
    limit: float
    progress: Callable[[Progress], None]
    trials: dict[Plan, Trial] = field(default_factory=dict[Plan, Trial])
    scores: dict[Plan, float] = field(default_factory=dict[Plan, float])  # seconds, on one scale (see `_time`)
    confirmed: set[Plan] = field(default_factory=set[Plan])
    best: Plan = field(init=False)
    complete: bool = True
    spent: float = 0.0  # seconds on plans that were compiled, to know what the next ones take
    compiled: int = 0

    def run(self) -> Found:
        self.best = default = self.space.default
        self.space.examine(default)  # first: plans with the same kernels are the same plan
        self.trials[default] = Trial(default, "measured", predicted=self.space.examine(default).predicted)
        self.measurer.prepare([default])
        self._score(default, self._first(default))
        if failure := self.measurer.confirm(default):
            raise LanewiseError(f"the default plan cannot be tuned: {failure.reason}")
        self.confirmed.add(default)
        everything = self._everything()
        if everything is not None:
            self._try(everything, "all plans")
        else:
            self._descend()
        return self._final(everything is not None)

    def _first(self, default: Plan) -> list[float]:
        """The first times of the default plan: one if it is so slow that little time is left for others."""
        once = self.measurer.measure([default], 1)[default]
        if once[0] > SLOW_SHARE * self.limit:
            return once
        return [*once, *self.measurer.measure([default], ROUNDS - 1)[default]]

    # ------------------------------------------------------------ where to look

    def _everything(self) -> list[Plan] | None:
        """All plans worth measuring, if there are few."""
        if sum(f.size for f in self.space.families) > ENUMERABLE:
            return None
        plans = self._worthwhile(f.plan(p) for f in self.space.families for p in f.points())
        return plans if len(plans) <= SMALL else None

    def _descend(self) -> None:
        starts = self._starts()
        self._try([f.plan(p) for f, points in starts for p in points], "starting points")
        leaders = [(f, p) for f, points in starts if (p := self._leader(f, points)) is not None]
        leaders.sort(key=lambda found: self.scores[found[0].plan(found[1])])
        for family, point in leaders[:2]:  # the second best family may gain more from its details
            if self.scores[family.plan(point)] <= SLOW * self.scores[self.best]:
                self._along_axes(family, point)

    def _starts(self) -> list[tuple[Family, list[Point]]]:
        """For each family its base, its two best other shapes by the model, and those among the best of all families."""
        expected = [(family, self._expected(family)) for family in self.space.families]
        order = sorted(seconds for _, found in expected for seconds, _ in found)
        last = order[min(STARTS, len(order)) - 1] if order else 0.0
        return [
            (family, [family.start, *(p for n, (seconds, p) in enumerate(found) if n < 2 or seconds <= last)])
            for family, found in expected
        ]

    def _expected(self, family: Family) -> list[tuple[float, Point]]:
        """The legal shapes of a family with the model's seconds, the best first, as far as there is time to look."""
        found: list[tuple[float, Point]] = []
        until = self.measurer.elapsed() + LOOKING_SHARE * self.limit
        for point in family.points(SHAPE):
            if self.measurer.elapsed() > until:
                break
            if point.get("block", WARP) // point.get("slices", 1) < min(WARP, point.get("block", WARP)):
                continue  # slices of less than a warp: not worth the time that looking at them takes
            shape = self.space.examine(family.plan(point))
            if not shape.reason and shape.same_as is None and shape.predicted is not None and point != family.start:
                found.append((shape.predicted, point))
        return sorted(found, key=lambda pair: pair[0])

    def _leader(self, family: Family, points: Iterable[Point]) -> Point | None:
        measured = [p for p in points if family.plan(p) in self.scores]
        return min(measured, key=lambda p: self.scores[family.plan(p)], default=None)

    def _along_axes(self, family: Family, point: Point) -> None:
        """Coordinate descent; every axis is tried again after another one brought something."""
        still = 0
        while still < len(family.axes) and self._time_left() > 0:
            for axis in family.axes:
                before = self.scores[family.plan(point)]
                self._try([family.plan(p) for p in family.line(point, axis)], f"{family.name}: {axis}")
                point = self._leader(family, [point, *family.line(point, axis)]) or point
                still = 0 if self.scores[family.plan(point)] < before * (1 - GAIN) else still + 1
                if still >= len(family.axes) or self._time_left() <= 0:
                    break

    # ------------------------------------------------------------ what to measure

    def _worthwhile(self, plans: Iterable[Plan]) -> list[Plan]:
        """Those that are new, legal, and not hopeless by the model, most promising first. The others are noted."""
        fresh: list[Plan] = []
        for plan in plans:
            if plan in self.trials or plan in fresh:
                continue
            found = self.space.examine(plan)
            if found.same_as is not None:
                continue
            if found.reason:
                self.trials[plan] = Trial(plan, "illegal", found.reason)
            else:
                fresh.append(plan)
        expected = {p: self.space.examine(p).predicted for p in fresh}
        measured = [self.space.examine(p).predicted for p in self.scores]
        best = min((e for e in (*expected.values(), *measured) if e is not None), default=0.0)
        kept: list[Plan] = []
        for plan in fresh:
            guess = expected[plan]
            if guess is not None and best and guess > PROMISING * best:
                reason = f"expected to take {guess / best:.1f} times as long as the best plan, by the model"
                self.trials[plan] = Trial(plan, "unpromising", reason, guess)
            else:
                kept.append(plan)
        return sorted(kept, key=lambda p: expected[p] or 0.0)

    def _try(self, plans: Iterable[Plan], doing: str) -> None:
        """Measure plans, as many as the time allows."""
        waiting = self._worthwhile(plans)
        while waiting:
            size = self._affordable()
            if size == 0:
                self.complete = False
                return
            batch, waiting = waiting[:size], waiting[size:]
            self._report(doing)
            began = self.measurer.elapsed()
            self._time(self._prepare(batch))
            self.spent += self.measurer.elapsed() - began
            self.compiled += len(batch)
            self._report(doing)

    def _affordable(self) -> int:
        """How many plans the time left allows, by what the ones before took."""
        left, most = self._time_left(), self.measurer.compilers
        each = (ROUNDS + 2) * self.scores[self.space.default]  # before any was compiled: at least this
        if self.compiled:
            most, each = 4 * most, self.spent / self.compiled
        if left <= 0:
            return 0
        return int(min(most, left / each)) if each > 0 else most

    def _prepare(self, plans: Sequence[Plan]) -> list[Plan]:
        ready: list[Plan] = []
        for plan, failure in self.measurer.prepare(plans).items():
            trial = Trial(plan, "measured", predicted=self.space.examine(plan).predicted)
            if failure is None:
                ready.append(plan)
            else:
                trial.status, trial.reason = failure.status, failure.reason
            self.trials[plan] = trial
        return ready

    def _time(self, plans: Sequence[Plan]) -> None:
        """Time plans side by side with the best one so far.

        Their score is relative to it: a clock that went down since the beginning makes no plan look worse.
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
        self.best = next(p for p in self._ranked() if self._confirm(p))  # the default plan is confirmed
        self._release([held, *(p for p in plans if p in self.scores)])

    def _ranked(self) -> list[Plan]:
        return sorted(self.scores, key=lambda p: self.scores[p])

    def _confirm(self, plan: Plan) -> bool:
        """Whether a plan gives the same bits again; one that does not is out."""
        if plan not in self.confirmed:
            if failure := self.measurer.confirm(plan):
                self.trials[plan].status, self.trials[plan].reason = failure.status, failure.reason
                del self.scores[plan]
                return False
            self.confirmed.add(plan)
        return True

    def _score(self, plan: Plan, samples: list[float], scale: float = 1.0) -> None:
        self.scores[plan] = self.trials[plan].score = statistics.median(samples) * scale

    def _release(self, plans: Iterable[Plan]) -> None:
        """Free the memory of plans that can no longer be among the best: the best one only gets faster."""
        for plan in plans:
            if plan != self.space.default and self.scores[plan] > CLOSE * self.scores[self.best]:
                self.measurer.release(plan)

    # ------------------------------------------------------------ the end

    def _final(self, exhaustive: bool) -> Found:
        """The best few and the default once more; the default stays unless another plan is faster by more than noise."""
        default = self.space.default
        close = [p for p in self._ranked() if self.scores[p] <= CLOSE * self.scores[self.best]]
        finalists = [default, self.best, *(p for p in close if p != self.best)]
        finalists = list(dict.fromkeys(finalists))[:FINALISTS]
        if self._final_rounds(finalists) < ROUNDS:
            finalists = list(dict.fromkeys(finalists[:2]))
        self._report("the best few once more")
        times = self.measurer.measure(finalists, self._final_rounds(finalists))
        medians = {p: statistics.median(s) for p, s in times.items()}
        now = medians[self.best] / self.scores[self.best]  # the clock of now against that of the search
        for plan, score in self.scores.items():
            trial = self.trials[plan]
            trial.samples, trial.seconds = times.get(plan, []), medians.get(plan, score * now)
        worth = [p for p in finalists if p == default or medians[p] <= (1 - WORTH) * medians[default]]
        best = next(p for p in sorted(worth, key=lambda p: medians[p]) if self._confirm(p))
        return Found(best, default, self.trials, exhaustive, self.complete)

    def _final_rounds(self, finalists: Sequence[Plan]) -> int:
        """As many as the time left allows, an odd number."""
        once = sum(max(self.scores[p], 0.02) for p in finalists)
        affordable = int(min(FINAL_ROUNDS, (self.limit - self.measurer.elapsed()) / once))
        return max(1, affordable - 1 | 1)

    def _time_left(self) -> float:
        return (1 - FINAL_SHARE) * self.limit - self.measurer.elapsed()

    def _report(self, doing: str) -> None:
        measured = len(self.scores)
        factor = self.scores[self.space.default] / self.scores[self.best]
        self.progress(
            Progress(measured, len(self.trials) - measured, self.measurer.elapsed(), self.limit, factor, doing)
        )
