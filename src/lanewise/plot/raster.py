"""A field on lattice sites as an RGB picture: resampled, coloured and with its obstacles, by NumPy
and Pillow alone.

The colours are perceptually uniform, made in the colour space OKLab: equal steps of a value look
equally large. `speed` goes from the dark of the figure through blue to a pale gold, `vorticity`
from the same dark, where nothing turns, to a pale blue on one side and a pale gold on the other.
Lightness grows in proportion to the value, so both are right in grey too, and blue against orange
is distinguished by colour-blind people. Source of the space and of its matrices: Björn Ottosson, A
perceptual color space for image processing (2020), https://bottosson.github.io/posts/oklab/.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import comb
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lanewise.support.interrupts import imported

SOLID = np.array((104, 114, 134), np.float32)
"""Colour of obstacles."""

RIM = (222, 228, 240)
"""Colour of the thin line around them."""

RIM_PIXELS = 1.4


@dataclass(frozen=True, slots=True)
class Scale:
    """A range of values and the colour map that shows it."""

    low: float
    high: float
    colours: ColourMap


def picture_size(
    shape: tuple[int, int], longest: int = 2048, shortest: int = 1100
) -> tuple[int, int]:
    """Height and width in pixels for (ny, nx) sites: the longer side from `shortest` to `longest`.

    As many whole pixels a site, or whole sites a pixel, as come into that range, so that no pattern
    of the lattice beats with that of the pixels.
    """
    most = max(shape)
    if most > longest:
        sites = -(-most // longest)
        return max(1, round(shape[0] / sites)), max(1, round(shape[1] / sites))
    pixels = max(1, min(-(-shortest // most), longest // most))
    return shape[0] * pixels, shape[1] * pixels


def resample(
    field: NDArray[Any], solid: NDArray[np.bool_] | None, size: tuple[int, int]
) -> tuple[NDArray[np.float32], NDArray[np.float32] | None]:
    """The field (ny, nx) on `size` pixels, and how much of each pixel is fluid (None: all of it).

    Means of the sites of a pixel where there are more sites than pixels, else bilinear. Solid sites
    do not mix into the fluid next to them, whatever their values are.
    """
    if solid is None or not solid.any():
        return _resized(field, size), None
    fluid = _resized(~solid, size)
    shown = np.divide(
        _resized(np.where(solid, 0, field), size), np.maximum(fluid, 1e-3), dtype=np.float32
    )
    return shown, fluid


def colour(
    field: NDArray[np.float32], fluid: NDArray[np.float32] | None, scale: Scale, enlarged: float
) -> NDArray[Any]:
    """RGB (height, width, 3) uint8, the upper row first, of a resampled field; y of the lattice
    points upwards.

    Args:
        field: from `resample`.
        fluid: from `resample`.
        scale: values outside of it get the colour of its ends.
        enlarged: pixels a site, which says how steep the edge of a solid is.
    """
    table = colour_table(scale.colours)
    steps = (field - scale.low) * ((len(table) - 1) / (scale.high - scale.low))
    rgb = table[np.clip(steps, 0, len(table) - 1).astype(np.uint8)]
    return np.ascontiguousarray(
        (rgb if fluid is None else _with_solids(rgb, fluid, enlarged))[::-1]
    )


def _with_solids(
    rgb: NDArray[np.uint8], fluid: NDArray[np.float32], enlarged: float
) -> NDArray[np.uint8]:
    """Obstacles begin where a pixel is half fluid: at the half-way wall.

    Their rim is where a blurred edge changes.
    """
    inside = np.clip(0.5 - (fluid - 0.5) * max(enlarged, 1.0), 0, 1)[..., None]
    edge = _blurred(inside[..., 0])[..., None]
    rim = np.clip(4 * edge * (1 - edge), 0, 1) ** 2
    body = SOLID + rim * (np.array(RIM, np.float32) - SOLID)
    return np.round(rgb + inside * (body - rgb)).astype(np.uint8)


def _blurred(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """`values` of 0 to 1 under a Gaussian of RIM_PIXELS."""
    image, filters = imported("PIL.Image"), imported("PIL.ImageFilter")
    picture = image.fromarray(np.round(values * 255).astype(np.uint8))
    return np.asarray(picture.filter(filters.GaussianBlur(RIM_PIXELS)), np.float32) / np.float32(
        255
    )


def _resized(values: NDArray[Any], size: tuple[int, int]) -> NDArray[np.float32]:
    image: Any = imported("PIL.Image")
    kind = (
        image.Resampling.BOX
        if size[0] < values.shape[0] or size[1] < values.shape[1]
        else image.Resampling.BILINEAR
    )
    picture = image.fromarray(np.ascontiguousarray(values, np.float32))
    return np.asarray(picture.resize((size[1], size[0]), kind))


ColourMap: TypeAlias = Literal["speed", "vorticity"]

TO_CONES = np.linalg.inv(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)
"""OKLab to the cube roots of the responses of the eye's three cones."""

TO_LINEAR_RGB = np.array(
    [
        [4.0767416621, -3.3077115913, 0.2309699292],
        [-1.2684380046, 2.6097574011, -0.3413193965],
        [-0.0041960863, -0.7034186147, 1.7076147010],
    ]
)
"""Cone responses to linear sRGB."""

DARK, LIGHT = 0.16, 0.94
"""Lightness of the two ends."""

ARMS = {
    "blue": ((0.015, 265), (0.08, 275), (0.25, 268), (0.17, 250), (0.12, 225), (0.03, 210)),
    "gold": ((0.015, 265), (0.06, 20), (0.20, 32), (0.19, 52), (0.13, 80), (0.05, 95)),
    "speed": ((0.02, 270), (0.10, 280), (0.27, 272), (0.08, 215), (0.11, 165), (0.10, 102)),
}
"""For each arm the chroma, and the hue in degrees, of the control points of a Bézier curve from
dark to light.
"""


@cache
def colour_table(name: ColourMap) -> NDArray[np.uint8]:
    """(256, 3) sRGB."""
    if name == "speed":
        return srgb(_arm("speed", np.linspace(0, 1, 256)))
    value = np.linspace(-1, 1, 256)
    negative = (value < 0)[:, None]
    return srgb(np.where(negative, _arm("blue", np.abs(value)), _arm("gold", np.abs(value))))


def colour_map(name: ColourMap) -> Any:
    """The table as a matplotlib.colors.ListedColormap."""
    return imported("matplotlib.colors").ListedColormap(
        colour_table(name) / 255, f"lanewise-{name}"
    )


def _arm(name: str, place: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n, 3) OKLab at places (n,) from 0, dark, to 1, light.

    A Bézier curve has no kink that would look like an edge.
    """
    chroma, hue = np.array(ARMS[name]).T
    points = chroma * np.exp(1j * np.radians(hue))
    degree = len(points) - 1
    curve = sum(
        comb(degree, k) * place**k * (1 - place) ** (degree - k) * point
        for k, point in enumerate(points)
    )
    tint = np.asarray(curve, np.complex128)
    return np.stack([DARK + (LIGHT - DARK) * place, tint.real, tint.imag], axis=1)


def srgb(lab: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Colours of a screen, (n, 3), from OKLab."""
    linear = np.clip((lab @ TO_CONES.T) ** 3 @ TO_LINEAR_RGB.T, 0, 1)
    encoded = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return np.round(encoded * 255).astype(np.uint8)
