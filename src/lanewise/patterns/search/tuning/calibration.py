"""Calibrate an accuracy: find the fastest tree whose results are close enough, by measurement.

    for walks by estimates and pairs of groups, for every order:
        the widest opening whose errors hold, by doubling and halving
    the fastest few in turns; other leaves for the fastest
Errors are those of about 4,096 targets against all pairs, with a margin for those that were not
looked at. A wider opening is never slower, so an order ends where what is too wide already takes
longer than the best tree. A tree is made, measured and dropped before the next one: they never lie
in memory together. What was found is kept like tuned plans.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.language import types as t
from lanewise.language.target import target_of
from lanewise.launch.compiled import Call
from lanewise.launch.trial import Trial
from lanewise.launch.tuned_plans import Entry, Key, write_entry
from lanewise.patterns.search.tree.choice import Calibrated, Sampled, TreeChoice, calibrated_of
from lanewise.patterns.search.tree.compared import rows
from lanewise.patterns.search.tree.search import FINE, LEAST_ACCURACY, MOST_THETA, Tree
from lanewise.patterns.search.tree.shape import LEAF
from lanewise.patterns.search.tree.tail import median_and_most, relative
from lanewise.planning.plan import CompletePlan
from lanewise.runtime.device import get_device
from lanewise.runtime.memory import on
from lanewise.support.errors import ArgumentError
from lanewise.tuning.report import Tuning
from lanewise.tuning.search import Progress
from lanewise.tuning.tune import about_of, time_limit

MARGIN = 0.8  # of the accuracy, that the 99 % error of the sample may be
WALKS, FINE_WALKS, DUALS = (2, 3, 4), (3, 4, 5), (3, 4, 5)  # orders
LEAVES = (16, 64)  # besides the default
NARROWEST, FIRST, WIDEST = 0.3, 0.6, MOST_THETA  # angles of pairs of groups
STEP = 4.0  # of a walk's openings
RUNS, CONTENDERS = 2, 3
MOST_OPENING = 0.95


@dataclass(frozen=True, slots=True)
class CalibrationJob:
    """What is calibrated.

    asked: the tree, with an accuracy; counts: elements by the names of the parameters; pairs: pairs
    of groups are possible. bind: a call of a choice, with its own memory; wanted: results of all
    pairs for the targets `some`, each of shape (n, components). adopt: called with what was chosen.
    """

    name: str
    device: str
    asked: Tree
    precision: t.Scalar
    counts: Mapping[str, int]
    pairs: bool
    plan: CompletePlan
    key: Key
    bind: Callable[[TreeChoice], Call]
    some: slice
    wanted: Callable[[], list[NDArray[np.float64]]]
    adopt: Callable[[Calibrated], None]

    @property
    def accuracy(self) -> float:
        assert self.asked.accuracy is not None
        return self.asked.accuracy

    @property
    def default(self) -> TreeChoice:
        """The tree without calibration."""
        return TreeChoice("walk", self.asked.terms, self.asked.leaf, self.accuracy)


@dataclass(slots=True)
class _Found:
    """A tree that ran: its errors, and the seconds of its runs."""

    errors: Sampled
    seconds: list[float]

    @property
    def least(self) -> float:
        return min(self.seconds)


@dataclass(slots=True)
class _Calibration:
    job: CalibrationJob
    limit: float
    progress: Callable[[Progress], None] = lambda state: None
    began: float = field(default_factory=time.perf_counter)
    found: dict[TreeChoice, _Found] = field(default_factory=dict[TreeChoice, "_Found"])
    complete: bool = True
    _wanted: list[NDArray[np.float64]] | None = None

    @property
    def elapsed(self) -> float:
        return time.perf_counter() - self.began

    def holds(self, choice: TreeChoice) -> bool:
        """Whether its errors leave the margin; it is measured where it was not."""
        return self.measured(choice).errors.most <= MARGIN * self.job.accuracy

    def measured(self, choice: TreeChoice) -> _Found:
        if choice not in self.found:
            self._report(str(choice))
            call = self.job.bind(choice)
            call.launch()
            errors = self._errors(call)
            self.found[choice] = _Found(errors, [self._run(call) for _ in range(RUNS)])
        return self.found[choice]

    def again(self, choice: TreeChoice) -> list[float]:
        """The seconds of more runs."""
        self._report(f"once more: {choice}")
        call = self.job.bind(choice)
        call.launch()
        return [self._run(call) for _ in range(RUNS)]

    def _report(self, doing: str) -> None:
        default, best = self.found.get(self.job.default), self.best
        factor = 1.0 if default is None or best is None else default.least / self.found[best].least
        good = sum(self.holds(x) for x in self.found)
        self.progress(
            Progress(good, len(self.found) - good, self.elapsed, self.limit, factor, doing)
        )

    def _run(self, call: Call) -> float:
        device = get_device(self.job.device)
        device.synchronize()
        start = time.perf_counter()
        call.launch()
        device.synchronize()
        return time.perf_counter() - start

    def _errors(self, call: Call) -> Sampled:
        if self._wanted is None:
            self._wanted = self.job.wanted()
            _check_finite(self.job.name, self._wanted)
        found = [rows(r[self.job.some]) for r in call.results]
        both = zip(found, self._wanted, strict=True)
        errors = np.max([relative(f, w) for f, w in both], axis=0)
        return Sampled(*median_and_most(errors), float(errors.max()), len(errors))

    @property
    def best(self) -> TreeChoice | None:
        """The fastest so far of those that hold."""
        good = [c for c in self.found if self.holds(c)]
        return min(good, key=lambda c: self.found[c].least, default=None)

    def hopeless(self, too_wide: TreeChoice) -> bool:
        """Whether narrower ones, which take longer, cannot be the best."""
        best = self.best
        return best is not None and self.found[too_wide].least > self.found[best].least

    def widest(self, family: Callable[[float], TreeChoice], steps: Iterator[float]) -> None:
        """Look for the widest opening that holds: wider while it does, narrower until it does,
        between the two at last.
        """
        holds: float | None = None
        fails: float | None = None
        opening = next(steps)
        while True:
            if self.elapsed > self.limit:
                self.complete = False
                return
            choice = family(opening)
            if self.holds(choice):
                holds = opening if holds is None else max(holds, opening)
            else:
                fails = opening if fails is None else min(fails, opening)
                if self.hopeless(choice):
                    return
            following = _next(family(1.0).method, self.job, holds, fails)
            if following is None:
                return
            opening = following


def _next(
    method: str, job: CalibrationJob, holds: float | None, fails: float | None
) -> float | None:
    """The opening to try behind these; None where that is enough."""
    if method == "dual":
        if fails is None:
            return None if holds == WIDEST else WIDEST
        if holds is None:
            return None if fails <= NARROWEST else max(fails - 0.2, NARROWEST)
        return None if fails - holds < 0.06 else (fails + holds) / 2
    if fails is None:
        assert holds is not None
        return None if holds >= MOST_OPENING else min(holds * STEP, MOST_OPENING)
    if holds is None:
        least = LEAST_ACCURACY[job.precision.size]
        enough = fails <= least or fails < job.accuracy / STEP**2
        return None if enough else max(fails / STEP, least)
    return None if fails < 1.5 * holds else (fails * holds) ** 0.5


def calibrate(
    job: CalibrationJob,
    seconds: float | None = None,
    *,
    progress: Callable[[Progress], None] = lambda state: None,
) -> Tuning:
    """Find the fastest tree whose results are within the accuracy, in about `seconds` (compilation
    counts), remember and report it. progress: called before each tree.

    Raises `ArgumentError` where none is: with the best one and what to do.
    """
    with on(job.device):
        c = _Calibration(job, time_limit(target_of(job.device).name, seconds), progress)
        c.holds(job.default)
        for family, first in _families(job):
            c.widest(family, iter((first,)))
        _try_leaves(c)
        best = _finish(c)
    found, default = c.found[best], c.found[job.default]
    about = about_of(job, c.elapsed)
    log: dict[str, Any] = {
        "about": about, "note": "", "accuracy": job.accuracy,
        "structure": str(best), "default_structure": str(job.default),
        "errors": found.errors.as_dict(), "trials": [x.as_dict() for x in _trials(c, best)],
    }  # fmt: skip
    entry = Entry(job.plan, found.least, job.plan, default.least, log)
    path = write_entry(job.key, entry)
    job.adopt(calibrated_of(entry))
    return Tuning(
        job.plan, found.least, job.plan, default.least, _trials(c, best), (), False, c.complete,
        about, path,
        note=f"99 % of the results within {job.accuracy:g} predicted; measured {found.errors}",
        structure=str(best), default_structure=str(job.default),
    )  # fmt: skip


def _families(job: CalibrationJob) -> Iterator[tuple[Callable[[float], TreeChoice], float]]:
    """The kinds of trees, each by its opening, and the first one to try."""
    asked = job.asked

    def family(method: Any, order: int) -> Callable[[float], TreeChoice]:
        return lambda opening: TreeChoice(method, order, asked.leaf, float(f"{opening:.3g}"))

    walks = WALKS if job.accuracy >= FINE else FINE_WALKS
    for order in walks if asked.order is None else (asked.order,):
        yield family("walk", order), min(2 * job.accuracy, MOST_OPENING)
    if job.pairs and asked.theta is None and asked.method is None:
        for order in DUALS if asked.order is None else (asked.order,):
            yield family("dual", order), FIRST


def _try_leaves(c: _Calibration) -> None:
    """Other leaves for the best tree, where the default ones were not changed."""
    best = c.best
    if best is None or c.job.asked.leaf != LEAF:
        return
    for leaf in LEAVES:
        if c.elapsed > c.limit:
            c.complete = False
            return
        c.holds(replace(best, leaf=leaf))


def _finish(c: _Calibration) -> TreeChoice:
    """The best of the fastest few, timed in turns. Raises `ArgumentError` where none holds."""
    job = c.job
    good = sorted((x for x in c.found if c.holds(x)), key=lambda x: c.found[x].least)
    if not good:  # then without the margin
        within = [x for x in c.found if c.found[x].errors.most <= job.accuracy]
        good = sorted(within, key=lambda x: c.found[x].errors.most)[:1]
    if not good:
        raise _unreached(c)
    contenders = [*good[:CONTENDERS], *([job.default] if job.default not in good[:3] else [])]
    turns = [[c.again(choice) for choice in contenders] for _ in range(RUNS)]
    for choice, runs in zip(contenders, zip(*turns, strict=True), strict=True):
        c.found[choice].seconds[:] = [x for seconds in runs for x in seconds]
    return min(good[:CONTENDERS], key=lambda x: c.found[x].least)


def _unreached(c: _Calibration) -> ArgumentError:
    job = c.job
    best = min(c.found, key=lambda x: c.found[x].errors.most)
    errors = c.found[best].errors
    exact = "" if job.precision == t.F64 else ", records of float64"
    return ArgumentError(
        f"{job.name}: no tree that was tried has 99 % of its results within {job.accuracy:g} of "
        f"those of all pairs. The best found is {best}: {errors}. Choose "
        f"accuracy={_rounded_up(errors.most / MARGIN):g} or more{exact}, or lw.AllPairs()"
    )


def _rounded_up(value: float) -> float:
    """To one digit."""
    unit = 10.0 ** np.floor(np.log10(value))
    return float(f"{np.ceil(value / unit) * unit:.1g}")


def _check_finite(name: str, wanted: list[NDArray[np.float64]]) -> None:
    """Refuse targets whose results are no numbers even over all pairs."""
    if not all(np.isfinite(w).all() for w in wanted):
        raise ArgumentError(
            f"{name}: over all pairs some results are no finite numbers, and no error is relative "
            "to these; two elements in one place need a softening or a branch"
        )


def _trials(c: _Calibration, best: TreeChoice) -> tuple[Trial, ...]:
    """All that was measured, the best one first."""
    order = sorted(c.found, key=lambda x: (x != best, not c.holds(x), c.found[x].least))
    made: list[Trial] = []
    for choice in order:
        f = c.found[choice]
        good = c.holds(choice) or choice == best
        why = "" if good else f"too far from all pairs, found 99 % below {f.errors.most:.1e}"
        made.append(
            Trial(
                c.job.plan, "measured" if good else "wrong", why, score=f.least, seconds=f.least,
                samples=list(f.seconds), structure=str(choice),
            )
        )  # fmt: skip
    return tuple(made)
