"""Whole calls over searches, timed: the structure is built, the sources gathered, the kernel run."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from lanewise.errors import LanewiseError, PlanError
from lanewise.launch.compiled import Call
from lanewise.launch.trial import Failure
from lanewise.patterns.search.tuning.job import SearchJob
from lanewise.patterns.search.tuning.lookup import Choice
from lanewise.runtime import cuda
from lanewise.runtime.memory import to_host
from lanewise.runtime.timing import Stopwatch, stopwatch
from lanewise.target import is_gpu
from lanewise.tuning.compare import difference, tolerance
from lanewise.tuning.job import HostArray
from lanewise.tuning.measure import LONG, first_lines, in_turns
from lanewise.tuning.workload import POISON

IN_ONE_ORDER = (
    16  # units in the last place: the k nearest are added from the nearest to the farthest by every structure
)


@dataclass(slots=True)
class _Ready:
    """A call with what it gave at first, and its stopwatch."""

    call: Call
    bits: list[bytes]
    watch: Stopwatch


class CallMeasurer:
    """A `Measurer` of choices. Every one has a structure and results of its own; all of them read the caller's arrays."""

    compilers = 1

    def __init__(self, job: SearchJob) -> None:
        self._job, self._began = job, time.perf_counter()
        self._ready: dict[Choice, _Ready] = {}
        self._expected: list[HostArray] | None = None
        self._tolerance = 0.0

    def elapsed(self) -> float:
        return time.perf_counter() - self._began

    def prepare(self, plans: Sequence[Choice]) -> dict[Choice, Failure | None]:
        """The errors of the first choice of all are the caller's."""
        with self._there():
            return {c: self._check(c) if self._expected is not None else self._start(c) for c in plans}

    def _start(self, default: Choice) -> None:
        call = self._job.bind(default)
        reference = call.compiled.reference
        self._tolerance = tolerance(reference) if self._job.wish.k is None else tolerance(reference, IN_ONE_ORDER)
        self._expected = self._first_run(default, call)

    def _check(self, choice: Choice) -> Failure | None:
        assert self._expected is not None
        try:
            found = self._first_run(choice, self._job.bind(choice))
        except PlanError as error:
            return Failure("illegal", str(error))
        except LanewiseError as error:
            return Failure("failed", first_lines(error))
        except Exception as error:  # whatever a driver says of a launch: the choice is out, the search goes on
            return Failure("failed", first_lines(error))
        if wrong := difference(found, self._expected, self._tolerance):
            del self._ready[choice]
            return Failure("wrong", wrong)
        return None

    def _first_run(self, choice: Choice, call: Call) -> list[HostArray]:
        """The results, which nobody but the call may have written; a second run that is warm tells how often to repeat it."""
        once, found = self._run(call)
        if once < LONG:
            once = min(once, self._run(call)[0])
        watch = stopwatch(self._job.device, [call.launch], once)
        self._ready[choice] = _Ready(call, [a.tobytes() for a in found], watch)
        return found

    def _run(self, call: Call) -> tuple[float, list[HostArray]]:
        for result in call.results:
            result.reshape(-1).view(np.uint8)[...] = POISON
        self._finish()
        start = time.perf_counter()
        call.launch()
        self._finish()
        return time.perf_counter() - start, [np.array(to_host(r)) for r in call.results]

    def measure(self, plans: Sequence[Choice], rounds: int) -> dict[Choice, list[float]]:
        with self._there():
            return in_turns({c: self._ready[c].watch for c in plans}, rounds)

    def confirm(self, plan: Choice) -> Failure | None:
        ready = self._ready[plan]
        with self._there():
            again = self._run(ready.call)[1]
        if [a.tobytes() for a in again] == ready.bits:
            return None
        return Failure("wrong", "two runs from the same state gave different bits")

    def release(self, plan: Choice) -> None:
        self._ready.pop(plan, None)

    def _there(self) -> AbstractContextManager[Any]:
        return cuda.use(self._job.device) if is_gpu(self._job.kind) else nullcontext()

    def _finish(self) -> None:
        if is_gpu(self._job.kind):
            cuda.synchronize(self._job.device)
