"""The relative energy error over time: its size on a logarithmic axis, its sign as a colour."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lanewise.plot.canvas import FAINT, GRID, PANEL, TEXT, dark_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

GAINED, LOST = "#ffab4a", "#4f9df0"

LARGEST_DOT = 28.0
"""Area in points²."""


def draw_drift(
    figure: Figure,
    box: tuple[float, float, float, float],
    times: NDArray[np.float64],
    drift: NDArray[np.float64],
) -> None:
    """Adds the panel at `box` (left, bottom, width, height as parts of the figure).

    Args:
        figure: where to draw.
        box: the panel without its labels.
        times: (t,).
        drift: (t,), signed; exact zeros (the first value is one) have no place on a logarithmic axis and are left out.
    """
    axes = figure.add_axes(box)
    dark_axes(axes, "Energy conservation", "time  [N-body units]", "|E − E₀| / |E₀|")
    axes.grid(color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    _time_limits(axes, times)
    if np.any(drift):
        _draw_sizes(axes, times, drift)
    else:
        _draw_nothing_lost(axes, times)


def _draw_sizes(axes: Axes, times: NDArray[np.float64], drift: NDArray[np.float64]) -> None:
    """A thin line through all sizes, and a dot on each in the colour of its sign."""
    kept = drift != 0
    when, size, gained = times[kept], np.abs(drift[kept]), drift[kept] > 0
    axes.set_yscale("log")
    axes.plot(when, size, color=FAINT, linewidth=1.0, alpha=0.7, zorder=2)
    dot = float(np.clip(1500.0 / len(when), 4.0, LARGEST_DOT))
    for chosen, colour, label in ((gained, GAINED, "energy gained"), (~gained, LOST, "energy lost")):
        if chosen.any():
            axes.scatter(when[chosen], size[chosen], s=dot, color=colour, linewidths=0, zorder=3, label=label)
    _decades(axes, size)
    axes.grid(which="minor", axis="y", color=GRID, linewidth=0.4)
    worst, last = float(np.abs(drift).max()), float(drift[-1])
    values = f"largest {worst:.2e}, last {last:+.2e}".replace("-", "−")
    axes.set_title(values, loc="right", color=FAINT, fontsize=9, pad=9)
    axes.legend(
        loc="lower right",
        markerscale=float(np.sqrt(LARGEST_DOT / dot)),
        fontsize=9,
        facecolor=PANEL,
        edgecolor=GRID,
        labelcolor=TEXT,
        framealpha=0.85,
    )


def _draw_nothing_lost(axes: Axes, times: NDArray[np.float64]) -> None:
    """Every error is exactly zero: said in words, on a linear axis with only a zero."""
    axes.plot(times, np.zeros_like(times), color=GAINED, linewidth=1.5, marker="o", markersize=4)
    axes.set_ylim(-1.0, 1.0)
    axes.set_yticks([0.0], ["0"])
    axes.set_title("exactly 0 at every time", loc="right", color=FAINT, fontsize=9, pad=9)


def _time_limits(axes: Axes, times: NDArray[np.float64]) -> None:
    """From the first to the last time; a single time gets some room on both sides."""
    first, last = float(times.min()), float(times.max())
    margin = 0.02 * (last - first) or max(abs(first), 1.0) * 0.5
    axes.set_xlim(first - margin, last + margin)


def _decades(axes: Axes, size: NDArray[np.float64]) -> None:
    """Limits with room around the sizes, and at least two decades so that noise does not look like a trend."""
    low, high = float(np.log10(size.min())), float(np.log10(size.max()))
    grow = max(0.15 * (high - low), (2.0 - (high - low)) / 2, 0.3)
    axes.set_ylim(10.0 ** max(low - grow, -300.0), 10.0 ** min(high + grow, 300.0))
