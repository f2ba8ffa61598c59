"""Measuring: every result is checked before its plan is timed, and the caller's arrays stay as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.launch.executable import Executable
from lanewise.launch.trial import Failure
from lanewise.models.devices import table_model
from lanewise.planning.plan import NEUTRAL, Plan
from lanewise.runtime import host_device, timing
from lanewise.runtime.nvrtc import Cubin, Resources
from lanewise.runtime.timing import CpuStopwatch
from lanewise.support.errors import DeviceError, PlanError
from lanewise.tuning import measure
from lanewise.tuning.compare import difference, margins, tolerance
from lanewise.tuning.measure import KernelMeasurer
from tests.corpus import case
from tests.harness import program, reference_kernel
from tests.tuning.kernels import attraction, double, drift, points, repulsion, without_itself

MERGED, TILED = Plan(targets=4).filled(NEUTRAL), Plan(tile=64).filled(NEUTRAL)


def test_plans_are_timed_once_a_round() -> None:
    cloud = points(200)
    measurer = KernelMeasurer(attraction.tuning_job(cloud, cloud, softening2=1e-2))
    assert measurer.prepare([NEUTRAL, MERGED, TILED]) == {NEUTRAL: None, MERGED: None, TILED: None}
    times = measurer.measure([NEUTRAL, TILED], 3)
    assert {p: len(t) for p, t in times.items()} == {NEUTRAL: 3, TILED: 3}
    assert all(t > 0 for samples in times.values() for t in samples)
    assert measurer.confirm(TILED) is None
    assert measurer.elapsed() > 0


def test_a_wrong_result_is_found_before_it_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    cloud = points(100)
    wrong = repulsion.tuning_job(cloud, cloud, softening2=1e-2)
    right = measure.compile_kernel

    def compile_kernel(reference: Any, plan: Plan, device: str, **more: Any) -> Executable:
        return right(wrong.reference if plan == MERGED else reference, plan, device, **more)

    monkeypatch.setattr(measure, "compile_kernel", compile_kernel)
    measurer = KernelMeasurer(attraction.tuning_job(cloud, cloud, softening2=1e-2))
    found = measurer.prepare([NEUTRAL, MERGED, TILED])
    assert found[TILED] is None
    failure = found[MERGED]
    assert failure is not None
    assert failure.status == "wrong"
    assert failure.reason.startswith("300 of 300 values differ from the default plan's by more than rounding explains")
    with pytest.raises(KeyError):
        measurer.measure([MERGED], 1)


def test_what_cannot_be_compiled_or_run_fails_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    cloud = points(50)
    right = measure.compile_kernel

    def compile_kernel(reference: Any, plan: Plan, device: str, **more: Any) -> Executable:
        if plan == MERGED:
            raise DeviceError("NVRTC could not compile attraction for sm_90:\nerror 1\nerror 2\nerror 3\n")
        if plan == TILED:
            raise PlanError("it has too many tiles")
        return right(reference, plan, device, **more)

    monkeypatch.setattr(measure, "compile_kernel", compile_kernel)
    measurer = KernelMeasurer(attraction.tuning_job(cloud, cloud, softening2=1e-2))
    found = measurer.prepare([NEUTRAL, MERGED, TILED])
    assert found == {
        NEUTRAL: None,
        MERGED: Failure("failed", "NVRTC could not compile attraction for sm_90:\nerror 1\nerror 2"),
        TILED: Failure("illegal", "it has too many tiles"),
    }


def test_a_default_plan_that_cannot_be_had_is_the_callers_error() -> None:
    cloud = points(50)
    with pytest.raises(PlanError, match=r"Plan\(slices=4\): only a GPU divides the sources of one target"):
        attraction.tune(cloud, cloud, softening2=1e-2, plan=Plan(slices=4))


def test_a_plan_that_the_values_do_not_allow_fails() -> None:
    cloud = points(50)
    dropped = Plan(self_term="drop").filled(NEUTRAL)
    found = KernelMeasurer(without_itself.tuning_job(cloud, cloud, softening2=0.0)).prepare([NEUTRAL, dropped])[dropped]
    assert found is not None
    assert found.status == "illegal"
    assert "may not leave out its test for a pair of an element with itself: softening2 must be" in found.reason
    measurer = KernelMeasurer(without_itself.tuning_job(cloud, cloud, softening2=1e-2))
    assert measurer.prepare([NEUTRAL, dropped]) == {NEUTRAL: None, dropped: None}


def test_the_callers_arrays_keep_their_values() -> None:
    cloud, velocity = points(1000), np.ones((1000, 3), np.float32)
    before = cloud.numpy()
    measurer = KernelMeasurer(drift.tuning_job(cloud, velocity, dt=0.5))
    wide = Plan(vector_bits=256).filled(NEUTRAL)
    found = measurer.prepare([NEUTRAL, wide])
    measurer.measure([p for p, failure in found.items() if failure is None], 2)
    assert all(np.array_equal(a, b) for a, b in zip(before.values(), cloud.numpy().values(), strict=True))
    assert (velocity == 1).all()


def test_values_that_grow_stay_in_range(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each round starts from the first state: otherwise thousands of doublings would measure infinities."""
    cloud = points(100)
    measurer = KernelMeasurer(double.tuning_job(cloud))
    measurer.prepare([NEUTRAL])
    monkeypatch.setattr(host_device, "CpuStopwatch", lambda works, once: lambda: [w() for w in works] and 1.0)
    measurer.measure([NEUTRAL], 200)
    weights = measurer._workloads[0].read()[1]
    assert np.array_equal(weights, cloud.weight * 2)
    assert measurer.confirm(NEUTRAL) is None


def test_elementwise_kernels_go_round_in_more_memory_than_the_cache_holds() -> None:
    small = KernelMeasurer(double.tuning_job(points(1000)))
    small.prepare([NEUTRAL])
    assert len(small._workloads) == measure.MOST_COPIES
    assert len({w.bound["point"].data.ctypes.data for w in small._workloads}) == measure.MOST_COPIES
    cloud = points(1000)
    pairs = KernelMeasurer(attraction.tuning_job(cloud, cloud, softening2=1e-2))
    pairs.prepare([NEUTRAL])
    assert len(pairs._workloads) == 1


def test_a_kernel_with_state_of_its_own_does_not_repeat() -> None:
    cloud = points(20)
    measurer = KernelMeasurer(attraction.tuning_job(cloud, cloud, softening2=1e-2))
    measurer.prepare([NEUTRAL])
    measurer._ready[NEUTRAL].bits[0] = b"other bits"
    assert measurer.confirm(NEUTRAL) == Failure("wrong", "two runs from the same state gave different bits")
    measurer.release(NEUTRAL)
    with pytest.raises(KeyError):
        measurer.measure([NEUTRAL], 1)


def _executable(resources: Resources) -> Executable:
    p = program(case("gravity"), lw.SoAoAS(), Plan(block=1024, tile=1024), "cuda")
    return Executable(p, "cuda", (Cubin(b"", resources, ""),), ())


def test_spills_and_too_many_registers_are_reasons() -> None:
    h200 = table_model("sm_90")
    assert measure.misfit(_executable(Resources(64, 0, 0, 0, 0)), h200) is None
    assert measure.misfit(_executable(Resources(64, 0, 0, 8, 12)), h200) == Failure(
        "failed", "gravity spills 20 bytes of registers to memory"
    )
    assert measure.misfit(_executable(Resources(72, 0, 0, 0, 0)), h200) == Failure(
        "failed", "gravity asks for 73,728 registers per block (1024 threads of 72), and NVIDIA H200 has 65,536"
    )


def test_a_stopwatch_repeats_short_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "LEAST", 20e-3)
    runs: list[int] = []
    monkeypatch.setattr(timing.time, "perf_counter", lambda: float(sum(runs)))  # works of one and of two seconds
    watch = CpuStopwatch([lambda: runs.append(1), lambda: runs.append(2)], 1e-3)
    assert watch() == 1.5
    assert len(runs) == 20
    assert runs[:4] == [1, 2, 1, 2]


# ---------------------------------------------------------------- comparing


def test_sums_in_another_order_are_equal() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(4096, 3)).astype(np.float32)
    found, wanted = [values.sum(0)], [values[::-1].cumsum(0)[-1]]
    relative = tolerance(reference_kernel(case("gravity"), lw.SoA(), "cpu"))
    sizes = margins(wanted, [], 0.0, relative, [np.abs(values).sum(0)])
    assert difference(found, wanted, relative, sizes) == ""


def test_the_coarsest_float_of_a_kernel_sets_the_tolerance() -> None:
    single, double_ = 1024 * 2.0**-23, 1024 * 2.0**-52
    assert tolerance(reference_kernel(case("gravity"), lw.SoA(), "cpu")) == single
    assert tolerance(reference_kernel(case("gravity_f64"), lw.SoA(), "cpu")) == double_
    assert tolerance(reference_kernel(case("gravity_mixed"), lw.SoA(), "cpu")) == single


@pytest.mark.parametrize(
    ("found", "wanted", "text"),
    [
        ([1.0, 2.0], [1.0, 2.0], ""),
        ([1.0, np.nan], [1.0, np.nan], ""),
        ([1.0, np.nan], [1.0, 2.0], "1 of 2 values are finite in one result and not in the other"),
        ([np.inf, 1.0], [-np.inf, 1.0], "infinities or NaN differ"),
        (
            [1.0, 2.2],
            [1.0, 2.0],
            "1 of 2 values differ from the default plan's by more than rounding explains, most of all at (1,): 2.2 instead of 2, "
            "and rounding explains 2.0e-03",
        ),
        (
            [1e-9, 2.0],
            [0.0, 2.0],
            "1 of 2 values differ from the default plan's by more than rounding explains, most of all at (0,): 1e-09 instead of 0, "
            "and rounding explains 2.2e-308",
        ),
        ([0.0, 0.0], [0.0, 0.0], ""),
    ],
)
def test_floats_are_compared_element_by_element(found: list[float], wanted: list[float], text: str) -> None:
    assert difference([np.array(found)], [np.array(wanted)], 1e-3) == text


def test_whole_numbers_are_compared_exactly() -> None:
    one, other = np.arange(5), np.array([0, 1, 2, 3, 5])
    assert difference([one, one], [one, other], 1.0) == "result 1: 1 of 5 values differ from the default plan's"
