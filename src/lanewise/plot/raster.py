"""A field on lattice sites as an RGB picture: resampled, coloured and with its obstacles, by NumPy and Pillow alone."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.plot.colours import ColourMap, colour_table

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


def picture_size(shape: tuple[int, int], longest: int = 2048, shortest: int = 1100) -> tuple[int, int]:
    """Height and width in pixels for (ny, nx) sites: the longer side from `shortest` to `longest`.

    As many whole pixels a site, or whole sites a pixel, as come into that range, so that no pattern of the lattice beats
    with that of the pixels.
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

    Means of the sites of a pixel where there are more sites than pixels, else bilinear. Solid sites do not mix into the
    fluid beside them, whatever their values are.
    """
    if solid is None or not solid.any():
        return _resized(field, size), None
    fluid = _resized(~solid, size)
    shown = np.divide(_resized(np.where(solid, 0, field), size), np.maximum(fluid, 1e-3), dtype=np.float32)
    return shown, fluid


def colour(
    field: NDArray[np.float32], fluid: NDArray[np.float32] | None, scale: Scale, enlarged: float
) -> NDArray[Any]:
    """RGB (height, width, 3) uint8, the upper row first, of a resampled field; y of the lattice points upwards.

    Args:
        field: from `resample`.
        fluid: from `resample`.
        scale: values outside of it get the colour of its ends.
        enlarged: pixels a site, which says how steep the edge of a solid is.
    """
    table = colour_table(scale.colours)
    steps = (field - scale.low) * ((len(table) - 1) / (scale.high - scale.low))
    rgb = table[np.clip(steps, 0, len(table) - 1).astype(np.uint8)]
    return np.ascontiguousarray((rgb if fluid is None else _with_solids(rgb, fluid, enlarged))[::-1])


def _with_solids(rgb: NDArray[np.uint8], fluid: NDArray[np.float32], enlarged: float) -> NDArray[np.uint8]:
    """Obstacles begin where a pixel is half fluid: at the half-way wall. Their rim is where a blurred edge changes."""
    inside = np.clip(0.5 - (fluid - 0.5) * max(enlarged, 1.0), 0, 1)[..., None]
    edge = _blurred(inside[..., 0])[..., None]
    rim = np.clip(4 * edge * (1 - edge), 0, 1) ** 2
    body = SOLID + rim * (np.array(RIM, np.float32) - SOLID)
    return np.round(rgb + inside * (body - rgb)).astype(np.uint8)


def _blurred(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """`values` of 0 to 1 under a Gaussian of RIM_PIXELS."""
    image, filters = import_module("PIL.Image"), import_module("PIL.ImageFilter")
    picture = image.fromarray(np.round(values * 255).astype(np.uint8))
    return np.asarray(picture.filter(filters.GaussianBlur(RIM_PIXELS)), np.float32) / np.float32(255)


def _resized(values: NDArray[Any], size: tuple[int, int]) -> NDArray[np.float32]:
    image: Any = import_module("PIL.Image")
    kind = image.Resampling.BOX if size[0] < values.shape[0] or size[1] < values.shape[1] else image.Resampling.BILINEAR
    picture = image.fromarray(np.ascontiguousarray(values, np.float32))
    return np.asarray(picture.resize((size[1], size[0]), kind))
