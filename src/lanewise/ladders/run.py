"""How a rung of gravity is made, checked and timed, and what the model says of its call.

Only here do ladders meet `models/`.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

import lanewise as lw
from lanewise.ladders.problem import FLOPS, Problem
from lanewise.ladders.rung import Options, Rung, compared
from lanewise.models import BuiltProgram, DeviceModel, certain_bound, device_model, predicted
from lanewise.sims.common.devices import bring, target_of
from lanewise.support.errors import PlanError
from lanewise.support.numerals import counted

RUNS = 3  # the median of three, as the tutorial; one of a run that is long
LIMIT, QUICK_LIMIT = 60.0, 3.0  # seconds that one run may take: a rung above it is skipped
LEAST, QUICK_LEAST = 0.05, 0.01  # seconds of one timed run: short kernels are repeated within it
# seconds of measuring after which a rung is not run again: what disturbs a run is short compared
# with it
ENOUGH = 1.0
# bodies of the run that tells how long a larger one takes
PILOT = {"serial": 512, "cpu": 2048, "cuda": 65_536}


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One version of the function: a plan (None: lanewise's own), a layout, a device, and whether
    one CPU thread runs it.
    """

    name: str
    plan: lw.Plan | None
    layout: lw.Layout
    device: str
    serial: bool = False
    paper: Mapping[str, float] | None = None
    extra: Mapping[str, float | int | str | None] = field(
        default_factory=dict[str, float | int | str | None]
    )


@dataclass
class Runner:
    """Measures versions at one size, and knows the code of those before, so that nothing is
    measured twice as news.
    """

    options: Options
    problem: Problem
    seen: dict[Any, str] = field(default_factory=dict[Any, str])
    pilots: dict[int, Problem] = field(default_factory=dict[int, Problem])

    def measure(self, version: Version, base: Rung | None, *, again: bool = False) -> Rung:
        """The rung of a version, compared with `base`.

        It is skipped with a reason when a pass refuses, when its code is that of an earlier version
        (unless `again`), when its runs would take too long, or when its result is wrong.
        """
        blank = Rung(
            name=version.name, bodies=self.problem.bodies, skipped="not run", paper=version.paper,
            layout=str(version.layout), device=version.device, extra=version.extra,
            plan=None if version.plan is None else version.plan.short(),
        )  # fmt: skip
        try:
            call, result = bind(version, self.problem)
        except PlanError as refusal:
            return skipped(blank, "illegal", str(refusal))
        blank = replace(blank, plan=call.compiled.plan.short())
        code = _code(version, call)
        if code in self.seen and not again:
            return skipped(
                blank,
                "same code",
                f"its code is that of {self.seen[code]!r}: nothing changes on this device",
            )
        self.seen.setdefault(code, version.name)
        # Before the threads are limited, as the model of the CPU counts them once a process.
        prediction = predict_executable(
            call.compiled.executable,
            _model_of(version.device, serial=version.serial),
            self.problem.bodies,
            self.problem.law.values,
        )
        blank = replace(blank, predicted_seconds=prediction.seconds)
        with one_thread() if version.serial else nullcontext():
            if reason := self._too_long(version):
                return skipped(blank, "too long", reason)
            measured = self._timed(loop_of(call), blank, result)
        return measured if measured.seconds is None else self._compared(measured, base, prediction)

    def _timed(self, loop: lw.Steps, blank: Rung, result: Any) -> Rung:
        """The rung checked, and with its time if it is right."""
        loop.run(1)
        error, tolerance = self.problem.error(result), self.problem.tolerance
        if not error <= tolerance:
            wrong = (
                f"wrong: the relative error against float64 is {error:.1e}, and {tolerance:.1e} is "
                "allowed"
            )
            return skipped(replace(blank, relative_error=error), "wrong", wrong)
        least = QUICK_LEAST if self.options.quick else LEAST
        # without what a first run costs: it may have compiled
        first = clock(lambda: loop.run(1))
        if first >= ENOUGH:
            return replace(
                blank,
                skipped=None,
                seconds=first,
                relative_error=error,
                extra={**blank.extra, "runs": 1},
            )
        repeats = max(1, min(10_000, round(least / first)))
        if repeats > 1:
            loop.run(repeats)
        runs: list[float] = []
        for _ in range(RUNS):
            runs.append(clock(lambda: loop.run(repeats)) / repeats)
            if sum(runs) * repeats > ENOUGH:
                break
        seconds, extra = statistics.median(runs), {**blank.extra, "runs": len(runs)}
        return replace(blank, skipped=None, seconds=seconds, relative_error=error, extra=extra)

    def _compared(self, rung: Rung, base: Rung | None, prediction: ModelledTime) -> Rung:
        """The rung with its rates, its share of the bound, and its factors over `base`, measured
        and predicted.
        """
        assert rung.seconds is not None
        pairs = self.problem.bodies**2 / rung.seconds
        share = None if prediction.bound is None else prediction.bound / rung.seconds
        extra = {
            **rung.extra, "pairs_per_second": pairs, "gflops": FLOPS * pairs * 1e-9,
            "share_of_bound": share, "limiter": prediction.limiter,
            "precision": self.problem.law.precision,
            **shares(prediction, FLOPS * pairs, rung.seconds, self.problem.law.precision),
        }  # fmt: skip
        return compared(replace(rung, extra=extra), base)

    def _too_long(self, version: Version) -> str | None:
        """Why the runs of this version would take more time than a rung gets, judged by a run of
        fewer bodies.
        """
        size = PILOT["serial" if _is_serial(version) else target_of(version.device).pipeline]
        if self.problem.bodies <= size:
            return None
        if size not in self.pilots:
            self.pilots[size] = Problem(size, self.options.seed, self.problem.law)
        call, _ = bind(version, self.pilots[size])
        loop = loop_of(call)
        loop.run(1)
        small = clock(lambda: loop.run(1))
        limit = QUICK_LIMIT if self.options.quick else LIMIT
        total = small * (self.problem.bodies / size) ** 2
        if total <= limit:
            return None
        return (
            f"a run would take about {duration(total)}, and a rung gets {duration(limit)} "
            f"({counted(size, 'body', 'bodies')} take {small * 1e3:.3g} ms)"
        )


def skipped(
    rung: Rung,
    kind: Literal["illegal", "same code", "too long", "wrong", "device", "failed", "absent"],
    reason: str,
) -> Rung:
    """The rung without a time. `kind` says in a word why, for programs: the JSON's key "skip"."""
    return replace(rung, seconds=None, skipped=reason, extra={**rung.extra, "skip": kind})


def bind(version: Version, problem: Problem) -> tuple[lw.Call, Any]:
    """The version's launch on this problem, and its result (n, 3), full of NaN until it runs."""
    bodies = problem.records(version.layout, version.device)
    result = bring(np.full((problem.bodies, 3), np.nan, problem.law.dtype), version.device)
    return problem.law.kernel.bind(
        bodies, bodies, **problem.law.values, out=result, plan=version.plan
    ), result


def loop_of(call: lw.Call) -> lw.Steps:
    """Runs a call again and again, without what a call checks; on a GPU as graphs."""
    return lw.steps([call])


def _is_serial(version: Version) -> bool:
    return version.serial or (version.plan is not None and version.plan.block == 1)


def _code(version: Version, call: lw.Call) -> Any:
    """What decides the machine code and who runs it; equal for versions that differ in name
    only.
    """
    program = call.compiled.executable.program
    plan = program.plan
    return (
        version.device,
        version.serial,
        program.kernels,
        plan.fast_math,
        plan.vector_bits,
        plan.registers,
    )


def clock(work: Callable[[], object]) -> float:
    """Seconds of a call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


@contextmanager
def one_thread() -> Generator[None]:
    """CPU kernels run on one thread within the block, as `LANEWISE_THREADS=1` makes them."""
    before = os.environ.get("LANEWISE_THREADS")
    os.environ["LANEWISE_THREADS"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["LANEWISE_THREADS"]
        else:
            os.environ["LANEWISE_THREADS"] = before


def duration(seconds: float) -> str:
    """A time in words, rounded to a whole number of a unit that suits it."""
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= 1.5 * size:
            return f"{round(seconds / size)} {unit}s"
    whole = max(1, round(seconds))
    return f"{whole} second{'s' if whole > 1 else ''}"


@dataclass(frozen=True, slots=True)
class ModelledTime:
    """Seconds that the model expects, the least seconds that the hardware allows where that is
    known, and the busiest unit. busy: seconds that each unit works. device: the model.
    """

    seconds: float
    bound: float | None
    limiter: str
    busy: Mapping[str, float]
    device: DeviceModel


def predict_executable(
    executable: BuiltProgram, model: DeviceModel, bodies: int, values: Mapping[str, float]
) -> ModelledTime:
    """The prediction for a call on all pairs of that many bodies; `values` are the uniform ones, by
    name.

    On a GPU it is timed within a graph, so launches cost what they cost there.
    """
    environment = {**values, **{c.name: bodies for c in executable.program.reference.counts}}
    prediction = predicted(executable, environment, model)
    least = certain_bound(executable, environment, model, prediction)
    if least is None:
        limiter, bound = prediction.busy.limiter, None
    else:
        limiter, bound = least.limiter, least.seconds
    return ModelledTime(prediction.seconds, bound, limiter, prediction.busy.details, model)


def shares(
    time: ModelledTime, flops_per_second: float, seconds: float, precision: str
) -> dict[str, float | None]:
    """Shares of the chip's peak, which takes a fused multiply-add every cycle, and of what its
    arithmetic units could do of these instructions with nothing else to do; and the bytes a second
    that main memory moves, as the model counts them. None on a CPU, whose peaks nothing tells.
    """
    model = time.device
    lanes = model.fp32_lanes if precision == "f32" else model.fp64_lanes
    peak = 2 * lanes * model.multiprocessors * model.clock_hz
    arithmetic = max(
        (time.busy.get(unit, 0.0) for unit in ("fp32", "fp64", "special")), default=0.0
    )
    known, moved = model.is_nominal, time.busy.get("memory", 0.0) * model.memory_bandwidth
    return {
        "share_of_peak": flops_per_second / peak if known else None,
        "share_of_arithmetic": arithmetic / seconds if known and arithmetic else None,
        "memory_bytes_per_second": moved / seconds if known else None,
    }


def _model_of(device: str, *, serial: bool) -> DeviceModel:
    """The model of a device, or of one core of a CPU."""
    model = device_model(device)
    return replace(model, multiprocessors=1) if serial else model
