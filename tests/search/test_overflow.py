"""Squares and differences of coordinates that the type of the positions does not hold: refused, or only far away."""

import numpy as np
import pytest

import lanewise as lw
from lanewise.support.errors import ArgumentError
from tests.search.numbered import KINDS, numbered

SEARCHES = [lw.AllPairs, lw.StaticGrid, lw.DynamicGrid, lw.Nearest]
LARGE = {"f4": (1e30, 1e19, 3e38), "f8": (1e200, 1e155, 1e308)}


def cloud(dtype, axes=3, count=300):
    return np.random.default_rng(0).uniform(-1, 1, (count, axes)).astype(dtype)


def refused(call):
    with pytest.raises(ArgumentError) as caught:
        call()
    return str(caught.value)


@pytest.mark.parametrize("dtype", LARGE)
@pytest.mark.parametrize("search", SEARCHES)
def test_squares_without_a_radius(search, dtype):
    x = cloud(dtype)
    for large in LARGE[dtype]:
        wrong = refused(lambda s=large: lw.nearest(x * x.dtype.type(s), 3, search=search(k=3)))
        assert wrong.startswith("nearest: 'points': the position of element 0 is (")
        assert "use" in wrong
    meets = KINDS[dtype, 3][1].using(search(k=3))
    far = numbered(x * x.dtype.type(1e30 if dtype == "f4" else 1e200))
    assert "another unit of length" in refused(lambda: meets(far, far))


def test_the_words():
    x = np.array([[0, 0], [1e30, 0], [1, 1]], "f4")
    assert refused(lambda: lw.nearest(x, 2)) == (
        "nearest: 'points': the position of element 1 is (1e+30, 0); distances in f32 are held for coordinates up to 6.5e+18: "
        "use float64, or another unit of length"
    )
    assert refused(lambda: lw.nearest(x[::2], 2, queries=x)).startswith("nearest: 'queries': the position of element 1")
    assert refused(lambda: lw.nearest(x.astype("f8") * 1e200, 2)).endswith("up to 4.7e+153: use another unit of length")


@pytest.mark.parametrize("search", SEARCHES)
def test_differences_that_overflow_though_squares_of_points_do_not(search):
    """(1e19)^2 is a number of float32, (1e19 - -1e19)^2 is none."""
    x = np.array([[-1e19, 0, 0], [1e19, 0, 0], [0, 0, 0]], "f4")
    assert "element 0 is (-1e+19, 0, 0)" in refused(lambda: lw.nearest(x, 2, search=search(k=2)))


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("dtype", LARGE)
@pytest.mark.parametrize("search", [*SEARCHES, lw.Neighbors])
def test_with_a_radius_what_is_far_is_only_far(search, dtype):
    near = cloud(dtype)
    x = np.concatenate([near, near * near.dtype.type(LARGE[dtype][0])])
    if search is lw.Neighbors:
        found, wanted = (lw.neighbors(y, 0.5, search=search(radius=0.5)) for y in (x, near))
        assert found.counts[:300].tolist() == wanted.counts.tolist()
        return
    found, wanted = (lw.nearest(y, 3, 0.5, search=search(k=3, radius=0.5))[0] for y in (x, near))
    np.testing.assert_array_equal(found[:300], wanted)


@pytest.mark.parametrize("world", [lw.Periodic((10, 10, 10)), lw.Bounded((-1e38,) * 3, (1e38,) * 3)], ids=str)
def test_in_other_worlds(world):
    x = cloud("f4") * np.float32(1e30)
    for search in (lw.AllPairs, lw.DynamicGrid):
        assert "f32 are held for" in refused(lambda s=search: lw.nearest(x, 3, world=world, search=s(k=3, world=world)))


def test_outside_of_a_world_is_said_first():
    x = np.array([[0, 0, 0], [1e30, 0, 0]], "f4")
    world = lw.Bounded((-1, -1, -1), (1, 1, 1))
    assert "element 1 at (1e+30, 0, 0) lies outside the bounded world" in refused(lambda: lw.nearest(x, 1, world=world))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_the_largest_that_are_held(dtype):
    x = cloud(dtype)
    most = np.sqrt(float(np.finfo(dtype).max) / 12) * 0.99
    scaled = (x * x.dtype.type(most)).astype(dtype)
    for search in SEARCHES:
        indices, distances = lw.nearest(scaled, 3, search=search(k=3))
        assert (indices >= 0).all()
        assert np.isfinite(distances).all()
