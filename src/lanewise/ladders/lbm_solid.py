"""The share of solid sites as an axis of the ladder `lbm`, as the paper's figure 8 has it: the flow
through ever larger discs, in one kernel and split.

The paper's time is that of a run until the flow is steady, and fewer solid sites take more steps.
So each share has its time of a step and the number of steps until the flow hardly changes. Every
point is checked against float64.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import lanewise as lw
from lanewise.ladders.curves import STEP, CurvePanel, plot_curves
from lanewise.ladders.lbm import (
    APART,
    AUTOMATIC,
    BOTH,
    GAINS,
    ONE,
    SOURCE,
    TOGETHER,
    best_layout,
    boxes,
    layouts,
)
from lanewise.ladders.lbm_flow import SOLID, SiteBox, values_of
from lanewise.ladders.lbm_run import SiteRunner
from lanewise.ladders.lbm_sites import set_departing
from lanewise.ladders.lbm_truth import FlowForm
from lanewise.ladders.rung import (
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
from lanewise.support.numerals import counted

ALONG = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
QUICK = (0.0, 0.2, 0.6)
SIZES = Sizes(
    gpu=(128**2, 256**2), cpu=(128**2, 256**2), quick_gpu=(128**2,), quick_cpu=(128**2,)
)  # fmt: skip
STEADY, LOOK = 1e-3, 200  # how much the energy of a steady flow changes, within so many steps
MOST, QUICK_MOST = 100_000, 4_000  # steps


@dataclass(frozen=True, slots=True)
class _Steps:
    """How many steps a flow took until it was steady; None: more than there was time for."""

    count: int | None


def climb(options: Options) -> Iterator[Rung]:
    """A rung for every share of solid sites, in one kernel, split, and as lanewise decides."""
    for sites in options.bodies:
        for box in boxes(sites):
            for share in QUICK if options.quick else ALONG:
                yield from _at(options, replace(box, solid=share))


def _at(options: Options, box: SiteBox) -> Iterator[Rung]:
    runner, earlier = SiteRunner(options, box), dict[str, Rung]()
    # discs are made of whole sites, and the edges are not solid: it differs from the requested one
    share = float(np.mean(box.mask("together") == SOLID))
    steps = _until_steady(box, options)
    for form, under in _forms(options.device):
        rung = runner.measure(form, earlier.get(under or ""))
        earlier[form.name] = rung
        whole = None if steps.count is None or rung.seconds is None else steps.count * rung.seconds
        along = {
            **rung.extra, "share": share, "share_requested": box.solid, "steady_steps": steps.count,
            "steady_seconds": whole, "curve": f"{box.lattice.name}, {form.name}",
        }  # fmt: skip
        yield _named(replace(rung, extra=along), box, share)


def _forms(device: str) -> Iterator[tuple[FlowForm, str | None]]:
    """The paper's two versions, and lanewise's own."""
    one = FlowForm(
        name=ONE, layout=layouts(device)[best_layout(device)], streaming="pull", plan=TOGETHER
    )
    yield one, None
    yield replace(one, name=BOTH, loop="split", plan=APART), ONE
    yield FlowForm(name=AUTOMATIC), ONE


def _named(rung: Rung, box: SiteBox, share: float) -> Rung:
    place = f"{box.lattice.name}, {share:.1%} solid"
    over = None if rung.over is None else f"{place}, {rung.over}"
    return replace(rung, name=f"{place}, {rung.name}", over=over)


def _until_steady(box: SiteBox, options: Options) -> _Steps:
    """Steps until the flow's energy changes by less than a thousandth within two hundred."""
    form = FlowForm(name=AUTOMATIC)
    flow, sites = form.flow(box.lattice), form.sites(box, options.device)
    values: dict[str, Any] = values_of(box.lattice)
    set_departing(sites, box.start(options.seed, each=False))
    stepper, before = flow.stepper(sites, **values), 0.0
    fluid = box.mask("together") != SOLID
    for count in range(LOOK, (QUICK_MOST if options.quick else MOST) + 1, LOOK):
        stepper.run(LOOK)
        energy = _energy(box.lattice, np.asarray(flow.populations(sites, **values)), fluid)
        if abs(energy - before) <= STEADY * energy:
            return _Steps(count)
        before = energy
    return _Steps(None)


def _energy(lattice: lw.Lattice, populations: np.ndarray[Any, Any], fluid: Any) -> float:
    """The sum of the squares of the momentum of fluid sites; populations (Q, *shape)."""
    velocities = np.array(lattice.velocities, np.float64)
    momentum = np.tensordot(velocities.T, populations.astype(np.float64), axes=1)
    return float((momentum[:, fluid] ** 2).sum())


def summary(rungs: list[Rung]) -> list[str]:
    """What splitting does to the time of a step, by share, and where flows take longest."""
    lines: list[str] = []
    for sites in dict.fromkeys(r.bodies for r in rungs):
        split = {
            number(r, "share") or 0.0: r.speedup
            for r in rungs
            if r.bodies == sites and r.name.endswith(BOTH) and r.speedup is not None
        }
        if split:
            best = max(split, key=split.__getitem__)
            gains = ", ".join(f"{factor_text(f)} at {share:.1%}" for share, f in split.items())
            lines.append(
                f"{counted(sites, 'site', 'sites')}: splitting gains {gains}; most at {best:.1%}"
            )
        own = {
            number(r, "share") or 0.0: r
            for r in rungs
            if r.bodies == sites and r.name.endswith(AUTOMATIC) and r.extra.get("steady_seconds")
        }
        if own:
            share, slowest = max(own.items(), key=lambda p: number(p[1], "steady_seconds") or 0.0)
            lines.append(
                f"{counted(sites, 'site', 'sites')}: longest until steady at {share:.1%} solid, "
                f"{seconds_text(number(slowest, 'steady_seconds'))} in "
                f"{digits(number(slowest, 'steady_steps') or 0)} steps"
            )
    figures = ", ".join(f"{g:g} at {a} x {b} sites" for (a, b), g in GAINS.items())
    return [*lines, f"paper: {figures}"]


def _draw(path: Path, ladder: Ladder, rungs: list[Rung], machine: str) -> None:
    panels = (STEP, CurvePanel("seconds until the flow is steady", 1.0, "steady_seconds"))
    plot_curves(
        path, ladder, rungs, machine, axis="share", label="share of solid sites", panels=panels
    )


LADDER = Ladder(
    name="lbm solid",
    title="lattice Boltzmann flow over the share of solid sites",
    source=f"{SOURCE}; figure 8",
    sizes=SIZES,
    climb=climb,
    columns=(
        Column("MLUPS", number_text("mlups", digits)),
        Column("steps", number_text("steady_steps", "{:,.0f}".format)),
        Column("until steady", lambda r: seconds_text(number(r, "steady_seconds"))),
    ),
    summary=summary,
    elements="sites",
    draw=_draw,
)
