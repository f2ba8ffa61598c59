"""The ladder `boids` as the thesis draws it: steps a second against agents and against worlds, and
where the time of a step goes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import log2
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

from lanewise.ladders.boids_run import REST, STAGES, parts_of
from lanewise.ladders.boids_versions import EIGHT, GPU
from lanewise.ladders.rung import Ladder, Rung, number
from lanewise.plot.canvas import FAINT, GRID, TEXT, dark_axes, dark_figure, save_png
from lanewise.support.numerals import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = (
    "#d7dce8",
    "#ffab4a",
    "#e8c547",
    "#ff6a3d",
    "#9fdcf2",
    "#4f9df0",
    "#6f7ff0",
    "#c9a0ff",
    "#fbe3a1",
    "#7ee0a0",
    "#d96c8f",
    "#7d879c",
    "#b8f04f",
    "#f09fd0",
    "#3fbfa8",
)
PARTS = dict(zip((*STAGES, REST), ("#ffab4a", "#4f9df0", "#7ee0a0", "#4a5163"), strict=True))
USUAL = 200.0  # the world of the thesis's figures of agents
WIDTH, HEIGHT = 15.5, 6.4  # inches


def plot_boids(path: Path, ladder: Ladder, rungs: list[Rung], machine: str) -> None:
    """Write the picture of measured rungs to `path`.

    Raises:
        InputError: the folder does not exist or is closed, or `path` is not a regular file.
    """
    timed = [r for r in rungs if r.seconds is not None]
    worlds, agents = Counter(_world(r) for r in timed), Counter(r.bodies for r in timed)
    world = max(
        worlds,
        key=lambda w: (len({r.bodies for r in timed if _world(r) == w}), w == USUAL),
        default=0.0,
    )
    crowd = max(
        agents, key=lambda n: (len({_world(r) for r in timed if r.bodies == n}), n), default=0
    )
    figure = dark_figure(WIDTH, HEIGHT)
    left, middle, right = (
        figure.add_axes((x, 0.27, w, 0.53)) for x, w in ((0.05, 0.3), (0.4, 0.2), (0.76, 0.22))
    )
    dark_axes(left, f"Agents, in a world of {world:g}", "agents", "steps per second")
    flock = counted(crowd, "agent", "agents")
    dark_axes(middle, f"Worlds, {flock}", "radius of the world", "steps per second")
    names = list(dict.fromkeys(_search(r) for r in rungs))
    for place, name in enumerate(names):
        mine, colour = [r for r in timed if _search(r) == name], COLOURS[place % len(COLOURS)]
        _line(left, ((r.bodies, r) for r in mine if _world(r) == world), colour, name)
        _line(middle, ((_world(r), r) for r in mine if r.bodies == crowd), colour, None)
    _thesis(left, [r for r in rungs if _world(r) == world])
    _scales(left, [r.bodies for r in timed if _world(r) == world], powers=True)
    _scales(middle, [_world(r) for r in timed if r.bodies == crowd], powers=False)
    shown = [r for r in timed if (r.bodies, _world(r)) == _pictured(timed)]
    _parts(right, shown)
    figure.text(
        0.02, 0.94, f"{ladder.title}, measured on {machine}", color=TEXT, fontsize=13, va="center"
    )
    if timed:
        handles, labels = left.get_legend_handles_labels()
        figure.legend(
            handles,
            labels,
            loc="lower left",
            bbox_to_anchor=(0.015, 0.04),
            ncols=5,
            fontsize=9,
            frameon=False,
            labelcolor=TEXT,
        )
    figure.text(
        0.02, 0.015, fill(f"figures of {ladder.source}", 240), color=FAINT, fontsize=8, va="bottom"
    )
    save_png(figure, path)


def _search(rung: Rung) -> str:
    """The name without its world."""
    return rung.name.partition(", ")[2]


def _world(rung: Rung) -> float:
    return number(rung, "world") or 0.0


def _pictured(timed: list[Rung]) -> tuple[int, float]:
    """The flock whose steps are taken apart: the one with the most agents in which most searches
    were measured.
    """
    counts = Counter((r.bodies, _world(r)) for r in timed)
    return max(counts, key=lambda flock: (counts[flock], flock), default=(0, 0.0))


def _line(axes: Axes, points: Iterable[tuple[float, Rung]], colour: str, label: str | None) -> None:
    """Steps a second of one search; the thesis's are drawn through, ours dashed."""
    measured = sorted((x, 1 / r.seconds, _search(r)) for x, r in points if r.seconds)
    if measured:
        style = "-" if measured[0][2] in EIGHT else "--"
        x, y, _ = zip(*measured, strict=True)
        axes.plot(
            x,
            y,
            color=colour,
            linestyle=style,
            linewidth=1.5,
            marker="o",
            markersize=4,
            label=label,
        )


def _thesis(axes: Axes, rungs: list[Rung]) -> None:
    """Steps a second that the thesis states."""
    stated = {
        (r.bodies, s) for r in rungs if (s := number(r, "thesis_steps_per_second")) is not None
    }
    if stated:
        x, y = zip(*sorted(stated), strict=True)
        label = f"the thesis's static grid and 3-D around, {GPU}"
        axes.plot(
            x,
            y,
            linestyle="",
            marker="*",
            markersize=11,
            markerfacecolor="none",
            markeredgecolor=TEXT,
            label=label,
        )


def _scales(axes: Axes, places: list[float] | list[int], *, powers: bool) -> None:
    axes.set_yscale("log")
    axes.set_xscale("log", base=2)
    axes.grid(which="major", color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    every = sorted(set(places))
    whole = powers and all(log2(x).is_integer() for x in every)
    texts = [f"2^{log2(x):.0f}" if whole else f"{x:,g}" for x in every]
    axes.set_xticks(every, texts)
    axes.set_xticks([], minor=True)
    if every:
        axes.set_xlim(every[0] / 1.3, every[-1] * 1.3)


def _parts(axes: Axes, rungs: list[Rung]) -> None:
    """How the time of a step divides into its stages, in every search of one flock."""
    parts = {_search(r): (r, p) for r in rungs if (p := parts_of(r)) is not None}
    profiled = [r for r, _ in parts.values()]
    what = (
        f": {counted(profiled[0].bodies, 'agent', 'agents')}, world {_world(profiled[0]):g}"
        if profiled
        else ""
    )
    dark_axes(axes, f"A step{what}", "share of its time", "")
    begin = [0.0] * len(profiled)
    for stage, colour in PARTS.items():
        sizes = [p[stage] / sum(p.values()) for _, p in parts.values()]
        axes.barh(range(len(profiled)), sizes, left=begin, height=0.7, color=colour, label=stage)
        begin = [a + b for a, b in zip(begin, sizes, strict=True)]
    axes.set_yticks(range(len(parts)), list(parts))
    axes.set_ylim(max(len(profiled), 1) - 0.5, -0.5)
    axes.set_xlim(0, 1)
    axes.tick_params(axis="y", length=0)
    if profiled:
        axes.legend(
            loc="lower center",
            bbox_to_anchor=(0.45, -0.32),
            ncols=len(PARTS),
            fontsize=9,
            frameon=False,
            labelcolor=TEXT,
        )
