"""A compiled kernel launches what it says: its own plan, on any arrays that fit."""

from __future__ import annotations

import numpy as np
import pytest

import lanewise as lw
from tests.runtime.racing_kernel import Point, attraction


def points(count: int, seed: int = 0) -> lw.RecordArray:
    rng = np.random.default_rng(seed)
    return Point.array(position=rng.normal(size=(count, 3)), weight=rng.random(count))  # type: ignore[attr-defined]


def test_a_compiled_kernel_runs_with_its_own_plan() -> None:
    cloud = points(3000)
    plan = lw.Plan(accumulate="f64", tile=64)
    compiled = attraction.compile(cloud, cloud, softening2=1e-2, plan=plan)
    assert (compiled.plan.accumulate, compiled.plan.tile) == ("f64", 64)
    bound = attraction.bind(cloud, cloud, softening2=1e-2, plan=plan)()
    assert np.array_equal(compiled(cloud, cloud, softening2=1e-2), bound)
    assert not np.array_equal(attraction(cloud, cloud, softening2=1e-2), bound)


def test_a_compiled_kernel_takes_other_arrays_and_an_output() -> None:
    one, other = points(40), points(70, seed=1)
    compiled = attraction.compile(one, other, softening2=1e-2)
    expected = attraction(other, one, softening2=1e-2)
    out = np.empty_like(expected)
    assert compiled(other, one, softening2=1e-2, out=out) is out
    assert np.array_equal(out, expected)


def test_a_bound_call_sees_the_arrays_as_they_are_when_it_runs() -> None:
    cloud = points(10)
    call = attraction.bind(cloud, cloud, softening2=1e-2)
    before = call().copy()
    cloud.position *= 2
    after = call().copy()
    assert not np.array_equal(before, after)
    assert np.array_equal(after, attraction(cloud, cloud, softening2=1e-2))


def test_explain_names_plan_layouts_and_resources() -> None:
    cloud = points(5)
    text = str(attraction.compile(cloud, cloud, softening2=1e-2).explain())
    assert text.startswith("attraction (pairwise, 5 target, 5 source) on cpu (")
    assert "\nplan\n  chosen by default\n  lw.Plan(targets=1, " in text
    assert "\nlayouts\n  target, source: SoA\n" in text
    assert "\nresources\n  threads  " in text


@lw.elementwise
def two_results(point: Point) -> tuple[lw.f32, lw.vec3]:
    return point.weight, point.position


@lw.elementwise
def no_result(point: Point) -> None:
    point.weight *= 2


def test_outputs_that_do_not_fit_the_results_are_refused() -> None:
    cloud = points(4)
    array = np.empty(4, np.float32)
    with pytest.raises(lw.ArgumentError, match=r"^two_results has 2 results: wanted a tuple of 2 arrays, found 1$"):
        two_results(cloud, out=array)
    with pytest.raises(lw.ArgumentError, match=r"^no_result has 0 results: wanted no out, found 1$"):
        no_result(cloud, out=array)
    with pytest.raises(lw.ArgumentError, match=r"^attraction has 1 results: wanted one array, found 2$"):
        attraction(cloud, cloud, softening2=1.0, out=(array, array))
    weights, positions = two_results(cloud, out=(array, np.empty((4, 3), np.float32)))
    assert weights is array
    assert np.array_equal(positions, cloud.position)


def test_devices_and_searches_are_checked() -> None:
    with pytest.raises(lw.DeviceError, match=r"^a device is named by a string such as 'cpu' or 'cuda:1', found 0$"):
        Point.zeros(3, device=0)  # type: ignore[attr-defined]
    with pytest.raises(lw.ArgumentError, match=r"^search takes a search structure such as lw.AllPairs"):
        attraction.using(search=3)  # type: ignore[arg-type]
