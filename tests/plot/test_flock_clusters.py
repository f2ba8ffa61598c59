"""Which agents fly together, against scipy's tree and its connected components."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lanewise.plot.clusters import clusters
from lanewise.support.errors import ArgumentError

pytest.importorskip("scipy", reason="scipy is what clusters are compared with")


def reference(points: np.ndarray, radius: float, period: float | None = None) -> np.ndarray:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial import KDTree

    tree: Any = KDTree(points if period is None else points % period, boxsize=period)
    pairs = tree.query_pairs(radius * (1 - 1e-12), output_type="ndarray")
    graph = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(len(points),) * 2)
    return connected_components(graph)[1]


def assert_same_clusters(found: np.ndarray, wanted: np.ndarray) -> None:
    pairs = np.unique(np.stack([found, wanted]), axis=1)
    assert pairs.shape[1] == found.max() + 1 == wanted.max() + 1
    sizes = np.bincount(found)
    assert (np.diff(sizes) <= 0).all()
    first = np.array([np.flatnonzero(found == c)[0] for c in range(len(sizes))])
    same = np.diff(sizes) == 0
    assert (np.diff(first)[same] > 0).all()


def cloud(kind: str, count: int = 1500) -> np.ndarray:
    random = np.random.default_rng(3)
    points = random.uniform(-10, 10, (count, 3))
    match kind:
        case "planar":
            points[:, 1] = 2.5
        case "line":
            points[:, 1:] = 0
        case "crowds":
            points = random.integers(-2, 3, (count, 3)) * 5.0 + random.normal(size=(count, 3)) * 0.1
        case "duplicates":
            points = np.round(points)
        case "outliers":
            points[::300] *= 1e9
        case _:
            pass
    return points


@pytest.mark.parametrize("kind", ["even", "planar", "line", "crowds", "duplicates", "outliers"])
@pytest.mark.parametrize("radius", [0.3, 1.3, 5.0])
def test_against_scipy(kind: str, radius: float) -> None:
    points = cloud(kind)
    assert_same_clusters(clusters(points, radius), reference(points, radius))


@pytest.mark.parametrize("radius", [0.7, 1.3, 2.0])
def test_across_the_faces_of_a_periodic_world(radius: float) -> None:
    points = cloud("even")
    assert_same_clusters(clusters(points, radius, 20.0), reference(points, radius, 20.0))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(*[st.integers(-6, 6)] * 3), min_size=1, max_size=60), st.sampled_from([0.9, 1.5, 2.3, 7.1]))
def test_any_points_of_a_lattice(points: list[tuple[int, int, int]], radius: float) -> None:
    array = np.array(points, np.float32)
    assert_same_clusters(clusters(array, radius), reference(array.astype(float), radius))


@pytest.mark.parametrize("radius", [0.0, -1.0, float("nan"), float("inf")])
def test_radii_that_are_none(radius: float) -> None:
    with pytest.raises(ArgumentError) as error:
        clusters(np.zeros((3, 3)), radius)
    assert str(error.value) == f"the radius of clusters is {radius:g}; wanted a finite number above zero"
