"""Tune the step of a flow or a stencil: plans are measured on some sites, held against the default
plan's bits, and the fastest is remembered.

What is timed are whole steps, with what corrects populations between them. Sites are computed one
by one, so plans seldom change a bit; where a compiler fuses other products with sums, one does, and
is refused: a flow continues with the same bits after it was tuned. What the caller's sites hold
stays as it is.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from lanewise.compiler.optimisations import optimisation
from lanewise.language.target import target_of
from lanewise.launch.trial import Failure
from lanewise.launch.tuned_plans import Key
from lanewise.models.devices import device_model
from lanewise.patterns.sitewise.calls import SiteCall
from lanewise.patterns.sitewise.pattern import SITEWISE
from lanewise.patterns.sitewise.sites import Sites, solid_sites
from lanewise.patterns.sitewise.steppers import SiteStepper
from lanewise.patterns.sitewise.values import SiteValues
from lanewise.planning.plan import CompletePlan
from lanewise.runtime.memory import bring, module_of, on, to_host
from lanewise.runtime.programs import repeat
from lanewise.runtime.timing import Stopwatch
from lanewise.support.errors import LanewiseError
from lanewise.tuning.first_run import check_copying, check_finite, run_in_time
from lanewise.tuning.measure import DeviceMeasurer, attempted, misfit
from lanewise.tuning.race import FirstRun
from lanewise.tuning.space import Examined, Family
from lanewise.tuning.tune import time_limit, tune_space

if TYPE_CHECKING:
    from lanewise.patterns.sitewise.lattice_kernel import LatticeKernel
    from lanewise.tuning.report import Tuning
    from lanewise.tuning.search import Progress

AXES = {"cuda": ("targets", "block", "branches", "min_blocks"), "cpu": ("vector_bits", "branches")}
# smaller ones leave a multiprocessor half empty, larger ones have no registers
BLOCKS = (64, 128, 256, 512)
MIN_BLOCKS = (0, 4)
COPIES = 6  # of what sites hold: to give back, to begin from, with noise, of results, and as bytes
NOISE = 1e-4  # on what sites hold, so that all of it counts when results are compared
ROUNDS = 2  # cycles of steps before anything is measured, and between two looks at the bits


@dataclass(frozen=True, slots=True)
class SiteJob:
    """What is tuned: the steps of a flow or a stencil on some sites.

    given: the values of a call; values: the same, bound. adopt: called with what was chosen,
    so that later steps in this process use it.
    note: what the report says besides.
    """

    flow: LatticeKernel
    sites: Sites
    given: Mapping[str, Any]
    values: SiteValues
    key: Key
    default: CompletePlan
    adopt: Callable[[CompletePlan], None]
    note: str = ""

    @property
    def name(self) -> str:
        return self.key.kernel

    @property
    def device(self) -> str:
        return self.sites.device

    @property
    def counts(self) -> Mapping[str, int]:
        return {"sites": self.sites.count}

    @property
    def kind(self) -> str:
        return target_of(self.device).name

    def advise(self) -> str:
        """What the report says besides."""
        return self.note


def tune_sites(
    job: SiteJob,
    seconds: float | None = None,
    *,
    progress: Callable[[Progress], None] = lambda state: None,
) -> Tuning:
    """Find the fastest plan within about `seconds` (compilation counts), remember and report it.

    Raises `ArgumentError` for a time that is no positive number.
    """
    limit = time_limit(job.kind, seconds)
    arrays = [*(c.data for c in job.sites.copies), *job.sites.outflow.values()]
    check_copying(job.name, sum(int(a.nbytes) for a in arrays), limit, COPIES)
    with at_rest(job) as rest:
        return tune_space(job, SiteSpace(job), StepMeasurer(job, limit, rest), limit, progress)


class SiteSpace:
    """All plans of a step that differ in the fields that matter to sites.

    What a kernel does not allow, its passes say.
    """

    def __init__(self, job: SiteJob) -> None:
        self.default, self.refused = job.default, list[tuple[str, Any, str]]()
        axes = {name: _values(name, job) for name in AXES[job.kind]}
        self.families = (
            Family("sites", job.default, {n: v for n, v in axes.items() if len(v) > 1}),
        )

    def examine(self, plan: CompletePlan) -> Examined:
        """Nothing is known of a plan before it is compiled."""
        del plan
        return Examined()


def _values(name: str, job: SiteJob) -> tuple[Any, ...]:
    few = {"block": BLOCKS, "min_blocks": MIN_BLOCKS}.get(name) or optimisation(name).values(
        job.kind, SITEWISE
    )
    return tuple(dict.fromkeys((getattr(job.default, name), *few)))


class _Rest:
    """What sites held. left: a run in a thread that tuning no longer waits for still has them, and
    gives it back.
    """

    def __init__(self, sites: Sites) -> None:
        self._sites, self.left, self.thread = sites, False, 0
        self._copies = [np.array(to_host(c.data)) for c in sites.copies]
        self._outflow = {face: np.array(to_host(a)) for face, a in sites.outflow.items()}
        self._step, self._fresh = sites.step, sites.fresh

    def leave(self) -> Callable[[], None]:
        self.left = True
        self._sites.whole.hold(self.thread)
        return self.give_back

    def give_back(self) -> None:
        sites = self._sites
        with on(sites.device):
            for copy, data in zip(sites.copies, self._copies, strict=True):
                copy.data[...] = bring(data, sites.device)
            for face, data in self._outflow.items():
                sites.outflow[face][...] = bring(data, sites.device)
        sites.step, sites.fresh = self._step, self._fresh
        sites.kept.clear()
        sites.whole.mended()  # whatever a plan has left in the middle
        sites.whole.hold(None)


@contextmanager
def at_rest(job: SiteJob) -> Generator[_Rest]:
    """Within the block the sites are the measurements'; behind it they are as they were, or will be
    when the run has ended that still has them.
    """
    job.sites.whole.check()
    rest = _Rest(job.sites)
    try:
        yield rest
    finally:
        if not rest.left:
            rest.give_back()


@dataclass(slots=True)
class _Ready:
    """The steps of a cycle with a plan, what they gave, and their stopwatch."""

    steps: list[Callable[[], None]]
    bits: bytes
    once: float
    whole: float
    watch: Stopwatch | None = None


class StepMeasurer(DeviceMeasurer[CompletePlan, _Ready]):
    """A `Measurer` of plans of a step.

    All of them run on the same sites, from the same state. limit: seconds, within which the first
    run of the default has to end; rest: what the sites held before.
    """

    compilers = 1

    def __init__(self, job: SiteJob, limit: float = inf, rest: _Rest | None = None) -> None:
        super().__init__(job.device)
        self._job, self._limit, self._rest = job, limit, rest
        self._expected: bytes | None = None
        self._cycle = max(len(job.sites.form.phases), len(job.sites.copies))
        self._start: list[Any] = []
        self._outflow: dict[Any, Any] = {}

    def prepare(
        self, plans: Sequence[CompletePlan], until: float = inf
    ) -> dict[CompletePlan, Failure | None]:
        found: dict[CompletePlan, Failure | None] = {}
        if self._expected is None:
            first, *plans = plans
            begin = partial(self._on_device, partial(self._begin, first))
            if self._limit < inf and self._rest is not None:
                run_in_time(self._job.name, begin, self._limit, self._rest.leave)
            else:
                begin()
            found[first] = None
        with self._device.use():
            return found | {p: self._check(p) for p in plans if self.elapsed() <= until}

    def first(self, plan: CompletePlan) -> FirstRun:
        ready = self._ready[plan]
        return FirstRun(ready.once, ready.whole)

    def _on_device(self, run: Callable[[], None]) -> None:
        if self._rest is not None:
            self._rest.thread = threading.get_ident()
        with self._device.use():
            run()

    def _begin(self, default: CompletePlan) -> None:
        """What sites hold with some noise, some steps on: then all of it says something."""
        job, sites = self._job, self._job.sites
        rng = np.random.default_rng(0)
        # walls keep their zeros, which plans that store several sites at once put there as well
        fluid = ~solid_sites(sites.kinds, job.flow.kinds.walls)

        def noisy(held: Any) -> Any:
            return (held + NOISE * fluid * rng.standard_normal(held.shape)).astype(held.dtype)

        job.flow._change(sites, job.given, noisy)  # pyright: ignore[reportPrivateUsage]
        steps = job.flow.stepper(sites, plan=default, **job.given)
        # others stand still
        observed = [o for o in steps.observed if o.sites is sites]
        SiteStepper(job.name, steps.updates, observed).run(ROUNDS * self._cycle)
        held = job.flow._held(sites, job.given)  # pyright: ignore[reportPrivateUsage]
        check_finite(job.name, [h[np.broadcast_to(fluid, h.shape)] for h in held])
        self._start = [module_of(c.data).copy(c.data) for c in sites.copies]
        self._outflow = {face: module_of(a).copy(a) for face, a in sites.outflow.items()}
        ready = self._first_run(default)
        self._expected, self._ready[default] = ready.bits, ready

    def _check(self, plan: CompletePlan) -> Failure | None:
        ready = attempted(lambda: self._first_run(plan))
        if isinstance(ready, Failure):
            return ready
        if ready.bits != self._expected:
            return Failure(
                "wrong",
                "its sites have other bits than the default plan's; steps keep their bits",
            )
        self._ready[plan] = ready
        return None

    def _first_run(self, plan: CompletePlan) -> _Ready:
        steps = self._bound(plan)
        self._reset()
        for step in steps:  # which compiles what is compiled at a first call
            step()
        self._device.synchronize()
        start = time.perf_counter()
        bits = self._take(steps)
        whole = time.perf_counter() - start
        return _Ready(steps, bits, whole / (ROUNDS * len(steps)), whole * (ROUNDS + 1) / ROUNDS)

    def _bound(self, plan: CompletePlan) -> list[Callable[[], None]]:
        """The steps of a cycle, each with what comes behind it."""
        job, sites = self._job, self._job.sites
        ((_, calls_of),) = job.flow.stepper(sites, plan=plan, **job.given).updates
        steps: list[Callable[[], None]] = []
        for step in range(sites.step, sites.step + self._cycle):
            calls = [call for call in calls_of(step, False) if isinstance(call, SiteCall)]
            if plan != job.default:
                lacking = misfit(calls[0].executable, device_model(job.device))
                if lacking is not None:
                    raise LanewiseError(lacking.reason)
            steps.append(partial(repeat, [call.launch for call in calls], 1))
        return steps

    def _take(self, steps: Sequence[Callable[[], None]]) -> bytes:
        """Steps from the common state; the bytes of what the sites hold behind them."""
        self._reset()
        for _ in range(ROUNDS):
            for step in steps:
                step()
        self._device.synchronize()
        return to_host(self._job.sites.current.data).tobytes()

    def _reset(self) -> None:
        sites = self._job.sites
        for copy, data in zip(sites.copies, self._start, strict=True):
            copy.data[...] = data
        for face, data in self._outflow.items():
            sites.outflow[face][...] = data
        self._device.synchronize()

    def _watch(self, ready: _Ready) -> Stopwatch:
        if ready.watch is None:
            ready.watch = self._device.stopwatch(ready.steps, ready.once)
        return ready.watch

    def _again(self, ready: _Ready) -> bytes:
        return self._take(ready.steps)
