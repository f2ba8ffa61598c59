"""Round and square bodies: exact small cases, areas and volumes, places."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanewise.sims.lbm.obstacles import box, cylinder, disc, sphere
from lanewise.support.errors import InputError


def test_a_small_disc_site_by_site() -> None:
    wanted = [
        [0, 0, 0, 0, 0, 0],
        [0, 0, 1, 0, 0, 0],
        [0, 1, 1, 1, 0, 0],
        [0, 0, 1, 0, 0, 0],
    ]
    assert disc((4, 6), (2, 2), 1).astype(int).tolist() == wanted


def test_x_is_the_last_axis() -> None:
    assert np.argwhere(disc((8, 16), (12, 3), 0.5)).tolist() == [[3, 12]]
    assert np.argwhere(sphere((4, 8, 16), (12, 5, 2), 0.5)).tolist() == [[2, 5, 12]]
    assert np.argwhere(box((4, 8, 16), (12, 5, 2), (1, 1, 1))).tolist() == [[2, 5, 12]]


@given(
    st.floats(5, 20), st.floats(21, 26), st.floats(21, 26), st.floats(21, 26)
)  # the body stays inside of 48 sites  # fmt: skip
def test_area_and_volume(radius: float, x: float, y: float, z: float) -> None:
    # The number of lattice points in a disc differs from its area by less than its rim: 2 sqrt(2) pi r.
    assert abs(np.count_nonzero(disc((48, 48), (x, y), radius)) - math.pi * radius**2) < 2.83 * math.pi * radius
    volume = np.count_nonzero(sphere((48, 48, 48), (x, y, z), radius))
    assert volume == pytest.approx(4 / 3 * math.pi * radius**3, rel=0.12 if radius < 10 else 0.03)


@pytest.mark.parametrize(("axis", "place"), [("x", 2), ("y", 1), ("z", 0)])
def test_a_cylinder_is_a_disc_drawn_out(axis: str, place: int) -> None:
    mask = cylinder((10, 12, 14), (5, 4), 3, axis)
    section = np.moveaxis(mask, place, 0)
    assert (section == section[0]).all()
    # The other two axes in the order x, y, z; arrays have them the other way round.
    assert (section[0] == disc(section[0].shape, (5, 4), 3)).all()


@given(st.integers(1, 9), st.integers(1, 9), st.floats(8, 11), st.floats(8, 11))
def test_a_box_of_whole_edges_has_as_many_sites(a: int, b: int, x: float, y: float) -> None:
    assert np.count_nonzero(box((20, 20), (x, y), (a, b))) == a * b


def test_boxes_side_by_side_share_no_site() -> None:
    one, other = box((10, 10), (3, 5), (2, 4)), box((10, 10), (5, 5), (2, 4))
    assert not (one & other).any()
    assert (one | other).tolist() == box((10, 10), (4, 5), (4, 4)).tolist()


def test_what_lies_outside_is_left_out() -> None:
    large = disc((40, 40), (20, 20), 9)
    assert disc((10, 20), (0, 0), 9).tolist() == large[20:30, 20:40].tolist()
    assert not sphere((4, 4, 4), (20, 0, 0), 3).any()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: disc((3, 4, 5), (1, 1), 1), "a disc needs a box of shape (ny, nx), found (3, 4, 5); use cylinder there"),
        (lambda: sphere((4, 5), (1, 1, 1), 1), "a sphere needs a box of shape (nz, ny, nx), found (4, 5); use disc there"),
        (lambda: cylinder((4, 5), (1, 1), 1), "a cylinder needs a box of shape (nz, ny, nx), found (4, 5); use disc there"),
        (lambda: cylinder((4, 5, 6), (1, 1), 1, "xy"), "the axis of the cylinder is 'xy'; wanted 'x', 'y' or 'z'"),
        (lambda: disc((4, 5), (1, 1, 1), 1), "the centre is (1, 1, 1); wanted finite numbers (x, y)"),
        (lambda: disc((4, 5), (1, math.nan), 1), "the centre is (1, nan); wanted finite numbers (x, y)"),
        (lambda: disc((4, 5), (1, 1), 0), "the radius is 0 sites; wanted a finite length above zero"),
        (lambda: box((4, 5), (1, 1), (2, -1)), "the edge along y is -1 sites; wanted a finite length above zero"),
        (lambda: box((4,), (1,), (2,)), "the shape of the box is (4,); wanted (ny, nx) or (nz, ny, nx), from 1 site on each"),
        (lambda: box((0, 4), (1, 1), (2, 2)), "the shape of the box is (0, 4); wanted (ny, nx) or (nz, ny, nx), from 1 site on each"),
    ],
)  # fmt: skip
def test_refusals(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        make()
