"""Bodies divided among a GPU and its CPU: the tutorial's "hybrid execution".

In every step the CPU needs all positions, computes its share of the targets while the GPU computes
the others, and sends its results. The tutorial judges that 10 % on the CPU is hardly worth it; here
that is measured, with the share that would make both finish together.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import lanewise as lw
from lanewise.ladders.problem import Problem
from lanewise.ladders.run import RUNS, Runner, clock, skipped
from lanewise.ladders.rung import Rung, compared, factor_text
from lanewise.layouts import default_layout
from lanewise.sims.common.devices import bring, get_device, to_host
from lanewise.sims.gravity.physics import RECORDS
from lanewise.support.numerals import counted

TENTH = 0.1  # the tutorial's share of the CPU
NAMES = ("hybrid, 10 % on the CPU", "hybrid, both finish together")


@dataclass(frozen=True, slots=True)
class HybridStep:
    """The first targets on a device, the others on the CPU, each with all sources."""

    whole: Any  # of the device: all bodies, and their results (n, 3)
    result: Any
    device: str
    here: lw.Call
    there: lw.Call
    positions: Any  # of the CPU's bodies
    share: Any  # the CPU's results
    first: int

    @classmethod
    def of(cls, problem: Problem, device: str, on_cpu: int) -> HybridStep:
        """on_cpu: how many of the targets."""
        law, first = problem.law, problem.bodies - on_cpu
        record = RECORDS[law.precision].__record__
        whole = problem.records(default_layout(record, device), device)
        own = problem.records(default_layout(record, "cpu"), "cpu").copy()
        result = bring(np.full((problem.bodies, 3), np.nan, law.dtype), device)
        share = np.full((on_cpu, 3), np.nan, law.dtype)
        here = law.kernel.bind(whole[:first], whole, **law.values, out=result[:first], plan=None)
        there = law.kernel.bind(own[first:], own, **law.values, out=share, plan=None)
        return cls(whole, result, device, here, there, own, share, first)

    def step(self) -> None:
        """Both compute at the same time; the CPU has to have the positions first."""
        self.positions.position = to_host(self.whole.position)
        self.here()  # continues while the CPU computes
        self.there()
        self.result[self.first :] = bring(self.share, self.device)
        get_device(self.device).synchronize()


def hybrid(runner: Runner, alone: Rung) -> Iterator[Rung]:
    """The rungs, over the GPU alone by lanewise's own plan: 10 % of the targets on the CPU, and as
    many as it computes while the GPU does the rest.
    """
    blanks = [
        Rung(name=name, bodies=runner.problem.bodies, device=alone.device, skipped="not run")
        for name in NAMES
    ]
    if not runner.options.on_gpu:
        reason = "a rung of a GPU with the CPU next to it, and this is a CPU"
        yield from (skipped(blank, "device", reason) for blank in blanks)
        return
    if alone.seconds is None:
        yield from (skipped(blank, "too long", "the GPU alone has no time") for blank in blanks)
        return
    some = max(1, round(TENTH * runner.problem.bodies))
    cpu = _cpu_seconds(runner, some) / some
    gpu = alone.seconds / runner.problem.bodies
    for blank, share in zip(blanks, (TENTH, gpu / (gpu + cpu)), strict=True):
        on_cpu = min(max(1, round(share * runner.problem.bodies)), runner.problem.bodies - 1)
        yield compared(measure(blank, runner.problem, alone.device, on_cpu), alone)


def _cpu_seconds(runner: Runner, targets: int) -> float:
    """Seconds of so many targets on the CPU."""
    problem = runner.problem
    record = RECORDS[problem.law.precision].__record__
    bodies = problem.records(default_layout(record, "cpu"), "cpu")
    call = problem.law.kernel.bind(bodies[:targets], bodies, **problem.law.values, plan=None)
    call()
    return clock(call)


def measure(blank: Rung, problem: Problem, device: str, on_cpu: int) -> Rung:
    """A rung whose last `on_cpu` targets are the CPU's, checked against float64, then timed."""
    division = HybridStep.of(problem, device, on_cpu)
    division.step()
    error, tolerance = problem.error(division.result), problem.tolerance
    blank = replace(blank, relative_error=error)
    if not error <= tolerance:
        wrong = f"wrong: the relative error against float64 is {error:.1e}"
        return skipped(blank, "wrong", f"{wrong}, and {tolerance:.1e} is allowed")
    seconds = statistics.median(clock(division.step) for _ in range(RUNS))
    alone = clock(division.there)
    extra = {
        **blank.extra, "cpu_targets": on_cpu, "cpu_share": on_cpu / problem.bodies,
        "cpu_seconds": alone, "runs": RUNS,
    }  # fmt: skip
    return replace(blank, skipped=None, seconds=seconds, extra=extra)


def hybrid_line(rungs: list[Rung]) -> str | None:
    """What dividing the work gained at a size, and what it cannot gain."""
    timed = [r for r in rungs if r.name in NAMES and r.speedup is not None]
    if not timed:
        return None
    best = max(timed, key=lambda r: r.speedup or 0.0)
    share = float(best.extra["cpu_share"] or 0.0)
    return (
        f"{counted(best.bodies, 'body', 'bodies')}: the CPU next to the GPU gains "
        f"{factor_text(best.speedup)} with {share:.1%} of the bodies; "
        f"without copies at most {factor_text(1 / (1 - share))}"
    )
