"""The ladder `tutorial`: n-body step by step, from one thread to every optimisation of Martin
Burtscher's CUDA tutorial.

Each rung is a plan of the same user function (`problem.attraction`) and stands on the rungs before
it. The figures are the tutorial's speed-ups over the rung before on a Quadro FX 5800, a Tesla C2050
and a GeForce GTX 680. The rungs after the tutorial's last one are lanewise's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import lanewise as lw
from lanewise.ladders.gravity_table import RATES, rate_text
from lanewise.ladders.hybrid import NAMES as HYBRID
from lanewise.ladders.hybrid import hybrid, hybrid_line
from lanewise.ladders.problem import ACCELERATION, ACCELERATION64, Problem
from lanewise.ladders.run import Runner, Version, bind, skipped
from lanewise.ladders.rung import Ladder, Options, Rung, Sizes, digits, seconds_text
from lanewise.layouts import default_layout
from lanewise.sims.common.devices import target_of
from lanewise.sims.gravity.physics import RECORDS
from lanewise.support.errors import PlanError
from lanewise.support.numerals import counted

GPUS = ("Quadro FX 5800", "Tesla C2050", "GeForce GTX 680")
THREADS = 256
SERIAL = "one CPU thread"
ONE_THREAD = "one GPU thread"


@dataclass(frozen=True, slots=True)
class TutorialStep:
    """One rung: what it changes of the plan and the layout, and the paper's factors.

    `first` is what its fields are on all rungs before it, where that is not the neutral value.
    """

    name: str
    change: lw.Plan
    layout: lw.Layout | None
    paper: tuple[float, ...]
    first: lw.Plan | None


def _step(
    name: str,
    *paper: float,
    layout: lw.Layout | None = None,
    first: lw.Plan | None = None,
    **change: object,
) -> TutorialStep:
    return TutorialStep(name, lw.Plan(**change), layout, paper, first)  # pyright: ignore[reportArgumentType]


STEPS = (
    _step(ONE_THREAD, 0.014, 0.027, 0.015, block=1),
    _step("N threads", 7781, 6495, 12150, block=THREADS),
    _step("scalar arrays", 0.83, 0.96, 0.82, layout=lw.SoA()),
    _step(
        "constant-memory parameters",
        1.015,
        1.016,
        0.971,
        uniforms="constant",
        first=lw.Plan(uniforms="global"),
    ),
    _step("rsqrt", 0.99, 1.83, 1.64, rsqrt="hardware"),
    _step("two loops instead of the if", 0.55, 1.0, 1.0, self_term="loops"),
    # The tutorial goes back to the test here.
    _step("shared-memory blocking", 3.7, 1.1, 1.6, tile=THREADS, self_term="test"),
    _step("unroll 8", 1.07, 1.16, 1.07, unroll=8),
    _step("if-elimination through softening", 1.38, 1.54, 1.64, self_term="drop"),
    _step("FMA rearrangement", 1.03, 1.05, 1.06, fma=True),
    _step("unroll 128", 1.01, 1.04, 0.93, unroll=128),
    _step("fast-math flags", 1.0, 1.18, 1.15, fast_math=True),
    _step("4 targets per thread", targets=4, unroll=16),
    _step("prefetch", prefetch="registers"),
    *(
        _step(
            f"reciprocity, {mode}",
            reciprocity=mode,
            targets=8,
            block=32,
            tile=0,
            unroll=1,
            self_term="test",
            prefetch="none",
        )
        for mode in ("scratch", "ordered")
    ),
)
# lanewise decides, but for arithmetic that is less accurate: that is the user's to ask for. Then
# also that as written.
ASKED, AUTOMATIC = "automatic plan, fast arithmetic", "automatic plan"
NAMES = (SERIAL, *(s.name for s in STEPS), ASKED, AUTOMATIC, *HYBRID)


# The tutorial's sizes; a million on a GPU. A quick run on a GPU has one that a single thread can
# do, and a larger one.
SIZES = Sizes(
    gpu=(1_000, 10_000, 100_000, 300_000, 1_000_000), cpu=(1_000, 10_000, 100_000),
    quick_gpu=(2048, 65_536), quick_cpu=(4096,),
)  # fmt: skip


LAWS = {"f32": ACCELERATION, "f64": ACCELERATION64}


def climb(options: Options, make: Callable[..., Problem] = Problem) -> Iterator[Rung]:
    """The rungs at every size, each as soon as it is measured.

    `make(bodies, seed, law)` gives the problem.
    """
    for bodies in options.bodies:
        problem = make(bodies, options.seed, LAWS[options.precision])
        yield from _climb(options, Runner(options, problem))


def _climb(options: Options, runner: Runner) -> Iterator[Rung]:
    device, layout = options.device, lw.AoS()
    base: Rung | None = runner.measure(
        Version(name=SERIAL, plan=lw.Plan.neutral(), layout=layout, device="cpu", serial=True), None
    )
    yield base
    plan, refused = _start(device, runner.problem)
    record = RECORDS[options.precision].__record__
    for step in STEPS:
        if step.name in refused:
            yield _skipped(step, runner, device, refused[step.name])
            continue
        if step.name == ONE_THREAD and not options.on_gpu:
            yield _skipped(step, runner, device, "a rung of a GPU, and this is a CPU")
            continue
        asked, lying = step.change.filled(plan), step.layout or layout
        rung = runner.measure(
            Version(name=step.name, plan=asked, layout=lying, device=device, paper=_paper(step)),
            base,
        )
        yield rung
        if rung.extra.get("skip") == "illegal":
            continue  # the next rung stands on the last legal one
        plan, layout = asked, lying
        if rung.extra.get("skip") != "same code":
            # without a time when its runs would take too long: then the next one has no factor
            base = rung
    for name, asked in (
        (ASKED, lw.Plan(rsqrt=plan.rsqrt, fast_math=plan.fast_math)),
        (AUTOMATIC, None),
    ):
        version = Version(
            name=name, plan=asked, layout=default_layout(record, device), device=device
        )
        rung = runner.measure(version, base, again=True)
        yield rung
        base = rung
    assert base is not None
    yield from hybrid(runner, base)


def _start(device: str, problem: Problem) -> tuple[lw.Plan, dict[str, str]]:
    """The plan of the first rungs, and the steps whose earlier value does not exist on this device,
    with the reason.
    """
    plan, refused = lw.Plan.neutral(), dict[str, str]()
    if target_of(device).has_blocks:
        plan = lw.Plan(block=THREADS).filled(plan)
    for step in STEPS:
        if step.first is None:
            continue
        before = step.first.filled(plan)
        try:
            bind(Version(name=step.name, plan=before, layout=lw.AoS(), device=device), problem)
            plan = before
        except PlanError as refusal:
            refused[step.name] = str(refusal)
    return plan, refused


def _skipped(step: TutorialStep, runner: Runner, device: str, reason: str) -> Rung:
    blank = Rung(
        name=step.name,
        bodies=runner.problem.bodies,
        device=device,
        paper=_paper(step),
        plan=step.change.short(),
        skipped=reason,
    )
    return skipped(blank, "device", reason)


def _paper(step: TutorialStep) -> Mapping[str, float] | None:
    return dict(zip(GPUS, step.paper, strict=True)) if step.paper else None


def summary(rungs: list[Rung]) -> list[str]:
    """For every size: the fastest rung, its rate, and its factor over one CPU thread and one GPU
    thread.
    """
    lines: list[str] = []
    for bodies in dict.fromkeys(r.bodies for r in rungs):
        timed = {r.name: r for r in rungs if r.bodies == bodies and r.seconds is not None}
        if not timed:
            continue
        best = min(timed.values(), key=lambda r: r.seconds or 0.0)
        line = (
            f"{counted(bodies, 'body', 'bodies')}: fastest is {best.name!r} with "
            f"{seconds_text(best.seconds)}, {rate_text(best)}"
        )
        for name in (SERIAL, ONE_THREAD):
            if name in timed and timed[name] is not best:
                line += (
                    f"; {digits((timed[name].seconds or 0.0) / (best.seconds or 1.0))} times {name}"
                )
        lines.append(line)
        if divided := hybrid_line([r for r in rungs if r.bodies == bodies]):
            lines.append(divided)
    return [
        *lines,
        _paper_line({str(r.extra.get("precision")) for r in rungs}),
    ]


def _paper_line(precisions: set[str]) -> str:
    if "f64" in precisions:
        return (
            "paper, double precision: 261.1 GFLOP/s on a GTX 480, 88.7 on a GTX 680; main memory "
            "2.1 and 5.3 GB/s in single precision"
        )
    return (
        "paper: 675.6 GFLOP/s on a GTX 480 (66 % of its peak, 2.1 GB/s of main memory), 1677.6 on "
        "a GTX 680 (54 %, 5.3 GB/s)"
    )


LADDER = Ladder(
    name="tutorial",
    title="n-body step by step",
    source="M. Burtscher, A CUDA tutorial: n-body simulation (Quadro FX 5800 / Tesla C2050 / "
    "GeForce GTX 680)",
    sizes=SIZES,
    climb=climb,
    columns=RATES,
    summary=summary,
    precisions=("f32", "f64"),
)
