"""Bodies in the x-y plane, coloured by their speed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lanewise.plot.canvas import FAINT, GRID, SKY, TEXT, dark_axes, speed_colours

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

MOST_POINTS = 250_000
"""More points than this hide each other and take seconds to draw: a fixed random choice of them is drawn."""

FEW = 100
"""Up to this many bodies all of them are shown, however far they are."""

ENDS = (1.0, 99.0)
"""Percentiles of x, y and speed that set the scales, so that a few escapers do not shrink the picture."""


def draw_bodies(
    figure: Figure,
    box: tuple[float, float, float, float],
    places: NDArray[np.float64],
    speeds: NDArray[np.float64],
    moment: str,
) -> None:
    """Adds the panel at `box` (left, bottom, width, height as parts of the figure) and a colour bar to its right.

    Args:
        figure: where to draw.
        box: the panel without its labels.
        places: (n, 2) positions.
        speeds: (n,).
        moment: said in the panel's title.
    """
    centre, half = frame(places)
    low, high = speed_range(speeds)
    # A random order (the same in every picture): in the order of a file or of speed, one group would hide the others.
    drawn = np.random.default_rng(0).permutation(len(places))[:MOST_POINTS]
    size, alpha = point_style(len(drawn))

    axes = figure.add_axes(box)
    dark_axes(axes, f"{len(places):,} bodies at {moment}", "x  [N-body units]", "y  [N-body units]")
    axes.set_facecolor(SKY)
    axes.scatter(
        *places[drawn].T, c=speeds[drawn], s=size, alpha=alpha, cmap=speed_colours(), vmin=low, vmax=high, linewidths=0
    )
    axes.set_aspect("equal")
    axes.set_xlim(centre[0] - half, centre[0] + half)
    axes.set_ylim(centre[1] - half, centre[1] + half)
    inside = float((np.abs(places - centre) <= half).all(axis=1).mean())
    axes.set_title(_left_out(inside, len(drawn), len(places)), loc="right", color=FAINT, fontsize=9, pad=9)
    _colour_bar(figure, box, (low, high), (float(speeds.min()), float(speeds.max())))


def frame(places: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """The centre (2,) and half the side of the square that shows the bodies, without outliers when they are many."""
    ends = (0.0, 100.0) if len(places) <= FEW else ENDS
    low, high = np.percentile(places, ends, axis=0)
    centre = (low + high) / 2
    half = float((high - low).max()) / 2
    # Bodies at one point still need a frame that float64 can resolve there.
    return centre, half * 1.12 if half > 0 else max(1.0, float(np.abs(centre).max()) * 1e-6)


def speed_range(speeds: NDArray[np.float64]) -> tuple[float, float]:
    """The speeds at the two ends of the colours; a constant speed lies in the middle."""
    low, high = (float(end) for end in np.percentile(speeds, (0.0, 100.0) if len(speeds) <= FEW else ENDS))
    margin = 0.05 * abs(high) or 1.0
    return (low, high) if high - low > 1e-6 * margin else (low - margin, high + margin)


def point_style(count: int) -> tuple[float, float]:
    """Area in points² and opacity: many points are small and let the ones below shine through."""
    size = float(np.clip(700.0 * count**-0.6, 0.8, 60.0))
    alpha = float(np.clip(16.0 * count**-0.33, 0.3, 1.0))
    return size, alpha


def _left_out(inside: float, drawn: int, total: int) -> str:
    """What the picture does not show: bodies outside of the frame, bodies that were not drawn at all."""
    notes: list[str] = []
    if inside < 1:
        notes.append(f"{min(inside, 0.9999):.2%} in the frame")
    if drawn < total:
        notes.append(f"{drawn:,} drawn")
    return ", ".join(notes)


def _colour_bar(
    figure: Figure,
    box: tuple[float, float, float, float],
    scale: tuple[float, float],
    found: tuple[float, float],
) -> None:
    """A bar to the right of `box`, with pointed ends where speeds were found outside of the scale."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    extend = {(False, False): "neither", (True, False): "min", (False, True): "max", (True, True): "both"}
    left, bottom, width, height = box
    bar = figure.colorbar(
        ScalarMappable(Normalize(*scale), speed_colours()),  # not the points themselves: they are half transparent
        cax=figure.add_axes((left + width + 0.012, bottom, 0.011, height)),
        extend=extend[found[0] < scale[0], found[1] > scale[1]],
    )
    bar.outline.set_edgecolor(GRID)
    bar.set_label("speed  [N-body units]", color=TEXT, fontsize=10)
    bar.ax.tick_params(colors=FAINT, labelcolor=TEXT, labelsize=9)
