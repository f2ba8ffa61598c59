"""The number of bodies as an axis of the ladder `layouts`, as the study's figure 11 has it: its
levels of optimisation, each on top of the one before, over its sizes.

The study's time of a step has copies in it: bodies to the device, forces back. So has this one, on
a GPU; what the kernel alone takes stands next to it. Every point is checked against float64.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import lanewise as lw
from lanewise.ladders.curves import CurvePanel, plot_curves
from lanewise.ladders.layouts import (
    BASE_BLOCK,
    LAYOUTS,
    SERIAL,
    SOURCE,
    TOTAL,
    Combination,
    fastest,
    forces,
)
from lanewise.ladders.problem import Problem
from lanewise.ladders.run import RUNS, Runner, Version, bind, clock
from lanewise.ladders.rung import (
    Column,
    Ladder,
    Options,
    Rung,
    Sizes,
    compared,
    digits,
    factor_text,
    number,
    seconds_text,
)
from lanewise.sims.common.devices import get_device, target_of, to_host


@dataclass(frozen=True, slots=True)
class Level:
    """A level of the study's figure: its name and what it decides."""

    name: str
    choice: Combination


LEVELS = (
    Level("AoS", Combination("AoS", 1, False, BASE_BLOCK)),
    Level("SoA", Combination("SoA", 1, False, BASE_BLOCK)),
    Level("SoAoAS", Combination("SoAoAS", 1, False, BASE_BLOCK)),
    Level("SoAoAS, unroll 128", Combination("SoAoAS", 128, False, BASE_BLOCK)),
    Level("SoAoAS, unroll 128, ICM, block 128", Combination("SoAoAS", 128, True, 128)),
)
OWN = "automatic"
SIZES = Sizes(
    gpu=(40_000, 100_000, 200_000, 400_000, 700_000, 1_000_000),
    cpu=(4096, 8192, 16_384, 40_000),
    quick_gpu=(40_000, 100_000, 200_000),
    quick_cpu=(1024, 2048, 4096),
)


def climb(options: Options, make: Callable[[int, int], Problem] = forces) -> Iterator[Rung]:
    """One CPU thread, the levels, and lanewise's own plan, at every size.

    `make(bodies, seed)` gives the problem.
    """
    for bodies in options.bodies:
        runner = Runner(options, make(bodies, options.seed))
        serial = Version(
            name=SERIAL, plan=lw.Plan.neutral(), layout=lw.AoS(), device="cpu", serial=True
        )
        base = _along(runner.measure(serial, None), options, runner, serial, None)
        yield base
        for version in _versions(options.device):
            rung = runner.measure(version, None, again=True)
            yield _along(rung, options, runner, version, base)


def _versions(device: str) -> Iterator[Version]:
    for level in LEVELS:
        plan, layout = level.choice.plan(device), LAYOUTS[level.choice.layout]
        yield Version(name=level.name, plan=plan, layout=layout, device=device)
    layout = lw.SoAoAS() if target_of(device).has_blocks else lw.SoA()
    yield Version(name=OWN, plan=None, layout=layout, device=device)


def _along(
    rung: Rung, options: Options, runner: Runner, version: Version, serial: Rung | None
) -> Rung:
    """The rung with its copies, compared with one CPU thread: its time is that of a whole step."""
    extra = {**rung.extra, "curve": version.name, "count": rung.bodies}
    if rung.seconds is None:
        return replace(rung, extra=extra)
    there, back = _copies(runner.problem, version)
    whole = rung.seconds + there + back
    extra |= {
        "kernel_seconds": rung.seconds, "in_seconds": there, "out_seconds": back,
        "copies_share": (there + back) / whole,
    }  # fmt: skip
    # the model knows the kernel alone
    model = rung.predicted_seconds if whole == rung.seconds else None
    return compared(replace(rung, seconds=whole, predicted_seconds=model, extra=extra), serial)


def _copies(problem: Problem, version: Version) -> tuple[float, float]:
    """Seconds of the bodies' copy to the device and of the forces' copy back; none on a CPU."""
    if target_of(version.device).host_memory:
        return 0.0, 0.0
    held = problem.records(version.layout, "cpu")
    _, result = bind(version, problem)

    def there() -> None:
        held.to(version.device)
        get_device(version.device).synchronize()

    def median(work: Callable[[], object]) -> float:
        work()
        return statistics.median(clock(work) for _ in range(RUNS))

    return median(there), median(lambda: to_host(result))


def summary(rungs: list[Rung]) -> list[str]:
    """What all levels together gain over one CPU thread at each size, and what copies take."""
    lines: list[str] = []
    for best, line in fastest(rungs):
        if best.speedup is not None:
            line += f"; {digits(best.speedup)} times one CPU thread"
        if share := number(best, "copies_share"):
            line += f"; copies take {share:.1%} of it"
        lines.append(line)
    return [*lines, f"paper: {TOTAL:g} times its serial CPU code, at up to 1 million bodies"]


def _draw(path: Path, ladder: Ladder, rungs: list[Rung], machine: str) -> None:
    panels = (
        CurvePanel("seconds per step, with copies"),
        CurvePanel("times one CPU thread", 1.0, "over_serial"),
    )
    kept = [replace(r, extra={**r.extra, "over_serial": r.speedup}) for r in rungs]
    plot_curves(path, ladder, kept, machine, axis="count", label="bodies", panels=panels, wide=True)


LADDER = Ladder(
    name="layouts bodies",
    title="levels of optimisation of gravity over sizes",
    source=f"{SOURCE}; figure 11",
    sizes=SIZES,
    climb=climb,
    columns=(
        Column("kernel", lambda r: seconds_text(number(r, "kernel_seconds"))),
        Column("copy in", lambda r: _copy_text(r, "in_seconds")),
        Column("copy out", lambda r: _copy_text(r, "out_seconds")),
    ),
    summary=summary,
    draw=_draw,
)


def _copy_text(rung: Rung, key: str) -> str:
    value = number(rung, key)
    return seconds_text(value) if value else factor_text(None)
