"""Tune a kernel: search, report, remember; and search again in what was measured before.

The latter needs no device, and its result is the same.
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, Protocol

from lanewise.language.target import target_of
from lanewise.launch.trial import Failure, Trial, changes, plan_from, trial_from
from lanewise.launch.tuned_plans import Entry, Key, entry_from, write_entry
from lanewise.planning.plan import CompletePlan
from lanewise.support.errors import ArgumentError, InputError
from lanewise.tuning.job import Job
from lanewise.tuning.measure import KernelMeasurer
from lanewise.tuning.race import ROUNDS, C, FirstRun, Measurer, Outcome
from lanewise.tuning.report import Tuning, tuning_of
from lanewise.tuning.search import Course, Progress, search
from lanewise.tuning.space import Examined, Family, KernelSpace, Space, make_estimator


def tune_job(
    job: Job,
    seconds: float | None = None,
    *,
    measurer: Measurer[CompletePlan] | None = None,
    progress: Callable[[Progress], None] = lambda state: None,
) -> Tuning:
    """Find the fastest plan of a job within about `seconds` (compilation counts), remember and
    report it.

    Raises `ArgumentError` for a time that is no positive number, `PlanError` when the fields that
    the caller fixes are illegal for the kernel.
    """
    limit = time_limit(job.kind, seconds)
    measurer = measurer or KernelMeasurer(job, limit)  # its clock starts here
    return tune_space(job, KernelSpace(job, make_estimator(job)), measurer, limit, progress)


class Described(Protocol):
    """What is tuned, as far as its report asks."""

    @property
    def name(self) -> str: ...
    @property
    def device(self) -> str: ...
    @property
    def counts(self) -> Mapping[str, int]: ...
    @property
    def key(self) -> Key: ...


class TuningSubject(Described, Protocol):
    """The same, as far as the store asks."""

    @property
    def adopt(self) -> Callable[[CompletePlan], None]: ...
    @property
    def advise(self) -> Callable[[], str]: ...


class Refusing(Space, Protocol):
    """A space that says what is not in it. refused: (field, value, reason)."""

    refused: list[tuple[str, Any, str]]


def tune_space(
    job: TuningSubject,
    space: Refusing,
    measurer: Measurer[CompletePlan],
    limit: float,
    progress: Callable[[Progress], None],
) -> Tuning:
    """Find the fastest plan of a space within about `limit` seconds, remember and report it."""
    outcome = search(space, measurer, seconds=limit, progress=progress)
    log = {
        "about": about_of(job, measurer.elapsed()),
        "note": job.advise(),
        "families": families_to(space.families),
        "exhaustive": outcome.exhaustive,
        "starts": [[name, dict(point)] for name, point in outcome.starts],
        "complete": outcome.complete,
        "untried": outcome.untried,
        "refused": [{"field": f, "value": v, "reason": r} for f, v, r in space.refused],
        "trials": [t.as_dict() for t in outcome.trials.values()],
    }
    path = write_entry(job.key, _entry(outcome, log))
    job.adopt(outcome.best)
    return tuning_of(outcome, log, path)


def _entry(outcome: Outcome[CompletePlan], log: dict[str, Any]) -> Entry:
    return Entry(
        outcome.best,
        outcome.seconds(outcome.best),
        outcome.default,
        outcome.seconds(outcome.default),
        log,
    )


def about_of(job: Described, elapsed: float) -> dict[str, Any]:
    """What was tuned, and where."""
    key = job.key
    return {
        "kernel": job.name,
        "device": job.device,
        "machine": key.device,
        "arch": key.arch,
        "driver": key.driver,
        "compiler": key.compiler,
        "version": key.version,
        "layouts": key.layouts,
        "wanted": key.wanted,
        "elements": ", ".join(f"{n:,} {name}" for name, n in job.counts.items()),
        "elapsed": elapsed,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def time_limit(kind: str, seconds: float | None) -> float:
    """The time that a search may take on a kind of device."""
    return target_of(kind).tuning_seconds if seconds is None else check_seconds(seconds)


def check_seconds(seconds: Any) -> float:
    """A time that a search may take; raises `ArgumentError` for anything else."""
    if (
        isinstance(seconds, bool)
        or not isinstance(seconds, (int, float))
        or not math.isfinite(seconds)
        or seconds <= 0
    ):
        raise ArgumentError(
            f"seconds={seconds!r}: wanted a positive number, the time that tuning may take"
        )
    return float(seconds)


Recording = Mapping[CompletePlan, Trial]


class RecordedMeasurer(Generic[C]):
    """Answers from a recording: on the way a plan takes its score, at the end (long measurements)
    what it took in each round.

    A plan that was not measured fails. Nothing takes any time: plans that the time was too short
    for at the end have no times there.
    """

    compilers = 1

    def __init__(self, recording: Mapping[C, Trial]) -> None:
        self._recording = recording

    def prepare(self, plans: Sequence[C], until: float = math.inf) -> dict[C, Failure | None]:
        del until
        return {p: self._failure(p) for p in plans}

    def _failure(self, plan: C) -> Failure | None:
        trial = self._recording.get(plan)
        if trial is None:
            return Failure("failed", "the recording has no measurement of it")
        # A finalist that gave other bits at last fails again in `confirm`. Whether another plan ran
        # a second time depends on what it was timed with, hence on the clock.
        timed = trial.score is not None and (trial.status == "measured" or trial.seconds)
        return None if timed else Failure(trial.status, trial.reason)

    def first(self, plan: C) -> FirstRun:
        del plan
        return FirstRun()

    def measure(
        self, plans: Sequence[C], rounds: int, until: float = math.inf
    ) -> dict[C, list[float]]:
        del until
        if rounds >= ROUNDS:
            return {p: list(self._recording[p].samples) for p in plans}
        return {p: [self._score(p)] * rounds for p in plans}

    def _score(self, plan: C) -> float:
        score = self._recording[plan].score
        assert score is not None
        return score

    def confirm(self, plan: C) -> Failure | None:
        trial = self._recording[plan]
        return None if trial.status == "measured" else Failure(trial.status, trial.reason)

    def release(self, plan: C) -> None:
        pass

    def elapsed(self) -> float:
        return 0.0


class RecordedSpace:
    """The space that was searched: a plan that was not looked at then does not exist."""

    def __init__(
        self, default: CompletePlan, families: Iterable[Family], recording: Recording
    ) -> None:
        self.default, self.families, self._recording = default, tuple(families), recording

    def examine(self, plan: CompletePlan) -> Examined:
        trial = self._recording.get(plan)
        if trial is None:
            return Examined(same_as=self.default)
        if trial.status == "unpromising":
            return Examined()  # it is refused with the reason of then, whatever was best then
        return Examined(trial.reason if trial.status == "illegal" else "", trial.predicted)


def replay(recorded: str | Path | Entry) -> Tuning:
    """The search of an entry of the store, done again from its own measurements: `replay(path)`.

    Raises `InputError` for a file that is no entry.
    """
    entry = recorded if isinstance(recorded, Entry) else read_recording(Path(recorded))
    if "errors" in entry.log:
        raise InputError(
            "an entry of errors over lw.Tree is no search through plans, and cannot be replayed"
        )
    if "structures" in entry.log:
        from lanewise.facade import replay_search

        return replay_search(entry)
    recording = recording_of(entry)
    space = RecordedSpace(entry.default, families_from(entry.log["families"]), recording)
    measurer = RecordedMeasurer(recording)
    return tuning_of(
        search(space, measurer, seconds=math.inf, course=course_of(entry.log)), entry.log
    )


def course_of(log: Mapping[str, Any]) -> Course:
    """The course of the search of an entry. Raises `InputError` where it does not say it."""
    if "starts" not in log:
        raise InputError(
            "the entry does not say where its search began, as those of later versions do; tune "
            "again"
        )
    return Course(bool(log["exhaustive"]), tuple((name, point) for name, point in log["starts"]))


def read_recording(path: Path) -> Entry:
    """An entry from any file."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        entry = entry_from(data)
        if "errors" in entry.log:
            return entry
        recording_of(entry)
        if "structures" not in entry.log:
            families_from(entry.log["families"])
            course_of(entry.log)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: no entry of the store of tuned plans: {error}") from error
    return entry


def recording_of(entry: Entry) -> dict[CompletePlan, Trial]:
    """The trials of an entry by plan."""
    return {t.plan: t for t in map(trial_from, entry.log["trials"])}


def families_to(families: Iterable[Family]) -> list[dict[str, Any]]:
    """Families as plain data."""
    return [
        {
            "name": f.name,
            "base": changes(f.base),
            "axes": {n: list(v) for n, v in f.axes.items()},
            "relative_tile": f.relative_tile,
        }
        for f in families
    ]


def families_from(data: Iterable[Mapping[str, Any]]) -> tuple[Family, ...]:
    """Families from plain data."""
    return tuple(
        Family(
            d["name"],
            plan_from(d["base"]),
            {n: tuple(v) for n, v in d["axes"].items()},
            d["relative_tile"],
        )
        for d in data
    )
