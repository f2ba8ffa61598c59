"""A ladder as bars: the factor of every rung here, at each size, next to the paper's machines; and
the rates reached. Below the name of a rung is the one that its factor is over.

The axis of factors is logarithmic and starts at 1, so that a loss is as long as the gain that
undoes it. Where many factors are large it reaches the largest; a few that are far outside the
others end at the edge of the panel and carry their number, as all bars do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil, floor, log10
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Literal

from lanewise.ladders.rung import Ladder, Rung, digits
from lanewise.plot.canvas import FAINT, GRID, TEXT, dark_axes, dark_figure, save_png
from lanewise.support.interrupts import interrupts_wait

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

HERE = ("#ffab4a", "#ff6a3d", "#fbe3a1", "#e8c547", "#d96c8f", "#c9a0ff")
PAPER = ("#3b4fd8", "#4f9df0", "#9fdcf2")
EXPECTED = ("#5fbf86", "#9be3b5", "#c8f0d6")
MODEL, EDGE = "#f4f6fb", "#0f131d"
EDGE_LOW, EDGE_HIGH = 0.3, 8.0  # factors beyond these end at the panel's edge, where few are
FEW = 1 / 6  # of the rungs
MANY = 24  # rungs that one panel holds; more are divided by the first part of their names
BAR, GAP = 0.17, 0.16  # inches
HEAD, FOOT = 1.5, 0.95
PRECISE = 7.5  # points
ROOM, SMALL_ROOM = 0.082, 0.064  # inches of a letter of a label, and of the words below it


@dataclass(frozen=True, slots=True)
class _Series:
    """Bars of one colour: factors of some of the rungs, and what the model says of them."""

    label: str
    colour: str
    factors: Mapping[str, float]
    model: Mapping[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True, slots=True)
class _Panel:
    """Rungs side by side with those of other panels: the name of each row's rung, None where the
    panel has none.
    """

    title: str
    rows: tuple[str | None, ...]


def plot_ladder(path: Path, ladder: Ladder, rungs: list[Rung], machine: str) -> None:
    """Write the picture of measured rungs to `path`.

    Raises:
        InputError: the folder does not exist or is closed, or `path` is not a regular file.
    """
    sizes = list(dict.fromkeys(r.bodies for r in rungs))
    here = [
        _Series(
            f"here, {ladder.so_many(n)}",
            HERE[i % len(HERE)],
            _numbers(rungs, n, "speedup"),
            _numbers(rungs, n, "predicted"),
        )
        for i, n in enumerate(sizes)
    ]
    shown = [*here, *_expected(ladder, rungs, sizes), *_papers(ladder, rungs)]
    rates = {n: _rates(rungs, n, ladder.rate.key) for n in sizes}
    every_name = list(dict.fromkeys(r.name for r in rungs))
    names = [n for n in every_name if any(n in s.factors for s in shown)]
    if len(names) <= MANY:  # with room for the rates of rungs that others are compared with
        names = [n for n in every_name if n in names or any(n in rate for rate in rates.values())]
    labels, panels = _panels(names)
    with_rates = len(panels) == 1 and any(rates.values())
    bars = max((sum(n in s.factors for s in shown) for n in names), default=1) or 1
    over = _over(rungs, labels, panels)
    longest = max((max(ROOM * len(a), SMALL_ROOM * len(b)) for a, b in over.items()), default=ROOM)
    figure, axes = _figure(longest, len(labels), len(panels), bars, with_rates=with_rates)
    every = [
        [f for s in shown for f in (s.factors.get(n), s.model.get(n)) if f is not None]
        for n in names
    ]
    limits = _limits(every)
    for i, (place, panel) in enumerate(zip(axes, panels, strict=False)):
        dark_axes(place, panel.title, "factor (1: no change)", "")
        _rows(place, over, named=i == 0)
        _draw_factors(place, panel, shown, bars, limits)
    if with_rates:
        dark_axes(axes[-1], ladder.rate.title, ladder.rate.text, "")
        _rows(axes[-1], over, named=False)
        _draw_rates(axes[-1], panels[0], here, list(rates.values()), ladder.rate.unit)
    handles = _handles(shown)
    columns = _legend_columns([str(h.get_label()) for h in handles], figure.get_size_inches()[0])
    head_and_source(figure, ladder, machine, handles, columns, "figures")
    save_png(figure, path)


def _expected(ladder: Ladder, rungs: list[Rung], sizes: list[int]) -> list[_Series]:
    """What something else than the model says of rungs, at each size."""
    made: list[_Series] = []
    for key, label in ladder.expected.items():
        for n in sizes:
            factors = _rates(rungs, n, key)
            if factors:
                colour = EXPECTED[len(made) % len(EXPECTED)]
                made.append(_Series(f"{label}, {ladder.so_many(n)}", colour, factors))
    return made


def _papers(ladder: Ladder, rungs: list[Rung]) -> list[_Series]:
    """The paper's machines; one for each size where their figures of a rung differ by size."""
    made: list[_Series] = []
    for machine in dict.fromkeys(m for r in rungs for m in r.paper or {}):
        given = [
            (r.name, r.bodies, r.paper[machine]) for r in rungs if r.paper and machine in r.paper
        ]
        sizes = list(dict.fromkeys(n for _, n, _ in given))
        each = len({(name, figure) for name, _, figure in given}) > len(
            {name for name, *_ in given}
        )
        for some in [[n] for n in sizes] if each else [sizes]:
            label = f"{machine}, {ladder.so_many(some[0])}" if each else machine
            factors = {name: figure for name, n, figure in given if n in some}
            made.append(_Series(label, PAPER[len(made) % len(PAPER)], factors))
    return made


def _numbers(
    rungs: list[Rung], bodies: int, key: Literal["speedup", "predicted"]
) -> dict[str, float]:
    factors = {
        r.name: r.speedup if key == "speedup" else r.predicted for r in rungs if r.bodies == bodies
    }
    return {name: value for name, value in factors.items() if value is not None}


def _rates(rungs: list[Rung], bodies: int, key: str) -> dict[str, float]:
    rates = {r.name: r.extra.get(key) for r in rungs if r.bodies == bodies}
    return {name: float(rate) for name, rate in rates.items() if isinstance(rate, (int, float))}


def _panels(names: list[str]) -> tuple[list[str], list[_Panel]]:
    """The labels of the rows, and all rungs in one panel, or one panel for each first part ("SoA,
    unroll 4": "SoA").
    """
    parts = {n: n.partition(", ") for n in names}
    if len(names) <= MANY or not all(rest for _, _, rest in parts.values()):
        return names, [_Panel("Factor", tuple(names))]
    labels = list(dict.fromkeys(rest for _, _, rest in parts.values()))
    titles = dict.fromkeys(first for first, _, _ in parts.values())
    by_parts = {(first, rest): n for n, (first, _, rest) in parts.items()}
    return labels, [_Panel(t, tuple(by_parts.get((t, label)) for label in labels)) for t in titles]


def _over(rungs: list[Rung], labels: list[str], panels: list[_Panel]) -> dict[str, str]:
    """For each row the words that say over which rung its factors are: over the one of most of
    them, then at which sizes over another one.

    A rung of the same panel is named as its row is. Rows without a factor have no words.
    """
    rows = {n: (p.title, i) for p in panels for i, n in enumerate(p.rows) if n is not None}
    found: list[dict[str, list[int]]] = [{} for _ in labels]
    for r in rungs:
        if r.over is not None and r.speedup is not None and r.name in rows:
            title, row = rows[r.name]
            base = r.over.removeprefix(f"{title}, ") if len(panels) > 1 else r.over
            found[row].setdefault(base, []).append(r.bodies)
    words: dict[str, str] = {}
    for label, bases in zip(labels, found, strict=True):
        usual, *others = sorted(bases, key=lambda b: -len(bases[b])) or [""]
        ends = [f"; at {', '.join(f'{n:,}' for n in bases[b])} over {b}" for b in others]
        words[label] = f"over {usual}{''.join(ends)}" if usual else ""
    return words


def _legend_columns(labels: list[str], width: float) -> int:
    """The most columns, six at most, in which a legend is no wider than a picture: its entries go
    down the columns.
    """
    for columns in range(min(len(labels), 6), 1, -1):
        rows = ceil(len(labels) / columns)
        parts = [labels[i : i + rows] for i in range(0, len(labels), rows)]
        if sum(0.5 + ROOM * max(map(len, part)) for part in parts) <= width:
            return columns
    return 1


def _figure(
    longest: float, rows: int, panels: int, bars: int, *, with_rates: bool
) -> tuple[Figure, list[Axes]]:
    """The figure with its axes: a row of bars takes the same height in every ladder.

    longest: inches of the widest label.
    """
    inches = max(1, rows) * (bars * BAR + GAP)
    height = inches + HEAD + FOOT
    widths = [6.2, 3.6] if with_rates else [6.2] if panels == 1 else [2.9] * panels
    left, gap = 0.35 + longest, 0.25
    width = left + sum(widths) + gap * len(widths) + 0.15
    figure = dark_figure(width, height)
    axes: list[Axes] = []
    for i, inner in enumerate(widths):
        start = left + sum(widths[:i]) + gap * i
        axes.append(figure.add_axes((start / width, FOOT / height, inner / width, inches / height)))
    return figure, axes


def _limits(factors: list[list[float]]) -> tuple[float, float]:
    """Where the shortest and the longest bar end, for the factors of each rung: what they need,
    between edges, with 1 inside.
    """
    least, most = _edges(factors)
    every = [f for own in factors for f in own]
    inside = [f for f in every if least < f < most]
    low = least if any(f <= least for f in every) else min([0.9, *inside]) / 1.1
    high = most if any(f >= most for f in every) else max([1.2, *inside])
    return low, high


def _edges(factors: list[list[float]]) -> tuple[float, float]:
    """Where bars end: at the usual edges, or at the extreme factor where more than a few rungs are
    beyond one.
    """
    above = [max(own) for own in factors if own and max(own) > EDGE_HIGH]
    below = [min(own) for own in factors if own and min(own) < EDGE_LOW]
    few = FEW * len(factors)
    return min(below) if len(below) > few else EDGE_LOW, max(above) if len(
        above
    ) > few else EDGE_HIGH


def factor_ticks(low: float, high: float) -> list[float]:
    """Ticks of a logarithmic axis of factors: more of them where it is short."""
    if high < 10 and low > 0.25:
        return [t for t in (0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 8) if low <= t <= high]
    steps = (1, 2, 5) if high < 3000 * low else (1,)
    decades = range(floor(log10(low)), ceil(log10(high)) + 1)
    return [t for d in decades for m in steps if low <= (t := float(f"{m}e{d}")) <= high]


def _draw_factors(
    axes: Axes, panel: _Panel, shown: list[_Series], most: int, limits: tuple[float, float]
) -> None:
    axes.set_xscale("log")
    low, high = limits
    axes.set_xlim(low, high * (high / low) ** 0.2)  # room for the number after the longest bar
    ticks = factor_ticks(*axes.get_xlim())
    axes.set_xticks(ticks, [f"{t:,g}" for t in ticks])
    axes.set_xticks([], minor=True)
    thick = 0.8 / most
    for at, name in enumerate(panel.rows):
        bars = [s for s in shown if name in s.factors]
        for i, s in enumerate(bars):
            assert name is not None
            _bar(axes, at + (i - (len(bars) - 1) / 2) * thick, thick, s, name, limits)
    axes.axvline(1.0, color=FAINT, linewidth=1.0, zorder=2)
    if not panel.rows:
        axes.text(1.02, 0, "no two rungs were timed", color=FAINT, fontsize=9, va="center")


def _bar(
    axes: Axes, y: float, thick: float, series: _Series, name: str, limits: tuple[float, float]
) -> None:
    """One bar from 1 on with its number at its end, in its colour; the model as a diamond, with a
    its own number next to the bar.

    An arrow stands where a bar continues beyond the edge. Numbers of losses stand left of their
    bars, where there is room.
    """
    factor, model, (low, high) = series.factors[name], series.model.get(name), limits
    end = min(max(factor, low), high)
    axes.barh(y, end - 1.0, left=1.0, height=thick * 0.86, color=series.colour, zorder=3)
    arrow = "▸ " if factor > high else "◂ " if factor < low else ""
    text = f"{arrow}{digits(factor)}"
    left, room = factor < 1 and _inches(axes, end, low) > _wide(text), _wide(text)
    place = max(1.0, end)
    if model is not None:
        diamond = min(max(model, low), high)
        axes.plot(
            [diamond],
            [y],
            marker="D",
            markersize=4.2,
            markerfacecolor=MODEL,
            markeredgecolor=EDGE,
            zorder=4,
            clip_on=False,
        )
        beside = diamond > max(1.0, end) or diamond < min(1.0, end)
        differ = beside and max(model, factor) > DIFFER * min(model, factor)
        on_label = not left and -BESIDE < _inches(axes, diamond, place) < room
        place = diamond if on_label and diamond > place else place
        covered = left and -room < _inches(axes, diamond, end) < 0
        left = left and not covered
        if differ and not on_label and not covered:
            before = diamond < 1 <= factor and _inches(axes, diamond, low) > _wide(digits(model))
            _number(axes, digits(model), diamond, y, MODEL, left=before)
    at, colour = (end, series.colour) if left else (place, series.colour)
    _number(axes, text, at, y, colour if model is not None else TEXT, left=left)


DIFFER = 1.15  # times: a diamond that far from its bar has a number
BESIDE = 0.05  # inches: half a diamond


def _number(axes: Axes, text: str, x: float, y: float, colour: str, *, left: bool = False) -> None:
    axes.annotate(
        text,
        (x, y),
        (-5 if left else 5, 0),
        textcoords="offset points",
        color=colour,
        fontsize=PRECISE,
        va="center",
        ha="right" if left else "left",
        zorder=5,
    )


def _wide(text: str) -> float:
    """Inches of a number with what stands next to it."""
    return 0.065 * len(text) + 0.14


def _inches(axes: Axes, x: float, origin: float) -> float:
    """How far a factor is right of another one in the picture."""
    low, high = axes.get_xlim()
    inches = axes.figure.get_size_inches()[0]  # type: ignore[union-attr]
    return log10(x / origin) / log10(high / low) * axes.get_position().width * inches


def _draw_rates(
    axes: Axes, panel: _Panel, here: list[_Series], rates: list[dict[str, float]], unit: float
) -> None:
    """The rate of every rung at every size as a dot at the end of its line: rungs need be no
    sequence, so none joins them.
    """
    axes.set_xscale("log")
    axes.grid(which="major", axis="x", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    every = [v for rate in rates for v in rate.values()]
    low, high = min(every) / 1.8, max(every) * 1.8
    for series, rate in zip(here, rates, strict=True):
        rows = [at for at, n in enumerate(panel.rows) if n in rate]
        values = [rate[n] for n in panel.rows if n in rate]
        axes.hlines(rows, low, values, color=series.colour, linewidth=1.0, alpha=0.35, zorder=2)
        axes.plot(
            values,
            rows,
            color=series.colour,
            linestyle="",
            marker="o",
            markersize=5,
            alpha=0.9,
            zorder=3,
        )
    axes.set_xlim(low, high)
    decades = range(floor(log10(low)), ceil(log10(high)) + 1)
    ticks = [
        m * 10.0**d
        for d in decades
        for m in ((1, 2, 5) if high < 100 * low else (1,))
        if low <= m * 10.0**d <= high
    ]
    axes.set_xticks(ticks, [f"{t / unit:g}" for t in ticks])
    axes.set_xticks([], minor=True)


def _rows(axes: Axes, labels: Mapping[str, str], *, named: bool) -> None:
    """Rows, with their names and the words below those."""
    axes.set_yticks(range(len(labels)), list(labels) if named else [""] * len(labels))
    for at, (tick, below) in enumerate(zip(axes.get_yticklabels(), labels.values(), strict=True)):
        if named and below:
            tick.set_verticalalignment("bottom")
            axes.annotate(
                below,
                (0, at),
                (-4, -1),
                xycoords=("axes fraction", "data"),
                textcoords="offset points",
                color=FAINT,
                fontsize=PRECISE,
                va="top",
                ha="right",
                annotation_clip=False,
            )
    axes.set_ylim(max(len(labels), 1) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    for at in range(1, len(labels)):
        axes.axhline(at - 0.5, color=GRID, linewidth=0.6, zorder=1)


@interrupts_wait()
def head_and_source(
    figure: Figure,
    ladder: Ladder,
    machine: str,
    handles: list[Patch | Line2D],
    columns: int,
    what: str,
) -> None:
    """Title, legend in so many columns, and the source of `what`."""
    width, height = figure.get_size_inches()
    title = f"{ladder.title}, measured on {machine}"
    figure.text(0.25 / width, 1 - 0.3 / height, title, color=TEXT, fontsize=13, va="center")
    figure.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(0.14 / width, 1 - 0.42 / height),
        ncols=columns,
        fontsize=9,
        frameon=False,
        labelcolor=TEXT,
        handlelength=1.2,
        columnspacing=1.4,
    )
    source = fill(f"{what} of {ladder.source}", int(width * 15))
    figure.text(0.25 / width, 0.1 / height, source, color=FAINT, fontsize=8, va="bottom")


@interrupts_wait()
def marked(label: str, colour: str, size: float, edge: str) -> Line2D:
    """The entry of a legend for diamonds."""
    from matplotlib.lines import Line2D

    return Line2D(
        [],
        [],
        color=colour,
        label=label,
        marker="D",
        markersize=size,
        markeredgecolor=edge,
        linestyle="",
    )


@interrupts_wait()
def _handles(shown: list[_Series]) -> list[Patch | Line2D]:
    from matplotlib.patches import Patch

    handles: list[Patch | Line2D] = [Patch(color=s.colour, label=s.label) for s in shown]
    if any(s.model for s in shown):
        handles.append(marked("model", MODEL, 4.2, EDGE))
    return handles
