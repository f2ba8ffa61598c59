"""How often loops run whose ends data tell: counted in some of the elements, used in predictions, and said."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.explanation.calls import compile_call
from lanewise.language.target import WARP
from lanewise.patterns import counted_turns as counted_turns_module
from lanewise.patterns.counted_turns import MOST_ROUNDS, counted_turns

COUNT = 100_000


@lw.record
class Item:
    rounds: lw.i32
    value: lw.f32


@lw.elementwise
def sums(p: Item, step: lw.f32) -> lw.f32:
    x = p.value
    for k in range(p.rounds):
        x = 0.5 * x + step * lw.f32(k)
    return x


@lw.elementwise
def halves(p: Item, step: lw.f32) -> lw.f32:
    n, x = p.rounds, p.value
    while n > 0:
        n //= 2
        x += step
    return x


@lw.elementwise
def constant(p: Item, step: lw.f32, n: lw.i32) -> lw.f32:
    x = p.value
    for _ in range(n):
        x = 0.5 * x + step
    return x


@lw.elementwise
def table_of(p: Item, ends: lw.Array1[lw.i32]):
    x = p.value
    for _k in range(ends[p.rounds]):
        x += 1.0
    p.value = x


@lw.elementwise
def endless(p: Item, step: lw.f32) -> lw.f32:
    x = p.value
    while x >= 0.0:
        x += step
    return x


def items(rounds: Any) -> Any:
    return Item.array(rounds=np.asarray(rounds, np.int32), value=np.ones(len(rounds), np.float32))


def counted(kernel: Any, *given: Any, device: str = "cpu") -> dict[str, float]:
    calls = kernel._calls
    arguments = calls.skeleton.elsewhere(calls.signature, calls.given(given, {}), device)
    return counted_turns(calls.subject, arguments)


def test_the_mean_over_elements_and_of_warps_on_a_gpu() -> None:
    rounds = np.arange(COUNT) % 32
    assert counted(sums, items(rounds), 0.5) == {"k": 15.5}
    assert counted(sums, items(rounds), 0.5, device="cuda") == {"k": 31.0}
    alike = np.arange(COUNT) // 32 % 2 * 10  # of all threads of a warp
    assert counted(sums, items(alike), 0.5, device="cuda") == counted(sums, items(alike), 0.5)


@pytest.mark.parametrize("count", [1, 5, 33, 1000])
def test_few_elements(count: int) -> None:
    assert counted(sums, items([7] * count), 0.5, device="cuda") == {"k": 7.0}


def test_loops_without_a_variable() -> None:
    assert counted(halves, items([8] * 100), 0.5) == {"while": 4.0}


def test_arrays_that_elements_share() -> None:
    ends, given = np.array([3, 5], np.int32), items(np.arange(1000) % 2)
    assert counted(table_of, given, ends) == {"_k": 4.0}
    assert (given.value == 1).all()


@lw.elementwise
def of_values(x: lw.vec3, n: lw.i32) -> lw.vec3:
    for _k in range(n):
        x = 0.5 * x
    return x


@pytest.mark.parametrize("count", [0, 1, 33, COUNT])
def test_of_arrays_only_some_elements_come_to_the_host(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    taken = list[int]()

    def spied(array: Any) -> Any:
        taken.append(len(array))
        return array

    monkeypatch.setattr(counted_turns_module, "to_host", spied)
    found = counted(of_values, np.ones((count, 3), np.float32), np.full(count, 6, np.int32))
    assert found == ({"_k": 6.0} if count else {})
    assert max(taken, default=0) <= WARP


def test_nothing_is_run_where_lengths_are_known() -> None:
    assert counted(constant, items([1] * 100), 0.5, 9) == {}


def test_a_loop_without_end_leaves_a_guess() -> None:
    assert counted(endless, items([1] * 100), 0.5) == {}
    rounds = np.full(1000, MOST_ROUNDS + 1)
    rounds[0] = 3
    assert counted(sums, items(rounds), 0.5) == {"k": 3.0}


def test_explanations_predict_by_them_and_say_so() -> None:
    texts: list[str] = []
    for long in (4, 400):
        found = sums.compile(items([long] * COUNT), 0.5).explain()
        assert found.bound is not None
        assert found.bound.predicted_seconds is not None
        texts.append(" ".join(str(found).split()))
        assert (
            "no bound: how often its loops run depends on data; on average over some elements, as predicted and counted: "
            f"k {long}"
        ) in texts[-1]


def test_the_time_that_is_predicted_grows_with_them() -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
    few, many = (
        compile_call(sums, items([n] * COUNT), 0.5, device="cuda", arch="sm_90").explain(measure_resources=False).bound
        for n in (2_000, 20_000)
    )
    assert few is not None
    assert many is not None
    assert few.predicted_seconds
    assert many.predicted_seconds
    assert 7 < many.predicted_seconds / few.predicted_seconds < 11


def test_tuning_prices_plans_by_them() -> None:
    job = sums.tuning_job(items([40] * COUNT), 0.5)
    assert job.environment["$turns.k"] == 40.0
