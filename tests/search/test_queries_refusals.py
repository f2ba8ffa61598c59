"""What lw.neighbors and lw.nearest refuse, word by word."""

import numpy as np
import pytest

import lanewise as lw
from lanewise.support.errors import ArgumentError, DeviceError

X = np.random.default_rng(0).random((5, 3)).astype("f4")


def refused(call, error=ArgumentError):
    with pytest.raises(error) as caught:
        call()
    return str(caught.value)


@pytest.mark.parametrize("radius", [0, -1.0, float("nan"), float("inf"), "far", True])
def test_a_radius_is_a_positive_number(radius):
    assert refused(lambda: lw.neighbors(X, radius)) == f"neighbors(radius={radius!r}): wanted a positive number"
    assert refused(lambda: lw.nearest(X, 2, radius)) == f"nearest(radius={radius!r}): wanted a positive number"


@pytest.mark.parametrize("k", [0, -2, 33, 2.0, True])
def test_k_is_a_number_that_kernels_are_made_for(k):
    wanted = "wanted an integer from 1 to 32, the longest list that is kept in registers"
    assert refused(lambda: lw.nearest(X, k)) == f"nearest(k={k!r}): {wanted}"


def test_nothing_is_left_out():
    assert refused(lambda: lw.neighbors(X, None)) == "neighbors(radius=None): wanted a positive number"
    assert refused(lambda: lw.nearest(X, None)) == "nearest(k=None): wanted an integer from 1 to 32"


def test_more_neighbours_than_points():
    assert refused(lambda: lw.nearest(X, 6)) == "nearest: k=6 is more than the 5 points"


def test_no_points():
    nothing = np.zeros((0, 3), "f4")
    assert refused(lambda: lw.nearest(nothing, 1)) == "nearest: k=1 is more than the 0 points"
    assert [len(row) for row in (lw.neighbors(nothing, 1.0), lw.neighbors(X, 1.0, nothing))] == [0, 0]
    assert lw.neighbors(nothing, 1.0, X).counts.tolist() == [0] * len(X)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_positions_that_are_no_numbers(value):
    x = X.copy()
    x[3] = (1, 2, value)
    wrong = f"the position of element 3 is (1, 2, {value}); a search needs finite numbers"
    assert refused(lambda: lw.nearest(x, 2)) == f"nearest: 'points': {wrong}"
    assert refused(lambda: lw.neighbors(X, 1.0, x)) == f"neighbors: 'queries': {wrong}"


@pytest.mark.parametrize("shape", [(5,), (5, 0), (5, 65), (5, 3, 1), ()])
def test_shapes(shape):
    assert refused(lambda: lw.nearest(np.zeros(shape, "f4"), 1)) == (
        f"nearest: 'points' must have the shape (n, axes) with 1 to 64 axes, found {shape}"
    )


def test_lists_of_different_lengths():
    text = refused(lambda: lw.nearest([[1.0, 2.0], [3.0]], 1))
    assert text.startswith("nearest: 'points': list cannot be read as an array (")


@pytest.mark.parametrize("dtype", ["int64", "float16", "bool"])
def test_types(dtype):
    assert refused(lambda: lw.neighbors(X.astype(dtype), 1.0)) == (
        f"neighbors: 'points' must be float32 or float64, found {dtype}; distances are computed in the type of the positions: "
        "points.astype('float64')"
    )


def test_text():
    assert refused(lambda: lw.nearest(np.array([["a", "b"]]), 1)) == (
        "nearest: 'points': an array of numbers is needed, found ndarray with dtype <U1"
    )


def test_queries_that_are_not_like_the_points():
    assert refused(lambda: lw.nearest(X, 2, queries=X[:, :2])) == "nearest: 'queries' have 2 axes, and 'points' 3"
    assert refused(lambda: lw.neighbors(X, 2.0, X.astype("f8"))) == (
        "neighbors: 'queries' are float64, and 'points' float32; wanted one type: queries.astype('float32')"
    )


def test_worlds():
    outside = "element 0 at (7, 7, 7) lies outside the bounded world from (0.0, 0.0, 0.0) to (1.0, 1.0, 1.0)"
    assert refused(lambda: lw.nearest(X, 2, queries=X[:1] * 0 + 7, world=lw.Bounded((0, 0, 0), (1, 1, 1)))) == (
        f"nearest: 'queries': {outside}; choose a larger one, or lw.Open()"
    )
    assert refused(lambda: lw.neighbors(X, 0.6, world=lw.Periodic((1.0, 1.0, 1.0)))) == (
        "Neighbors(radius=0.6): in a periodic world a radius is at most half the smallest size, 0.5"
    )
    assert refused(lambda: lw.neighbors(X, 0.5, world=lw.Periodic((1.0, 1.0)))) == (
        "all pairs: all within 0.5, periodic world of 1 x 1: the world has 2 axes, and the positions have 3"
    )


def test_searches_that_look_for_something_else():
    assert refused(lambda: lw.nearest(X, 2, 1.0, search=lw.StaticGrid(radius=2.0, k=2))) == (
        "nearest: the search has radius=2.0, and the call radius=1.0; they have to agree"
    )
    assert refused(lambda: lw.neighbors(X, 1.0, search=lw.StaticGrid(radius=1.0, k=2))) == (
        "neighbors: the search has k=2, and the call k=None; they have to agree"
    )
    assert refused(lambda: lw.nearest(X, 2, search=lw.AllPairs(k=2), world=lw.Periodic((1.0, 1.0, 1.0)))) == (
        "nearest: the search has world=open world, and the call world=periodic world of 1 x 1 x 1; they have to agree"
    )
    assert refused(lambda: lw.nearest(X, 2, search="grid")) == (
        "nearest: search takes a structure such as lw.StaticGrid(radius=...), found 'grid'"
    )


def test_a_square_that_the_precision_does_not_hold():
    assert refused(lambda: lw.nearest(X, 2, 1e-30)) == "radius=1e-30: its square 1e-60 is beyond the numbers of f32"


def test_lists_that_do_not_fit_the_memory(monkeypatch):
    x = np.zeros((1500, 3), "f4")
    lw.neighbors(x[:10], 1.0)  # its small memory does not ask
    monkeypatch.setattr("lanewise.runtime.memory.available_memory", lambda device: 5_000_000)
    text = refused(lambda: lw.neighbors(x, 1.0), DeviceError)
    assert (
        text
        == f"the list of neighbours of 1,500 positions needs {4 * 1500 * 1499:,} bytes on 'cpu', and 5,000,000 are available"
    )


def test_devices():
    assert refused(lambda: lw.nearest(X, 2, device="gpu"), DeviceError).startswith("unknown device 'gpu'")
