"""Profiles and histories are drawn whole, and nothing of a curve is lost."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanewise.errors import ArgumentError
from lanewise.plot.curves import MOST_DRAWN, Curve, Profile, plot_history, plot_profile, plot_profiles, settled_range
from tests.plot.flows import pixels, png_size

Y = np.linspace(0, 1, 33)
COMPUTED, TABLE = Curve("lanewise", Y * (1 - Y), Y), Curve("Ghia et al. 1982", [0.1, 0.2], [0.25, 0.5])


def test_a_profile_against_points(tmp_path: Path) -> None:
    plot_profile(tmp_path / "p.png", [COMPUTED], [TABLE], "cavity, Re 100", xlabel="u / U", ylabel="y / L")
    width, height = png_size(tmp_path / "p.png")
    assert (height, abs(width - 885) <= 1) == (870, True)  # matplotlib 3.11.0 rounds the width down
    shown = pixels(tmp_path / "p.png").reshape(-1, 3)
    assert (shown == (0x4F, 0x9D, 0xF0)).all(axis=1).sum() > 300  # the line


def test_two_panels(tmp_path: Path) -> None:
    profile = Profile([COMPUTED], [TABLE], "centre line", "u / U", "y / L")
    plot_profiles(tmp_path / "p.png", [profile, Profile([COMPUTED, TABLE])], "cavity, Re 100")
    assert png_size(tmp_path / "p.png") == (1725, 870)


def test_drag_and_lift(tmp_path: Path) -> None:
    time = np.arange(0, 5000, 10)
    series = {"drag coefficient": 3.2 + 0.02 * np.sin(time / 40), "lift coefficient": np.cos(time / 80)}
    plot_history(tmp_path / "h.png", time, series, "karman, Re 150")
    assert png_size(tmp_path / "h.png") == (1650, 945)
    plot_history(tmp_path / "one.png", [5], {"drag": [0.0]}, "one value")
    assert png_size(tmp_path / "one.png") == (1650, 555)


def test_a_transient_does_not_set_the_scale() -> None:
    values = np.full(200, 3.2) + 0.01 * np.sin(np.arange(200))
    values[3] = -80
    low, high, hidden = settled_range(values)
    assert 3.18 < low < 3.19
    assert 3.21 < high < 3.22
    assert hidden == -80
    values[3] = 3.23  # only a little: shown
    low, high, hidden = settled_range(values)
    assert high == 3.23
    assert hidden is None


@given(st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=60))
def test_what_came_after_the_transient_is_inside(values: list[float]) -> None:
    array = np.array(values)
    low, high, hidden = settled_range(array)
    assert low < high
    rest = array if hidden is None else array[len(array) // 10 :]
    assert ((rest >= low) & (rest <= high)).all()


def test_a_single_peak_among_a_million_values_is_drawn(tmp_path: Path) -> None:
    values = np.zeros(50 * MOST_DRAWN)
    values[777_777] = 1.0
    plot_history(tmp_path / "peak.png", np.arange(len(values)), {"drag": values}, "peak")
    plot_history(tmp_path / "flat.png", np.arange(len(values)), {"drag": 0 * values}, "peak")
    line = (0x4F, 0x9D, 0xF0)
    rows = {
        n: np.flatnonzero((pixels(tmp_path / f"{n}.png") == line).all(axis=2).any(axis=1)) for n in ("peak", "flat")
    }
    assert np.ptp(rows["peak"]) > 200
    assert np.ptp(rows["flat"]) < 5


REFUSED = [
    ([], "no profile to draw; wanted at least one"),
    ([Profile([Curve("u", [1, 2], [1])])], "u: x has shape (2,) and y (1,); wanted (n,) for both, n at least 1"),
    ([Profile([Curve("u", [], [])])], "u: x has shape (0,) and y (0,); wanted (n,) for both, n at least 1"),
    ([Profile([Curve("u", [1, 2], [1, np.nan])])], "u[1] is nan at 2.0: only finite values can be drawn"),
]


@pytest.mark.parametrize(("profiles", "message"), REFUSED)
def test_refusals(tmp_path: Path, profiles: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(message)):
        plot_profiles(tmp_path / "p.png", profiles, "title")
    with pytest.raises(ArgumentError, match=re.escape("no series to draw; wanted at least one")):
        plot_history(tmp_path / "p.png", [1], {}, "title")
    assert os.listdir(tmp_path) == []
