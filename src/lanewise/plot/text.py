"""A line of text as pixels, by Pillow and the font that comes with matplotlib: a thousand times
faster than a figure.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.plot.canvas import BACKGROUND, TEXT
from lanewise.support.interrupts import imported

KEY_WIDTH = 7
"""Of the colours of a key, in heights of a letter."""


@dataclass(frozen=True, slots=True)
class ColourKey:
    """What colours mean: the quantity, the values at both ends, and the colours (n, 3) uint8
    between them.
    """

    label: str
    low: str
    high: str
    colours: NDArray[np.uint8]


def text_strip(
    text: str, width: int, height: int, key: ColourKey | None = None
) -> NDArray[np.uint8]:
    """(2 height, width, 3): `text` in letters of `height` pixels, smaller if it would not fit, on
    the figures' dark.

    With a `key`, what the colours mean stands at the right, if there is room for it.
    """
    image, draw = imported("PIL.Image"), imported("PIL.ImageDraw")
    strip = image.new("RGB", (width, 2 * height), BACKGROUND)
    margin, size = height // 2, height
    while size > 6 and font(size).getlength(text) > width - 2 * margin:
        size -= 1
    pen = draw.Draw(strip)
    pen.text((margin, height), text, font=font(size), fill=TEXT, anchor="lm")
    if (
        key is not None
        and _key_width(key, height) + font(size).getlength(text) + 3 * height < width
    ):
        _draw_key(strip, pen, key, width - margin, height)
    return np.asarray(strip)


def _key_width(key: ColourKey, height: int) -> float:
    return KEY_WIDTH * height + sum(
        font(height).getlength(f"{part}  ") for part in (key.label, key.low, key.high)
    )


def _draw_key(strip: Any, pen: Any, key: ColourKey, right: float, height: int) -> None:
    """From right to left: the high end, the colours, the low end and the label."""
    image = imported("PIL.Image")
    face = font(height)
    space = height // 2
    pen.text((right, height), key.high, font=face, fill=TEXT, anchor="rm")
    right -= face.getlength(key.high) + space
    bar = KEY_WIDTH * height
    colours = image.fromarray(np.ascontiguousarray(key.colours[None])).resize((bar, height - 2))
    strip.paste(colours, (int(right) - bar, height // 2 + 1))
    right = int(right) - bar - space
    pen.text((right, height), f"{key.label}   {key.low}", font=face, fill=TEXT, anchor="rm")


@cache
def font(size: int) -> Any:
    """Of pictures, that many pixels high."""
    folder = Path(imported("matplotlib").get_data_path()) / "fonts" / "ttf"
    return imported("PIL.ImageFont").truetype(folder / "DejaVuSans.ttf", size)
