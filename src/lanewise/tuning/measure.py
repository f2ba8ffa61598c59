"""Compile plans, hold their results against the default plan's, and time them.

Results are the same when every element of them is equal but for rounding in another order
(`compare`).
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from math import inf, sqrt
from typing import Generic, Protocol, TypeVar

from lanewise.launch.executable import Executable
from lanewise.launch.support import compile_kernel
from lanewise.launch.trial import Failure
from lanewise.models.devices import DeviceModel, device_model
from lanewise.models.predict import fits
from lanewise.passes import self_term
from lanewise.passes.reciprocity.shape import SCRATCH_BYTES
from lanewise.planning.plan import CompletePlan
from lanewise.runtime.device import get_device
from lanewise.runtime.memory import available_memory
from lanewise.runtime.timing import Stopwatch
from lanewise.support.errors import LanewiseError, PlanError
from lanewise.tuning.compare import (
    CONTRACTED,
    ROUNDINGS,
    SAMPLES,
    difference,
    magnitudes,
    margins,
    sums,
    terms,
    tolerance,
)  # fmt: skip
from lanewise.tuning.first_run import check_copying, check_finite, run_in_time
from lanewise.tuning.job import HostArray, Job, Workload
from lanewise.tuning.race import LONG, FirstRun

# times the cache: so much is touched between two uses of the same element of an elementwise kernel
COLD = 3
MOST_COPIES = 64
MEMORY_SHARE = 0.25  # of the free memory, for copies
AWAKE = 0.03  # seconds of work before counting
ROTATION = 0.2  # seconds that a launch on each set of arrays may take
COPYING_SHARE = 0.05  # of the time, for sets of arrays
MOST_COMPILERS = 16  # threads that compile for a GPU at the same time

OTHER_BITS = Failure("wrong", "two runs from the same state gave different bits")


class Timeable(Protocol):
    """A candidate that can be timed: the seconds of a call, as far as they are known, and the bits
    of its result.
    """

    @property
    def once(self) -> float: ...
    @property
    def bits(self) -> object: ...


C = TypeVar("C", bound=Hashable)
P = TypeVar("P", bound=Timeable)
R = TypeVar("R")


class DeviceMeasurer(ABC, Generic[C, P]):
    """What all measurers on a device have in common: a clock, and prepared candidates, which are
    timed in turns and held against their own bits.
    """

    def __init__(self, device: str) -> None:
        self._device, self._began = get_device(device), time.perf_counter()
        self._ready: dict[C, P] = {}

    @abstractmethod
    def _watch(self, ready: P) -> Stopwatch:
        """The stopwatch of a candidate."""

    @abstractmethod
    def _again(self, ready: P) -> object:
        """The bits of another run from the first state."""

    @abstractmethod
    def _reset(self) -> None:
        """Begin from the first state: values that grow from call to call must not run out of
        range.
        """

    def elapsed(self) -> float:
        return time.perf_counter() - self._began

    def measure(self, plans: Sequence[C], rounds: int, until: float = inf) -> dict[C, list[float]]:
        times: dict[C, list[float]] = {p: [] for p in plans}
        with self._device.use():
            watches = {p: self._watch(self._ready[p]) for p in plans}
            # what takes longer wakes the clock while it is timed
            if self._ready[plans[0]].once < 10 * AWAKE:
                _wake(watches[plans[0]])
            for turn in range(rounds):
                self._reset()
                # none always follows the same other one
                for plan in list(watches)[:: -1 if turn % 2 else 1]:
                    if any(times.values()) and self.elapsed() > until:
                        return times
                    times[plan].append(watches[plan]())
        return times

    def confirm(self, plan: C) -> Failure | None:
        ready = self._ready[plan]
        with self._device.use():
            return None if self._again(ready) == ready.bits else OTHER_BITS

    def release(self, plan: C) -> None:
        self._ready.pop(plan, None)


def _wake(watch: Stopwatch) -> None:
    """Work without counting until the clock is up again: the processor rested while plans were
    compiled.
    """
    start = time.perf_counter()
    while time.perf_counter() - start < AWAKE:
        watch()


@dataclass(slots=True)
class _Ready:
    """A plan that can be launched: on each set of arrays, with what it gave at first on the first
    set.
    """

    launches: list[Callable[[], None]]
    bits: list[bytes]
    once: float
    first: float
    whole: float
    watch: Stopwatch | None = None

    def rotation(self) -> list[Callable[[], None]]:
        """Launches that take turns when it is timed, few of them where each takes long."""
        return self.launches[: max(1, int(ROTATION / max(self.once, 1e-9)))]


class KernelMeasurer(DeviceMeasurer[CompletePlan, _Ready]):
    """Plans of a kernel, measured on the device of the job. limit: seconds, within which the first
    run of the default has to end.
    """

    def __init__(self, job: Job, limit: float = inf) -> None:
        super().__init__(job.device)
        self._job, self._limit = job, limit
        self.compilers = min(MOST_COMPILERS, self._device.compilers())
        if limit < inf:
            check_copying(job.name, job.copied(), limit)
        with self._device.use():
            self._workloads: list[Workload] = [job.workload()]
        self._expected: list[HostArray] | None = None
        self._first: Executable | None = None  # the default plan's
        self._margins: list[HostArray] | None = None
        self._tolerance = tolerance(
            job.reference, ROUNDINGS if sums(job.reference, job.environment) else CONTRACTED
        )

    def prepare(
        self, plans: Sequence[CompletePlan], until: float = inf
    ) -> dict[CompletePlan, Failure | None]:
        if self._expected is None:
            first, *plans = plans
            with self._device.use():
                self._start(first)
            return {first: None, **self.prepare(plans, until)} if plans else {first: None}
        with ThreadPoolExecutor(self.compilers, thread_name_prefix="lanewise-tuning") as pool:
            compiled = list(pool.map(self._compile, plans))
        with self._device.use():
            return {
                plan: executable
                if isinstance(executable, Failure)
                else self._check(plan, executable, until)
                for plan, executable in zip(plans, compiled, strict=True)
                if isinstance(executable, Failure) or self.elapsed() <= until
            }

    def first(self, plan: CompletePlan) -> FirstRun:
        ready = self._ready[plan]
        return FirstRun(ready.first, ready.whole)

    @property
    def _default(self) -> Executable:
        assert self._first is not None
        return self._first

    def _start(self, default: CompletePlan) -> None:
        """The default plan: its errors are the caller's, its result is what others are held
        against.
        """
        executable = compile_kernel(
            self._job.reference, default, self._job.device, requested=self._job.requested
        )
        # what a CPU compiles only now is no part of a run that may never end
        first = partial(self._first_run, self._bind(executable, self._workloads[0]))
        if self._limit < inf:
            result, ready = run_in_time(self._job.name, partial(self._apart, first), self._limit)
        else:
            result, ready = first()
        check_finite(self._job.name, result)
        self._expected, self._ready[default], self._first = result, ready, executable
        self._workloads += [self._job.workload() for _ in range(self._copies(ready) - 1)]
        ready.launches += [self._bind(executable, w) for w in self._workloads[1:]]

    def _copies(self, first: _Ready) -> int:
        """Sets of arrays to rotate, so that an elementwise kernel finds its data in memory and not
        in a cache, as in real use.
        """
        if self._job.work.pattern.over_pairs:
            return 1  # each element is used again and again within one call
        size, cache = self._workloads[0].nbytes, device_model(self._job.device).l2_bytes
        affordable = int(MEMORY_SHARE * available_memory(self._job.device)) // max(size, 1)
        # what a call finds in a cache matters little to a long call, and what is copied and run on
        # every set takes time
        quick = min(ROTATION / self._warm(first), COPYING_SHARE * self._limit / first.whole)
        most = int(min(quick, MOST_COPIES))
        return max(1, min(-(-COLD * cache // max(size, 1)), affordable, most))

    def _warm(self, first: _Ready) -> float:
        """Seconds of a launch; where a first one took a while, that may have been the loading."""
        if ROTATION / MOST_COPIES < first.once < ROTATION:
            start = time.perf_counter()
            first.launches[0]()
            self._device.synchronize()
            first.once = min(first.once, time.perf_counter() - start)
        return first.once

    def _compile(self, plan: CompletePlan) -> Executable | Failure:
        try:
            executable = compile_kernel(
                self._job.reference, plan, self._job.device, requested=self._job.requested
            )
        except PlanError as error:
            return Failure("illegal", str(error))
        except LanewiseError as error:
            return Failure("failed", first_lines(error))
        return misfit(executable, device_model(self._job.device)) or executable

    def _check(self, plan: CompletePlan, executable: Executable, until: float) -> Failure | None:
        """Run once from the common state, and compare."""
        assert self._expected is not None

        def first() -> tuple[list[HostArray], _Ready]:
            result, ready = self._first_run(self._bind(executable, self._workloads[0]))
            ready.launches += [self._bind(executable, w) for w in self._workloads[1:]]
            return result, ready

        ran = attempted(first)
        if isinstance(ran, Failure):
            return ran
        result, ready = ran
        wrong = difference(result, self._expected, self._tolerance)
        # only then is it worth the time to find what rounding explains where terms cancel
        if wrong and self._margins is None:
            runs = (SAMPLES + 1) * ready.whole
            if runs > LONG and self.elapsed() + runs > until:
                return Failure("failed", f"{wrong}, and there is no time to look for the reason")
        if wrong:
            wrong = difference(result, self._expected, self._tolerance, self._cancelled())
        if wrong:
            return Failure("wrong", wrong)
        self._ready[plan] = ready
        return None

    def _cancelled(self) -> list[HostArray]:
        """What rounding explains of every element of the results besides its own size, where terms
        cancel.
        """
        if self._margins is None:
            assert self._expected is not None
            job, work = self._job, self._job.copies()
            sizes = self._magnitudes(work)
            each = (
                CONTRACTED
                if sizes is not None
                else ROUNDINGS * sqrt(terms(job.reference, job.environment))
            )
            factor = each if sums(job.reference, job.environment) else CONTRACTED
            launch = self._bind(self._default, work)
            moved: list[list[HostArray]] = []
            for sample in range(SAMPLES):
                work.reset()
                work.move(sample, tolerance(job.reference, 1))
                launch()
                self._device.synchronize()
                moved.append(work.read())
            self._margins = margins(self._expected, moved, factor, self._tolerance, sizes)
        return self._margins

    def _magnitudes(self, work: Workload) -> list[HostArray] | None:
        """The sums of the magnitudes of what the kernel adds; None where it does not sum a
        function, or no plan of it does so.
        """
        reference, default = magnitudes(self._job.reference), self._default.program.plan
        if reference is None:
            return None
        for plan in (default, replace(default, reciprocity="off", self_term="test")):
            try:
                launch = self._bind(
                    compile_kernel(
                        reference, plan, self._job.device, requested=self._job.requested
                    ),
                    work,
                )
            except LanewiseError:  # such as a plan that takes forces to be opposite
                continue
            work.reset()
            launch()
            self._device.synchronize()
            return work.read()
        return None

    def _apart(self, run: Callable[[], R]) -> R:
        """The same in another thread, for which the device is current as well."""
        with self._device.use():
            return run()

    def _first_run(self, launch: Callable[[], None]) -> tuple[list[HostArray], _Ready]:
        """Of a launch on the first set of arrays."""
        work = self._workloads[0]
        began = time.perf_counter()
        work.reset()
        self._device.synchronize()
        start = time.perf_counter()
        launch()
        self._device.synchronize()
        once = time.perf_counter() - start
        result = work.read()
        bits = [a.tobytes() for a in result]
        return result, _Ready([launch], bits, once, once, time.perf_counter() - began)

    def _bind(self, executable: Executable, work: Workload) -> Callable[[], None]:
        program = executable.program
        if (
            program.plan != self._job.default
            and (taken := executable.tasks.memory(work.environment)) > SCRATCH_BYTES
        ):
            raise PlanError(
                f"its partial sums take {taken:,} bytes, and {SCRATCH_BYTES:,} are the most that "
                "tuning gives them"
            )
        self_term.check(self._job.name, program.plan.self_term, program.self_term, work.environment)
        return executable.tasks.bound(work.bound, work.environment)

    def _reset(self) -> None:
        for work in self._workloads:
            work.reset()
        self._device.synchronize()

    def _watch(self, ready: _Ready) -> Stopwatch:
        """The stopwatch of a plan.

        Short work runs on every set of arrays first, which tells how often to repeat it.
        """
        if ready.watch is None:
            if ready.once < LONG:
                start = time.perf_counter()
                launches = ready.rotation()
                for launch in launches:
                    launch()
                self._device.synchronize()
                ready.once = min(ready.once, (time.perf_counter() - start) / len(launches))
            ready.watch = self._device.stopwatch(ready.rotation(), ready.once)
        return ready.watch

    def _again(self, ready: _Ready) -> list[bytes]:
        work = self._workloads[0]
        work.reset()
        ready.launches[0]()
        self._device.synchronize()
        return [a.tobytes() for a in work.read()]


def misfit(executable: Executable, device: DeviceModel) -> Failure | None:
    """Spills, or more of a resource than the device has."""
    taken = [c.resources for c in executable.cubins]
    # a CPU reports no resources
    for resources, kernel in zip(taken, executable.program.kernels, strict=False):
        if resources.spill_stores or resources.spill_loads:
            return Failure(
                "failed",
                f"{kernel.name} spills {resources.spill_stores + resources.spill_loads} bytes of "
                "registers to memory",
            )
    lacking = fits(executable.program, device, taken)
    return Failure("failed", lacking) if lacking else None


def attempted(run: Callable[[], R]) -> R | Failure:
    """What this gives, or why nothing: a candidate that is refused, or of whose launch a driver
    says whatever it likes, is out, and the search continues.
    """
    try:
        return run()
    except PlanError as error:
        return Failure("illegal", str(error))
    except Exception as error:
        return Failure("failed", first_lines(error))


def first_lines(error: Exception) -> str:
    """What people need to see of a long text."""
    return "\n".join(str(error).splitlines()[:3]) or type(error).__name__
