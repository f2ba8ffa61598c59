"""A dark figure and its PNG file: the look that all pictures of lanewise share, saved
atomically.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lanewise.io.atomic import atomic_path
from lanewise.support.interrupts import interrupts_wait

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure

BACKGROUND = "#0a0d14"
PANEL = "#0f131d"
SKY = "#04060b"
TEXT = "#d7dce8"
FAINT = "#7d879c"
GRID = "#232a3a"
DOTS_PER_INCH = 150


@interrupts_wait()
def dark_figure(width: float, height: float) -> Figure:
    """An empty figure of `width` x `height` inches (150 pixels each) with its own canvas, unknown
    to pyplot.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=DOTS_PER_INCH, facecolor=BACKGROUND)
    FigureCanvasAgg(figure)
    return figure


def dark_axes(axes: Axes, title: str, xlabel: str, ylabel: str) -> None:
    """Gives `axes` the panel colours, a title at its left edge and labels."""
    axes.set_facecolor(PANEL)
    axes.set_title(title, loc="left", color=TEXT, fontsize=11, pad=9)
    axes.set_xlabel(xlabel, color=TEXT, fontsize=10)
    axes.set_ylabel(ylabel, color=TEXT, fontsize=10)
    axes.tick_params(which="both", colors=FAINT, labelcolor=TEXT, labelsize=9, direction="out")
    for spine in axes.spines.values():
        spine.set_color(GRID)


@interrupts_wait()
def speed_colours() -> LinearSegmentedColormap:
    """Slow to fast as blue, ice, gold, white-hot: every end stays visible on the dark panel."""
    from matplotlib.colors import LinearSegmentedColormap

    stops = ["#3b4fd8", "#4f9df0", "#9fdcf2", "#fbe3a1", "#ffab4a", "#ff6a3d"]
    return LinearSegmentedColormap.from_list("lanewise-speed", stops)


@interrupts_wait()
def save_png(figure: Figure, path: Path) -> None:
    """Writes `figure` to `path` so that a reader sees the old file or the whole new one, never a
    part.

    Raises:
        InputError: the folder does not exist or is closed, or `path` is not a regular file.
    """
    with atomic_path(path, overwrite=True) as temporary:
        figure.savefig(temporary, format="png", facecolor=figure.get_facecolor())
