"""Tune a kernel over a search: structures side by side, then plans over the fastest one; report and
remember.

Whole calls are timed: the structure is built, the sources are gathered, the kernel runs. A search
over structures is done again from what an entry of the store has recorded.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from lanewise.launch.compiled import Call
from lanewise.launch.trial import Failure, Trial, trial_from
from lanewise.launch.tuned_plans import Entry, write_entry
from lanewise.patterns.search.searched_launch import SearchedLaunch
from lanewise.patterns.search.tuning.candidates import configuration_from
from lanewise.patterns.search.tuning.job import Choice, SearchJob, SearchSpace, space_of, tuned_of
from lanewise.runtime.memory import to_host
from lanewise.runtime.timing import Stopwatch
from lanewise.tuning.compare import difference, margins, tolerance
from lanewise.tuning.first_run import check_copying, check_finite, run_in_time
from lanewise.tuning.job import POISON, HostArray
from lanewise.tuning.measure import DeviceMeasurer, attempted
from lanewise.tuning.race import LONG, ROUNDS, SLOW, FirstRun, Measurer, Outcome, Race
from lanewise.tuning.report import Tuning
from lanewise.tuning.search import Progress
from lanewise.tuning.tune import RecordedMeasurer, about_of, time_limit

SECOND_SHARE = 0.05  # of the time: a first run that takes less is run again, loaded and compiled
LEAST = 0.02  # seconds that one timing takes, however short the call


def tune_search(
    job: SearchJob, seconds: float | None = None, *, measurer: Measurer[Choice] | None = None,
    progress: Callable[[Progress], None] = lambda state: None,
) -> Tuning:  # fmt: skip
    """Find the fastest structure and plan within about `seconds` (compilation counts), remember
    and report them.

    Raises `ArgumentError` for a time that is no positive number, and what the call itself raises.
    """
    limit = time_limit(job.kind, seconds)
    measurer = measurer or CallMeasurer(job, limit)  # its clock starts here
    space = space_of(job)
    outcome = _find(space, measurer, limit, progress=progress)
    entry = _entry(
        outcome, space, {**about_of(job, measurer.elapsed()), "search": job.requested.describe()}
    )
    path = write_entry(job.key, entry)
    job.adopt(tuned_of(entry))
    return _search_report(outcome, entry.log, path)


def _find(
    space: SearchSpace,
    measurer: Measurer[Choice],
    limit: float,
    allowed: Callable[[Choice], bool] = lambda choice: True,
    progress: Callable[[Progress], None] = lambda state: None,
) -> Outcome[Choice]:
    """The fastest choice of a space. `allowed`: choices that are looked at, all others do not
    exist. progress: called before each.
    """
    default = space.structures[0]
    race = Race(default, measurer, limit)

    def report(doing: str) -> None:
        measured, factor = len(race.scores), race.scores[default] / race.scores[race.best]
        progress(
            Progress(
                measured, len(race.trials) - measured, measurer.elapsed(), limit, factor, doing
            )
        )

    race.begin(_trial(default))
    _add(
        race,
        filter(allowed, space.structures[1:]),
        lambda c: report(f"structures: {c.configuration}"),
    )
    for axis, values in space.axes.items():
        along = [
            replace(race.best, plan=replace(race.best.plan, **{axis: value})) for value in values
        ]
        _add(
            race,
            filter(allowed, along),
            lambda c, axis=axis: report(f"plans: {axis}={getattr(c.plan, axis)}"),
        )
    # A plan may suit another structure better than the one that it was found with.
    near = [
        c for c in space.structures if race.scores.get(c, math.inf) <= SLOW * race.scores[race.best]
    ]
    again = [replace(c, plan=race.best.plan) for c in near]
    _add(race, filter(allowed, again), lambda c: report(f"the best plan with {c.configuration}"))
    report("the best few once more")
    return race.finish(False)


def _add(race: Race[Choice], choices: Iterable[Choice], begin: Callable[[Choice], None]) -> None:
    """Measure new choices side by side, as many as the time allows.

    `begin` is called with each before it is compiled.
    """
    ready: list[Choice] = []
    for choice in choices:
        if choice in race.trials:
            continue
        kept = 0 if race.slow else ROUNDS * (len(ready) + 1)
        if race.time_left() <= kept * max(race.scores[race.best], LEAST):
            race.out_of_time(1)
            continue
        begin(choice)
        ready += race.prepare({choice: _trial(choice)})
    race.time(ready)


def _trial(choice: Choice) -> Trial:
    return Trial(choice.plan, "measured", structure=str(choice.configuration))


def _entry(outcome: Outcome[Choice], space: SearchSpace, about: Mapping[str, Any]) -> Entry:
    best, default = outcome.best, outcome.default
    log = {
        "about": dict(about),
        "note": "",
        "structure": str(best.configuration),
        "default_structure": str(default.configuration),
        "structures": [str(c.configuration) for c in space.structures],
        "axes": {n: list(v) for n, v in space.axes.items()},
        "complete": outcome.complete,
        "untried": outcome.untried,
        "refused": [{"field": f, "value": v, "reason": r} for f, v, r in space.refused],
        "trials": [t.as_dict() for t in outcome.trials.values()],
    }
    return Entry(best.plan, outcome.seconds(best), default.plan, outcome.seconds(default), log)


def _search_report(
    outcome: Outcome[Choice], log: Mapping[str, Any], path: Path | None = None
) -> Tuning:
    """The report of a search; `log` is what the entry of the store says besides the plans."""
    order = sorted(
        outcome.trials,
        key=lambda c: (
            c != outcome.best,
            outcome.trials[c].status != "measured",
            outcome.trials[c].seconds or 0.0,
        ),
    )
    return Tuning(
        outcome.best.plan,
        outcome.seconds(outcome.best),
        outcome.default.plan,
        outcome.seconds(outcome.default),
        tuple(outcome.trials[c] for c in order),
        tuple((r["field"], r["value"], r["reason"]) for r in log["refused"]),
        outcome.exhaustive,
        log.get("complete", outcome.complete),
        log["about"],
        path,
        log["note"],
        log.get("untried", 0),
        str(outcome.best.configuration),
        str(outcome.default.configuration),
    )


IN_ONE_ORDER = (
    # units in the last place: the k nearest are added from the nearest to the farthest by every
    # structure
    16
)


@dataclass(slots=True)
class _Ready:
    """A call with what it gave at first, and its stopwatch."""

    call: Call
    bits: list[bytes]
    watch: Stopwatch
    first: FirstRun
    once: float


class CallMeasurer(DeviceMeasurer[Choice, _Ready]):
    """A `Measurer` of choices. Every one has a structure and its own results; all of them read
    the caller's arrays. limit: seconds, within which the first run of the default has to end.
    """

    compilers = 1

    def __init__(self, job: SearchJob, limit: float = math.inf) -> None:
        super().__init__(job.device)
        self._job, self._limit = job, limit
        self._expected: list[HostArray] | None = None
        self._default: Choice | None = None
        self._margins: list[HostArray] | None = None
        self._tolerance = 0.0

    def prepare(
        self, plans: Sequence[Choice], until: float = math.inf
    ) -> dict[Choice, Failure | None]:
        """The errors of the first choice of all are the caller's."""
        found: dict[Choice, Failure | None] = {}
        if self._expected is None:
            first, *plans = plans
            found[first] = self._begin(first)
        with self._device.use():
            return found | {c: self._check(c) for c in plans if self.elapsed() <= until}

    def first(self, plan: Choice) -> FirstRun:
        return self._ready[plan].first

    def _begin(self, default: Choice) -> None:
        """The first run, which may never end."""

        def start() -> None:
            with self._device.use():
                self._start(default)

        if self._limit < math.inf:
            run_in_time(self._job.name, start, self._limit)
        else:
            start()
        assert self._expected is not None
        check_finite(self._job.name, self._expected)

    def _start(self, default: Choice) -> None:
        call = self._job.bind(default)
        if self._limit < math.inf:
            nbytes = sum(int(r.nbytes) for r in call.results)
            check_copying(self._job.name, nbytes, self._limit)
        reference = call.compiled.reference
        self._tolerance = (
            tolerance(reference)
            if self._job.requested.k is None
            else tolerance(reference, IN_ONE_ORDER)
        )
        self._expected, self._default = self._first_run(default, call), default

    def _check(self, choice: Choice) -> Failure | None:
        assert self._expected is not None
        results = attempted(lambda: self._first_run(choice, self._job.bind(choice)))
        if isinstance(results, Failure):
            return results
        wrong = difference(results, self._expected, self._tolerance)
        if wrong and any(
            e.dtype.kind == "f" for e in self._expected
        ):  # only then are terms worth the time to add their sizes
            wrong = difference(results, self._expected, self._tolerance, self._cancelled())
        if wrong:
            del self._ready[choice]
            return Failure("wrong", wrong)
        return None

    def _cancelled(self) -> list[HostArray]:
        """What rounding explains of every element of the results besides its own size, where terms
        cancel.
        """
        if self._margins is None:
            assert self._expected is not None
            assert self._default is not None
            sizes = self._run(self._job.magnitudes(self._default))[1]
            self._margins = margins(self._expected, [], 0.0, self._tolerance, sizes)
        return self._margins

    def _first_run(self, choice: Choice, call: Call) -> list[HostArray]:
        """The results, which none but the call may have written; a second run that is warm tells
        how often to repeat it.
        """
        began = time.perf_counter()
        once, results = self._run(call)
        whole = time.perf_counter() - began
        if once < LONG or once < SECOND_SHARE * self._limit < math.inf:
            again = self._run(call)[0]
            whole, once = whole - max(0.0, once - again), min(once, again)
        first = FirstRun(once, whole)
        waits = isinstance(call.launch, SearchedLaunch) and call.launch.waits
        watch = self._device.stopwatch([call.launch], once, waits=waits)
        self._ready[choice] = _Ready(call, [a.tobytes() for a in results], watch, first, once)
        return results

    def _run(self, call: Call) -> tuple[float, list[HostArray]]:
        for result in call.results:
            result.reshape(-1).view(np.uint8)[...] = POISON
        self._device.synchronize()
        start = time.perf_counter()
        call.launch()
        self._device.synchronize()
        return time.perf_counter() - start, [np.array(to_host(r)) for r in call.results]

    def _reset(self) -> None:
        """Nothing: the arrays of the caller are only read."""

    def _watch(self, ready: _Ready) -> Stopwatch:
        return ready.watch

    def _again(self, ready: _Ready) -> list[bytes]:
        return [a.tobytes() for a in self._run(ready.call)[1]]


def replay_search(entry: Entry) -> Tuning:
    """The search of an entry, without the device: a choice that was not looked at then does not
    exist.
    """
    space, recording = recorded_space(entry), recorded_trials(entry)
    outcome = _find(space, RecordedMeasurer(recording), float("inf"), recording.__contains__)
    return _search_report(outcome, entry.log)


def recorded_space(entry: Entry) -> SearchSpace:
    """The space of an entry; raises `KeyError` or `ValueError` for one that is damaged."""
    structures = tuple(
        Choice(configuration_from(text), entry.default) for text in entry.log["structures"]
    )
    return SearchSpace(
        structures, {name: tuple(values) for name, values in entry.log["axes"].items()}
    )


def recorded_trials(entry: Entry) -> dict[Choice, Trial]:
    """The trials of an entry by choice."""
    return {
        Choice(configuration_from(t.structure), t.plan): t
        for t in map(trial_from, entry.log["trials"])
    }
