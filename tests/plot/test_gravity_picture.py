"""The PNG of a gravity run: whole, of the right size, for every number of bodies and times, without a warning."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanewise.sims.gravity.view import FEW, frame, plot_gravity, point_style, speed_range
from lanewise.support.errors import ArgumentError, InputError

SIZE = (2040, 990)


def cluster(count: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(count)
    return random.normal(size=(count, 3)), random.normal(size=(count, 3))


def png_size(path: Path) -> tuple[int, int]:
    head = path.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    return struct.unpack(">II", head[16:24])


TIMES = np.linspace(0.0, 1.0, 11)
ERRORS = {
    "both signs": 1e-6 * np.sin(7 * TIMES),
    "one sign": 1e-9 * TIMES,
    "zero everywhere": np.zeros(11),
    "one value": np.r_[np.zeros(10), 1e-16],
    "subnormal": np.r_[np.zeros(10), 5e-324],
    "huge": np.r_[np.zeros(10), 1e300],
}


@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS.keys())
def test_every_kind_of_energy_error_is_drawn(tmp_path: Path, error: np.ndarray) -> None:
    plot_gravity(tmp_path / "run.png", *cluster(50), TIMES, error, "title")
    assert png_size(tmp_path / "run.png") == SIZE


@pytest.mark.quick("1", "101")
@pytest.mark.parametrize("count", [1, 2, pytest.param(3, marks=pytest.mark.slow), FEW + 1, 100_000])
def test_every_number_of_bodies_is_drawn(tmp_path: Path, count: int) -> None:
    plot_gravity(tmp_path / "run.png", *cluster(count), TIMES, ERRORS["both signs"], "title")
    assert png_size(tmp_path / "run.png") == SIZE


def test_more_bodies_than_are_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lanewise.sims.gravity.view.MOST_POINTS", 100)
    plot_gravity(tmp_path / "run.png", *cluster(1000), TIMES, ERRORS["both signs"], "title")
    assert png_size(tmp_path / "run.png") == SIZE


@pytest.mark.parametrize("speed", [0.0, 1e-30, 3.0])
def test_constant_speed_and_a_single_time(tmp_path: Path, speed: float) -> None:
    position, _ = cluster(200)
    plot_gravity(tmp_path / "run.png", position, np.tile([0.0, speed, 0.0], (200, 1)), [0.0], [0.0], "title")
    assert png_size(tmp_path / "run.png") == SIZE


def test_bodies_at_one_point_in_float32(tmp_path: Path) -> None:
    position = np.full((5, 3), 1e6, np.float32)
    plot_gravity(tmp_path / "run.png", position, np.ones((5, 3), np.float32), TIMES, ERRORS["one sign"], "title")
    assert png_size(tmp_path / "run.png") == SIZE


def test_the_same_run_gives_the_same_picture(tmp_path: Path) -> None:
    for name in ("a.png", "b.png"):
        plot_gravity(tmp_path / name, *cluster(500), TIMES, ERRORS["both signs"], "title")
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_a_failed_save_keeps_the_old_picture_and_leaves_no_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "run.png").write_bytes(b"old")

    def full_disk(*_: object, **__: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", full_disk)
    with pytest.raises(InputError, match=r"run\.png: cannot be written into the folder .*: no space left"):
        plot_gravity(tmp_path / "run.png", *cluster(3), TIMES, ERRORS["one sign"], "title")
    assert [path.name for path in tmp_path.iterdir()] == ["run.png"]
    assert (tmp_path / "run.png").read_bytes() == b"old"


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"run\.png: the folder .*none does not exist"):
        plot_gravity(tmp_path / "none" / "run.png", *cluster(3), TIMES, ERRORS["one sign"], "title")


def test_escapers_do_not_shrink_a_large_cluster() -> None:
    places = cluster(10_000)[0][:, :2]
    places[:20] *= 1e6
    centre, half = frame(places)
    assert np.abs(centre).max() < 0.1
    assert 2.0 < half < 3.0


@given(st.integers(1, FEW), st.floats(1e-3, 1e6))
def test_all_of_a_few_bodies_are_in_the_frame(count: int, scale: float) -> None:
    places = cluster(count)[0][:, :2] * scale
    centre, half = frame(places)
    assert (np.abs(places - centre) <= half).all()


@given(st.lists(st.floats(0.0, 1e12), min_size=1, max_size=300))
def test_colours_always_have_a_range(speeds: list[float]) -> None:
    low, high = speed_range(np.array(speeds))
    assert low < high


@given(st.integers(1, 10**8))
def test_points_stay_visible(count: int) -> None:
    size, alpha = point_style(count)
    assert 0.8 <= size <= 60.0
    assert 0.3 <= alpha <= 1.0


def test_bad_arrays_are_named(tmp_path: Path) -> None:
    position, velocity = cluster(4)
    bad = position.copy()
    bad[2, 1] = np.nan
    path = tmp_path / "run.png"
    with pytest.raises(ArgumentError, match=r"position\[2\] is \[.*nan.*\]: only finite values can be drawn"):
        plot_gravity(path, bad, velocity, TIMES, ERRORS["one sign"], "title")
    with pytest.raises(ArgumentError, match=r"velocity: shape \(3, 3\) cannot be drawn, wanted \(4, 3\)"):
        plot_gravity(path, position, velocity[:3], TIMES, ERRORS["one sign"], "title")
    with pytest.raises(ArgumentError, match=r"energy_error: shape \(1,\) cannot be drawn, wanted \(11,\)"):
        plot_gravity(path, position, velocity, TIMES, [0.0], "title")
    with pytest.raises(
        ArgumentError, match=r"position: shape \(0, 3\) cannot be drawn, wanted \(n, 3\) of at least one"
    ):
        plot_gravity(path, np.empty((0, 3)), np.empty((0, 3)), [0.0], [0.0], "title")
    assert not path.exists()


def test_importing_the_module_does_not_import_matplotlib() -> None:
    code = "import sys, lanewise.sims.gravity.view; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
