"""lw.neighbors and lw.nearest: against a program in float64, scipy's tree, all pairs and the thesis's truth."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lanewise as lw
from lanewise.launch import programs
from lanewise.patterns.search import query_calls
from tests.search.clouds import CLOUDS, Array, cloud, neighbours

DATA = Path(__file__).parent.parent / "data/boids"
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)]
KINDS = [("f4", 3), ("f8", 3), ("f4", 2), ("f8", 2)]
COUNT = 300
K = 4  # of most tests: every number of neighbours is a kernel of its own, and compiling takes the time


def host(value: Any) -> Array:
    return value.get() if hasattr(value, "get") else value


def there(value: Any, device: str) -> Any:
    """An array on the device: what is searched there without being told."""
    if device == "cpu" or value is None:
        return value
    import cupy

    return cupy.asarray(value)


def rows_of(rows: lw.Ragged) -> list[list[int]]:
    indices, offsets = host(rows.indices), host(rows.offsets)
    return [indices[a:b].tolist() for a, b in pairwise(offsets)]


def check(
    x: Array,
    y: Any,
    radius: Any,
    k: int,
    device: str,
    *,
    world: Any = None,
    size: float | None = None,
    most_doubtful: float = 0.2,
) -> None:
    """Both queries of the targets y (None: of x itself) against lists made in float64, where rounding does
    not decide.
    """
    targets = x if y is None else y
    asked: dict[str, Any] = {"queries": there(y, device), "world": world}
    indices, distances = (host(a) for a in lw.nearest(there(x, device), k, radius, **asked))
    assert (indices.dtype, distances.dtype) == (np.int32, x.dtype)
    assert indices.shape == distances.shape == (len(targets), k)
    wanted, doubtful = neighbours(targets, x, radius, k, same=y is None, size=size)
    assert doubtful.mean() <= most_doubtful
    for i in np.flatnonzero(~doubtful):
        assert indices[i].tolist() == [*wanted[i], *[-1] * (k - len(wanted[i]))]
    np.testing.assert_array_equal(np.isinf(distances), indices < 0)
    d = x[indices].astype("f8") - targets[:, None].astype("f8")
    d -= 0 if size is None else size * np.round(d / size)
    far = np.sqrt((d**2).sum(axis=2))
    np.testing.assert_allclose(distances[indices >= 0], far[indices >= 0], rtol=1e-5, atol=1e-6 * (size or 0))
    assert (distances[:, 1:] >= distances[:, :-1]).all()
    if radius is None:
        return
    rows = lw.neighbors(there(x, device), radius, **asked)
    assert (len(rows), rows.indices.dtype, rows.offsets.dtype) == (len(targets), np.int32, np.int64)
    every, doubtful = neighbours(targets, x, radius, None, same=False, size=size)
    for i, row in enumerate(rows_of(rows)):
        mine = sorted(j for j in every[i].tolist() if y is not None or i != j)
        assert doubtful[i] or row == mine
        assert row == sorted(row)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", CLOUDS)
@pytest.mark.parametrize("radius", ["within", pytest.param(None, marks=pytest.mark.slow)])
def test_every_cloud(name, radius, device):
    x, within = cloud(name, COUNT, 3, "f4")
    check(x, None, within if radius else None, K, device)


@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("dtype", "axes"), KINDS)
def test_other_targets(dtype, axes, device):
    x, radius = cloud("uniform", COUNT, axes, dtype, seed=1)
    y, _ = cloud("clusters", 90, axes, dtype, seed=2)
    y[:60] = cloud("uniform", 60, axes, dtype, seed=3)[0]
    y[:20] = x[:20]  # those do find themselves: they are other points
    check(x, y, radius, K, device)
    check(x, y, None, K, device)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", [lw.StaticGrid, pytest.param(lw.DynamicGrid, marks=pytest.mark.slow)])
def test_targets_in_an_order_of_their_own(kind, device, monkeypatch):
    monkeypatch.setattr(query_calls, "TURNING", 40)
    x, radius = cloud("uniform", COUNT, 3, "f4", seed=4)
    y, _ = cloud("duplicates", 150, 3, "f4", seed=5)
    oracle = lw.nearest(there(x, device), K, radius, there(y, device), search=lw.AllPairs(radius=radius, k=K))
    found = lw.nearest(there(x, device), K, radius, there(y, device), search=kind(radius=radius, k=K))
    for a, b in zip(found, oracle, strict=True):
        np.testing.assert_array_equal(host(a), host(b))
    assert host(
        lw.nearest(there(x, device), K, radius, there(y[:2], device), search=kind(radius=radius, k=K))[0]
    ).shape == (
        2,
        K,
    )  # fewer than neighbours


@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("radius", [0.2, 0.5])
def test_periodic_worlds(radius, device):
    x, _ = cloud("uniform", COUNT, 3, "f8", seed=6)
    x[:40] = np.random.default_rng(7).choice([0, 1, 0.5, 1 - 2**-53, 1e-3], (40, 3))  # right at the border
    world = lw.Periodic((1.0, 1.0, 1.0))
    check(x, None, radius, K, device, world=world, size=1.0, most_doubtful=0.5)
    check(x[40:], x[200:] - 3.0, radius, K, device, world=world, size=1.0)  # those outside are wrapped


@pytest.mark.parametrize("device", DEVICES)
def test_nearest_in_a_periodic_world_without_a_radius(device):
    x, _ = cloud("uniform", COUNT, 3, "f8", seed=8)
    check(x, None, None, K, device, world=lw.Periodic((1.0, 1.0, 1.0)), size=1.0, most_doubtful=0.5)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", CLOUDS)
@pytest.mark.parametrize("axes", [3, pytest.param(2, marks=pytest.mark.slow)])
def test_every_structure_finds_the_same(name, axes, device):
    x, radius = cloud(name, COUNT, axes, "f4", seed=9)
    points = there(x, device)
    oracle = lw.nearest(points, K, radius, search=lw.AllPairs(radius=radius, k=K))
    rows = rows_of(lw.neighbors(points, radius, search=lw.AllPairs(radius=radius)))
    for kind in (lw.StaticGrid, lw.DynamicGrid):
        for a, b in zip(lw.nearest(points, K, radius, search=kind(radius=radius, k=K)), oracle, strict=True):
            np.testing.assert_array_equal(host(a), host(b))
        assert rows_of(lw.neighbors(points, radius, search=kind(radius=radius))) == rows


@pytest.mark.parametrize("device", DEVICES)
def test_the_truth_of_the_flock(device):
    names = "px", "py", "pz"
    table = np.genfromtxt(DATA / "init.csv", delimiter=",", names=True)
    x = np.stack([table[n] for n in names], axis=1)
    with np.load(DATA / "knn7_r2_18.npz") as file:
        wanted, far = file["idx"], file["dist"]
    indices, distances = (host(a) for a in lw.nearest(there(x, device), 7, np.sqrt(18)))
    np.testing.assert_array_equal(indices, np.where(np.isinf(far), -1, wanted))
    np.testing.assert_allclose(distances, far, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES)
def test_against_the_tree_of_scipy(device):
    """Thousands of points in float64, where rounding decides nothing."""
    rng = np.random.default_rng(10)
    x = np.concatenate([rng.random((6000, 3)), rng.normal(size=(3000, 3)) * 0.02, rng.normal(size=(9, 3)) * 1e5])
    y = np.concatenate([rng.random((5000, 3)), rng.normal(size=(5, 3)) * 1e6])
    cKDTree = pytest.importorskip("scipy.spatial").cKDTree
    tree = cKDTree(x)
    for queries in (None, y):
        own = int(queries is None)
        far, wanted = tree.query(x if own else y, 8 + own)
        indices, distances = (host(a) for a in lw.nearest(there(x, device), 8, queries=there(queries, device)))
        np.testing.assert_array_equal(indices, wanted[:, own:])
        np.testing.assert_allclose(distances, far[:, own:], rtol=1e-12)
        rows = rows_of(lw.neighbors(there(x, device), 0.06, there(queries, device)))
        lists = tree.query_ball_point(x if own else y, 0.06, return_sorted=True)
        assert rows == [[j for j in row if not own or i != j] for i, row in enumerate(lists)]


@pytest.mark.parametrize("device", DEVICES)
def test_ties_go_to_the_smaller_index(device):
    x = np.array([[2, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 0], [-1, 0, 0], [0, -1, 0], [1, 0, 0]], "f4")
    for search in (lw.AllPairs(radius=1.5, k=K), lw.StaticGrid(radius=1.5, k=K), lw.DynamicGrid(radius=1.5, k=K)):
        indices, distances = (host(a) for a in lw.nearest(there(x, device), K, 1.5, search=search))
        assert indices[3].tolist() == [1, 2, 4, 5]
        assert distances[3].tolist() == [1] * K
        assert indices[1].tolist() == [6, 0, 3, 2]
        assert indices[0].tolist() == [1, 6, -1, -1]
        assert distances[0].tolist() == [1, 1, np.inf, np.inf]


@pytest.mark.parametrize("device", DEVICES)
def test_the_radius_is_strict(device):
    x = there(np.array([[0, 0, 0], [3, 4, 0]], "f4"), device)
    assert host(lw.nearest(x, 1, 5.0)[0]).tolist() == [[-1], [-1]]
    assert host(lw.nearest(x, 1, 5.0001)[0]).tolist() == [[1], [0]]
    assert rows_of(lw.neighbors(x, 5)) == [[], []]
    assert rows_of(lw.neighbors(x, 5.0001)) == [[1], [0]]


@pytest.mark.parametrize("device", DEVICES)
def test_few_points_and_no_queries(device):
    one = there(np.zeros((1, 3), "f4"), device)
    assert host(lw.nearest(one, 1, 9.0)[0]).tolist() == [[-1]]
    assert rows_of(lw.neighbors(one, 1.0)) == [[]]
    nobody = there(np.zeros((0, 3), "f4"), device)
    indices, distances = lw.nearest(one, 1, 9.0, nobody)
    assert indices.shape == distances.shape == (0, 1)
    rows = lw.neighbors(one, 1.0, nobody)
    assert (len(rows), host(rows.offsets).tolist(), rows.indices.shape) == (0, [0], (0,))


@given(
    count=st.integers(K, 40), seed=st.integers(0, 9999), radius=st.floats(0.01, 2), digits=st.sampled_from([0, 1, 7]),
)  # fmt: skip
def test_any_points(count, seed, radius, digits):
    """Rounded coordinates make many ties."""
    x = np.random.default_rng(seed).random((count, 3)).round(digits).astype("f4")
    oracle = lw.nearest(x, K, radius, search=lw.AllPairs(radius=radius, k=K))
    for a, b in zip(lw.nearest(x, K, radius, search=lw.StaticGrid(radius=radius, k=K)), oracle, strict=True):
        np.testing.assert_array_equal(a, b)
    rows = lw.neighbors(x, radius, search=lw.StaticGrid(radius=radius))
    assert rows_of(rows) == rows_of(lw.neighbors(x, radius, search=lw.AllPairs(radius=radius)))


def test_a_list_of_rows():
    rows = lw.neighbors(np.array([[0, 0, 0], [1, 0, 0], [2, 0, 0], [9, 9, 9]], "f4"), 1.5)
    assert repr(rows) == "<Ragged: 4 rows, 4 entries>"
    assert [r.tolist() for r in rows] == [[1], [0, 2], [1], []]
    assert rows[-3].tolist() == [0, 2]
    assert rows.counts.tolist() == [1, 2, 1, 0]
    with pytest.raises(IndexError, match="row 4 of 4"):
        rows[4]


def test_arrays_of_every_kind():
    x = np.random.default_rng(11).random((50, 3)).astype("f4")
    wanted = lw.nearest(x, K)
    frozen = x.copy()
    frozen.flags.writeable = False
    wide = np.zeros((50, 6), "f4")
    wide[:, ::2] = x
    for given_points in (frozen, np.asfortranarray(x), wide[:, ::2], x.astype(">f4")):
        for a, b in zip(lw.nearest(given_points, K), wanted, strict=True):
            np.testing.assert_array_equal(a, b)
    listed = lw.nearest(x.astype("f8").tolist(), np.int64(K), np.float32(9))  # lists of numbers are float64
    assert listed[1].dtype == np.float64
    np.testing.assert_array_equal(listed[0], wanted[0])


@pytest.mark.cuda
def test_results_are_where_the_points_are():
    import cupy

    x = np.random.default_rng(12).random((500, 3)).astype("f4")
    wanted = lw.nearest(x, 3)
    assert isinstance(wanted[0], np.ndarray)
    for found in (lw.nearest(cupy.asarray(x), 3), lw.nearest(x, 3, device="cuda")):
        assert all(isinstance(a, cupy.ndarray) for a in found)
        np.testing.assert_array_equal(found[0].get(), wanted[0])
    assert isinstance(lw.nearest(cupy.asarray(x), 3, device="cpu")[0], np.ndarray)
    with lw.device("cuda"):
        assert isinstance(lw.nearest(x, 3)[0], cupy.ndarray)


def test_calls_alike_compile_once(monkeypatch):
    def refused(*_, **__):
        raise AssertionError("compiled once more")

    x = np.random.default_rng(13).random((400, 3)).astype("f4")
    lw.nearest(x, K, 0.2)
    lw.neighbors(x, 0.2)
    monkeypatch.setattr(programs, "compile_kernel", refused)
    lw.nearest(x * 3, K, 0.4)
    lw.neighbors(np.concatenate([x, x + 1]), 0.1)
