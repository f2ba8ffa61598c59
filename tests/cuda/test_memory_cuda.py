"""Memory on the GPU lives as long as the launches that use it."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from tests.runtime.racing_kernel import Point, attraction

pytestmark = pytest.mark.cuda


@lw.elementwise
def shift(point: Point, by: lw.vec3) -> lw.vec3:
    return point.position + by


def points(count: int) -> Any:
    rng = np.random.default_rng(0)
    return Point.array(position=rng.normal(size=(count, 3)), weight=rng.random(count), device="cuda")  # type: ignore[attr-defined]


def overwrite_what_is_free() -> list[Any]:
    """Take memory from the pool, the pieces freed last first, and fill it with something else."""
    import cupy

    gc.collect()
    return [cupy.full(size, np.nan, np.float32) for size in (64, 512, 3_000, 12_000, 48_000) for _ in range(20)]


def test_partial_sums_of_a_bound_call_stay_its_own() -> None:
    cloud = points(500)
    plan = lw.Plan(parts=8, slices=2, block=64, tile=64)
    expected = attraction.bind(cloud, cloud, softening2=1e-2, plan=plan)().get()
    call = attraction.bind(cloud, cloud, softening2=1e-2, plan=plan)
    held = overwrite_what_is_free()
    assert np.array_equal(call().get(), expected)
    assert all(bool(np.isnan(array.get()).all()) for array in held)  # the launch wrote into nobody's memory


def test_converted_arguments_of_a_bound_call_stay_alive() -> None:
    cloud = points(500)
    call = shift.bind(cloud, np.full((500, 3), 2.0))  # float64 on the host: converted for the launch
    held = overwrite_what_is_free()
    assert np.allclose(call().get(), cloud.position.get() + 2.0)
    assert held


def test_a_bound_call_keeps_the_records_that_it_reads() -> None:
    cloud = points(500)
    expected = attraction(cloud, cloud, softening2=1e-2).get()
    call = attraction.bind(cloud, cloud, softening2=1e-2)
    del cloud
    held = overwrite_what_is_free()
    assert np.array_equal(call().get(), expected)
    assert held
