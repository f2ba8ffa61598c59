"""Perceptually uniform colours for flows, made in the colour space OKLab: equal steps of a value look equally large.

`speed` goes from the dark of the figure through blue to a pale gold, `vorticity` from the same dark, where nothing turns,
to a pale blue on one side and a pale gold on the other. Lightness grows in proportion to the value, so both are right in
grey too, and blue against orange is told apart by colour-blind people.
Source of the space and of its matrices: Björn Ottosson, A perceptual color space for image processing (2020),
https://bottosson.github.io/posts/oklab/.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from math import comb
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

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
"""For each arm the chroma, and the hue in degrees, of the control points of a Bézier curve from dark to light."""


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
    return import_module("matplotlib.colors").ListedColormap(colour_table(name) / 255, f"lanewise-{name}")


def _arm(name: str, place: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n, 3) OKLab at places (n,) from 0, dark, to 1, light. A Bézier curve has no kink that would look like an edge."""
    chroma, hue = np.array(ARMS[name]).T
    points = chroma * np.exp(1j * np.radians(hue))
    degree = len(points) - 1
    curve = sum(comb(degree, k) * place**k * (1 - place) ** (degree - k) * point for k, point in enumerate(points))
    tint = np.asarray(curve, np.complex128)
    return np.stack([DARK + (LIGHT - DARK) * place, tint.real, tint.imag], axis=1)


def srgb(lab: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Colours of a screen, (n, 3), from OKLab."""
    linear = np.clip((lab @ TO_CONES.T) ** 3 @ TO_LINEAR_RGB.T, 0, 1)
    encoded = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return np.round(encoded * 255).astype(np.uint8)
