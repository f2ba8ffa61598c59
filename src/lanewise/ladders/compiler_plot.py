"""The ladder `compiler` as a picture: how much faster each benchmark becomes, pass by pass, and how
near that is to the bound.

A bar goes from 1 to the default plan's factor in pieces, one for each pass; a pass that costs is a
thin piece back. The library and the bound are marks on the same logarithmic axis.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lanewise.ladders.compiler_plans import every_pass
from lanewise.ladders.plot import factor_ticks, head_and_source, marked
from lanewise.ladders.rung import Ladder, Rung, digits, number
from lanewise.plot.canvas import FAINT, GRID, TEXT, dark_axes, dark_figure, save_png
from lanewise.support.interrupts import interrupts_wait

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

COLOURS = (
    "#c9a0ff",
    "#3b4fd8",
    "#4f9df0",
    "#9fdcf2",
    "#5fd6a2",
    "#ffab4a",
    "#ff6a3d",
    "#fbe3a1",
    "#e8c547",
    "#d96c8f",
    "#9aa4b8",
)
PLAN, LIBRARY, BOUND, EDGE = "#7d879c", "#f4f6fb", "#ff4d6d", "#0f131d"
ROW, FOOT, LEFT = 0.36, 0.95, 1.45  # inches
TITLE, LEGEND, COLUMNS = 0.95, 0.22, 5  # inches of the head, and of a row of its legend
WIDE, NARROW, GAP = 7.6, 3.0, 0.3
THICK, THIN = 0.62, 0.2  # of a row
PRECISE = 7.5  # points


@dataclass(frozen=True, slots=True)
class _Row:
    """A benchmark at a size: its pieces (pass, from, to), and factors and shares of the default
    plan, the library and the bound.
    """

    label: str
    pieces: tuple[tuple[str, float, float], ...]
    factor: float | None
    library: float | None
    bound: float | None
    share: float | None
    library_share: float | None


def plot_compiler(path: Path, ladder: Ladder, rungs: list[Rung], machine: str) -> None:
    """Write the picture of measured rungs to `path`. Raises `InputError` as `plot_ladder`."""
    rows, names = _rows(rungs), list(dict.fromkeys(p.name for p in every_pass()))
    used = [n for n in names if any(n == p for r in rows for p, _, _ in r.pieces)]
    colours = {n: COLOURS[i % len(COLOURS)] for i, n in enumerate(used)}
    inches, head = max(1, len(rows)) * ROW, TITLE + LEGEND * -(-(len(colours) + 3) // COLUMNS)
    width, height = LEFT + WIDE + GAP + NARROW + 0.3, inches + head + FOOT
    figure = dark_figure(width, height)
    factors, shares = (
        figure.add_axes((start / width, FOOT / height, across / width, inches / height))
        for start, across in ((LEFT, WIDE), (LEFT + WIDE + GAP, NARROW))
    )
    dark_axes(factors, "Times as fast as the naive kernel", "factor (1: no change)", "")
    dark_axes(shares, "Share of the bound", "per cent", "")
    _draw_factors(factors, rows, colours)
    _draw_shares(shares, rows)
    for axes, named in ((factors, True), (shares, False)):
        axes.set_yticks(range(len(rows)), [r.label if named else "" for r in rows])
        axes.set_ylim(max(len(rows), 1) - 0.5, -0.5)
        axes.tick_params(axis="y", length=0)
    head_and_source(figure, ladder, machine, _handles(colours), COLUMNS, "benchmarks")
    save_png(figure, path)


def _rows(rungs: list[Rung]) -> list[_Row]:
    several = len({r.bodies for r in rungs}) > 1
    keys = dict.fromkeys((r.bodies, str(r.extra.get("benchmark"))) for r in rungs)
    rows: list[_Row] = []
    for bodies, name in keys:
        own = {
            str(r.extra.get("step")): r
            for r in rungs
            if (r.bodies, r.extra.get("benchmark")) == (bodies, name)
        }
        rows.append(_row(f"{name}, {bodies:,}" if several else name, own))
    return rows


def _row(label: str, rungs: dict[str, Rung]) -> _Row:
    names = {p.name for p in every_pass()}
    pieces: list[tuple[str, float, float]] = []
    at = 1.0
    for step, rung in rungs.items():
        factor = number(rung, "over_naive")
        if step in names and rung.seconds is not None and factor is not None:
            pieces.append((step, at, factor))
            at = factor
    naive, default, library = (rungs.get(n) for n in ("naive", "default plan", "library"))
    seconds = None if naive is None else naive.seconds
    bound = None if naive is None else number(naive, "bound_seconds")
    return _Row(
        label,
        tuple(pieces),
        _extra(default, "over_naive"),
        _extra(library, "over_naive"),
        seconds / bound if seconds and bound else None,
        _extra(default, "share_of_bound"),
        _extra(library, "share_of_bound"),
    )


def _extra(rung: Rung | None, key: str) -> float | None:
    return None if rung is None or rung.seconds is None else number(rung, key)


def _draw_factors(axes: Axes, rows: list[_Row], colours: dict[str, str]) -> None:
    every = [
        f
        for r in rows
        for f in (r.factor, r.library, r.bound, *(end for *_, end in r.pieces))
        if f is not None
    ]
    low, high = min([0.9, *every]) / 1.1, max([1.3, *every])
    axes.set_xscale("log")
    axes.set_xlim(low, high * (high / low) ** 0.1)
    ticks = [t for t in factor_ticks(low, high) if low <= t <= high]
    axes.set_xticks(ticks, [f"{t:,g}" for t in ticks])
    axes.set_xticks([], minor=True)
    axes.grid(which="major", axis="x", color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.axvline(1.0, color=FAINT, linewidth=1.0, zorder=2)
    for y, row in enumerate(rows):
        for name, start, end in row.pieces:
            gain = end >= start
            thick, place = (THICK, y) if gain else (THIN, y + THICK / 2 + THIN / 3)
            axes.barh(
                place,
                end - start,
                left=start,
                height=thick,
                color=colours[name],
                edgecolor=EDGE,
                linewidth=0.6,
                zorder=3,
            )
        if not row.pieces and row.factor is not None:
            axes.barh(y, row.factor - 1.0, left=1.0, height=THICK, color=PLAN, zorder=3)
        if row.bound is not None:
            axes.plot(
                [row.bound] * 2,
                [y - THICK / 2, y + THICK / 2],
                color=BOUND,
                linewidth=1.8,
                zorder=4,
            )
        if row.library is not None:
            _mark(axes, row.library, y)
        if row.factor is not None:
            _number(axes, y, digits(row.factor))


def _mark(axes: Axes, x: float, y: float) -> None:
    """What a library reaches."""
    look: dict[str, Any] = {
        "marker": "D",
        "markersize": 5,
        "markerfacecolor": LIBRARY,
        "markeredgecolor": EDGE,
    }
    axes.plot([x], [y], zorder=5, **look)


def _number(axes: Axes, y: float, text: str) -> None:
    """A number at the right edge of a panel, where it covers no mark."""
    axes.annotate(
        text,
        (1.0, y),
        (-5, 0),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        color=TEXT,
        fontsize=PRECISE,
        va="center",
        ha="right",
        zorder=6,
    )


def _draw_shares(axes: Axes, rows: list[_Row]) -> None:
    most = max((s for r in rows for s in (r.share, r.library_share) if s is not None), default=1.0)
    axes.set_xlim(0, 100 * max(1.0, most) * 1.22)
    axes.axvline(100, color=BOUND, linewidth=1.8, zorder=2)
    for y, row in enumerate(rows):
        if row.share is not None:
            axes.barh(y, 100 * row.share, height=THICK, color=PLAN, zorder=3)
        if row.library_share is not None:
            _mark(axes, 100 * row.library_share, y)
        if row.share is not None:
            _number(axes, y, f"{row.share:.0%}")


@interrupts_wait()
def _handles(colours: dict[str, str]) -> list[Patch | Line2D]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    return [
        *(Patch(color=c, label=n) for n, c in colours.items()),
        Patch(color=PLAN, label="default plan"),
        marked("library", LIBRARY, 5, EDGE),
        Line2D([], [], color=BOUND, linewidth=1.8, label="bound"),
    ]
