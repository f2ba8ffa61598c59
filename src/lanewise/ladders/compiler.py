"""The ladder `compiler`: what becomes of naive array kernels, pass by pass, on the benchmarks of a
compiler of 2010 and some of today.

The rungs of a benchmark are its naive kernel, the passes of lanewise's default plan in their order
(`compiler_plans`), that plan, passes of the original that it leaves out, and a library. Passes are
compared with the rung before, the default plan and the library with the naive kernel, and what was
left out with the default plan.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from math import isqrt
from statistics import geometric_mean
from typing import Any

import lanewise as lw
from lanewise.ladders.compiler_plans import RungChange, changes, every_pass, left_out, naive_plan
from lanewise.ladders.compiler_plot import plot_compiler
from lanewise.ladders.compiler_problems import BENCHMARKS, Benchmark, make_case
from lanewise.ladders.compiler_run import Runner, over_naive
from lanewise.ladders.run import skipped
from lanewise.ladders.rung import (
    NOTHING,
    Column,
    Ladder,
    Options,
    Rung,
    Sizes,
    digits,
    factor_text,
    number,
    number_text,
    seconds_text,
)
from lanewise.planning import CompletePlan
from lanewise.sims.common.devices import array_module, on
from lanewise.support.errors import InputError, LanewiseError

NAIVE, DEFAULT, LIBRARY = "naive", "default plan", "library"
BESIDES = "besides: "  # what begins the names of passes that the default plan leaves out
LEAST = 32  # rows of a matrix
WORTH = 1.02  # the least factor that counts as a gain
SOURCE = (
    "Y. Yang, P. Xiang, J. Kong, H. Zhou, A GPGPU compiler for memory optimization and parallelism "
    "management (PLDI 2010): its benchmarks, "
    "passes and baseline of 16 x 16 blocks; factors of J. Wagner's study of it: up to 10 by "
    "merging, 2 to 4 by prefetching or without "
    "partition camping"
)


# Elements of a matrix: 4096 x 4096 on a GPU, 512 x 512 on a CPU; a quarter of the rows in a quick
# run, or a half.
SIZES = Sizes(gpu=(4096**2,), cpu=(512**2,), quick_gpu=(1024**2,), quick_cpu=(256**2,))


def climb(options: Options) -> Iterator[Rung]:
    """The rungs at every size, each as soon as it is measured."""
    for elements in options.bodies:
        if isqrt(elements) < LEAST:
            raise InputError(
                f"{elements:,} elements: wanted matrices of {LEAST} x {LEAST} = {LEAST**2:,} or "
                "more"
            )
    for elements in options.bodies:
        for benchmark in BENCHMARKS:
            if not options.only or benchmark.name in options.only:
                yield from climb_benchmark(replace(options, bodies=(elements,)), benchmark)


def climb_benchmark(options: Options, benchmark: Benchmark) -> Iterator[Rung]:
    """The rungs of one benchmark."""
    with on(options.device):
        n = isqrt(options.bodies[0])
        try:
            runner = Runner(options, make_case(benchmark, n, options.device, options.seed))
        except (LanewiseError, MemoryError) as refusal:
            blank = Rung(
                name=f"{benchmark.name}, {NAIVE}",
                bodies=options.bodies[0],
                device=options.device,
                skipped="not run",
                extra={"benchmark": benchmark.name, "step": NAIVE},
            )
            yield skipped(blank, "device", str(refusal))
            return
        yield from _climb(runner)
        del runner
        if options.on_gpu:
            array_module(options.device).get_default_memory_pool().free_all_blocks()


def _climb(runner: Runner) -> Iterator[Rung]:
    start = naive_plan(runner.device)
    goal = default_of(runner)
    steps = [] if goal is None else list(changes(start, goal))
    further = (
        []
        if goal is None or not runner.options.on_gpu
        else list(left_out(goal, runner.case.benchmark.rank))
    )
    runner.prepare(
        [*cumulative(start, steps), *(c.on(goal, {}) for c in further if goal is not None)]
    )
    naive = runner.naive(NAIVE)
    yield naive
    base, plan, refused = naive, start, dict[str, Any]()
    for step in steps:
        rung = runner.plan(step.name, step.on(plan, refused), base, naive)
        yield rung
        if rung.extra.get("skip") in ("illegal", "failed"):
            refused |= step.fields  # a later pass may be what it needs
            continue
        plan, refused = step.on(plan, refused), {}
        base = base if rung.extra.get("skip") == "same code" else rung
    default = runner.plan(DEFAULT, None, naive, naive, again=True)
    libraries = [runner.library(LIBRARY, x, naive) for x in runner.case.benchmark.library]
    best = min(libraries, key=lambda r: r.seconds or math.inf, default=None)
    if best is not None and best.seconds and default.seconds:
        default = replace(
            default, extra={**default.extra, "of_library": best.seconds / default.seconds}
        )
    yield default
    for change in further:
        assert goal is not None
        yield runner.plan(f"{BESIDES}{change.name}", change.on(goal, {}), default, naive)
    yield from libraries


def default_of(runner: Runner) -> CompletePlan | None:
    """The default plan; None where there is none, which its own rung explains."""
    try:
        return runner.case.bind(None).compiled.plan
    except LanewiseError:
        return None


def cumulative(start: CompletePlan, steps: list[RungChange]) -> list[lw.Plan]:
    """The plans of all rungs if nothing is refused."""
    plans, plan = [start], start
    for step in steps:
        plan = step.on(plan, {})
        plans.append(plan)
    return list(plans)


# ------------------------------------------------------------ what is shown


def _rate(rung: Rung) -> str:
    """What the bound is about: arithmetic, or what has to be moved."""
    if rung.extra.get("bound_by") == "fp32":
        rate, unit = number(rung, "flops_per_second"), "GFLOP/s"
    else:
        rate, unit = number(rung, "bytes_per_second"), "GB/s"
    return NOTHING if rate is None else f"{digits(rate * 1e-9)} {unit}"


def _library(rung: Rung) -> str:
    if isinstance(name := rung.extra.get("library"), str):
        return name
    return factor_text(number(rung, "of_library"))


def _bound(rung: Rung) -> str:
    return (
        seconds_text(number(rung, "bound_seconds"))
        if rung.extra.get("step") == DEFAULT
        else NOTHING
    )


COLUMNS = (
    Column("of naive", lambda r: factor_text(over_naive(r))),
    Column("rate", _rate),
    Column("of bound", number_text("share_of_bound", "{:.0%}".format)),
    Column("bound", _bound),
    Column("of library", _library),
)


ALIKE = 1.25  # two times of one kernel differ by less


def summary(rungs: list[Rung]) -> list[str]:
    """For every size: what came of each benchmark, the mean of the original's ten, and what each
    pass gained.
    """
    lines: list[str] = []
    for elements in dict.fromkeys(r.bodies for r in rungs):
        same = [r for r in rungs if r.bodies == elements]
        lines += [
            _conclusion(r) for r in same if r.extra.get("step") == DEFAULT and r.seconds is not None
        ]
        lines += [*_mean(same), *_gains(same)]
    return lines


def _conclusion(rung: Rung) -> str:
    factor, library = over_naive(rung), number(rung, "of_library")
    title = next((b.title for b in BENCHMARKS if b.name == rung.extra.get("benchmark")), "")
    plan = "the default plan"
    if rung.extra.get("code_of") == NAIVE:
        alike = factor is None or 1 / ALIKE < factor < ALIKE
        plan += (
            ", which is the naive one"
            if alike
            else ", whose kernel is the naive one's besides other launches"
        )
    parts = [f"{rung.extra['benchmark']} ({title}): {seconds_text(rung.seconds)} by {plan}"]
    parts += [] if factor is None else [f"{digits(factor)} times as fast as the naive kernel"]
    parts += [] if library is None else [f"{digits(library)} times as fast as the library"]
    if (share := number(rung, "share_of_bound")) is not None:
        parts.append(f"{share:.0%} of the bound ({rung.extra['bound_by']})")
    return ", ".join(parts)


def _mean(rungs: list[Rung]) -> list[str]:
    """Of the original's benchmarks: the geometric means of the factors here, of the model's, and of
    those over the libraries.
    """
    ten = [r for r in rungs if r.extra.get("step") == DEFAULT and r.extra.get("original") == "yes"]
    measured = [f for r in ten if (f := over_naive(r)) is not None]
    if not measured:
        return []
    line = (
        f"geometric mean of {len(measured)} of the original's ten benchmarks: "
        f"{digits(geometric_mean(measured))} times the naive kernel"
    )
    if predicted := [f for r in ten if (f := number(r, "over_naive_predicted")) is not None]:
        line += f" ({digits(geometric_mean(predicted))} by the model, of {len(predicted)})"
    if library := [f for r in ten if (f := number(r, "of_library")) is not None]:
        line += f", {digits(geometric_mean(library))} times the library"
    return [line]


def _gains(rungs: list[Rung]) -> list[str]:
    """What each pass gained where it was applied, and where it changes nothing or costs."""
    names = [
        *(p.name for p in every_pass()),
        *dict.fromkeys(_step(r) for r in rungs if _step(r).startswith(BESIDES)),
    ]
    lines: list[str] = []
    for name in names:
        factors = {
            str(r.extra["benchmark"]): r.speedup
            for r in rungs
            if _step(r) == name and r.speedup is not None
        }
        if not factors:
            continue
        helped = {b: f for b, f in factors.items() if f >= WORTH}
        if not helped:
            lines.append(
                f"{name}: does not help here "
                f"({', '.join(f'{b} {digits(f)}' for b, f in factors.items())})"
            )
            continue
        others = [f"{b} {digits(f)}" for b, f in factors.items() if b not in helped]
        lines.append(
            f"{name}: helps {len(helped)} of {len(factors)}, geometric mean "
            f"{digits(geometric_mean(factors.values()))}, at most "
            f"{digits(max(factors.values()))}" + (f"; not {', '.join(others)}" if others else "")
        )
    return lines


def _step(rung: Rung) -> str:
    return str(rung.extra.get("step", ""))


LADDER = Ladder(
    name="compiler",
    title="naive array kernels",
    source=SOURCE,
    sizes=SIZES,
    climb=climb,
    columns=COLUMNS,
    summary=summary,
    elements="elements of a matrix",
    draw=plot_compiler,
    parts=tuple(b.name for b in BENCHMARKS),
)
