"""Find the fastest plan of a space with few measurements.

A small space is measured whole. In a large one the search starts from the default plan and from the
plans that the model expects most of, then goes along one axis at a time from the best plan so far
(coordinate descent), until a round over all axes brings nothing. At the end the best few and the
default are measured once more, longer and side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from lanewise.language.target import WARP
from lanewise.launch.trial import Trial
from lanewise.planning.plan import CompletePlan
from lanewise.tuning.race import ROUNDS, SLOW, Measurer, Outcome, Race
from lanewise.tuning.space import Family, Point, Space

SMALL = 60  # plans that are all measured
# points that are all examined (built, not compiled) to see whether so few are legal
ENUMERABLE = 128
# the axes that the model is asked about to choose where to start
SHAPE = ("targets", "block", "slices")
STARTS = 8
# a plan that the model expects to take longer than this many times the best expected one is left
# out
PROMISING = 2.0
GAIN = 0.005  # less is noise: no reason to move on
LOOKING_SHARE = 0.1  # of the time, for building programs to choose where to start, in each family


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a search is: plans measured and refused so far, seconds gone, factor of the best plan
    over the default.
    """

    measured: int
    refused: int
    elapsed: float
    seconds: float
    factor: float
    doing: str


@dataclass(frozen=True, slots=True)
class Course:
    """What a search did that its measurements do not tell, since it depended on the clock.

    whole: all plans were tried; a recording of a part of a large space looks small. starts: where
    the walk began, as families by name and their points.
    """

    whole: bool
    starts: tuple[tuple[str, Point], ...]


def search(
    space: Space,
    measurer: Measurer[CompletePlan],
    *,
    seconds: float,
    progress: Callable[[Progress], None] = lambda state: None,
    course: Course | None = None,
) -> Outcome[CompletePlan]:
    """The fastest plan that can be found in about `seconds`, of which the last part goes to
    confirming it.

    course: of the search that is repeated in what it measured.
    """
    return _Search(space, Race(space.default, measurer, seconds), progress, course).run()


@dataclass
class _Search:
    space: Space
    race: Race[CompletePlan]
    progress: Callable[[Progress], None]
    course: Course | None
    spent: float = 0.0  # seconds on plans that were compiled, to know what the next ones take
    compiled: int = 0

    def run(self) -> Outcome[CompletePlan]:
        default = self.space.default
        self.space.examine(default)  # first: plans with the same kernels are the same plan
        self.race.begin(Trial(default, "measured", predicted=self.space.examine(default).predicted))
        everything = self._everything()
        starts: list[tuple[Family, list[Point]]] = []
        if everything is not None:
            self._try(everything, "all plans")
        else:
            starts = self._starts()
            self._descend(starts)
        self._report("the best few once more")
        outcome = self.race.finish(everything is not None)
        outcome.starts = tuple((f.name, p) for f, points in starts for p in points)
        return outcome

    # ------------------------------------------------------------ where to look

    def _everything(self) -> list[CompletePlan] | None:
        """All plans worth measuring, if there are few."""
        if self.course is not None and not self.course.whole:
            return None
        if sum(f.size for f in self.space.families) > ENUMERABLE:
            return None
        plans = self._worthwhile(f.plan(p) for f in self.space.families for p in f.points())
        return plans if len(plans) <= SMALL else None

    def _descend(self, starts: list[tuple[Family, list[Point]]]) -> None:
        self._try([f.plan(p) for f, points in starts for p in points], "starting points")
        leaders = [(f, p) for f, points in starts if (p := self._leader(f, points)) is not None]
        leaders.sort(key=lambda leader: self.race.scores[leader[0].plan(leader[1])])
        for family, point in leaders[:2]:  # the second best family may gain more from its details
            if self.race.scores[family.plan(point)] <= SLOW * self.race.scores[self.race.best]:
                self._along_axes(family, point)

    def _starts(self) -> list[tuple[Family, list[Point]]]:
        """For each family its base, its two best other shapes by the model, and those among the
        best of all families.
        """
        if self.course is not None:
            return [
                (family, [p for name, p in self.course.starts if name == family.name])
                for family in self.space.families
            ]
        expected = [(family, self._expected(family)) for family in self.space.families]
        order = sorted(seconds for _, shapes in expected for seconds, _ in shapes)
        last = order[min(STARTS, len(order)) - 1] if order else 0.0
        return [
            (
                family,
                [
                    family.start,
                    *(p for n, (seconds, p) in enumerate(shapes) if n < 2 or seconds <= last),
                ],
            )
            for family, shapes in expected
        ]

    def _expected(self, family: Family) -> list[tuple[float, Point]]:
        """The legal shapes of a family with the model's seconds, the best first, as far as there is
        time to look.
        """
        shapes: list[tuple[float, Point]] = []
        until = self.race.measurer.elapsed() + LOOKING_SHARE * self.race.limit
        for point in family.points(SHAPE):
            if self.race.measurer.elapsed() > until:
                break
            if point.get("block", WARP) // point.get("slices", 1) < min(
                WARP, point.get("block", WARP)
            ):
                # slices of less than a warp: not worth the time that looking at them takes
                continue
            shape = self.space.examine(family.plan(point))
            if (
                not shape.reason
                and shape.same_as is None
                and shape.predicted is not None
                and point != family.start
            ):
                shapes.append((shape.predicted, point))
        return sorted(shapes, key=lambda pair: pair[0])

    def _leader(self, family: Family, points: Iterable[Point]) -> Point | None:
        measured = [p for p in points if family.plan(p) in self.race.scores]
        return min(measured, key=lambda p: self.race.scores[family.plan(p)], default=None)

    def _along_axes(self, family: Family, point: Point) -> None:
        """Coordinate descent; every axis is tried again after another one brought something."""
        still = 0
        while still < len(family.axes) and self.race.time_left() > 0:
            for axis in family.axes:
                before = self.race.scores[family.plan(point)]
                self._try(
                    [family.plan(p) for p in family.line(point, axis)], f"{family.name}: {axis}"
                )
                point = self._leader(family, [point, *family.line(point, axis)]) or point
                still = (
                    0 if self.race.scores[family.plan(point)] < before * (1 - GAIN) else still + 1
                )
                if still >= len(family.axes) or self.race.time_left() <= 0:
                    break
        if still < len(family.axes):
            self.race.out_of_time(0)  # what is left of the lines was not looked at

    # ------------------------------------------------------------ what to measure

    def _worthwhile(self, plans: Iterable[CompletePlan]) -> list[CompletePlan]:
        """Those that are new, legal, and not hopeless by the model, most promising first.

        The others are noted.
        """
        fresh: list[CompletePlan] = []
        for plan in plans:
            if plan in self.race.trials or plan in fresh:
                continue
            examined = self.space.examine(plan)
            if examined.same_as is not None:
                continue
            if examined.reason:
                self.race.trials[plan] = Trial(plan, "illegal", examined.reason)
            else:
                fresh.append(plan)
        expected = {p: self.space.examine(p).predicted for p in fresh}
        measured = [self.space.examine(p).predicted for p in self.race.scores]
        best = min((e for e in (*expected.values(), *measured) if e is not None), default=0.0)
        kept: list[CompletePlan] = []
        for plan in fresh:
            guess = expected[plan]
            if guess is not None and best and guess > PROMISING * best:
                reason = (
                    f"expected to take {guess / best:.1f} times as long as the best plan, by the "
                    "model"
                )
                self.race.trials[plan] = Trial(plan, "unpromising", reason, guess)
            else:
                kept.append(plan)
        return sorted(kept, key=lambda p: expected[p] or 0.0)

    def _try(self, plans: Iterable[CompletePlan], doing: str) -> None:
        """Measure plans, as many as the time allows."""
        waiting = self._worthwhile(plans)
        while waiting:
            size = self._affordable()
            if size == 0:
                self.race.out_of_time(len(waiting))
                return
            batch, waiting = waiting[:size], waiting[size:]
            self._report(doing)
            began = self.race.measurer.elapsed()
            self.race.time(self.race.prepare({p: self._trial(p) for p in batch}))
            self.spent += self.race.measurer.elapsed() - began
            self.compiled += len(batch)
            self._report(doing)

    def _affordable(self) -> int:
        """How many plans the time left allows, by what the ones before took."""
        left, most = self.race.time_left(), self.race.measurer.compilers
        # before any was compiled: at least this
        each = (1 if self.race.slow else ROUNDS + 2) * self.race.scores[self.space.default]
        if self.compiled:
            most, each = 4 * most, self.spent / self.compiled
        if left <= 0:
            return 0
        if self.race.slow:  # the measurer looks at the clock before each
            return max(1, min(most, int(left / each)))
        return int(min(most, left / each)) if each > 0 else most

    def _trial(self, plan: CompletePlan) -> Trial:
        return Trial(plan, "measured", predicted=self.space.examine(plan).predicted)

    def _report(self, doing: str) -> None:
        measured = len(self.race.scores)
        factor = self.race.scores[self.space.default] / self.race.scores[self.race.best]
        self.progress(
            Progress(
                measured,
                len(self.race.trials) - measured,
                self.race.measurer.elapsed(),
                self.race.limit,
                factor,
                doing,
            )
        )
