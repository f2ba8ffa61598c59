"""Tune a kernel over a search: structures side by side, then plans over the fastest one; report and remember."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from lanewise.launch.trial import Trial
from lanewise.launch.tuned_store import Entry, write_entry
from lanewise.patterns.search.tuning.job import SearchJob, SearchSpace, space_of
from lanewise.patterns.search.tuning.lookup import Choice, tuned_of
from lanewise.patterns.search.tuning.measure import CallMeasurer
from lanewise.tuning.race import ROUNDS, SLOW, Found, Measurer, Race
from lanewise.tuning.report import Tuning
from lanewise.tuning.tune import about_of, time_limit

LEAST = 0.02  # seconds that one timing takes, however short the call


def tune_search(job: SearchJob, seconds: float | None = None, *, measurer: Measurer[Choice] | None = None) -> Tuning:
    """Find the fastest structure and plan within about `seconds` (compilation counts), remember them, and tell.

    Raises `ArgumentError` for a time that is no positive number, and what the call itself raises.
    """
    limit = time_limit(job.kind, seconds)
    measurer = measurer or CallMeasurer(job)  # its clock starts here
    space = space_of(job)
    found = find(space, measurer, limit)
    entry = _entry(found, space, {**about_of(job, measurer.elapsed()), "search": job.wish.describe()})
    path = write_entry(job.key, entry)
    job.adopt(tuned_of(entry))
    return search_report(found, entry.log, path)


def find(
    space: SearchSpace, measurer: Measurer[Choice], limit: float, known: Callable[[Choice], bool] = lambda choice: True
) -> Found[Choice]:
    """The fastest choice of a space. `known`: choices that are looked at, all others do not exist."""
    default = space.structures[0]
    race = Race(default, measurer, limit)
    race.begin(_trial(default))
    _add(race, filter(known, space.structures[1:]))
    for axis, values in space.axes.items():
        along = [replace(race.best, plan=replace(race.best.plan, **{axis: value})) for value in values]
        _add(race, filter(known, along))
    # A plan may suit another structure better than the one that it was found with.
    near = [c for c in space.structures if race.scores.get(c, math.inf) <= SLOW * race.scores[race.best]]
    _add(race, filter(known, [replace(c, plan=race.best.plan) for c in near]))
    return race.finish(False)


def _add(race: Race[Choice], choices: Iterable[Choice]) -> None:
    """Measure new choices side by side, as many as the time allows."""
    ready: list[Choice] = []
    for choice in choices:
        if choice in race.trials:
            continue
        if race.time_left() <= ROUNDS * (len(ready) + 1) * max(race.scores[race.best], LEAST):
            race.complete = False
            break
        ready += race.prepare({choice: _trial(choice)})
    race.time(ready)


def _trial(choice: Choice) -> Trial:
    return Trial(choice.plan, "measured", structure=str(choice.configuration))


def _entry(found: Found[Choice], space: SearchSpace, about: Mapping[str, Any]) -> Entry:
    best, default = found.best, found.default
    log = {
        "about": dict(about), "note": "", "structure": str(best.configuration), "default_structure": str(default.configuration),
        "structures": [str(c.configuration) for c in space.structures], "axes": {n: list(v) for n, v in space.axes.items()},
        "refused": [{"field": f, "value": v, "reason": r} for f, v, r in space.refused],
        "trials": [t.as_dict() for t in found.trials.values()],
    }  # fmt: skip
    return Entry(best.plan, found.seconds(best), default.plan, found.seconds(default), log)


def search_report(found: Found[Choice], log: Mapping[str, Any], path: Path | None = None) -> Tuning:
    """The report of a search; `log` is what the entry of the store says beside the plans."""
    order = sorted(
        found.trials,
        key=lambda c: (c != found.best, found.trials[c].status != "measured", found.trials[c].seconds or 0.0),
    )
    return Tuning(
        found.best.plan, found.seconds(found.best), found.default.plan, found.seconds(found.default),
        tuple(found.trials[c] for c in order), tuple((r["field"], r["value"], r["reason"]) for r in log["refused"]),
        found.exhaustive, found.complete, log["about"], path, log["note"], str(found.best.configuration), str(found.default.configuration),
    )  # fmt: skip
