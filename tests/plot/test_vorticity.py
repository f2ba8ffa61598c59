"""Vorticity and stream function against flows whose curl is known."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanewise.sims.lbm.view.slices import stream_function, vorticity
from lanewise.support.errors import ArgumentError


def test_a_rigid_rotation_has_twice_its_rate_everywhere() -> None:
    y, x = np.mgrid[:7, :9].astype(float)
    velocity = np.stack([-0.25 * (y - 2), 0.25 * (x - 5)], axis=-1)
    assert np.array_equal(vorticity(velocity), np.full((7, 9), 0.5))  # at the edges too


@given(st.lists(st.floats(-1, 1), min_size=9, max_size=9))
def test_a_linear_flow_in_3d(gradient: list[float]) -> None:
    """u_i = sum over j of A_ij x_j has the curl A_zy - A_yz and so on, at edges and beside solids as well."""
    a = np.reshape(gradient, (3, 3))
    z, y, x = np.mgrid[:5, :5, :6].astype(float)
    velocity = np.einsum("ij,...j->...i", a, np.stack([x, y, z], axis=-1))
    solid = np.zeros((5, 5, 6), bool)
    solid[2, 2, 3] = True
    curl = vorticity(velocity, solid)
    wanted = [a[2, 1] - a[1, 2], a[0, 2] - a[2, 0], a[1, 0] - a[0, 1]]
    assert curl.shape == (5, 5, 6, 3)
    assert np.allclose(curl[~solid], wanted, atol=1e-12)
    assert not curl[solid].any()


def taylor_green(sites: int) -> tuple[np.ndarray, np.ndarray]:
    k = 2 * np.pi / sites
    y, x = (np.mgrid[:sites, :sites] + 0.5) * k
    velocity = np.stack([-np.cos(x) * np.sin(y), np.sin(x) * np.cos(y)], axis=-1)
    return velocity, 2 * k * np.cos(x) * np.cos(y)


def test_the_order_in_the_bulk_is_two() -> None:
    errors = []
    for sites in (16, 32, 64):
        velocity, exact = taylor_green(sites)
        found = vorticity(velocity, periodic="xy")
        errors.append(np.abs(found - exact).max() * sites)
    orders = np.log2(np.divide(errors[:-1], errors[1:]))
    assert ((orders > 1.9) & (orders < 2.1)).all()


def test_periodic_edges_differ_from_open_ones() -> None:
    velocity, exact = taylor_green(128)
    open_ = np.abs(vorticity(velocity) - exact)
    closed = np.abs(vorticity(velocity, periodic="xy") - exact)
    assert closed[0].max() < 0.5 * open_[0].max()
    half = vorticity(velocity, periodic="x")
    assert np.array_equal(half[1:-1], vorticity(velocity, periodic="xy")[1:-1])
    assert not np.array_equal(half[0], vorticity(velocity, periodic="xy")[0])


def test_what_stands_in_solids_does_not_matter() -> None:
    velocity = np.random.default_rng(4).normal(size=(6, 7, 2))
    solid = np.zeros((6, 7), bool)
    solid[2:4, 3:5] = True
    clean = vorticity(np.where(solid[..., None], 0, velocity), solid)
    for junk in (np.nan, np.inf, 1e300):
        dirty = np.where(solid[..., None], junk, velocity)
        assert np.array_equal(vorticity(dirty, solid), clean)


def test_a_site_between_solids_has_none() -> None:
    solid = np.ones((3, 3), bool)
    solid[1, 1] = False
    assert not vorticity(np.ones((3, 3, 2)), solid).any()


@pytest.mark.parametrize(("given", "kept"), [("f2", "f4"), ("f4", "f4"), ("f8", "f8")])
def test_precision(given: str, kept: str) -> None:
    assert vorticity(np.ones((3, 3, 2), given)).dtype == kept


def test_the_stream_function_of_a_closed_flow() -> None:
    """psi = sin^2 sin^2 vanishes with its slope at all walls; its velocity gives it back to second order."""
    errors = []
    for sites in (32, 64):
        k = np.pi / sites
        y, x = (np.mgrid[:sites, :sites] + 0.5) * k
        psi = (np.sin(x) * np.sin(y)) ** 2 / k
        velocity = np.stack([np.sin(x) ** 2 * np.sin(2 * y), -np.sin(2 * x) * np.sin(y) ** 2], axis=-1)
        errors.append(np.abs(stream_function(velocity) - psi).max() / psi.max())
    assert errors[0] < 4e-3
    assert 1.9 < np.log2(errors[0] / errors[1]) < 2.1


@pytest.mark.parametrize("shape", [(3, 3), (3, 3, 3), (2, 3, 3, 2), (0, 3, 2)])
def test_shapes_that_are_no_flow(shape: tuple[int, ...]) -> None:
    message = f"velocity has shape {shape}; wanted (ny, nx, 2) or (nz, ny, nx, 3)"
    with pytest.raises(ArgumentError, match=re.escape(message)):
        vorticity(np.zeros(shape))


def test_solids_of_another_shape() -> None:
    message = "solid has shape (3, 4) of bool; wanted (3, 3) of bool"
    with pytest.raises(ArgumentError, match=re.escape(message)):
        vorticity(np.zeros((3, 3, 2)), np.zeros((3, 4), bool))
