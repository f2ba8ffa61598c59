"""Elementwise kernels over so many elements that a thread has several of them by default."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.ir.pattern import MANY

pytestmark = pytest.mark.cuda
COUNT = MANY + 131  # a last warp with single elements beyond its first 32


@lw.record
class Grain:
    place: lw.vec3
    mass: lw.f32


@lw.elementwise
def shift(grain: Grain, time: lw.f32):
    grain.place += time * grain.mass * lw.vec3(1, 2, 3)


@lw.elementwise
def between(n: lw.f32, x: lw.f32, t: lw.Array1[lw.f32]) -> tuple[lw.f32, lw.i32]:
    return x + lw.interpolate(t, n), lw.index_of(n)


@pytest.fixture(scope="module")
def values() -> Any:
    import cupy

    return cupy.asarray(np.random.default_rng(1).random((COUNT, 4), dtype=np.float32))


def test_a_table_is_read_by_each_element(values: Any) -> None:
    import cupy

    table, n, x = cupy.linspace(0, 5, 100, dtype=np.float32), values[:, 0] * 110 - 5, values[:, 1].copy()
    assert between.compile(n, x, table).plan.targets == 4
    found, numbers = between(n, x, table)
    alone, _ = between(n, x, table, plan=lw.Plan(targets=1))
    assert bool((found == alone).all())
    assert bool((numbers == cupy.arange(COUNT)).all())
    expected, _ = between(n[:999].get(), x[:999].get(), table.get())
    np.testing.assert_allclose(found[:999].get(), expected, rtol=1e-6)


@pytest.mark.parametrize("layout", [lw.SoA(), lw.AoS(), lw.SoAoAS(), lw.AoSoA(32)], ids=str)
def test_records_are_updated_where_they_are(values: Any, layout: lw.Layout) -> None:
    grains = Grain.array(place=values[:, :3], mass=values[:, 3], layout=layout, device="cuda")
    assert shift.compile(grains, time=0.5).plan.targets == 1
    shift(grains, time=0.5, plan=lw.Plan(targets=4))
    step = np.array([1, 2, 3], np.float32)
    found, before = grains.place, values.get()
    found = found.get() if hasattr(found, "get") else found
    np.testing.assert_allclose(found, before[:, :3] + 0.5 * before[:, 3:] * step, rtol=1e-5)
