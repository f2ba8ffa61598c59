"""Curves against reference points, as in validation: profiles across a flow, and drag and lift over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lanewise.errors import ArgumentError
from lanewise.plot.canvas import FAINT, GRID, PANEL, TEXT, dark_axes, dark_figure, save_png

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike, NDArray

COLOURS = ("#4f9df0", "#ffab4a", "#7fd6a3", "#e879a9", "#c9b3ff", "#9fdcf2")
"""Of the curves, in their order; the points that belong to a curve have its colour."""

MARKERS = "osD^v*"

MOST_DRAWN = 20_000
"""Of a curve's values; more of them lie in the same pixels."""

SETTLED = 0.1
"""The part of a history that may be a transient, whose peaks do not set the scale."""

OUTSIDE = 1.5
"""How many times larger than the rest the transient must be for that."""


@dataclass(frozen=True, slots=True)
class Curve:
    """Values y (n,) at places x (n,), with their name in the legend."""

    label: str
    x: ArrayLike
    y: ArrayLike


@dataclass(frozen=True, slots=True)
class Profile:
    """One panel: computed curves as lines, and reference points as open symbols, with the names of its axes."""

    curves: Sequence[Curve]
    points: Sequence[Curve] = ()
    title: str = ""
    xlabel: str = ""
    ylabel: str = ""


def plot_profile(
    path: str | Path,
    curves: Sequence[Curve],
    points: Sequence[Curve],
    title: str,
    *,
    xlabel: str = "",
    ylabel: str = "",
) -> None:
    """Draws one PNG of computed curves against reference points. Errors as `plot_profiles`."""
    plot_profiles(path, [Profile(curves, points, "", xlabel, ylabel)], title)


def plot_profiles(path: str | Path, profiles: Sequence[Profile], title: str) -> None:
    """Draws one PNG with a panel for each profile, side by side, such as u(y) and v(x) of a cavity.

    Args:
        path: the file to write; an old one is replaced in one step.
        profiles: at least one.
        title: one line above the panels.

    Raises:
        ArgumentError: nothing to draw, or a curve whose x and y are not equally long or not finite.
        InputError: the file cannot be written there.
    """
    if not profiles:
        raise ArgumentError("no profile to draw; wanted at least one")
    count = len(profiles)
    width, height = 0.3 + 5.6 * count, 5.8
    figure = dark_figure(width, height)
    _title(figure, title)
    for number, profile in enumerate(profiles):
        left = (0.85 + 5.6 * number) / width
        axes = figure.add_axes((left, 0.7 / height, 4.75 / width, 4.1 / height))
        _draw_profile(axes, profile)
    save_png(figure, Path(path))


def plot_history(
    path: str | Path, times: ArrayLike, series: Mapping[str, ArrayLike], title: str, *, xlabel: str = "time  [steps]"
) -> None:
    """Draws one PNG with a panel for each series, one below the other, over a common time.

    What a transient at the start reaches does not set the scale; it is said in words when it lies outside.

    Args:
        path: the file to write; an old one is replaced in one step.
        times: (n,), growing.
        series: by name, (n,) each, such as {"drag coefficient": ..., "lift coefficient": ...}.
        title: one line above the panels.
        xlabel: the name of the time axis with its unit.

    Raises:
        ArgumentError: nothing to draw, or a series that is not as long as the times or not finite.
        InputError: the file cannot be written there.
    """
    if not series:
        raise ArgumentError("no series to draw; wanted at least one")
    count = len(series)
    height = 1.1 + 2.6 * count
    figure = dark_figure(11.0, height)
    _title(figure, title)
    for number, (name, values) in enumerate(series.items()):
        bottom = (0.7 + 2.6 * (count - 1 - number)) / height
        axes = figure.add_axes((0.085, bottom, 0.885, 2.05 / height))
        last = number == count - 1
        _draw_series(axes, Curve(name, times, values), COLOURS[number % len(COLOURS)], xlabel if last else "")
        if not last:
            axes.tick_params(labelbottom=False)
    save_png(figure, Path(path))


def _title(figure: Figure, title: str) -> None:
    width, height = figure.get_size_inches()
    size = float(np.clip((width - 1.2) * 72 / (0.62 * max(len(title), 1)), 6.0, 14.0))
    figure.text(0.85 / width, 1 - 0.2 / height, title, color=TEXT, fontsize=size, fontweight="bold", va="top")


def _draw_profile(axes: Axes, profile: Profile) -> None:
    dark_axes(axes, profile.title, profile.xlabel, profile.ylabel)
    axes.grid(color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    for number, curve in enumerate(profile.curves):
        x, y = _thinned(*_checked(curve))
        axes.plot(x, y, color=COLOURS[number % len(COLOURS)], linewidth=1.8, label=curve.label, zorder=3)
    for number, curve in enumerate(profile.points):
        x, y = _checked(curve)
        colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
        axes.plot(
            x, y, linestyle="", marker=marker, markersize=6.5, markerfacecolor=PANEL, markeredgecolor=_paler(colour),
            markeredgewidth=1.4, label=curve.label, zorder=4,
        )  # fmt: skip
    if profile.curves or profile.points:
        axes.legend(loc="best", fontsize=9, facecolor=PANEL, edgecolor=GRID, labelcolor=TEXT, framealpha=0.85)


def _draw_series(axes: Axes, curve: Curve, colour: str, xlabel: str) -> None:
    times, values = _checked(curve)
    dark_axes(axes, curve.label, xlabel, "")
    axes.grid(color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.plot(*_thinned(times, values), color=colour, linewidth=1.3, zorder=3)
    low, high, hidden = settled_range(values)
    axes.set_ylim(low, high)
    axes.set_xlim(float(times[0]), float(times[-1]) if times[-1] > times[0] else float(times[0]) + 1.0)
    note = f"last {values[-1]:.5g}" + (f", the start reaches {hidden:.3g}" if hidden is not None else "")
    axes.set_title(note.replace("-", "−"), loc="right", color=FAINT, fontsize=9, pad=9)


def settled_range(values: NDArray[np.float64]) -> tuple[float, float, float | None]:
    """The ends of the axis, and what the transient at the start reaches where that lies far outside (else None)."""
    rest = values[int(len(values) * SETTLED) :]
    low, high = float(rest.min()), float(rest.max())
    margin = 0.12 * (high - low) or 0.1 * abs(high) or 1.0
    ends = low - margin, high + margin
    extreme = float(values[np.argmax(np.abs(values - (low + high) / 2))])
    if abs(extreme - (low + high) / 2) > OUTSIDE * (ends[1] - ends[0]):
        return *ends, extreme
    low, high = min(ends[0], float(values.min())), max(ends[1], float(values.max()))
    return low, high, None


def _checked(curve: Curve) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    x, y = np.asarray(curve.x, np.float64), np.asarray(curve.y, np.float64)
    if x.ndim != 1 or x.shape != y.shape or not len(x):
        raise ArgumentError(f"{curve.label}: x has shape {x.shape} and y {y.shape}; wanted (n,) for both, n at least 1")
    bad = ~(np.isfinite(x) & np.isfinite(y))
    if bad.any():
        first = int(np.flatnonzero(bad)[0])
        raise ArgumentError(f"{curve.label}[{first}] is {y[first]} at {x[first]}: only finite values can be drawn")
    return x, y


def _thinned(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The least and the greatest value of each group of neighbours, so that no peak is lost."""
    group = -(-2 * len(y) // MOST_DRAWN)
    if group < 3:
        return x, y
    starts = np.arange(0, len(y), group)
    pairs = [sorted((s + int(np.argmin(y[s : s + group])), s + int(np.argmax(y[s : s + group])))) for s in starts]
    chosen = np.unique(np.concatenate([[0, len(y) - 1], np.ravel(pairs)]))
    return x[chosen], y[chosen]


def _paler(colour: str) -> NDArray[np.float64]:
    from matplotlib.colors import to_rgb

    return 0.45 * np.array(to_rgb(colour)) + 0.55
