"""The ladder `layouts`: the four memory layouts of the Gravit study x unrolling x invariant code
motion x block size.

Each rung is a plan and a layout of the same user function (`problem.attracting_force`). Every
factor is over the study's baseline (AoS, nothing unrolled, nothing moved, 256 threads per block).
The figures are the study's, on a GeForce 8800 GTX.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product

import lanewise as lw
from lanewise.ladders.gravity_table import RATES, rate_text
from lanewise.ladders.problem import FORCE, Problem
from lanewise.ladders.run import Runner, Version
from lanewise.ladders.rung import (
    Column,
    Ladder,
    Options,
    Rung,
    Sizes,
    digits,
    factor_text,
    number,
    seconds_text,
)
from lanewise.sims.common.devices import target_of
from lanewise.support.numerals import counted

GPU = "GeForce 8800 GTX"
SOURCE = (
    "J. Siegel, J. Ributzka, X. Li, CUDA memory optimizations for large data structures in the "
    f"Gravit simulator (2010), {GPU}"
)
SERIAL = "one CPU thread"
TOTAL = 87.0  # the study's fastest version over its serial CPU code
LAYOUTS: dict[str, lw.Layout] = {
    "AoS": lw.AoS(),
    "SoA": lw.SoA(),
    "AoAS": lw.AoAS(),
    "SoAoAS": lw.SoAoAS([("position", "mass"), ("velocity",)]),
}
UNROLLED = (1, 4, 16, 128)
# the baseline's first; as many sources are staged in shared memory as a block has threads
BLOCKS = (256, 64, 128, 512)
BASE_BLOCK = BLOCKS[0]
FULL_UNROLL, MOVED = {GPU: 1.18}, {GPU: 1.06}


@dataclass(frozen=True, slots=True)
class Combination:
    """One choice of the four decisions."""

    layout: str
    unrolled: int
    hoisted: bool
    block: int

    @property
    def name(self) -> str:
        """For example "SoAoAS, unroll 128, ICM, block 64"."""
        return (
            f"{self.layout}, unroll {self.unrolled}{', ICM' if self.hoisted else ''}, block "
            f"{self.block}"
        )

    @property
    def under(self) -> Combination | None:
        """What this one is compared with, as in the study: code motion and block size undone, else
        unrolling, else the layout.
        """
        if self.hoisted or self.block != BASE_BLOCK:
            return replace(self, hoisted=False, block=BASE_BLOCK)
        if self.unrolled != 1:
            return replace(self, unrolled=1)
        return replace(self, layout="AoS") if self.layout != "AoS" else None

    @property
    def paper(self) -> Mapping[str, float] | None:
        """The study's factor over `under`: it unrolled its best layout, and then moved code and
        made blocks of 128 threads.
        """
        if (self.layout, self.unrolled) != ("SoAoAS", 128):
            return None
        return {(False, BASE_BLOCK): FULL_UNROLL, (True, 128): MOVED}.get(
            (self.hoisted, self.block)
        )

    def plan(self, device: str) -> lw.Plan:
        """Tiles lie in shared memory, which a CPU does not have."""
        tile = self.block if target_of(device).has_blocks else 0
        return lw.Plan(
            unroll=self.unrolled, hoist=self.hoisted, block=self.block, tile=tile
        ).filled(lw.Plan.neutral())


BASE = Combination("AoS", 1, False, BASE_BLOCK)


def combinations(quick: bool) -> list[Combination]:
    """All of them, each after the one it is compared with; with `quick` those that the study has
    figures for, in all layouts.
    """
    if quick:
        ends = (
            Combination("AoS", u, h, b)
            for u, (h, b) in product((1, 128), ((False, BASE_BLOCK), (True, 128)))
        )
        return [replace(c, layout=name) for name, c in product(LAYOUTS, list(ends))]
    return [Combination(*c) for c in product(LAYOUTS, UNROLLED, (False, True), BLOCKS)]


# The study's range; on a CPU the least of it, the others by `--bodies`.
SIZES = Sizes(
    gpu=(40_000, 100_000, 400_000, 1_000_000), cpu=(40_000,), quick_gpu=(40_000,), quick_cpu=(4096,)
)


def forces(bodies: int, seed: int) -> Problem:
    """The study's problem: forces, with something to move out of the loop."""
    return Problem(bodies, seed, FORCE)


def climb(options: Options, make: Callable[[int, int], Problem] = forces) -> Iterator[Rung]:
    """The rungs at every size, each as soon as it is measured.

    `make(bodies, seed)` gives the problem.
    """
    for bodies in options.bodies:
        yield from _climb(options, Runner(options, make(bodies, options.seed)))


def _climb(options: Options, runner: Runner) -> Iterator[Rung]:
    serial = runner.measure(
        Version(name=SERIAL, plan=lw.Plan.neutral(), layout=lw.AoS(), device="cpu", serial=True),
        None,
    )
    yield serial
    rungs: dict[Combination, Rung] = {}
    for c in combinations(options.quick):
        version = Version(
            name=c.name,
            plan=c.plan(options.device),
            layout=LAYOUTS[c.layout],
            device=options.device,
            paper=c.paper,
        )
        rung = runner.measure(version, rungs.get(c.under) if c.under is not None else None)
        rungs[c] = _with_totals(rung, serial, rungs.get(BASE))
        yield rungs[c]


def _with_totals(rung: Rung, serial: Rung, base: Rung | None) -> Rung:
    """The factors over the serial CPU code and over the GPU baseline next to the factor of one
    decision.
    """
    if rung.seconds is None:
        return rung
    first = base if base is not None else rung
    totals = {
        "over_serial": serial.seconds / rung.seconds if serial.seconds else None,
        "over_baseline": first.seconds / rung.seconds if first.seconds else None,
    }
    return replace(rung, extra={**rung.extra, **totals})


def fastest(rungs: list[Rung]) -> Iterator[tuple[Rung, str]]:
    """For every size the fastest rung but the serial one, and the beginning of a line about it."""
    for bodies in dict.fromkeys(r.bodies for r in rungs):
        timed = [
            r for r in rungs if r.bodies == bodies and r.seconds is not None and r.name != SERIAL
        ]
        if timed:
            best = min(timed, key=lambda r: r.seconds or 0.0)
            time = seconds_text(best.seconds)
            yield best, f"{counted(bodies, 'body', 'bodies')}: fastest is {best.name!r} with {time}"


def summary(rungs: list[Rung]) -> list[str]:
    """For every size: the fastest version, and its factors next to the study's."""
    lines: list[str] = []
    for best, line in fastest(rungs):
        line += f", {rate_text(best)}"
        for key, what in (("over_baseline", f"{BASE.name!r}"), ("over_serial", SERIAL)):
            if (factor := number(best, key)) is not None:
                line += f"; {digits(factor)} times {what}"
        lines.append(line)
    return [
        *lines,
        f"paper: {TOTAL:g} times its serial CPU code; {FULL_UNROLL[GPU]:g} by full unrolling, "
        f"{MOVED[GPU]:g} by code "
        "motion and blocks of 128 threads",
    ]


def _total(key: str) -> Callable[[Rung], str]:
    return lambda rung: factor_text(number(rung, key))


LADDER = Ladder(
    name="layouts",
    title="memory layouts of gravity",
    source=SOURCE,
    sizes=SIZES,
    climb=climb,
    columns=(
        Column("over AoS", _total("over_baseline")),
        Column("over serial", _total("over_serial")),
        *RATES,
    ),
    summary=summary,
)
