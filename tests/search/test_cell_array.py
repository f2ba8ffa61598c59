"""Cell arrays meet the sources of all pairs; refusals; what they hold."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lanewise as lw
from lanewise.patterns.search.cell_array import CellArray
from lanewise.patterns.search.points import points_of_values
from lanewise.support.errors import ArgumentError
from tests.search.clouds import CLOUDS, cloud
from tests.search.numbered import KINDS, numbered
from tests.search.test_dynamic_grid import check

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)]
WANTED: list[dict[str, Any]] = [{"radius": 1.0}, {"radius": 1.0, "k": 4}]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", CLOUDS)
def test_every_cloud(name: str, device: str) -> None:
    x, radius = cloud(name, 300, 3, "f4", seed=1)
    for wanted in WANTED:
        check(CellArray(**wanted | {"radius": radius}), x, device=device)


@pytest.mark.parametrize("name", CLOUDS)
def test_every_cloud_interpreted(name: str) -> None:
    x, radius = cloud(name, 40, 3, "f4", seed=2)
    check(CellArray(radius=4 * radius), x, device="python")


@pytest.mark.slow_cases("f8-2-cpu", "f4-3-cpu")
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("dtype", "axes"), KINDS)
def test_positions_and_other_targets(dtype: str, axes: int, device: str) -> None:
    x, radius = cloud("uniform", 150, axes, dtype, seed=3)
    y, _ = cloud("clusters", 300, axes, dtype, seed=4)
    outside = np.full((1, axes), 1e5, dtype)
    for wanted in WANTED:
        check(CellArray(**wanted | {"radius": radius}), np.concatenate([x, outside]), y, device=device)
    world = lw.Bounded((-1,) * axes, (2,) * axes)
    check(CellArray(radius=radius, world=world), x, device=device, layout=lw.AoS())


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 120), st.floats(0.01, 3.0), st.integers(0, 999), st.floats(-1e3, 1e3))
def test_random_clouds(count: int, radius: float, seed: int, away: float) -> None:
    x = (np.random.default_rng(seed).normal(size=(count, 2)) + away).astype("f4")
    check(CellArray(radius=radius), x)


@pytest.mark.parametrize("over", [((0.2, 0.6),) * 3, ((-9.0, 9.0), (0.0, 0.0), (5.0, 6.0))], ids=str)
def test_columns_over_other_ranges(over: Any) -> None:
    x, radius = cloud("uniform", 200, 3, "f4", seed=5)
    check(CellArray(radius=radius, over=over), x)
    with pytest.raises(ArgumentError, match=r"CellArray\(over=.*\): the positions have 3 axes, wanted as many"):
        check(CellArray(radius=radius, over=over[:2]), x)


def test_columns_are_sorted() -> None:
    x, radius = cloud("duplicates", 500, 3, "f4", seed=5)
    structure: Any = CellArray(radius=radius).make(points_of_values(x, "cpu"))
    for task in structure.tasks():
        task.run()
    starts = structure.arrays["$starts"].data.view(np.int32)
    for first, last in pairwise(starts):
        rows = structure.order[first:last]
        keys = list(zip(x[rows, 0].tolist(), rows.tolist(), strict=True))
        assert keys == sorted(keys)
    assert structure.statistics().most == np.diff(starts).max()


def test_what_becomes_no_number_leads_nowhere() -> None:
    """In a graph nobody looks at positions: a flock that blew up must not read beyond its memory."""
    x, _ = cloud("uniform", 300, 3, "f4", seed=6)
    records = numbered(x)
    call = KINDS["f4", 3][1].using(CellArray(radius=0.2)).bind(records, records)
    broken = x.copy()
    broken[:3], broken[3], broken[4] = np.nan, -np.nan, (np.inf, -np.inf, 0.5)
    records.position = broken
    replace(call.launch, guards=())()  # as a graph does
    assert call.results[0][:4].tolist() == [0, 0, 0, 0]


def test_refusals() -> None:
    with pytest.raises(ArgumentError, match="wanted a radius, which says where to begin to look"):
        CellArray(k=3)
    with pytest.raises(ArgumentError, match="a periodic world has none"):
        CellArray(radius=0.1, world=lw.Periodic((1, 1, 1)))
