"""The colour maps are what their docstring says: uniform, symmetric, continuous."""

from __future__ import annotations

import numpy as np
import pytest

from lanewise.plot.raster import DARK, LIGHT, TO_CONES, TO_LINEAR_RGB, colour_map, colour_table


def oklab(rgb: np.ndarray) -> np.ndarray:
    """(n, 3) uint8 back to OKLab, by the inverse formulas."""
    encoded = rgb / 255
    linear = np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)
    return np.cbrt(linear @ np.linalg.inv(TO_LINEAR_RGB).T) @ np.linalg.inv(TO_CONES).T


def test_lightness_of_speed_grows_in_proportion() -> None:
    lightness = oklab(colour_table("speed"))[:, 0]
    assert np.abs(lightness - np.linspace(DARK, LIGHT, 256)).max() < 0.01


def test_lightness_of_vorticity_is_symmetric_about_zero() -> None:
    lightness = oklab(colour_table("vorticity"))[:, 0]
    assert np.abs(lightness - lightness[::-1]).max() < 0.012
    assert np.abs(lightness - (DARK + (LIGHT - DARK) * np.abs(np.linspace(-1, 1, 256)))).max() < 0.012


@pytest.mark.parametrize("name", ["speed", "vorticity"])
def test_equal_steps_look_equally_large(name: str) -> None:
    """Steps over eight colours, so that rounding to 8 bits does not count; within a factor of two or so of
    each other.
    """
    lab = oklab(colour_table(name))  # pyright: ignore[reportArgumentType]
    steps = np.linalg.norm(lab[8:] - lab[:-8], axis=1)
    away = np.abs(np.arange(len(steps)) + 4 - 128) > 8 if name == "vorticity" else np.full(len(steps), True)
    assert steps[away].max() / steps[away].min() < 2.6


def test_the_two_sides_are_told_apart_without_red_and_green() -> None:
    """The yellow-blue coordinate, which all but very few people see, has opposite signs."""
    lab = oklab(colour_table("vorticity"))
    assert (lab[32:112, 2] < -0.04).all()
    assert (lab[152:224, 2] > 0.02).all()


def test_matplotlib_gets_the_same_colours() -> None:
    shown = colour_map("speed")(np.arange(256))[:, :3]
    assert np.array_equal(np.round(shown * 255).astype(np.uint8), colour_table("speed"))
