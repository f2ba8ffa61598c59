"""The ladder `gravity-mesh`: a step of a star cluster on one device and on two, over sizes.

A step is the sum over all pairs, a kick and a drift. As in the Gravit study every device gets the
positions and masses of all bodies, and its own velocities. The first step counts with what
comes before it: arrays are made from those of the host and divided, calls and loops are made.
Kernels are compiled before. Where there is one device, two virtual parts share it: that measures
what a mesh costs, and no gain.

Without `from __future__ import annotations`: a kernel's types are read where it is defined.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import lanewise as lw
from lanewise.ladders.problem import SOFTENING, Law, Problem
from lanewise.ladders.run import RUNS, clock, duration, skipped
from lanewise.ladders.rung import (
    NOTHING,
    Column,
    Ladder,
    Options,
    Rung,
    Sizes,
    compared,
    factor_text,
    number,
    number_text,
    seconds_text,
)
from lanewise.plot.canvas import FAINT, GRID, TEXT, dark_axes, dark_figure, save_png
from lanewise.sims.common.devices import cuda_device_count, get_device, is_gpu, to_host
from lanewise.sims.gravity import Body
from lanewise.sims.gravity.physics import make_physics
from lanewise.support.numerals import counted

ONE, PART = "one device", "mesh of one part"
TWO, VIRTUAL = "two devices", "two virtual parts"
# The force of `lanewise gravity run`: what a second card gains is asked of the fastest step on one.
LAW = Law(make_physics(Body, True).acceleration, {"softening2": SOFTENING**2})
DT = 1e-4  # a step is short: what is measured does not depend on it
LEAST, QUICK_LEAST = 0.3, 0.02  # seconds of one timed run of steps
LONG = 10.0  # seconds of a step that is taken once
LIMIT = 600.0  # seconds that a step on one device may take
PILOT = {False: 1024, True: 65_536}  # bodies of the step that tells how long others take
PAPER_BODIES, PAPER_FACTOR, PAPER_CROSSOVER = 22_000_000, 1.91, 130_000


@lw.elementwise
def kick_drift(body: Body, acceleration: lw.vec3, dt: lw.f32):
    """Move the bodies by a step."""
    body.velocity += acceleration * dt
    body.position += body.velocity * dt


@dataclass(frozen=True, slots=True)
class Step:
    """The loop of a step, the accelerations that it writes, and the seconds that it took to make
    both from arrays of the host.
    """

    loop: lw.Steps
    result: Any
    making: float


def places(device: str) -> dict[str, str | lw.Mesh]:
    """Where the bodies of each rung lie: the other device is another GPU, if there is one."""
    others = [f"cuda:{n}" for n in range(cuda_device_count())] if is_gpu(device) else []
    own = device if ":" in device or not others else others[0]
    other = next((name for name in others if name != own), None)
    two = (VIRTUAL, lw.Mesh(own, parts=2)) if other is None else (TWO, lw.Mesh([own, other]))
    return dict([(ONE, own), (PART, lw.Mesh(own, parts=1)), two])


def climb(options: Options) -> Iterator[Rung]:
    """The rungs at every size, each as soon as it is measured."""
    known = places(options.device)
    pilot = 0.0
    for count in options.bodies:
        problem, base, bits = Problem(count, options.seed, LAW), None, None
        small = PILOT[options.on_gpu]
        if count > small and not pilot:
            pilot = _pilot(Problem(small, options.seed, LAW), known[ONE])
        expected = pilot * (count / small) ** 2 if count > small else 0.0
        for name, place in known.items():
            blank = _blank(name, place, count)
            if expected > LIMIT or (name == PART and expected > LONG):
                limit = LIMIT if expected > LIMIT else LONG
                yield skipped(
                    blank,
                    "too long",
                    f"a step would take about {duration(expected)}, and a rung gets "
                    f"{duration(limit)}",
                )
                continue
            rung, found = _measured(blank, place, problem, options, base)
            if name != ONE and rung.seconds is not None:
                if bits is not None and not np.array_equal(found, bits):
                    rung = skipped(rung, "wrong", f"wrong: its bits are not those of a {PART}")
                bits = found
            base = base or (rung if name == ONE else None)
            yield rung


def _blank(name: str, place: str | lw.Mesh, count: int) -> Rung:
    mesh = place if isinstance(place, lw.Mesh) else None
    return Rung(
        name=name,
        bodies=count,
        skipped="not run",
        device=place if mesh is None else mesh.spelling,  # pyright: ignore[reportArgumentType]
        paper={"two G80": PAPER_FACTOR} if name == TWO and count >= PAPER_BODIES else None,
        extra={"parts": 1 if mesh is None else len(mesh), "virtual": _yes(name == VIRTUAL)},
    )


def _yes(is_so: bool) -> str:
    return "yes" if is_so else "no"


def _pilot(problem: Problem, place: str | lw.Mesh) -> float:
    """Seconds of a step of a few bodies."""
    step = _step(problem, place)
    _seconds(step, place, 1)
    return _seconds(step, place, 1)


def _step(problem: Problem, place: str | lw.Mesh) -> Step:
    made: list[Any] = []

    def make() -> None:
        bodies = Body.array(  # pyright: ignore[reportAttributeAccessIssue]
            position=problem.position,
            mass=problem.mass,
            velocity=problem.velocity,
            device=place,
        )
        force = problem.law.kernel.bind(bodies, bodies, **problem.law.values)  # pyright: ignore[reportArgumentType]
        acceleration = force.results[0]
        loop = lw.steps([force, kick_drift.bind(bodies, acceleration, dt=DT)])
        _wait(place)
        made.extend((loop, acceleration))

    making = clock(make)
    return Step(made[0], made[1], making)


def _seconds(step: Step, place: str | lw.Mesh, steps: int) -> float:
    def run() -> None:
        step.loop.run(steps)
        _wait(place)

    return clock(run)


def _wait(place: str | lw.Mesh) -> None:
    """Until all devices are done."""
    for name in dict.fromkeys(place.devices if isinstance(place, lw.Mesh) else (place,)):
        get_device(name).synchronize()


def _on_host(result: Any) -> Any:
    return result.numpy() if isinstance(result, lw.SplitArray) else to_host(result)


def _measured(
    blank: Rung,
    place: str | lw.Mesh,
    problem: Problem,
    options: Options,
    base: Rung | None,
) -> tuple[Rung, Any]:
    """The rung of a place, and its first accelerations on the host."""
    compiled = _step(problem, place)
    once = _seconds(compiled, place, 1)
    found = _on_host(compiled.result).copy()
    error = problem.error(found)
    blank = replace(blank, relative_error=error)
    if not error <= problem.tolerance:
        wrong = (
            f"wrong: the relative error against float64 is {error:.1e}, and "
            f"{problem.tolerance:.1e} is allowed"
        )
        return skipped(blank, "wrong", wrong), found
    del compiled
    if once >= LONG:  # what was compiled in it is short compared with it
        seconds, first, runs = once, once + _step(problem, place).making, 1
    else:
        starts: list[float] = []
        for _ in range(RUNS):
            step = _step(problem, place)
            starts.append(step.making + _seconds(step, place, 1))
        first = median(starts)
        seconds, runs = _steady(step, place, options)  # pyright: ignore[reportPossiblyUnboundVariable]
    rung = compared(replace(blank, skipped=None, seconds=seconds), base)
    before = None if base is None else number(base, "first_seconds")
    extra: dict[str, float | int | str | None] = {
        "first_seconds": first,
        "overhead_seconds": max(0.0, first - seconds),
        "first_speedup": None if before is None else before / first,
        "efficiency": None if rung.speedup is None else rung.speedup / _cards(place),
        "pairs_per_second": problem.bodies**2 / seconds,
        "runs": runs,
    }
    return replace(rung, extra={**rung.extra, **extra}), found


def _cards(place: str | lw.Mesh) -> int:
    return len(set(place.devices)) if isinstance(place, lw.Mesh) else 1


def _steady(step: Step, place: str | lw.Mesh, options: Options) -> tuple[float, int]:
    """Seconds of a step among many, and how many runs this is the median of."""
    least = QUICK_LEAST if options.quick else LEAST
    once = _seconds(step, place, 1)
    if once >= least:
        return once, 1
    steps = max(1, min(10_000, round(least / once)))
    return median(_seconds(step, place, steps) / steps for _ in range(RUNS)), RUNS


# ------------------------------------------------------------ what is shown


def _last(rungs: list[Rung]) -> list[Rung]:
    """The rungs of two parts that have times, by size."""
    found = [r for r in rungs if r.name in (TWO, VIRTUAL) and r.seconds is not None]
    return sorted(found, key=lambda r: r.bodies)


def crossover(rungs: list[Rung], key: str | None) -> str:
    """From which size on two parts are faster than one device, by an extra number or the factor."""
    factors = [(r.bodies, r.speedup if key is None else number(r, key)) for r in _last(rungs)]
    slower = [n for n, factor in factors if factor is not None and factor <= 1]
    faster = [n for n, factor in factors if factor is not None and factor > 1]
    after = [n for n in faster if not slower or n > slower[-1]]
    if not after:
        return "at none of these sizes"
    return f"from {counted(after[0], 'body', 'bodies')} on" + (
        f" (slower at {slower[-1]:,})" if slower else ""
    )


def summary(rungs: list[Rung]) -> list[str]:
    """Table 2 of the study at the largest size, and the crossover of its figure 12."""
    two = _last(rungs)
    if not two:
        return []
    largest, words = two[-1], two[-1].name
    one = next(
        (r for r in rungs if r.name == ONE and r.bodies == largest.bodies and r.seconds), None
    )
    lines = [
        f"faster than one device, {words}: first step {crossover(rungs, 'first_speedup')}, "
        f"later ones {crossover(rungs, None)} (paper: first step from {PAPER_CROSSOVER:,} on)"
    ]
    if one is not None:
        lines.append(
            f"{counted(largest.bodies, 'body', 'bodies')}: "
            f"{seconds_text(one.seconds)} on one device, "
            f"{seconds_text(largest.seconds)} on {words}, {factor_text(largest.speedup)} times "
            f"(paper, 22 million bodies: 14.22 h, 7.43 h, {PAPER_FACTOR} times)"
        )
    if words == VIRTUAL:
        lines.append(
            "both parts are on the same device: this is what a mesh costs, and no gain of two"
        )
    return lines


SHADES = {PART: "#7ee0a0", TWO: "#ffab4a", VIRTUAL: "#ffab4a"}


def draw(path: Path, ladder: Ladder, rungs: list[Rung], machine: str) -> None:
    """Figure 12: factors over one device against sizes, of the first step and of later ones."""
    figure = dark_figure(9.0, 5.6)
    axes = figure.add_axes((0.1, 0.14, 0.86, 0.68))
    dark_axes(axes, "", "bodies", "times as fast as one device")
    axes.set_xscale("log", base=2)
    axes.grid(color=GRID, linewidth=0.6)
    axes.axhline(1.0, color=FAINT, linestyle=":")
    for name, shade in SHADES.items():
        own = [r for r in rungs if r.name == name and r.seconds is not None and r.speedup]
        if not own:
            continue
        counts = [r.bodies for r in own]
        later = [r.speedup or 0.0 for r in own]
        axes.plot(counts, later, "o-", color=shade, label=f"{name}, later steps")
        first = [number(r, "first_speedup") or 0.0 for r in own]
        axes.plot(counts, first, "s--", color=shade, label=f"{name}, first step")
    if axes.lines[1:]:
        axes.legend(fontsize=8, facecolor="#0f131d", edgecolor=GRID, labelcolor=TEXT)
    figure.text(0.03, 0.92, f"{ladder.title}, measured on {machine}", color=TEXT, fontsize=12)
    save_png(figure, path)


def _time(key: str) -> Callable[[Rung], str]:
    return lambda rung: NOTHING if rung.skipped else seconds_text(number(rung, key))


LADDER = Ladder(
    name="gravity-mesh",
    title="Gravity of a star cluster on one and two devices",
    source="Siegel, Ributzka and Li, CUDA memory optimizations for large data-structures in the "
    "Gravit simulator (2010), table 2 and figure 12",
    sizes=Sizes(
        gpu=(4096, 16_384, 65_536, 131_072, 262_144, 1_048_576),
        cpu=(512, 2048, 8192),
        quick_gpu=(16_384, 131_072),
        quick_cpu=(256, 1024),
    ),
    climb=climb,
    columns=(
        Column("of its cards", number_text("efficiency", "{:.1%}".format)),
        Column("first step", _time("first_seconds")),
        Column("its factor", number_text("first_speedup", "{:.2f}".format)),
        Column("overhead", _time("overhead_seconds")),
        Column("pairs/s", number_text("pairs_per_second", "{:.2e}".format)),
    ),
    summary=summary,
    draw=draw,
)
