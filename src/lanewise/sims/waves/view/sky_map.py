"""A Hough map: significance and mean 2F over the pixels of a patch, at the frequency and spin-down
of the highest significance.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lanewise.plot.canvas import FAINT, TEXT, dark_axes, dark_figure, save_png, speed_colours

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lanewise.sims.waves.hierarchical_setup import Maps

BEST = "#7ddc8a"


def draw_map(path: Path, maps: Maps) -> None:
    """Write a PNG: significance on the left, the mean 2F of the stacks on the right, for the same
    frequency and spin-down.
    """
    figure = dark_figure(13.0, 5.8)
    # Many cells have the highest count: of these the one with the largest mean 2F.
    highest = maps.significance == maps.significance.max()
    r, f, row, column = np.unravel_index(
        int(np.where(highest, maps.two_f, -1).argmax()), highest.shape
    )
    best = (int(row), int(column))
    count, level = maps.counts[r, f, row, column], maps.significance[r, f, row, column]
    where = f"{maps.frequencies[f]:.6f} Hz, {maps.f1dot[r]:.4g} Hz/s"
    _panel(
        figure,
        0.06,
        f"Number counts at {where}",
        "significance",
        maps.significance[r, f],
        maps,
        best,
    )
    marked = (
        f"Mean 2F; marked: {maps.two_f[r, f, row, column]:.1f}, number count {count:.4g}, "
        f"significance {level:.2f}"
    )
    _panel(figure, 0.55, marked, "mean 2F of the stacks", maps.two_f[r, f], maps, best)
    save_png(figure, path)


def _panel(
    figure: Figure,
    left: float,
    title: str,
    what: str,
    values: NDArray[np.float64],
    maps: Maps,
    best: tuple[int, int],
) -> None:
    """The patch as on a chart of the sky: its columns lead to the north, its rows to the east."""
    axes = figure.add_axes((left, 0.12, 0.36, 0.76))
    alpha, delta = maps.patch.centre
    rows, columns = maps.patch.shape
    pixel = maps.patch.pixel * 1e3
    east, north = rows * pixel / 2, columns * pixel / 2
    dark_axes(
        axes,
        title,
        f"east of alpha {alpha:.4f} rad  [mrad]",
        f"north of delta {delta:.4f} rad  [mrad]",
    )
    image = axes.imshow(
        values.T,
        origin="lower",
        extent=(-east, east, -north, north),
        cmap=speed_colours(),
        interpolation="nearest",
    )
    axes.plot(
        (best[0] + 0.5) * pixel - east,
        (best[1] + 0.5) * pixel - north,
        "s",
        markersize=11,
        fillstyle="none",
        color=BEST,
        markeredgewidth=1.8,
        clip_on=False,
    )
    bar = figure.colorbar(image, cax=figure.add_axes((left + 0.375, 0.12, 0.012, 0.76)))
    bar.set_label(what, color=TEXT, fontsize=10, labelpad=8)
    bar.ax.tick_params(colors=FAINT, labelcolor=TEXT, labelsize=9)
