"""Obstacles from pictures: dark, light or opaque pixels are solid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lanewise.io.source import FilePath, reading
from lanewise.sims.lbm.obstacles.arrays import Report, existing, percent
from lanewise.sims.lbm.obstacles.boxes import Mask, Placement, check_shape, sites_text
from lanewise.support.checks import checked
from lanewise.support.errors import InputError
from lanewise.support.interrupts import interrupts_wait

if TYPE_CHECKING:
    from PIL.Image import Image

Solid: TypeAlias = Literal["dark", "light", "opaque"]

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp")
DAMAGE = (ValueError, SyntaxError, EOFError, IndexError, KeyError, TypeError, OverflowError)
"""What Pillow has been seen to raise on pictures with wrong bytes."""


@checked(InputError)
def image_mask(
    path: FilePath,
    shape: Sequence[int],
    *,
    solid: Solid = "dark",
    threshold: float = 0.5,
    placement: Placement | None = None,
    report: Report | None = None,
) -> Mask:
    """The solid sites of a picture: PNG, JPEG or whatever Pillow reads.

    The upper edge of the picture is at the high end of y.

    Args:
        path: the file.
        shape: (ny, nx); with (nz, ny, nx) the picture is drawn out along z.
        solid: "dark" (transparent pixels are white), "light", or "opaque" (by the alpha channel).
        threshold: a site is solid when its pixels are solid to at least this part on average (0 to
            1), of black for "dark", of white for "light", of full cover for "opaque".
        placement: size and place; without it, as large as fits, in the middle. Sites outside the
            picture are fluid.
        report: called with a sentence that says how the picture was scaled and where it lies.

    Raises InputError for a file that is no picture, a picture that reaches out of the box, and one
    without solid sites.
    """
    sizes = check_shape(shape)
    if not 0 < threshold <= 1:
        raise InputError(f"the threshold is {threshold:g}; wanted more than 0 and at most 1")
    cover = _cover(path, solid)
    section, text = _put(cover, sizes[-2:], placement or Placement(), threshold, str(path))
    if not section.any():
        raise InputError(
            f"{path}: no site is solid: the picture is at most {100 * float(cover.max()):.0f} % "
            f"{solid}, averaged over a site "
            f"less; wanted {100 * threshold:.0f} % (choose another threshold, or solid='dark', "
            "'light' or 'opaque')"
        )
    if report is not None:
        report(f"{text}; {percent(int(np.count_nonzero(section)), section.size)}")
    return section if len(sizes) == 2 else np.broadcast_to(section, sizes).copy()


@interrupts_wait()
def _cover(path: FilePath, solid: Solid) -> NDArray[np.float32]:
    """How solid each pixel is, 0 to 1, (rows, columns) with the lowest row first."""
    from PIL import Image, ImageOps, UnidentifiedImageError

    file = existing(path, "a picture (PNG, JPEG)")
    with reading(path, "picture", (*DAMAGE, Image.DecompressionBombError)):
        try:
            with Image.open(file) as opened:
                opened.load()
                picture = ImageOps.exif_transpose(opened)
        except UnidentifiedImageError as error:
            raise InputError(
                "this is no picture that Pillow knows; wanted PNG, JPEG, BMP, GIF, TIFF or WebP"
            ) from error
        pixels = _opacity(picture) if solid == "opaque" else _lightness(picture)
        return (1 - pixels if solid == "dark" else pixels)[::-1]


def _opacity(picture: Image) -> NDArray[np.float32]:
    if not picture.has_transparency_data:
        raise InputError(
            "the picture has no alpha channel; wanted one for solid='opaque': take 'dark' or "
            "'light'"
        )
    return np.asarray(picture.convert("RGBA").getchannel("A"), np.float32) / np.float32(255)


@interrupts_wait()
def _lightness(picture: Image) -> NDArray[np.float32]:
    """0 black to 1 white; what is transparent shows a white ground."""
    if picture.mode.startswith("I"):  # 16 bits, which convert("L") would cut off at 255
        return np.asarray(picture, np.float32) / np.float32(65535)
    if picture.mode == "F":
        raise InputError(
            "the pixels are float numbers of unknown range; wanted a picture of 8 or 16 bits, or "
            "save a .npy mask"
        )
    if picture.has_transparency_data:
        from PIL import Image

        colours = picture.convert("RGBA")
        picture = Image.alpha_composite(Image.new("RGBA", colours.size, "white"), colours)
    return np.asarray(picture.convert("L"), np.float32) / np.float32(255)


def _put(
    cover: NDArray[np.float32],
    box: tuple[int, ...],
    placement: Placement,
    threshold: float,
    name: str,
) -> tuple[Mask, str]:
    """The picture scaled to sites in an empty box (ny, nx), and the sentence about it."""
    rows, columns = cover.shape
    scale = placement.sites_per_unit((columns, rows), box, 1.0)
    width, height = (max(1, round(n * scale)) for n in (columns, rows))
    x, y = placement.middle(box)
    # of two sites the higher one
    left, low = math.floor(x - width / 2 + 1), math.floor(y - height / 2 + 1)
    text = (
        f"{Path(name).name}: {columns} x {rows} pixels scaled by {scale:.4g} to "
        f"{sites_text((height, width))} "
        f"at x = {left}..{left + width - 1}, y = {low}..{low + height - 1}, in {sites_text(box)}"
    )
    if left < 0 or low < 0 or left + width > box[1] or low + height > box[0]:
        raise InputError(
            f"{text}: the picture reaches out of the box; wanted a smaller size or another place"
        )
    mask = np.zeros(box, np.bool_)
    mask[low : low + height, left : left + width] = _averaged(cover, height, width) >= threshold
    return mask, text


@interrupts_wait()
def _averaged(cover: NDArray[np.float32], height: int, width: int) -> NDArray[np.float32]:
    """The mean over each site's part of the picture."""
    from PIL import Image

    if cover.shape == (height, width):
        return cover
    scaled = Image.fromarray(np.ascontiguousarray(cover)).resize(
        (width, height), Image.Resampling.BOX
    )
    return np.asarray(scaled, np.float32)
