"""How a rung of the ladder `compiler` is bound, checked and timed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import lanewise as lw
from lanewise.ladders.compiler_inputs import LibraryNames
from lanewise.ladders.compiler_plans import naive_plan
from lanewise.ladders.compiler_problems import Benchmark, PreparedProblem, make_case
from lanewise.ladders.run import duration, skipped
from lanewise.ladders.rung import Options, Rung, compared, number
from lanewise.models import DeviceModel, device_model, is_foreseen, predicted
from lanewise.planning import CompletePlan
from lanewise.sims.common.devices import array_module, get_device
from lanewise.support.errors import DeviceError, LanewiseError, PlanError

RUNS = 3
LEAST, QUICK_LEAST = 0.015, 0.01  # seconds of one timed run: short kernels are repeated within it
MOST = 300  # repetitions of a kernel within a run
ENOUGH = 1.0  # seconds of measuring after which a rung is not run again
LIMIT, QUICK_LIMIT = 60.0, 6.0  # seconds that one run may take
# operations and bytes a second of a kernel that is slow, on a GPU or a CPU
SLOW = {True: (2e11, 2e10), False: (1e9, 1e9)}
PILOT = 4  # how many times smaller the matrices are of a run that tells how long a larger one takes


@dataclass(frozen=True, slots=True)
class LeastTime:
    """The least time of a benchmark on a device in seconds, and what takes it: memory, or
    arithmetic.

    None: caches may keep the arrays from one launch to the next, or nothing tells the most that the
    device can do, as of a CPU.
    """

    seconds: float | None
    limiter: str


def bound_of(benchmark: Benchmark, n: int, device: DeviceModel) -> LeastTime:
    """By what memory has to move, at the bandwidth that nothing gets beyond, and by fused
    multiply-adds on all lanes.
    """
    moved = benchmark.traffic(n)
    arithmetic = benchmark.flops(n) / (2 * device.fp32_operations)
    limiter = "fp32" if arithmetic > moved / device.most_bandwidth else "memory"
    memory = device.beyond_caches(moved) / device.most_bandwidth
    sure = device.is_nominal and (limiter == "fp32" or memory > 0)
    return LeastTime(max(memory, arithmetic) if sure else None, limiter)


@dataclass
class Runner:
    """Measures the rungs of one benchmark, and knows the code of those before."""

    options: Options
    case: PreparedProblem
    seen: dict[Any, str] = field(default_factory=dict[Any, str])

    def __post_init__(self) -> None:
        self.device = self.options.device
        self.model = device_model(self.device)
        self.bound = bound_of(self.case.benchmark, self.case.n, self.model)

    def prepare(self, plans: Sequence[lw.Plan | None]) -> None:
        """Compile these plans side by side on a GPU, whose compiler needs tenths of a second for
        each; what is refused says so later.
        """

        def compile_one(plan: lw.Plan | None) -> None:
            with suppress(LanewiseError):
                self.case.bind(plan)

        compilers = min(len(plans), get_device(self.device).compilers())
        if compilers > 1:
            with ThreadPoolExecutor(compilers) as pool:
                list(pool.map(compile_one, plans))

    # ------------------------------------------------------------ rungs

    def blank(self, name: str) -> Rung:
        """A rung that says what it is about, and nothing else yet."""
        b = self.case.benchmark
        return Rung(
            name=f"{b.name}, {name}",
            bodies=self.options.bodies[0],
            device=self.device,
            skipped="not run",
            extra={
                "benchmark": b.name,
                "original": "yes" if b.original else "no",
                "step": name,
                "n": self.case.n,
                "bound_seconds": self.bound.seconds,
                "bound_by": self.bound.limiter,
            },
        )

    def naive(self, name: str) -> Rung:
        """The benchmark as it is written: its naive plan, or its own launches."""
        plan, own = naive_plan(self.device), self.case.benchmark.naive
        if own is None:
            return self.plan(name, plan, None, None)
        blank = replace(self.blank(name), plan=plan.short())
        return self._guarded(
            blank, lambda: self._launches(blank, *own(self._module, self.case.arrays, plan))
        )

    def plan(
        self,
        name: str,
        plan: lw.Plan | None,
        base: Rung | None,
        naive: Rung | None,
        *,
        again: bool = False,
    ) -> Rung:
        """The kernel by a plan (None: lanewise's own), compared with a rung; `again`: even if its
        code is that of an earlier one.
        """
        blank = replace(self.blank(name), plan=None if plan is None else plan.short())
        rung = self._guarded(blank, lambda: self._plan(blank, plan, again=again))
        return compared_twice(rung, base, naive)

    def library(self, name: str, library: LibraryNames, naive: Rung | None) -> Rung:
        """The same by a library."""
        blank = self.blank(name)
        text = library.on_gpu if self.options.on_gpu else library.on_cpu
        blank = replace(blank, extra={**blank.extra, "library": text})
        result: list[Any] = [None]

        def work() -> None:
            result[0] = library.call(self._module, self.case.arrays)

        def result_of() -> Any:
            return self.case.arrays[self.case.benchmark.result] if result[0] is None else result[0]

        return compared_twice(
            self._guarded(blank, lambda: self._timed(blank, work, result_of)), naive, naive
        )

    def _guarded(self, blank: Rung, measure: Callable[[], Rung]) -> Rung:
        """The rung, or the reason why there is none: one that fails ends nothing but itself."""
        try:
            return measure()
        except DeviceError as refusal:
            return skipped(blank, "device", str(refusal))
        except PlanError as refusal:
            return skipped(blank, "illegal", str(refusal))
        except Exception as error:
            # a library that is not there, a compiler that fails: the others are worth measuring
            return skipped(blank, "failed", f"failed: {type(error).__name__}: {error}")

    def _plan(self, blank: Rung, plan: lw.Plan | None, *, again: bool) -> Rung:
        call = self.case.bind(plan)
        decided, program = call.compiled.plan, call.compiled.executable.program
        blank = replace(blank, plan=decided.short())
        code = (program.kernels, decided.fast_math, decided.vector_bits, decided.registers)
        if code in self.seen and not again:
            return skipped(
                blank,
                "same code",
                f"its code is that of {self.seen[code]!r}: nothing changes on this device",
            )
        earlier = self.seen.setdefault(code, str(blank.extra["step"]))
        if reason := self._too_long(decided):
            return skipped(blank, "too long", reason)
        resources = call.compiled.resources
        extra = {
            **{name: resources.get(name) for name in ("registers", "occupancy")},
            "code_of": earlier,
            **self._accesses([call]),
        }
        blank = replace(
            blank, predicted_seconds=self._predicted([call]), extra={**blank.extra, **extra}
        )
        return self._timed(blank, call.launch, lambda: self._result(call))

    def _launches(self, blank: Rung, calls: list[lw.Call], result: Any) -> Rung:
        def work() -> None:
            for call in calls:
                call.launch()

        blank = replace(
            blank,
            predicted_seconds=self._predicted(calls),
            extra={**blank.extra, "launches": len(calls), **self._accesses(calls)},
        )
        return self._timed(blank, work, lambda: result[:1])

    def _result(self, call: lw.Call) -> Any:
        return call.results[0] if call.results else self.case.arrays[self.case.benchmark.result]

    # ------------------------------------------------------------ time

    def _timed(self, blank: Rung, work: Callable[[], object], result: Callable[[], Any]) -> Rung:
        """The rung checked, and with its time if it is right."""
        self.case.reset()
        work()
        error, allowed = self.case.error(result()), self.case.benchmark.tolerance(self.case.n)
        blank = replace(blank, relative_error=error)
        if not error <= allowed:
            wrong = (
                f"wrong: the relative error against float64 is {error:.1e}, and {allowed:.1e} is "
                "allowed"
            )
            return skipped(blank, "wrong", wrong)
        self.case.reset()
        first = self._seconds(work, 1)  # without what a first run costs: it may have compiled
        runs, least = [first], QUICK_LEAST if self.options.quick else LEAST
        if first < least:  # short: repeated within a run
            repeats = max(1, min(MOST, round(least / max(first, 1e-9))))
            self.case.reset()
            runs = [self._seconds(work, repeats) / repeats for _ in range(RUNS)]
        while len(runs) < RUNS and sum(runs) < ENOUGH:
            runs.append(self._seconds(work, 1))
        return self._rated(replace(blank, skipped=None, seconds=min(runs)), len(runs))

    def _seconds(self, work: Callable[[], object], repeats: int) -> float:
        """The time of some repetitions, one launched after the other."""

        def repeated() -> None:
            for _ in range(repeats):
                work()

        return get_device(self.device).seconds(repeated)

    def _rated(self, rung: Rung, runs: int) -> Rung:
        assert rung.seconds is not None
        b, n, least = self.case.benchmark, self.case.n, self.bound.seconds
        share = None if least is None else least / rung.seconds
        extra = {
            **rung.extra, "runs": runs, "flops_per_second": b.flops(n) / rung.seconds,
            "bytes_per_second": b.traffic(n) / rung.seconds, "share_of_bound": share,
        }  # fmt: skip
        return replace(rung, extra=extra)

    def _predicted(self, calls: Sequence[lw.Call]) -> float | None:
        """Seconds by the model; None where how often a loop runs depends on data."""
        compiled, alone = [call.compiled for call in calls], len(calls) == 1
        if not all(is_foreseen(c.executable) for c in compiled):
            return None
        return sum(
            predicted(c.executable, c.environment, self.model, in_graph=alone).seconds
            for c in compiled
        )

    def _accesses(self, calls: Sequence[lw.Call]) -> dict[str, float | None]:
        """Loads and stores of all threads by the model, a wide one counted once: what the study
        means by the efficiency of a pass, besides its speed. None on a CPU.
        """
        names = ("global_accesses", "shared_accesses")
        compiled = [call.compiled for call in calls]
        if not self.options.on_gpu or not all(is_foreseen(c.executable) for c in compiled):
            return dict.fromkeys(names)
        found = [predicted(c.executable, c.environment, self.model).details for c in compiled]
        return {n: sum(_of_all_kernels(d, n.replace("_", " ")) for d in found) for n in names}

    def _too_long(self, plan: CompletePlan) -> str | None:
        """Why a run would take more time than a rung gets, by one of smaller matrices where a slow
        kernel might take so long.
        """
        b, n = self.case.benchmark, self.case.n
        limit = QUICK_LIMIT if self.options.quick else LIMIT
        operations, moved = SLOW[self.options.on_gpu]
        if max(b.flops(n) / operations, b.traffic(n) / moved) <= limit:
            return None
        small = n // PILOT
        call = make_case(b, small, self.device, self.options.seed).bind(plan)
        seconds = min(self._seconds(call.launch, 1) for _ in range(2))
        total = seconds * max(
            b.flops(n) / max(1.0, b.flops(small)), b.traffic(n) / b.traffic(small)
        )
        if total <= limit:
            return None
        return (
            f"a run would take about {duration(total)}, and a rung gets {duration(limit)} "
            f"(matrices of {small} x {small} take {seconds * 1e3:.3g} ms)"
        )

    @property
    def _module(self) -> Any:
        return array_module(self.device)


def compared_twice(rung: Rung, base: Rung | None, naive: Rung | None) -> Rung:
    """The rung with its factor over another one, and over the naive one."""
    if rung.seconds is None:
        return rung
    if naive is not None and naive.seconds is not None:
        extra: dict[str, float | int | str | None] = {
            **rung.extra,
            "over_naive": naive.seconds / rung.seconds,
        }
        if naive.predicted_seconds and rung.predicted_seconds:
            extra["over_naive_predicted"] = naive.predicted_seconds / rung.predicted_seconds
        rung = replace(rung, extra=extra)
    return compared(rung, base)


def over_naive(rung: Rung) -> float | None:
    """How many times faster a rung is than the naive one."""
    return number(rung, "over_naive")


def _of_all_kernels(details: Mapping[str, float], name: str) -> float:
    """A figure of a prediction, over the kernels of a program: later ones have their name in front
    of it.
    """
    return sum(value for n, value in details.items() if n == name or n.endswith(f" {name}"))
