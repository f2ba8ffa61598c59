"""What is written on a flock's picture: title and numbers at the upper left, the meaning of colours
and the course of order below.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lanewise.plot.canvas import FAINT, TEXT
from lanewise.plot.text import font
from lanewise.sims.boids.view.colours import heading_colours
from lanewise.support.interrupts import imported

Key: TypeAlias = tuple[str, str, str, NDArray[np.float32]] | str | None
"""A label, the values at both ends and the colours (n, 3) between; "heading"; or nothing."""

PANEL = np.array((7, 11, 19), np.float32)

FINER = 3
"""Samples along x and along y of a pixel of the course."""


def write_caption(
    pixels: NDArray[np.uint8],
    title: str,
    numbers: Sequence[str],
    key: Key,
    order: Sequence[tuple[float, float]],
) -> NDArray[np.uint8]:
    """The picture, which stays as it is, with the title, a line a number, and the polarisation
    (time, value) so far.
    """
    image, draw = imported("PIL.Image"), imported("PIL.ImageDraw")
    unit = pixels.shape[0] / 1080
    pixels = pixels.copy()
    _darken(pixels, round((100 + 30 * len(numbers)) * unit))
    picture = image.fromarray(pixels)
    pen = draw.Draw(picture)
    left, line = round(34 * unit), 30 * unit
    pen.text((left, round(28 * unit)), title, font=font(max(9, round(26 * unit))), fill=TEXT)
    small = font(max(8, round(19 * unit)))
    for row, text in enumerate(numbers):
        pen.text(
            (left, round(72 * unit + row * line)), text, font=small, fill=FAINT if row else TEXT
        )
    if key == "heading":
        _draw_ball(picture, pen, unit)
    elif isinstance(key, tuple):
        _draw_bar(picture, pen, key, unit)
    if len(order) > 1:
        _draw_course(picture, pen, order, unit)
    return np.asarray(picture)


def _draw_bar(
    picture: Any, pen: Any, key: tuple[str, str, str, NDArray[np.float32]], unit: float
) -> None:
    """At the lower right."""
    label, low, high, table = key
    small = font(max(8, round(19 * unit)))
    right = picture.width - 34 * unit
    middle = picture.height - 44 * unit
    pen.text((right, middle), high, font=small, fill=TEXT, anchor="rm")
    right -= small.getlength(high) + 12 * unit
    width, height = round(220 * unit), max(6, round(14 * unit))
    strip = imported("PIL.Image").fromarray(table[None].astype(np.uint8)).resize((width, height))
    picture.paste(strip, (round(right - width), round(middle - height / 2)))
    pen.text(
        (right - width - 12 * unit, middle), f"{label}  {low}", font=small, fill=TEXT, anchor="rm"
    )


def _draw_ball(picture: Any, pen: Any, unit: float) -> None:
    """The directions as seen from above on a disc: x to the right, z down, upwards in the
    middle.
    """
    radius = max(16, round(46 * unit))
    ball = imported("PIL.Image").fromarray(_ball(radius))
    mask = imported("PIL.Image").fromarray(_disc(radius))
    left = round(picture.width - 34 * unit - 2 * radius)
    top = round(picture.height - 62 * unit - 2 * radius)
    picture.paste(ball, (left, top), mask)
    middle = (left + radius, picture.height - 42 * unit)
    pen.text(middle, "heading", font=font(max(8, round(17 * unit))), fill=TEXT, anchor="mm")


@cache
def _ball(radius: int) -> NDArray[np.uint8]:
    z, x = np.mgrid[-1 : 1 : 2j * radius, -1 : 1 : 2j * radius]
    y = np.sqrt(np.maximum(1 - x * x - z * z, 0))
    return (
        heading_colours(np.stack([x, y, z], -1).reshape(-1, 3))
        .reshape(2 * radius, 2 * radius, 3)
        .astype(np.uint8)
    )


@cache
def _disc(radius: int) -> NDArray[np.uint8]:
    z, x = np.mgrid[-1 : 1 : 2j * radius, -1 : 1 : 2j * radius]
    return np.asarray(255 * np.clip((1 - np.hypot(x, z)) * radius, 0, 1), np.uint8)


def _draw_course(picture: Any, pen: Any, order: Sequence[tuple[float, float]], unit: float) -> None:
    """The polarisation from the first frame to this one, between 0 and 1, at the lower left."""
    wide, high = round(260 * unit), round(64 * unit)
    left, bottom = round(34 * unit), picture.height - round(34 * unit)
    for y, shade in ((bottom, "#3a4560"), (bottom - high, "#232a3a")):
        pen.line([(left, y), (left + wide, y)], fill=shade, width=max(1, round(1.5 * unit)))
    picture.paste(TEXT, (left, bottom - high), _course(order, wide, high))
    place = (left, bottom - high - 6 * unit)
    pen.text(
        place,
        "polarisation, from 0 to 1",
        font=font(max(8, round(15 * unit))),
        fill=FAINT,
        anchor="ls",
    )


def _course(order: Sequence[tuple[float, float]], wide: int, high: int) -> Any:
    """The line as a mask; drawn larger and made smaller, so that it is smooth."""
    image, draw = imported("PIL.Image"), imported("PIL.ImageDraw")
    times, values = np.array(order).T
    shown = np.unique(np.linspace(0, len(times) - 1, 4 * wide).astype(int))
    x = (times[shown] - times[0]) / max(times[-1] - times[0], 1e-12) * (FINER * wide - 1)
    y = (1 - np.clip(values[shown], 0, 1)) * (FINER * high - 1)
    mask = image.new("L", (FINER * wide, FINER * high))
    draw.Draw(mask).line(
        list(zip(x.tolist(), y.tolist(), strict=True)),
        fill=255,
        width=FINER * max(1, high // 32),
        joint="curve",
    )
    return mask.resize((wide, high), image.Resampling.BOX)


def _darken(pixels: NDArray[np.uint8], low: int) -> None:
    """In place, behind what is written at the upper left, of height `low`, and at the lower left:
    so it can be read in a crowd.
    """
    height, width = pixels.shape[:2]
    wide, high = int(0.46 * width), min(int(1.5 * low), height)
    from_left = np.minimum(np.clip(1.35 - np.arange(wide) / (0.34 * width), 0, 1) ** 1.5, 1)
    above = np.clip((1.5 * low - np.arange(high)) / (0.5 * low), 0, 1)
    below = np.clip(np.arange(height - int(0.84 * height)) / (0.05 * height), 0, 1)
    for part, down in ((pixels[:high, :wide], above), (pixels[int(0.84 * height) :, :wide], below)):
        kept = (1 - 0.75 * down[:, None] * from_left)[..., None].astype(np.float32)
        part[...] = PANEL + (part - PANEL) * kept
