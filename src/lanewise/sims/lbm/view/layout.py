"""Where the parts of a flow's picture stand, in whole pixels, so that no site is drawn unevenly."""

from __future__ import annotations

from dataclasses import dataclass

from lanewise.plot.raster import picture_size
from lanewise.sims.lbm.view.slices import Slice

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
class Layout:
    """The figure in pixels; `bar` is (left, bottom, width, height)."""

    width: int
    height: int
    panels: tuple[Panel, ...]
    bar: tuple[int, int, int, int]


def layout_of(shown: tuple[Slice, ...]) -> Layout:
    """Of one slice, or of three."""
    return _one_panel(shown[0]) if len(shown) == 1 else _three_panels(*shown)


def _one_panel(shown: Slice) -> Layout:
    """The bar stands at the right of a picture, or lies below one that is much wider than high."""
    height, width = picture_size(shown.values.shape)
    if width > 2.2 * height:
        panel = Panel(shown, LEFT, 2 * BOTTOM + BAR + 12, width, height)
        long = min(width, max(520, width * 2 // 5))
        bar = (LEFT + width - long, BOTTOM, long, BAR)
        return Layout(LEFT + width + RIGHT, panel.bottom + height + TOP, (panel,), bar)
    panel = Panel(shown, LEFT, BOTTOM, width, height)
    bar = (LEFT + width + 36, BOTTOM, BAR, height)
    return Layout(LEFT + width + BAR_ROOM, BOTTOM + height + TOP, (panel,), bar)


def _three_panels(front: Slice, side: Slice, top: Slice) -> Layout:
    """Across z at the upper left; across x at its right, sharing y; across y below it, sharing x."""
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
    return Layout(right + max(d, 150) + RIGHT, upper + h + TOP + 28, panels, bar)
