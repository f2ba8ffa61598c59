"""Pictures as obstacles: which way up, what is solid, scaled how, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from lanewise.sims.lbm.obstacles import Placement, image_mask, read_mask
from lanewise.support.errors import InputError

BLACK, WHITE = 0, 255


def picture(path: Path, rows: Any, mode: str = "L", **options: Any) -> Path:
    """A picture file whose first row is its upper edge."""
    Image.fromarray(np.array(rows, np.uint8)).convert(mode).save(path, **options)
    return path


def test_the_upper_edge_of_the_picture_is_at_the_high_end_of_y(tmp_path: Path) -> None:
    path = picture(tmp_path / "a.png", [[BLACK, WHITE, WHITE], [WHITE, WHITE, WHITE], [WHITE, BLACK, BLACK]])
    assert image_mask(path, (3, 3)).astype(int).tolist() == [[0, 1, 1], [0, 0, 0], [1, 0, 0]]


@pytest.mark.parametrize("suffix", ["png", "bmp", "gif", "tif", "webp"])
def test_formats(tmp_path: Path, suffix: str) -> None:
    options: dict[str, Any] = {"lossless": True} if suffix == "webp" else {}
    path = picture(tmp_path / f"a.{suffix}", [[BLACK, WHITE], [WHITE, WHITE]], **options)
    assert read_mask(path, (2, 2)).tolist() == [[False, False], [True, False]]


def test_jpeg_with_the_orientation_of_a_camera(tmp_path: Path) -> None:
    rows = np.full((16, 32), WHITE)
    rows[:, :16] = BLACK  # the left half
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by 90 degrees clockwise: the left half is the upper one then
    path = picture(tmp_path / "a.jpg", rows, exif=exif.tobytes(), quality=95)
    mask = image_mask(path, (32, 16))
    assert mask[16:].all()
    assert not mask[:16].any()


def test_light_and_threshold(tmp_path: Path) -> None:
    path = picture(tmp_path / "a.png", [[0, 100, 200, 255]])
    assert image_mask(path, (1, 4)).astype(int).tolist() == [[1, 1, 0, 0]]
    assert image_mask(path, (1, 4), solid="light").astype(int).tolist() == [[0, 0, 1, 1]]
    assert image_mask(path, (1, 4), threshold=0.9).astype(int).tolist() == [[1, 0, 0, 0]]
    assert image_mask(path, (1, 4), threshold=0.2).astype(int).tolist() == [[1, 1, 1, 0]]


def test_transparent_pixels_are_white_and_alpha_can_be_the_solid(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    # Black and transparent, black and opaque, white and opaque, white and half transparent.
    Image.fromarray(
        np.array([[[0, 0, 0, 0], [0, 0, 0, 255], [255, 255, 255, 255], [255, 255, 255, 100]]], np.uint8)
    ).save(path)
    assert image_mask(path, (1, 4)).astype(int).tolist() == [[0, 1, 0, 0]]
    assert image_mask(path, (1, 4), solid="opaque").astype(int).tolist() == [[0, 1, 1, 0]]
    assert image_mask(path, (1, 4), solid="opaque", threshold=0.3).astype(int).tolist() == [[0, 1, 1, 1]]


def test_palettes_with_transparency(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    indexed = Image.fromarray(np.array([[0, 1]], np.uint8)).convert("P")
    indexed.putpalette([0, 0, 0, 0, 0, 0])
    indexed.save(path, transparency=0)  # both colours are black; the first is transparent
    assert image_mask(path, (1, 2)).astype(int).tolist() == [[0, 1]]


def test_sixteen_bits_are_not_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    Image.fromarray(np.array([[0, 1000, 40000, 65535]], np.uint16)).save(path)
    assert image_mask(path, (1, 4)).astype(int).tolist() == [[1, 1, 0, 0]]


def test_scaled_as_large_as_fits_with_the_proportions_kept(tmp_path: Path) -> None:
    path = picture(tmp_path / "wing.png", np.full((10, 20), BLACK))
    said: list[str] = []
    mask = image_mask(path, (12, 16), report=said.append)
    assert np.argwhere(mask).min(axis=0).tolist() == [2, 0]
    assert np.argwhere(mask).max(axis=0).tolist() == [9, 15]
    assert said == [
        "wing.png: 20 x 10 pixels scaled by 0.8 to 16 x 8 sites at x = 0..15, y = 2..9, in 16 x 12 sites; 66.7 % of the sites are solid"
    ]


@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 4), st.integers(0, 6), st.integers(0, 6))
def test_whole_scales_repeat_pixels(rows: int, columns: int, scale: int, x: int, y: int) -> None:
    import tempfile

    pixels = np.random.default_rng(rows * 100 + columns).integers(0, 2, (rows, columns), np.uint8) * 255
    pixels[0, 0] = BLACK
    wanted = np.zeros((60, 70), bool)
    block = np.kron(pixels[::-1] == BLACK, np.ones((scale, scale), bool))
    wanted[y : y + rows * scale, x : x + columns * scale] = block
    centre = (x + (columns * scale - 1) / 2, y + (rows * scale - 1) / 2)
    with tempfile.TemporaryDirectory() as folder:
        path = picture(Path(folder) / "a.png", pixels)
        assert (image_mask(path, (60, 70), placement=Placement(scale=scale, centre=centre)) == wanted).all()


def test_a_site_takes_the_mean_of_its_pixels(tmp_path: Path) -> None:
    path = picture(tmp_path / "a.png", [[0, 0, 255, 255, 255, 0], [0, 255, 255, 0, 0, 0]])
    # Two by two pixels a site: 3/4, 1/4 and 3/4 black.
    assert image_mask(path, (1, 3)).astype(int).tolist() == [[1, 0, 1]]
    assert image_mask(path, (1, 3), threshold=0.2).astype(int).tolist() == [[1, 1, 1]]
    # Exactly as solid as the threshold is solid.
    path = picture(tmp_path / "b.png", [[0, 255, 0, 0, 255, 255], [0, 255, 0, 255, 255, 0]])
    assert image_mask(path, (1, 3)).astype(int).tolist() == [[1, 1, 0]]
    assert image_mask(path, (1, 3), threshold=0.25).astype(int).tolist() == [[1, 1, 1]]
    assert image_mask(path, (1, 3), threshold=0.75).astype(int).tolist() == [[0, 1, 0]]


def test_three_axes_draw_the_picture_out_along_z(tmp_path: Path) -> None:
    path = picture(tmp_path / "a.png", [[BLACK, WHITE], [WHITE, WHITE]])
    mask = image_mask(path, (3, 2, 2))
    assert mask.tolist() == [image_mask(path, (2, 2)).tolist()] * 3
    mask[0] = True  # its own memory
    assert not mask[1].all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"placement": Placement(scale=1)},
            "{name}: 4 x 2 pixels scaled by 1 to 4 x 2 sites at x = 0..3, y = 1..2, in 3 x 3 sites: the picture reaches out of the box; "
            "wanted a smaller size or another place",
        ),
        (
            {"solid": "light", "threshold": 0.9},
            "{path}: no site is solid: the picture is at most 78 % light, averaged over a site less; wanted 90 % (choose another threshold, "
            "or solid='dark', 'light' or 'opaque')",
        ),
        (
            {"solid": "opaque"},
            "{path}: the picture has no alpha channel; wanted one for solid='opaque': take 'dark' or 'light'",
        ),
        ({"solid": "red"}, "image_mask(solid='red'): wanted one of 'dark', 'light', 'opaque'"),
        ({"threshold": 0.0}, "the threshold is 0; wanted more than 0 and at most 1"),
    ],
)
def test_refusals(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    path = picture(tmp_path / "a.png", [[0, 0, 200, 200], [0, 0, 0, 0]])
    with pytest.raises(InputError, match=f"^{re.escape(message.format(path=path, name=path.name))}$"):
        image_mask(path, (3, 3), **options)


@pytest.mark.parametrize("cut", [8, 20, 40, 60, 100])
def test_damaged_pictures(tmp_path: Path, cut: int) -> None:
    path = picture(tmp_path / "a.png", np.random.default_rng(0).integers(0, 256, (30, 30)))
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(InputError, match=f"^{re.escape(str(path))}: "):
        image_mask(path, (30, 30))


def test_something_else_with_the_suffix_of_a_picture(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_text("no picture")
    message = f"{path}: this is no picture that Pillow knows; wanted PNG, JPEG, BMP, GIF, TIFF or WebP"
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        image_mask(path, (3, 3))


def test_float_pictures_have_no_range(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    Image.fromarray(np.ones((2, 2), np.float32)).save(path)
    with pytest.raises(
        InputError, match=r"the pixels are float numbers of unknown range; wanted a picture of 8 or 16 bits"
    ):
        image_mask(path, (2, 2))
