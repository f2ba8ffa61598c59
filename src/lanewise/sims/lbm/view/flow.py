"""The picture of a flow: speed or vorticity with its obstacles, in 3-D on the three middle
planes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lanewise.plot.canvas import DOTS_PER_INCH, FAINT, GRID, TEXT, dark_figure, save_png
from lanewise.plot.raster import Scale, colour, colour_map, picture_size, resample
from lanewise.sims.lbm.view.slices import (
    Quantity,
    ReferenceScale,
    Slice,
    draw_streamlines,
    label,
    middle_slices,
    unit_of,
    value_range,
)
from lanewise.support.checks import checked
from lanewise.support.errors import ArgumentError
from lanewise.support.interrupts import interrupts_wait

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


LEFT, RIGHT, TOP, BOTTOM = 96, 36, 92, 84
"""Pixels around the panels, for the title and the numbers at the axes."""

GAP = 96
"""Pixels between two panels."""

BAR, BAR_ROOM = 26, 190
"""Pixels across the colour bar, and what it takes with its numbers."""


@dataclass(frozen=True, slots=True)
class Panel:
    """A slice and its place in pixels from the lower left corner of the figure."""

    shown: Slice
    left: int
    bottom: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class FigureLayout:
    """The figure in pixels; `bar` is (left, bottom, width, height)."""

    width: int
    height: int
    panels: tuple[Panel, ...]
    bar: tuple[int, int, int, int]


def layout_of(shown: tuple[Slice, ...]) -> FigureLayout:
    """Of one slice, or of three."""
    return _one_panel(shown[0]) if len(shown) == 1 else _three_panels(*shown)


def _one_panel(shown: Slice) -> FigureLayout:
    """The bar stands at the right of a picture, or lies below one that is much wider than high."""
    height, width = picture_size(shown.values.shape)
    if width > 2.2 * height:
        panel = Panel(shown, LEFT, 2 * BOTTOM + BAR + 12, width, height)
        long = min(width, max(520, width * 2 // 5))
        bar = (LEFT + width - long, BOTTOM, long, BAR)
        return FigureLayout(LEFT + width + RIGHT, panel.bottom + height + TOP, (panel,), bar)
    panel = Panel(shown, LEFT, BOTTOM, width, height)
    bar = (LEFT + width + 36, BOTTOM, BAR, height)
    return FigureLayout(LEFT + width + BAR_ROOM, BOTTOM + height + TOP, (panel,), bar)


def _three_panels(front: Slice, side: Slice, top: Slice) -> FigureLayout:
    """Across z at the upper left; across x at its right, sharing y; across y below it, sharing
    x.
    """
    ny, nx = front.values.shape
    nz = top.values.shape[0]
    _, width = picture_size((ny + nz, nx + nz))
    pixels = width / (nx + nz)
    w, h, d = (max(1, round(size * pixels)) for size in (nx, ny, nz))
    right, upper = LEFT + w + GAP, BOTTOM + d + GAP + 24
    panels = (
        Panel(front, LEFT, upper, w, h),
        Panel(side, right, upper, d, h),
        Panel(top, LEFT, BOTTOM, w, d),
    )
    bar = (right, BOTTOM, BAR, d)
    return FigureLayout(right + max(d, 150) + RIGHT, upper + h + TOP + 28, panels, bar)


@checked()
def flow_title(case: str, shape: tuple[int, ...], step: int, reynolds: float | None = None) -> str:
    """One line, such as "karman, Re 150, 2,000 × 400 sites, step 40,000"."""
    sizes = " × ".join(f"{size:,}" for size in shape[::-1])
    number = "" if reynolds is None else f", Re {reynolds:,.6g}"
    return f"{case}{number}, {sizes} sites, step {step:,}"


@checked()
def plot_flow(
    path: str | Path,
    velocity: NDArray[Any],
    title: str,
    *,
    quantity: Quantity = "speed",
    solid: NDArray[np.bool_] | None = None,
    reference: ReferenceScale | None = None,
    limits: tuple[float, float] | None = None,
    periodic: str = "",
    streamlines: bool = False,
) -> None:
    """Draws one PNG, with sites as squares: as many pixels as sites, or a whole multiple or part of
    them (1100 to 2048).

    Args:
        path: the file to write; an old one is replaced in one step.
        velocity: (ny, nx, 2) or (nz, ny, nx, 3), in lattice units.
        title: one line above the picture, see `flow_title`.
        quantity: "speed", or "vorticity": in 3-D its component across each plane.
        solid: (ny, nx) or (nz, ny, nx), True where there is no fluid.
        reference: makes the values dimensionless; without it they are in lattice units.
        limits: the values (dimensionless, with a reference) at the ends of the colours; default
        `slices.value_range`.
        periodic: axes along which the box is periodic, for the vorticity at its edges.
        streamlines: contours of the stream function, for 2-D flows over a closed lower wall such as
        the cavity's.

    Raises:
        ArgumentError: a shape or an option does not fit, or a fluid site has a value that is not
        finite.
        InputError: the file cannot be written there.
    """
    shown = middle_slices(velocity, solid, quantity, periodic)
    if streamlines and len(shown) > 1:
        raise ArgumentError("streamlines can be drawn in 2-D only")
    unit = unit_of(quantity, reference)
    ends = value_range(shown, quantity) if limits is None else (limits[0] * unit, limits[1] * unit)
    low, high = _growing(*ends, unit)
    layout = layout_of(shown)
    figure = dark_figure(layout.width / DOTS_PER_INCH, layout.height / DOTS_PER_INCH)
    _draw_title(figure, title, layout)
    scale = Scale(low, high, quantity)
    for panel in layout.panels:
        axes = _draw_slice(figure, layout, panel, scale)
        if streamlines:
            draw_streamlines(axes, velocity, solid)
    _colour_bar(
        figure,
        layout,
        Scale(low / unit, high / unit, scale.colours),
        label(quantity, reference, across=len(shown) > 1),
        _extent(shown, low, high),
    )
    save_png(figure, Path(path))


def _growing(low: float, high: float, unit: float) -> tuple[float, float]:
    """The values at the ends of the colours; raises `ArgumentError` unless they grow."""
    if not (np.isfinite([low, high]).all() and low < high and unit > 0):
        raise ArgumentError(
            f"the values at the ends of the colours are {low / unit} and {high / unit}; wanted "
            "growing ones"
        )
    return low, high


def _draw_title(figure: Figure, title: str, layout: FigureLayout) -> None:
    """As large as fits into the width: a bold letter is about 0.62 of its size wide."""
    room = (layout.width - LEFT - RIGHT) / DOTS_PER_INCH * 72
    size = float(np.clip(room / (0.62 * max(len(title), 1)), 6.0, 14.0))
    top = 1 - 30 / layout.height
    figure.text(
        LEFT / layout.width, top, title, color=TEXT, fontsize=size, fontweight="bold", va="top"
    )


def _draw_slice(figure: Figure, layout: FigureLayout, panel: Panel, scale: Scale) -> Axes:
    """Pixel by pixel: the axes are exactly as large as the picture in them."""
    shown = panel.shown
    field, fluid = resample(shown.values, shown.solid, (panel.height, panel.width))
    rgb = colour(field, fluid, scale, panel.width / shown.values.shape[1])
    box = (
        panel.left / layout.width,
        panel.bottom / layout.height,
        panel.width / layout.width,
        panel.height / layout.height,
    )
    axes = figure.add_axes(box)
    ny, nx = shown.values.shape
    axes.imshow(rgb, extent=(0, nx, 0, ny), interpolation="nearest", aspect="auto")
    axes.set_xlabel(f"{shown.axes[0]}  [sites]", color=TEXT, fontsize=10)
    axes.set_ylabel(f"{shown.axes[1]}  [sites]", color=TEXT, fontsize=10)
    if shown.place:
        axes.set_title(shown.place, loc="left", color=TEXT, fontsize=10, pad=6)
    _ticks(axes, panel)
    return axes


@interrupts_wait()
def _ticks(axes: Axes, panel: Panel) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.tick_params(colors=FAINT, labelcolor=TEXT, labelsize=9, direction="out")
    axes.xaxis.set_major_locator(MaxNLocator(max(1, min(10, panel.width // 110)), integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(max(1, min(8, panel.height // 70)), integer=True))
    for spine in axes.spines.values():
        spine.set_color(GRID)


def _extent(shown: tuple[Slice, ...], low: float, high: float) -> str:
    """At which ends of the bar an arrow says that values lie outside."""
    fluid = [s.values if s.solid is None else s.values[~s.solid] for s in shown]
    below, above = any((v < low).any() for v in fluid), any((v > high).any() for v in fluid)
    return {
        (False, False): "neither",
        (True, False): "min",
        (False, True): "max",
        (True, True): "both",
    }[below, above]


@interrupts_wait()
def _colour_bar(
    figure: Figure, layout: FigureLayout, scale: Scale, label: str, extent: str
) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.ticker import ScalarFormatter

    left, bottom, width, height = layout.bar
    box = (
        left / layout.width,
        bottom / layout.height,
        width / layout.width,
        height / layout.height,
    )
    flat = width > height
    bar = figure.colorbar(
        ScalarMappable(Normalize(scale.low, scale.high), colour_map(scale.colours)),
        cax=figure.add_axes(box),
        orientation="horizontal" if flat else "vertical",
        extend=extent,
        extendfrac=0.025,
    )
    bar.outline.set_edgecolor(GRID)
    bar.set_label(label, color=TEXT, fontsize=10)
    bar.ax.tick_params(colors=FAINT, labelcolor=TEXT, labelsize=9)
    numbers = ScalarFormatter(useMathText=True)
    numbers.set_powerlimits((-2, 3))
    bar.formatter = numbers
    for axis in (bar.ax.xaxis, bar.ax.yaxis):
        axis.get_offset_text().set(color=TEXT, fontsize=9)
