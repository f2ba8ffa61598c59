"""What a camera sees, and where."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lanewise.sims.boids.view.camera import CAMERAS, WITH_AGENT, around, beside, check_camera, looking
from lanewise.support.errors import InputError
from tests.plot.flocks import unit

SIZE = (100, 200)
numbers = st.floats(-50, 50)
vectors = st.tuples(numbers, numbers, numbers).map(np.array)


@settings(max_examples=60, deadline=None)
@given(vectors, vectors.filter(lambda v: np.linalg.norm(v) > 1e-3))
def test_the_target_is_in_the_middle_and_axes_are_at_right_angles(eye: np.ndarray, way: np.ndarray) -> None:
    camera = looking(eye, eye + way, 10.0)
    axes = np.stack([camera.right, camera.up, camera.ahead])
    assert axes @ axes.T == pytest.approx(np.eye(3), abs=1e-9)
    assert np.linalg.det(axes) == pytest.approx(-1)  # right, up and ahead: a picture's y grows downwards
    if np.linalg.norm(way) > 1:
        x, y, nearness = camera.project(eye + way, SIZE)
        assert (x, y) == pytest.approx((100, 50), abs=1e-3)
        assert nearness == pytest.approx(1 / np.linalg.norm(way), rel=1e-5)


@pytest.mark.parametrize("turning", [False, True])
@pytest.mark.parametrize("time", [0.0, 17.0])
def test_a_ball_fills_the_height(turning: bool, time: float) -> None:
    camera = around(np.zeros(3), 30.0, time, turning=turning)
    places = 30 * unit(np.random.default_rng(0).normal(size=(4000, 3)))
    x, y, nearness = camera.project(places, SIZE).T
    assert (nearness > 0).all()
    assert 0 <= y.min() < 8
    assert 92 < y.max() <= 100
    assert x.max() - x.min() == pytest.approx(y.max() - y.min(), abs=1.5)


def test_only_a_turning_one_turns_once_a_minute() -> None:
    eyes = [around(np.zeros(3), 1.0, t, turning=turning).eye for turning in (False, True) for t in (0, 30, 60)]
    assert np.array_equal(eyes[0], eyes[1])
    assert eyes[4][[0, 2]] == pytest.approx(-eyes[3][[0, 2]])
    assert eyes[5] == pytest.approx(eyes[3])


@pytest.mark.parametrize("forward", [(1, 0, 0), (0, 1, 0), (0, -1, 0), (0.6, 0.0, -0.8)])
def test_the_agent_is_seen_and_what_is_behind_the_eye_is_not(forward: tuple[float, ...]) -> None:
    place, ahead, up = np.array((3.0, 4.0, 5.0)), np.array(forward), np.array((0.0, 0.0, 1.0))
    for name in ("offset", "follow"):
        camera = beside(name, place, ahead, up)
        x, y, nearness = camera.project(place, SIZE)
        assert nearness > 0
        assert 0 < x < 200
        assert 0 < y < 100
    nose = beside("pov", place, ahead, up)
    assert nose.project(place + 10 * ahead, SIZE)[:2] == pytest.approx((100, 50), abs=1e-3)
    assert nose.project(place, SIZE)[2] == 0


def test_names() -> None:
    assert set(WITH_AGENT) < set(CAMERAS)
    with pytest.raises(InputError) as error:
        check_camera("above")
    assert str(error.value) == "unknown camera 'above'; wanted one of fixed, orbit, offset, follow, pov"
    assert math.isfinite(beside("follow", np.zeros(3), np.array((0.0, 1.0, 0.0)), np.array((1.0, 0.0, 0.0))).focus)
