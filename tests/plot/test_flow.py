"""Pictures of flows: whole, of the right size, and showing what is there, read back pixel by pixel."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanewise.plot.raster import Scale, colour, colour_table, picture_size, resample
from lanewise.sims.lbm.view.flow import LEFT, TOP, flow_title, plot_flow
from lanewise.sims.lbm.view.slices import (
    ReferenceScale,
    label,
    levels,
    middle_slice,
    middle_slices,
    unit_of,
    value_range,
    vorticity,
)
from lanewise.support.errors import ArgumentError, InputError
from tests.plot.flows import past_ball, pixels, png_size, street


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures of some 300 pixels, which are written faster."""
    monkeypatch.setattr("lanewise.sims.lbm.view.flow.picture_size", lambda shape: picture_size(shape, 600, 300))


def test_the_title() -> None:
    assert flow_title("karman", (400, 2000), 40_000, 150) == "karman, Re 150, 2,000 × 400 sites, step 40,000"
    assert flow_title("duct", (32, 32, 64), 10) == "duct, 64 × 32 × 32 sites, step 10"


SIZES = [
    ((64, 64), (1152, 1152)),
    ((400, 2000), (400, 2000)),
    ((1024, 4096), (512, 2048)),
    ((200, 1000), (400, 2000)),
    ((8192, 8192), (2048, 2048)),
    ((1, 1), (1100, 1100)),
    ((2, 30000), (1, 2000)),
]


@pytest.mark.parametrize(("sites", "size"), SIZES)
def test_whole_pixels_a_site_or_whole_sites_a_pixel(sites: tuple[int, int], size: tuple[int, int]) -> None:
    assert picture_size(sites) == size


@given(st.integers(1, 20000), st.integers(1, 20000))
def test_pictures_are_neither_tiny_nor_huge(ny: int, nx: int) -> None:
    height, width = picture_size((ny, nx))
    assert 1024 <= max(height, width) <= 2048
    assert min(height, width) >= 1
    assert abs(height / width - ny / nx) <= (ny / nx) / min(height, width)


@pytest.mark.parametrize("quantity", ["speed", "vorticity"])
def test_the_panel_holds_the_field_pixel_by_pixel(tmp_path: Path, quantity: Any) -> None:
    velocity, solid = street(300, 1200)
    plot_flow(tmp_path / "f.png", velocity, "title", quantity=quantity, solid=solid)
    shown = middle_slices(velocity, solid, quantity)[0]
    field, fluid = resample(shown.values, solid, (300, 1200))
    wanted = colour(field, fluid, Scale(*value_range((shown,), quantity), quantity), 1)
    # One pixel at each side belongs to the frame.
    panel = pixels(tmp_path / "f.png")[TOP : TOP + 300, LEFT : LEFT + 1200]
    assert np.array_equal(panel[2:-2, 2:-2], wanted[2:-2, 2:-2])


def test_y_points_upwards_and_positive_vorticity_is_gold(tmp_path: Path) -> None:
    """A single vortex that turns counter-clockwise, in the upper left quarter."""
    y, x = np.mgrid[:110, :110] + 0.5
    dx, dy = x - 25, y - 85
    turn = np.exp(-(dx**2 + dy**2) / 80)
    plot_flow(tmp_path / "f.png", np.stack([-dy * turn, dx * turn], axis=-1), "title", quantity="vorticity")
    panel = pixels(tmp_path / "f.png")[TOP : TOP + 1100, LEFT : LEFT + 1100].astype(int)
    assert np.abs(panel[250, 250] - colour_table("vorticity")[255]).max() <= 2
    assert np.abs(panel[850, 850] - colour_table("vorticity")[128]).max() <= 2


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("shape", [(64, 64), (1, 1), (1, 300), (300, 1), (2, 3), (700, 90), (1024, 4096)], ids=str)
@pytest.mark.parametrize("quantity", ["speed", "vorticity"])
@pytest.mark.usefixtures("small")
def test_every_shape_is_drawn(tmp_path: Path, shape: tuple[int, int], quantity: Any) -> None:
    velocity = np.random.default_rng(5).normal(size=(*shape, 2)).astype(np.float32)
    plot_flow(tmp_path / "f.png", velocity, flow_title("noise", shape, 7), quantity=quantity)
    width, height = png_size(tmp_path / "f.png")
    longest = max(picture_size(shape, 600, 300))
    assert longest < max(width, height) < longest + 400


@pytest.mark.parametrize("quantity", ["speed", "vorticity"])
@pytest.mark.usefixtures("small")
def test_three_dimensions(tmp_path: Path, quantity: Any) -> None:
    velocity, solid = past_ball()
    plot_flow(tmp_path / "f.png", velocity, "sphere", quantity=quantity, solid=solid, reference=ReferenceScale(0.1, 8))
    width, height = png_size(tmp_path / "f.png")
    assert 400 < height < width < 900
    plot_flow(tmp_path / "g.png", np.ones((1, 1, 1, 3)), "a site", quantity=quantity)


@pytest.mark.parametrize("at_rest", [np.zeros((8, 9, 2)), np.full((8, 9, 2), 0.1)], ids=["rest", "uniform"])
@pytest.mark.parametrize("quantity", ["speed", "vorticity"])
@pytest.mark.usefixtures("small")
def test_flows_without_any_difference(tmp_path: Path, at_rest: np.ndarray, quantity: Any) -> None:
    plot_flow(tmp_path / "f.png", at_rest, "title", quantity=quantity, streamlines=True)
    assert (tmp_path / "f.png").exists()


def test_slices_are_the_middle_planes_of_the_whole_curl() -> None:
    velocity, solid = past_ball()
    curl = vorticity(velocity, solid)
    front, side, top = middle_slices(velocity, solid, "vorticity")
    assert (front.place, side.place, top.place) == ("z = 10", "x = 20", "y = 12")
    assert (front.axes, side.axes, top.axes) == (("x", "y"), ("z", "y"), ("x", "z"))
    assert np.array_equal(front.values, curl[10, :, :, 2])
    assert np.array_equal(side.values, curl[:, :, 20, 0].T)
    assert np.array_equal(top.values, curl[:, 12, :, 1])
    assert side.solid is not None
    assert np.array_equal(side.solid, solid[:, :, 20].T)
    front, side, _ = middle_slices(velocity, solid, "vorticity", "xyz")
    whole = vorticity(velocity, solid, periodic="xyz")
    assert np.array_equal(front.values, whole[10, :, :, 2])
    assert np.array_equal(side.values, whole[:, :, 20, 0].T)
    assert np.allclose(middle_slice(velocity, solid, "speed", "y").values, np.linalg.norm(velocity[:, 12], axis=-1))


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 60), st.integers(1, 60), st.integers(0, 2**32))
def test_resampling_stays_within_the_fluid(ny: int, nx: int, height: int, width: int, seed: int) -> None:
    """Neither undershoot nor solids (whose values are NaN here) show in a pixel that is at least one tenth fluid."""
    random = np.random.default_rng(seed)
    field, solid = random.uniform(1, 2, (ny, nx)), random.random((ny, nx)) < 0.3
    shown, fluid = resample(np.where(solid, np.nan, field), solid, (height, width))
    assert shown.shape == (height, width)
    seen = np.full(shown.shape, True) if fluid is None else fluid > 0.1
    assert ((shown[seen] > 0.999) & (shown[seen] < 2.001)).all()


def test_obstacles_cover_their_sites(tmp_path: Path) -> None:
    """Pixels of solid sites have the colours of solids, and of fluid sites those of the flow."""
    solid = np.zeros((10, 10), bool)
    solid[2:6, 3:8] = True
    field, fluid = resample(np.ones((10, 10)), solid, (100, 100))
    rgb = colour(field, fluid, Scale(0, 1, "speed"), 10)[::-1]  # the first row of sites first
    flow = colour_table("speed")[255]
    assert (rgb[:18] == flow).all()
    assert (rgb[65:, :] == flow).all()
    assert (rgb[30:50, 40:70] == (104, 114, 134)).all()
    changes = np.flatnonzero((rgb[40] != flow).any(axis=1))
    assert abs(changes[0] - 30) <= 1  # the half-way wall
    assert abs(changes[-1] - 79) <= 1


def test_ranges() -> None:
    velocity, solid = street()
    speed = middle_slices(velocity, solid, "speed")
    low, high = value_range(speed, "speed")
    assert low == 0
    assert 0.98 * speed[0].values.max() < high <= speed[0].values.max()
    low, high = value_range(middle_slices(velocity, solid, "vorticity"), "vorticity")
    assert low == -high < 0
    wild = velocity.copy()
    wild[20, 60] = 50  # one bad site of 4800
    assert value_range(middle_slices(wild, solid, "vorticity"), "vorticity")[1] < 2 * high


def test_a_reference_changes_the_numbers_and_not_the_picture() -> None:
    assert unit_of("speed", ReferenceScale(0.1, 20)) == 0.1
    assert unit_of("vorticity", ReferenceScale(0.1, 20)) == pytest.approx(0.005)
    assert unit_of("vorticity", None) == 1
    assert label("speed", None) == "speed  |u|  [lattice units]"
    assert label("speed", ReferenceScale(1, 1)) == "speed  |u| / U"
    assert label("vorticity", None) == "vorticity  ω  [1 / step]"
    assert label("vorticity", ReferenceScale(1, 1), across=True) == "vorticity across the plane  ω L / U"
    with pytest.raises(ArgumentError, match=re.escape("the reference length is 0; wanted a positive number")):
        ReferenceScale(0.1, 0)


def test_streamlines_show_both_senses_of_turning() -> None:
    psi = np.array([0.0, -0.118, 1.7e-3, -0.05])
    found = levels(psi)
    assert (np.diff(found) > 0).all()
    assert (found < 0).sum() == 12
    assert (found > 0).sum() == 4
    assert found.min() > -0.118
    assert found.max() < 1.7e-3
    assert (levels(np.array([0.0, -0.1, 1e-9])) < 0).all()  # an error of the solution
    assert len(levels(np.zeros(3))) == 0


@pytest.mark.usefixtures("small")
def test_streamlines_are_drawn(tmp_path: Path) -> None:
    y, x = (np.mgrid[:60, :60] + 0.5) * np.pi / 60
    velocity = 0.1 * np.stack([np.sin(x) ** 2 * np.sin(2 * y), -np.sin(2 * x) * np.sin(y) ** 2], axis=-1)
    plot_flow(tmp_path / "a.png", velocity, "title")
    plot_flow(tmp_path / "b.png", velocity, "title", streamlines=True)
    brighter = pixels(tmp_path / "b.png").astype(int) - pixels(tmp_path / "a.png")
    assert (brighter.min(axis=2) > 10).mean() > 0.01
    assert (brighter != 0).any(axis=2).mean() < 0.2


@pytest.mark.usefixtures("small")
def test_the_same_flow_gives_the_same_picture(tmp_path: Path) -> None:
    velocity, solid = street()
    for name in ("a.png", "b.png"):
        plot_flow(tmp_path / name, velocity, "title", solid=solid)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


V = np.ones((3, 4, 2))
BAD = V.copy()
BAD[2, 1, 0] = np.nan
BAD_3D = np.ones((3, 3, 3, 3))
BAD_3D[1, 0, 2] = np.inf
REFUSED = [
    (np.ones((3, 4)), {}, "velocity has shape (3, 4); wanted (ny, nx, 2) or (nz, ny, nx, 3)"),
    (np.ones((3, 4, 3)), {}, "velocity has shape (3, 4, 3); wanted (ny, nx, 2) or (nz, ny, nx, 3)"),
    (V, {"solid": np.ones((3, 4), int)}, "solid has shape (3, 4) of int64; wanted (3, 4) of bool"),
    (V, {"solid": np.ones((3, 4), bool)}, "every site is solid: nothing to draw"),
    (V, {"quantity": "helicity"}, "plot_flow(quantity='helicity'): wanted 'speed' or 'vorticity'"),
    (V, {"limits": (1.0, 1.0)}, "the values at the ends of the colours are 1.0 and 1.0; wanted growing ones"),
    (V, {"limits": (0.0, np.nan)}, "the values at the ends of the colours are 0.0 and nan; wanted growing ones"),
    (BAD, {}, "the flow at x = 1, y = 2 is nan: only finite values can be drawn"),
    (BAD_3D, {}, "the flow at x = 2, y = 0, z = 1 is inf: only finite values can be drawn"),
    (np.ones((3, 3, 3, 3)), {"streamlines": True}, "streamlines can be drawn in 2-D only"),
]


@pytest.mark.parametrize(("velocity", "options", "message"), REFUSED, ids=[row[2][:32] for row in REFUSED])
def test_refusals(tmp_path: Path, velocity: np.ndarray, options: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(message)):
        plot_flow(tmp_path / "f.png", velocity, "title", **options)
    assert os.listdir(tmp_path) == []


@pytest.mark.usefixtures("small")
def test_junk_in_solids_is_not_seen(tmp_path: Path) -> None:
    velocity, solid = street()
    plot_flow(tmp_path / "a.png", velocity, "title", solid=solid)
    velocity[solid] = np.nan
    plot_flow(tmp_path / "b.png", velocity, "title", solid=solid)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"f\.png: the folder .*none does not exist"):
        plot_flow(tmp_path / "none" / "f.png", V, "title")


def test_importing_the_modules_does_not_import_matplotlib() -> None:
    code = (
        "import sys, lanewise.sims.lbm.view.flow, lanewise.sims.lbm.view.movie; sys.exit('matplotlib' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
