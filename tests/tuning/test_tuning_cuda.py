"""Tuning on a GPU: what is chosen computes the same. That a search keeps to its time is tested with a clock of its own
(`test_search.py`).
"""

from __future__ import annotations

import numpy as np
import pytest

import lanewise as lw
from lanewise.planning.plan import Plan
from lanewise.runtime.cuda_timing import CudaStopwatch
from lanewise.tuning import KernelMeasurer, replay
from lanewise.tuning.space import KernelSpace, make_estimator
from tests.tuning.kernels import attraction, drift, points

pytestmark = pytest.mark.cuda


def test_gravity_is_tuned() -> None:
    kernel, cloud = lw.pairwise(attraction.python), points(16_384, device="cuda")
    before = kernel(cloud, cloud, softening2=1e-3).get()
    result = kernel.tune(cloud, cloud, softening2=1e-3, seconds=30)
    assert len(result.measured) > 10
    assert {t.plan.reciprocity for t in result.measured} >= {"off", "scratch", "ordered"}
    assert result.factor >= 1
    assert all(t.reason for t in result.failed)
    after = kernel(cloud, cloud, softening2=1e-3).get()
    assert kernel.compile(cloud, cloud, softening2=1e-3).plan == result.plan
    np.testing.assert_allclose(after, before, rtol=1e-3, atol=2e-5 * np.abs(before).max())
    assert np.array_equal(after, kernel(cloud, cloud, softening2=1e-3).get())
    assert result.path is not None
    assert replay(result.path).plan == result.plan


def test_elementwise_kernels_keep_the_callers_values() -> None:
    cloud = points(100_000, device="cuda")
    velocity = np.ones((100_000, 3), np.float32)
    before = cloud.numpy()
    kernel = lw.elementwise(drift.python)
    result = kernel.tune(cloud, velocity, dt=0.5, seconds=10)
    assert len({t.plan.block for t in result.measured}) > 1
    assert all(np.array_equal(a, b) for a, b in zip(before.values(), cloud.numpy().values(), strict=True))
    kernel(cloud, velocity, dt=0.5)
    np.testing.assert_array_equal(cloud.numpy()["position"], before["position"] + np.float32(0.5))


def test_candidates_compile_at_the_same_time_and_are_checked() -> None:
    cloud = points(2000, device="cuda")
    job = lw.pairwise(attraction.python).tuning_job(cloud, cloud, softening2=1e-3, plan=Plan(reciprocity="off"))
    space = KernelSpace(job, make_estimator(job))
    (family,) = space.families
    plans = [space.default, *(family.plan(p) for p in family.line(family.start, "targets"))]
    plans = [p for p in plans if not space.examine(p).reason]
    measurer = KernelMeasurer(job)
    found = measurer.prepare(plans)
    assert found[space.default] is None
    ready = [p for p, failure in found.items() if failure is None]
    times = measurer.measure(ready, 3)
    assert all(1e-7 < t < 1 for samples in times.values() for t in samples)
    assert [measurer.confirm(p) for p in ready] == [None] * len(ready)


def test_a_stopwatch_measures_the_device_and_not_the_launch() -> None:
    cloud = points(256, device="cuda")
    call = attraction.bind(cloud, cloud, softening2=1e-3)
    call()
    watch = CudaStopwatch("cuda", [call], 20e-6)
    assert 1e-7 < watch() < 1e-3
    assert np.isfinite(call().get()).all()
