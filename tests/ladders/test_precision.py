"""The tutorial in double precision, and what its rungs are shares of."""

from __future__ import annotations

import pytest

from lanewise.ladders import find_ladder, hybrid
from lanewise.ladders.problem import ACCELERATION, ACCELERATION64, Problem
from lanewise.ladders.run import ModelledTime, shares
from lanewise.ladders.rung import Options, Rung
from lanewise.models.devices import table_model
from tests.cli.command import Command
from tests.cli.conftest import lanewise as lanewise


@pytest.mark.slow
def test_every_rung_in_float64_is_as_exact_as_float64() -> None:
    rungs = list(find_ladder("tutorial").climb(Options("cpu", (300,), quick=True, precision="f64")))
    timed = [r for r in rungs if r.seconds is not None]
    assert len(timed) >= 8
    for rung in timed:
        assert rung.relative_error is not None
        assert rung.relative_error < Problem(300, law=ACCELERATION64).tolerance < 1e-13
        assert rung.extra["precision"] == "f64"
        assert rung.extra["share_of_peak"] is None  # of a CPU
        assert rung.extra["memory_bytes_per_second"] is None


def test_a_float32_sum_is_no_float64_answer() -> None:
    import numpy as np

    single, double = Problem(256, law=ACCELERATION), Problem(256, law=ACCELERATION64)
    _, exact = single.answer()
    assert double.error(np.asarray(exact, np.float32)) > double.tolerance


@pytest.mark.parametrize(("precision", "lanes"), [("f32", 128), ("f64", 64)])
def test_shares(precision: str, lanes: int) -> None:
    """A kernel that does fused multiply-adds alone in all of its time is at its peak."""
    model = table_model("sm_90")
    assert {"f32": model.fp32_lanes, "f64": model.fp64_lanes}[precision] == lanes
    peak = 2 * lanes * model.multiprocessors * model.clock_hz
    unit = "fp32" if precision == "f32" else "fp64"
    time = ModelledTime(1.0, 1.0, unit, {unit: 1.0, "memory": 0.25, "special": 0.5}, model)
    full = shares(time, peak, 1.0, precision)
    assert full["share_of_peak"] == pytest.approx(1.0)
    assert full["share_of_arithmetic"] == pytest.approx(1.0)
    assert full["memory_bytes_per_second"] == pytest.approx(0.25 * model.memory_bandwidth)
    half = shares(time, peak / 4, 2.0, precision)
    assert (half["share_of_peak"], half["share_of_arithmetic"]) == (pytest.approx(0.25), pytest.approx(0.5))


def test_ladders_have_their_precisions(lanewise: Command) -> None:
    outcome = lanewise("ladder", "memory", "--precision", "f64")
    assert (outcome.code, outcome.err.strip()) == (2, "error: --precision f64: ladder memory has f32")
    outcome = lanewise("ladder", "tutorial", "--precision", "f16")
    assert (outcome.code, outcome.err.strip()) == (2, "error: --precision f16: ladder tutorial has f32 or f64")


@pytest.mark.parametrize("on_cpu", [1, 30, 299])
@pytest.mark.parametrize("law", [ACCELERATION, ACCELERATION64])
def test_targets_divided_among_two_devices_are_those_of_one(law, on_cpu: int) -> None:
    """With the CPU in both places."""
    problem = Problem(300, law=law)
    rung = hybrid.measure(Rung(name="hybrid", bodies=300, skipped="not run"), problem, "cpu", on_cpu)
    assert rung.seconds is not None, rung.skipped
    assert rung.relative_error is not None
    assert rung.relative_error < problem.tolerance
    assert rung.extra["cpu_targets"] == on_cpu


def test_what_a_hybrid_gains_is_said_beside_what_it_can() -> None:
    rungs = [
        Rung(name=name, bodies=1000, seconds=1.0, speedup=gain, over="alone", extra={"cpu_share": share})
        for name, gain, share in zip(hybrid.NAMES, (0.2, 0.98), (0.1, 0.02), strict=True)
    ]
    assert hybrid.hybrid_line(rungs) == (
        "1,000 bodies: the CPU next to the GPU gains 0.980 with 2.0% of the bodies; without copies at most 1.02"
    )
    assert hybrid.hybrid_line([]) is None
