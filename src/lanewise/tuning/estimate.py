"""What the models expect of a program, for pruning: the only place where tuning asks them."""

from __future__ import annotations

from typing import Protocol

from lanewise.pipeline import Program
from lanewise.tuning.job import Job


class Estimator(Protocol):
    """Expected seconds of a program on the job's device and size; None when the models have nothing to say."""

    def seconds(self, program: Program) -> float | None: ...


class _NoModel:
    def seconds(self, program: Program) -> float | None:
        del program
        return None


def make_estimator(job: Job) -> Estimator:
    """The estimator of a job's device."""
    del job
    return _NoModel()
