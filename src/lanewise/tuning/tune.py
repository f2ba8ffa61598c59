"""Tune a kernel: search, report, remember."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lanewise.errors import ArgumentError
from lanewise.launch.tuned_store import Entry, write_entry
from lanewise.plan import Decisions
from lanewise.target import target_of
from lanewise.tuning.job import Job
from lanewise.tuning.measure import make_measurer
from lanewise.tuning.race import Found, Measurer
from lanewise.tuning.recording import families_to
from lanewise.tuning.report import Tuning, tuning_of
from lanewise.tuning.search import Progress, search
from lanewise.tuning.space import KernelSpace, make_estimator

if TYPE_CHECKING:
    from lanewise.patterns.search.tuning.job import SearchJob


def tune_job(
    job: Job,
    seconds: float | None = None,
    *,
    measurer: Measurer[Decisions] | None = None,
    progress: Callable[[Progress], None] = lambda state: None,
) -> Tuning:
    """Find the fastest plan of a job within about `seconds` (compilation counts), remember it, and tell.

    Raises `ArgumentError` for a time that is no positive number, `PlanError` when the fields that the caller fixes are
    illegal for the kernel.
    """
    limit = time_limit(job.kind, seconds)
    measurer = measurer or make_measurer(job)  # its clock starts here
    space = KernelSpace(job, make_estimator(job))
    found = search(space, measurer, seconds=limit, progress=progress)
    log = {
        "about": about_of(job, measurer.elapsed()),
        "note": job.advise(),
        "families": families_to(space.families),
        "refused": [{"field": f, "value": v, "reason": r} for f, v, r in space.refused],
        "trials": [t.as_dict() for t in found.trials.values()],
    }
    path = write_entry(job.key, _entry(found, log))
    job.adopt(found.best)
    return tuning_of(found, log, path)


def _entry(found: Found[Decisions], log: dict[str, Any]) -> Entry:
    return Entry(found.best, found.seconds(found.best), found.default, found.seconds(found.default), log)


def about_of(job: Job | SearchJob, elapsed: float) -> dict[str, Any]:
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
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not math.isfinite(seconds) or seconds <= 0:
        raise ArgumentError(f"seconds={seconds!r}: wanted a positive number, the time that tuning may take")
    return float(seconds)
