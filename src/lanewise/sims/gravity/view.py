"""The picture of a run: bodies in the x-y plane, coloured by their speed, and how well their energy
was kept.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lanewise.plot.canvas import (
    FAINT,
    GRID,
    PANEL,
    SKY,
    TEXT,
    dark_axes,
    dark_figure,
    save_png,
    speed_colours,
)
from lanewise.support.checks import checked, host_array
from lanewise.support.errors import ArgumentError
from lanewise.support.interrupts import interrupts_wait
from lanewise.support.numerals import counted

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
        drift: (t,), signed; exact zeros (the first value is one) have no place on a logarithmic
        axis and are left out.
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
    for chosen, colour, label in (
        (gained, GAINED, "energy gained"),
        (~gained, LOST, "energy lost"),
    ):
        if chosen.any():
            axes.scatter(
                when[chosen], size[chosen], s=dot, color=colour, linewidths=0, zorder=3, label=label
            )
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
    """Limits with room around the sizes, and at least two decades so that noise does not look like
    a trend.
    """
    low, high = float(np.log10(size.min())), float(np.log10(size.max()))
    grow = max(0.15 * (high - low), (2.0 - (high - low)) / 2, 0.3)
    axes.set_ylim(10.0 ** max(low - grow, -300.0), 10.0 ** min(high + grow, 300.0))


@checked()
def plot_gravity(
    path: str | Path,
    position: ArrayLike,
    velocity: ArrayLike,
    times: ArrayLike,
    energy_error: ArrayLike,
    title: str,
) -> None:
    """Draws one PNG of 2040 x 990 pixels: bodies in the x-y plane at the left, relative energy
    error at the right.

    Args:
        path: the file to write; an old one is replaced in one step.
        position: (n, 3), in N-body units (G = 1).
        velocity: (n, 3), in N-body units.
        times: (t,), when the energy was measured; the bodies are those of the last time.
        energy_error: (t,), (E - E0) / |E0| with its sign.
        title: one line above the panels.

    Raises:
        ArgumentError: a shape does not fit, there is nothing to draw, or a value is NaN or
        infinite.
        InputError: the file cannot be written there.
    """
    places = _finite("position", position, (-1, 3))
    speeds = np.linalg.norm(_finite("velocity", velocity, (len(places), 3)), axis=1)
    when = _finite("times", times, (-1,))
    drift = _finite("energy_error", energy_error, (len(when),))

    figure = dark_figure(13.6, 6.6)
    figure.suptitle(
        title, x=0.062, y=0.965, ha="left", va="top", color=TEXT, fontsize=14, fontweight="bold"
    )
    _draw_bodies(figure, (0.062, 0.09, 0.381, 0.785), places[:, :2], speeds, f"t = {when[-1]:.6g}")
    draw_drift(figure, (0.61, 0.09, 0.37, 0.785), when, drift)
    save_png(figure, Path(path))


def _finite(name: str, values: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """`values` as float64 of `shape` (-1: any length but zero), refused when it is not."""
    raw = host_array(name, values)
    if raw.dtype.kind not in "fiu":
        raise ArgumentError(f"{name}: {raw.dtype} cannot be drawn, wanted numbers")
    array = raw.astype(np.float64)
    fits = array.ndim == len(shape) and all(
        want in (-1, got) for want, got in zip(shape, array.shape, strict=True)
    )
    if not fits or array.size == 0:
        wanted = f"{shape} of at least one".replace("-1", "n")
        raise ArgumentError(f"{name}: shape {array.shape} cannot be drawn, wanted {wanted}")
    if not np.isfinite(array).all():
        index = int(np.argwhere(~np.isfinite(array))[0, 0])
        raise ArgumentError(f"{name}[{index}] is {array[index]}: only finite values can be drawn")
    return array


MOST_POINTS = 250_000
"""More points than this hide each other and take seconds to draw.

A fixed random choice of them is drawn.
"""

FEW = 100
"""Up to this many bodies all of them are shown, however far they are."""

ENDS = (1.0, 99.0)
"""Percentiles of x, y and speed that set the scales, so that a few escapers do not shrink the
picture.
"""


def _draw_bodies(
    figure: Figure,
    box: tuple[float, float, float, float],
    places: NDArray[np.float64],
    speeds: NDArray[np.float64],
    moment: str,
) -> None:
    """Adds the panel at `box` (left, bottom, width, height as parts of the figure) and a colour bar
    to its right.

    Args:
        figure: where to draw.
        box: the panel without its labels.
        places: (n, 2) positions.
        speeds: (n,).
        moment: said in the panel's title.
    """
    centre, half = frame(places)
    low, high = speed_range(speeds)
    # A random order (the same in every picture): in the order of a file or of speed, one group
    # would hide the others.
    drawn = np.random.default_rng(0).permutation(len(places))[:MOST_POINTS]
    size, alpha = point_style(len(drawn))

    axes = figure.add_axes(box)
    title = f"{counted(len(places), 'body', 'bodies')} at {moment}"
    dark_axes(axes, title, "x  [N-body units]", "y  [N-body units]")
    axes.set_facecolor(SKY)
    axes.scatter(
        *places[drawn].T,
        c=speeds[drawn],
        s=size,
        alpha=alpha,
        cmap=speed_colours(),
        vmin=low,
        vmax=high,
        linewidths=0,
    )
    axes.set_aspect("equal")
    axes.set_xlim(centre[0] - half, centre[0] + half)
    axes.set_ylim(centre[1] - half, centre[1] + half)
    inside = float((np.abs(places - centre) <= half).all(axis=1).mean())
    axes.set_title(
        _left_out(inside, len(drawn), len(places)), loc="right", color=FAINT, fontsize=9, pad=9
    )
    _colour_bar(figure, box, (low, high), (float(speeds.min()), float(speeds.max())))


def frame(places: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """The centre (2,) and half the side of the square that shows the bodies, without outliers when
    they are many.
    """
    ends = (0.0, 100.0) if len(places) <= FEW else ENDS
    low, high = np.percentile(places, ends, axis=0)
    centre = (low + high) / 2
    half = float((high - low).max()) / 2
    # Bodies at one point still need a frame that float64 can resolve there.
    return centre, half * 1.12 if half > 0 else max(1.0, float(np.abs(centre).max()) * 1e-6)


def speed_range(speeds: NDArray[np.float64]) -> tuple[float, float]:
    """The speeds at the two ends of the colours; a constant speed lies in the middle."""
    low, high = (
        float(end) for end in np.percentile(speeds, (0.0, 100.0) if len(speeds) <= FEW else ENDS)
    )
    margin = 0.05 * abs(high) or 1.0
    return (low, high) if high - low > 1e-6 * margin else (low - margin, high + margin)


def point_style(count: int) -> tuple[float, float]:
    """Area in points² and opacity: many points are small and let the ones below shine through."""
    size = float(np.clip(700.0 * count**-0.6, 0.8, 60.0))
    alpha = float(np.clip(16.0 * count**-0.33, 0.3, 1.0))
    return size, alpha


def _left_out(inside: float, drawn: int, total: int) -> str:
    """What the picture does not show: bodies outside of the frame, bodies that were not drawn at
    all.
    """
    notes: list[str] = []
    if inside < 1:
        notes.append(f"{min(inside, 0.9999):.2%} in the frame")
    if drawn < total:
        notes.append(f"{drawn:,} drawn")
    return ", ".join(notes)


@interrupts_wait()
def _colour_bar(
    figure: Figure,
    box: tuple[float, float, float, float],
    scale: tuple[float, float],
    measured: tuple[float, float],
) -> None:
    """A bar to the right of `box`, with pointed ends where speeds were found outside of the
    scale.
    """
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    extend = {
        (False, False): "neither",
        (True, False): "min",
        (False, True): "max",
        (True, True): "both",
    }
    left, bottom, width, height = box
    bar = figure.colorbar(
        # not the points themselves: they are half transparent
        ScalarMappable(Normalize(*scale), speed_colours()),
        cax=figure.add_axes((left + width + 0.012, bottom, 0.011, height)),
        extend=extend[measured[0] < scale[0], measured[1] > scale[1]],
    )
    bar.outline.set_edgecolor(GRID)
    bar.set_label("speed  [N-body units]", color=TEXT, fontsize=10)
    bar.ax.tick_params(colors=FAINT, labelcolor=TEXT, labelsize=9)
