"""A compiled kernel launches what it says: its own plan, on any arrays that fit."""

from __future__ import annotations

import numpy as np

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
    text = attraction.compile(cloud, cloud, softening2=1e-2).explain()
    assert text.startswith("attraction on cpu\n\nplan\n  targets = 1\n")
    assert "\nlayouts\n  target: SoA\n" in text
    assert "\nresources\n  threads: " in text
