"""kernel.tune(): what it finds is used by later calls like the one that was tuned, by no others, and by new
processes.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.launch import tuned_plans as lookup
from lanewise.planning.plan import NEUTRAL, Plan
from lanewise.runtime.memory import bring, to_host
from lanewise.support.errors import ArgumentError, DeviceError
from lanewise.tuning import Tuning, tune_job
from lanewise.tuning.job import Job
from tests.tuning.kernels import attraction, double, drift, points, weighed, without_itself
from tests.tuning.landscapes import MadeUpMeasurer

MERGED = Plan(targets=4).filled(NEUTRAL)


def tuned_to(job: Job, best: Callable[[Plan], bool]) -> Tuning:
    """Tune with a measurer for which the plans that are `best` take half the time."""
    return tune_job(job, 60.0, measurer=MadeUpMeasurer(lambda p: 0.5 if best(p) else 1.0))


def merged(plan: Plan) -> bool:
    return plan == Plan(targets=4).filled(plan) and plan.tile == 0 and plan.vector_bits == 0 and not plan.fma


@pytest.fixture
def fresh() -> Any:
    """The kernel without what other tests have taught it."""
    return lw.pairwise(attraction.python)


def test_it_measures_and_later_calls_use_what_it_found() -> None:
    kernel, cloud, fixed = lw.pairwise(attraction.python), points(64), Plan(tile=0, vector_bits=0, fma=False)
    before = kernel(cloud, cloud, softening2=1e-2)
    result = kernel.tune(cloud, cloud, softening2=1e-2, plan=fixed, seconds=60)
    assert {t.plan.targets for t in result.measured} == {1, 2, 4, 8}
    assert (result.exhaustive, result.complete) == (True, True)
    assert result.factor >= 1
    assert result.path is not None
    assert result.path.exists()
    call = kernel.bind(cloud, cloud, softening2=1e-2, plan=fixed)
    assert call.compiled.plan == result.plan
    np.testing.assert_allclose(call(), before, rtol=1e-4, atol=1e-5 * np.abs(before).max())


@pytest.mark.slow
def test_another_process_uses_it(own_store: Path) -> None:
    cloud = points(64)
    tuned_to(attraction.tuning_job(cloud, cloud, softening2=1e-2), merged)
    code = (
        "import sys; from pathlib import Path; from lanewise.launch import tuned_plans as store; store.store_directory = lambda: Path(sys.argv[1])\n"
        "from tests.tuning.kernels import attraction, points\n"
        "clouds = map(points, map(int, sys.argv[2:]))\n"
        "print(*(attraction.compile(c, c, softening2=0.5).plan.targets for c in clouds))"
    )
    root = Path(__file__).parents[2]

    def targets(*counts: int, **more: str) -> str:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), str(root / "src")]), **more}
        command = [sys.executable, "-W", "error", "-c", code, str(own_store), *map(str, counts)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()

    assert targets(70, 128) == "4 1"  # the nearest power of two is 64, and is not
    assert targets(64, LANEWISE_TUNED="off") == "1"
    assert targets(64, LANEWISE_THREADS="7") == "1"  # another machine, as far as kernels can tell


def test_a_call_looks_into_the_store_once(monkeypatch: pytest.MonkeyPatch, fresh: Any) -> None:
    reads: list[str] = []
    right = lookup.read_entry
    monkeypatch.setattr(lookup, "read_entry", lambda key, *read: reads.append(key.file_name) or right(key, *read))
    cloud = points(64)
    for _ in range(5):
        fresh(cloud, cloud, softening2=1e-2)
        fresh.bind(cloud, cloud, softening2=0.5)()
    compiled = fresh.compile(cloud, cloud, softening2=1e-2)
    compiled(cloud, cloud, softening2=1e-2)  # its plan is complete: nothing to look up
    assert len(reads) == 1
    large = points(500)
    for _ in range(3):
        fresh(large, large, softening2=1e-2)
        fresh(large, cloud, softening2=1e-2)
    assert len(reads) == len(set(reads)) == 3
    for _ in range(3):
        fresh.bind(cloud, cloud, softening2=1e-2, plan=Plan(targets=2))()
    assert len(reads) == 4
    job = fresh.tuning_job(cloud, cloud, softening2=1e-2)
    tuned_to(job, merged)
    assert fresh.compile(cloud, cloud, softening2=1e-2).plan == MERGED
    assert len(reads) == 4


def test_entries_belong_to_the_fields_that_the_caller_fixes(fresh: Any) -> None:
    cloud = points(64)
    tuned_to(fresh.tuning_job(cloud, cloud, softening2=1e-2, plan=Plan(parts=1)), merged)
    assert fresh.compile(cloud, cloud, softening2=1e-2).plan.targets == 1
    assert fresh.bind(cloud, cloud, softening2=1e-2, plan=Plan(parts=1)).compiled.plan.targets == 4
    assert fresh.bind(cloud, cloud, softening2=1e-2, plan=Plan(parts=1, fast_math=True)).compiled.plan.targets == 1
    assert fresh.bind(cloud, cloud, softening2=1e-2, plan=NEUTRAL).compiled.plan == NEUTRAL


def test_a_fixed_plan_restricts_the_search(fresh: Any) -> None:
    cloud = points(64)
    fixed = Plan(targets=2, accumulate="f64", tile=32)
    result = tuned_to(fresh.tuning_job(cloud, cloud, softening2=1e-2, plan=fixed), lambda p: p.vector_bits == 256)
    assert all((t.plan.targets, t.plan.accumulate, t.plan.tile) == (2, "f64", 32) for t in result.trials)
    assert result.default == fixed.filled(NEUTRAL)


def test_arithmetic_is_never_loosened(fresh: Any) -> None:
    cloud = points(64)
    result = tuned_to(fresh.tuning_job(cloud, cloud, softening2=1e-2), lambda p: bool(p.fast_math))
    assert {(t.plan.rsqrt, t.plan.fast_math, t.plan.accumulate) for t in result.trials} == {
        ("written", False, "native")
    }
    assert result.plan == result.default


def test_layouts_and_sources_have_entries_of_their_own(fresh: Any) -> None:
    cloud = points(64)
    tuned_to(fresh.tuning_job(cloud, cloud, softening2=1e-2), merged)
    aosoa, other = cloud.with_layout(lw.AoSoA(8)), points(64, seed=1)
    keys = [fresh.tuning_job(a, a, softening2=1e-2).key for a in (cloud, aosoa, cloud.with_layout(lw.AoSoA(16)))]
    assert len({key.file_name for key in keys}) == 3
    assert fresh.compile(cloud, other, softening2=1e-2).plan.targets == 1


def test_a_function_with_another_text_is_another_function() -> None:
    from tests.tuning.kernels import repulsion

    cloud = points(64)
    first = attraction.tuning_job(cloud, cloud, softening2=1e-2).key
    second = repulsion.tuning_job(cloud, cloud, softening2=1e-2).key
    assert first.function != second.function
    assert first == lw.pairwise(attraction.python).tuning_job(cloud, cloud, softening2=0.5).key


def test_a_plan_proved_for_some_values_is_left_for_others(fresh: Any) -> None:
    kernel, cloud = lw.pairwise(without_itself.python), points(64)
    tuned_to(kernel.tuning_job(cloud, cloud, softening2=1e-2), lambda p: p.self_term == "drop")
    assert kernel.compile(cloud, cloud, softening2=1e-2).plan.self_term == "drop"
    assert kernel.compile(cloud, cloud, softening2=0.0).plan.self_term == "test"


def test_elementwise_kernels_are_tuned_and_change_nothing_meanwhile() -> None:
    cloud, velocity = points(500), np.ones((500, 3), np.float32)
    before = cloud.numpy()
    kernel = lw.elementwise(drift.python)
    result = kernel.tune(cloud, velocity, dt=0.5, seconds=10)
    assert all(np.array_equal(a, b) for a, b in zip(before.values(), cloud.numpy().values(), strict=True))
    assert kernel.compile(cloud, velocity, dt=0.5).plan == result.plan
    kernel(cloud, velocity, dt=0.5)
    np.testing.assert_array_equal(cloud.position, before["position"] + np.float32(0.5))


def test_reductions_keep_the_default_plan() -> None:
    kernel, cloud = lw.elementwise(drift.python), points(100)
    wanted = kernel.sum(cloud, np.zeros((100, 3), np.float32), dt=1.0)
    tuned_to(kernel.tuning_job(cloud, np.zeros((100, 3), np.float32), dt=1.0), lambda p: p.vector_bits == 512)
    assert kernel.sum(cloud, np.zeros((100, 3), np.float32), dt=1.0) == wanted


@pytest.mark.parametrize("seconds", [0, -1.0, float("nan"), float("inf"), True, "60"])
def test_a_time_that_is_none_is_refused(seconds: Any) -> None:
    cloud = points(10)
    with pytest.raises(ArgumentError) as caught:
        attraction.tune(cloud, cloud, softening2=1e-2, seconds=seconds)
    assert str(caught.value) == f"seconds={seconds!r}: wanted a positive number, the time that tuning may take"


def test_the_interpreter_has_nothing_to_tune() -> None:
    cloud = points(10, device="python")
    with pytest.raises(DeviceError) as caught:
        attraction.tune(cloud, cloud, softening2=1e-2)
    assert str(caught.value) == (
        "attraction: the device 'python' interprets kernels and has no plans to compare; move the arrays to 'cpu' or 'cuda'"
    )


def test_arguments_are_checked_as_in_a_call() -> None:
    cloud = points(10)
    with pytest.raises(
        ArgumentError, match=r"^attraction needs softening2; its parameters are target, source, softening2$"
    ):
        attraction.tune(cloud, cloud)
    with pytest.raises(
        ArgumentError, match=r"^double: at least one argument must be an array; one element|'point' must be an array"
    ):
        double.tune(3)


def test_the_report_as_text_table_and_data() -> None:
    from rich.console import Console

    cloud = points(64)
    result = tuned_to(lw.pairwise(attraction.python).tuning_job(cloud, cloud, softening2=1e-2), merged)
    text = str(result)
    assert text.startswith("attraction on cpu (")
    assert "\n2.00 times as fast as the default plan: targets=4\n" in text
    assert f"kept in {result.path}" in text
    assert "reciprocity='scratch': it is the threads of a GPU that exchange sums" in text
    console = Console(record=True, width=150, file=io.StringIO())
    console.print(result)
    table = console.export_text()
    assert "default / this" in table
    assert "targets=4" in table
    data = json.loads(json.dumps(result.as_dict(), allow_nan=False))
    assert data["plan"]["targets"] == 4
    assert (data["factor"], data["seconds"], data["default_seconds"]) == (2.0, 0.5, 1.0)
    assert data["tried"] == len(result.measured)
    assert data["candidates"][0]["plan"] == {"targets": 4}
    assert {"field", "value", "reason"} == set(data["refused"][0])
    assert data["kernel"] == "attraction"
    assert data["elements"] == "64 target, 64 source"


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_gradients_of_elements_are_tuned_as_those_of_pairs(device: str) -> None:
    kernel = lw.elementwise(weighed.python)
    x, rate = bring(np.linspace(0.5, 2, 300).astype("f4"), device), 1.5
    slope, both = kernel.gradient("x"), kernel.gradient(("x", "rate"))
    before = to_host(slope(x, rate))
    tuning = slope.tune(x, rate, seconds=1)
    assert (tuning.as_dict()["kernel"], tuning.factor >= 1) == ("weighed_gradient", True)
    assert slope.compile(x, rate).plan == tuning.plan
    np.testing.assert_allclose(to_host(slope(x, rate)), before, rtol=1e-6)
    with pytest.raises(
        ArgumentError, match=r"^weighed\.gradient\(\.\.\.\)\.tune: with respect to x, rate it is two kernels"
    ):
        both.tune(x, rate)
