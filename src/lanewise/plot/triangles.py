"""Triangles as pixels: a depth buffer, and four samples a pixel.

The loops are text that is compiled, so that a frame of 100,000 triangles is drawn in no time. Rows
are shared among threads; every piece looks at all triangles in their order, so the split changes no
pixel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.runtime.cpu import own_kernel, run_range

SAMPLES = 2
"""Along x and along y of a pixel."""

GRAIN = 64
"""Rows of samples worth handing to another thread."""

_TRIANGLES = '''"""Triangles into a picture with a depth buffer: larger is nearer."""


def triangles_kernel(corners, colours, opacity, solid, picture, nearness, begin, end):
    width = picture.shape[1]
    for t in range(len(corners)):
        x0, y0, z0 = corners[t, 0, 0], corners[t, 0, 1], corners[t, 0, 2]
        x1, y1, z1 = corners[t, 1, 0], corners[t, 1, 1], corners[t, 1, 2]
        x2, y2, z2 = corners[t, 2, 0], corners[t, 2, 1], corners[t, 2, 2]
        low, high = min(y0, min(y1, y2)), max(y0, max(y1, y2))
        if not (high >= begin and low <= end):
            continue
        left, right = min(x0, min(x1, x2)), max(x0, max(x1, x2))
        if not (right >= 0 and left <= width):
            continue
        area = (x1 - x0) * (y2 - y0) - (x2 - x0) * (y1 - y0)
        if area == 0:
            continue
        first, last = max(begin, int(ceil(low - float32(0.5)))), min(end - 1, int(floor(high - float32(0.5))))
        start, stop = max(0, int(ceil(left - float32(0.5)))), min(width - 1, int(floor(right - float32(0.5))))
        over = float32(1) / area
        r, g, b, a = colours[t, 0], colours[t, 1], colours[t, 2], opacity[t]
        for row in range(first, last + 1):
            y = row + float32(0.5)
            for column in range(start, stop + 1):
                x = column + float32(0.5)
                v = ((x - x0) * (y2 - y0) - (x2 - x0) * (y - y0)) * over
                w = ((x1 - x0) * (y - y0) - (x - x0) * (y1 - y0)) * over
                u = float32(1) - v - w
                if u < 0 or v < 0 or w < 0:
                    continue
                near = u * z0 + v * z1 + w * z2
                if near <= nearness[row, column]:
                    continue
                if solid:
                    nearness[row, column] = near
                picture[row, column, 0] += a * (r - picture[row, column, 0])
                picture[row, column, 1] += a * (g - picture[row, column, 1])
                picture[row, column, 2] += a * (b - picture[row, column, 2])
'''


_PIXELS = '''"""The mean of the samples of each pixel."""


def pixels_kernel(picture, pixels, begin, end):
    n = picture.shape[0] // pixels.shape[0]
    over = float32(1) / float32(n * n)
    for row in range(begin, end):
        for column in range(pixels.shape[1]):
            for channel in range(3):
                total = float32(0)
                for i in range(n):
                    for j in range(n):
                        total += picture[n * row + i, n * column + j, channel]
                pixels[row, column, channel] = uint8(min(max(total * over + float32(0.5), float32(0)), float32(255)))
'''


@dataclass(frozen=True, slots=True, eq=False)
class Triangles:
    """n triangles in a picture.

    corners: (n, 3, 3) float32, x and y in pixels from the upper left, and one over the distance.
    colours: (n, 3) float32 from 0 to
    255. opacity: (n,) float32 from 0 to 1.
    """

    corners: NDArray[np.float32]
    colours: NDArray[np.float32]
    opacity: NDArray[np.float32]


class Canvas:
    """A picture that triangles are drawn to, again and again."""

    def __init__(self, rows: NDArray[Any], size: tuple[int, int]) -> None:
        """`rows`: the colours (height, 3) of the background from above, from 0 to 255. `size`:
        height and width in pixels.
        """
        self._rows, self._size = np.repeat(rows, SAMPLES, axis=0).astype(np.float32)[:, None], size
        samples = (SAMPLES * size[0], SAMPLES * size[1])
        self._picture = np.empty((*samples, 3), np.float32)
        self._nearness = np.empty(samples, np.float32)
        self.clear()

    def clear(self) -> None:
        """Nothing but the background."""
        self._picture[...] = self._rows
        self._nearness[...] = 0

    def draw(self, shapes: Triangles, *, solid: bool = True) -> None:
        """What is solid hides what is farther; the rest only lets it shine through, and is to be
        drawn after it.
        """
        corners = shapes.corners * np.array((SAMPLES, SAMPLES, 1), np.float32)
        kernel = own_kernel(_TRIANGLES, "triangles")
        arguments = (corners, shapes.colours, shapes.opacity, solid, self._picture, self._nearness)
        run_range(kernel, arguments, len(self._picture), GRAIN)

    def pixels(self) -> NDArray[np.uint8]:
        """(height, width, 3): the mean of each pixel's samples."""
        pixels = np.empty((*self._size, 3), np.uint8)
        run_range(own_kernel(_PIXELS, "pixels"), (self._picture, pixels), self._size[0], GRAIN)
        return pixels
