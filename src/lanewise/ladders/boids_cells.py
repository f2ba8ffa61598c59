"""The cells of a static grid as an axis: flocks over 6^3 to 48^3 cells, as the thesis's figures 6.2
and 6.5 have them.

Few cells hold many agents that are too far away; many cells are mostly empty, and take time to
build and to look at. Every point is checked against float64.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

import lanewise as lw
from lanewise.ladders.boids_run import FlockRunner
from lanewise.ladders.boids_versions import BOUNDARY, SOURCE, Version
from lanewise.ladders.curves import plot_curves
from lanewise.ladders.rung import (
    Column,
    Ladder,
    Options,
    Rate,
    Rung,
    Sizes,
    digits,
    number,
    number_text,
    seconds_text,
)
from lanewise.sims.boids.boundaries import find_boundary
from lanewise.sims.boids.choice import search_world
from lanewise.sims.boids.parameters import THESIS, THESIS_K
from lanewise.support.numerals import counted

Builder = Literal["host", "device"]
ALONG = (6, 8, 12, 16, 20, 24, 28, 32, 40, 48)
QUICK = (6, 12, 24, 48)
WORLD = 50.0  # a world of the thesis's, in which the cells of 24^3 have a side of the radius
SIZES = Sizes(gpu=(2**12, 2**14), cpu=(2**12, 2**14), quick_gpu=(2**12,), quick_cpu=(2**12,))


def climb(options: Options) -> Iterator[Rung]:
    """A rung for every number of cells, for each flock and for each of those who may build."""
    pairs: dict[bool, float] = {}
    builders: tuple[Builder, ...] = ("host", "device") if options.on_gpu else ("host",)
    for agents in options.bodies:
        for world in options.worlds or (WORLD,):
            for builder in builders:
                runner, earlier = FlockRunner(options, agents, world, pairs), dict[str, Rung]()
                for version, cells in _versions(world, builder, quick=options.quick):
                    rung = runner.measure(version, earlier)
                    earlier[version.name] = rung
                    along = {**rung.extra, "cells": cells, "curve": _curve(world, builder)}
                    yield _named(replace(rung, extra=along), world)


def _versions(world: float, builder: Builder, *, quick: bool) -> Iterator[tuple[Version, int]]:
    """Each compared with the fewest cells."""
    first = None
    for cells in QUICK if quick else ALONG:
        name = f"{cells}^3 cells, {builder}"
        search = lw.StaticGrid(
            cells=cells,
            build=builder,
            radius=THESIS.radius,
            k=THESIS_K,
            world=search_world(find_boundary(BOUNDARY).end, world),
        )
        yield Version(name, first, search), cells
        first = first or name


def _curve(world: float, builder: str) -> str:
    return f"W={world:g}, built by the {builder}"


def _named(rung: Rung, world: float) -> Rung:
    over = None if rung.over is None else f"W={world:g}, {rung.over}"
    return replace(rung, name=f"W={world:g}, {rung.name}", over=over)


def summary(rungs: list[Rung]) -> list[str]:
    """Where each curve has its minimum."""
    lines: list[str] = []
    for key in dict.fromkeys((r.bodies, str(r.extra.get("curve"))) for r in rungs):
        timed = {
            int(number(r, "cells") or 0): r.seconds
            for r in rungs
            if (r.bodies, str(r.extra.get("curve"))) == key and r.seconds is not None
        }
        if timed:
            best = min(timed, key=timed.__getitem__)
            lines.append(
                f"{counted(key[0], 'agent', 'agents')}, {key[1]}: fastest with {best}^3 cells, "
                f"{seconds_text(timed[best])} per step"
            )
    return lines


def _draw(path: Path, ladder: Ladder, rungs: list[Rung], machine: str) -> None:
    plot_curves(path, ladder, rungs, machine, axis="cells", label="cells along an axis")


LADDER = Ladder(
    name="boids cells",
    title="flocks over the cells of a static grid",
    source=f"{SOURCE}; figures 6.2 and 6.5",
    sizes=SIZES,
    climb=climb,
    columns=(Column("steps/s", number_text("steps_per_second", digits)),),
    summary=summary,
    elements="agents",
    rate=Rate("agent_steps_per_second", "millions of agents per second", 1e6),
    draw=_draw,
)
