"""Sums in two passes over buckets: the bits are those of the kernel that stands for them, whatever the values and
places are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.language.types import F32, F64, I32
from lanewise.launch.tasks import Primitive
from lanewise.patterns.plain_sums import PlainSum, plain_sum
from lanewise.planning.plan import Plan
from lanewise.primitives import buckets, float_sums
from lanewise.runtime.nvrtc import compile_cubin


@lw.elementwise
def deposit(place: lw.i32, v: lw.f32, sums: lw.Array1[lw.f32]):
    lw.scatter_add(sums, place, v)


@lw.elementwise
def scaled(place: lw.i32, v: lw.f32, sums: lw.Array1[lw.f32]):
    lw.scatter_add(sums, place, 2.0 * v)


@lw.elementwise
def wide(place: lw.i32, v: lw.f64, sums: lw.Array1[lw.f64]):
    lw.scatter_add(sums, place, v)


def test_what_is_recognised() -> None:
    assert plain_sum(deposit.lowered.function.body) == PlainSum("sums", "place", "v", (I32, F32), True)
    assert plain_sum(scaled.lowered.function.body) is None
    assert plain_sum(wide.lowered.function.body) == PlainSum("sums", "place", "v", (I32, F64), True)
    arguments = np.zeros(3, np.int32), np.ones(3, np.float32), np.zeros(3, np.float32)
    text = "on a GPU 1,048,576 values or more go to buckets of 8,192 neighbouring elements first"
    assert text in " ".join(str(deposit.compile(*arguments).explain()).split())
    assert text not in " ".join(str(scaled.compile(*arguments).explain()).split())
    doubles = arguments[0], arguments[1].astype("f8"), arguments[2].astype("f8")
    on_cpu = " ".join(str(wide.compile(*doubles).explain()).split())
    assert text not in on_cpu
    assert "on a CPU 65,536 values or more go to buckets of neighbouring elements first" in on_cpu


def test_the_texts_compile() -> None:
    for aligned in (True, False):
        text = buckets.split_text(float_sums.SPLIT, wide=16 if aligned else 4)
        compile_cubin(text, "value_buckets", "sm_90")
        for direct in (True, False):
            compile_cubin(float_sums.sum_text(wide=aligned, direct=direct), "bucket_sums", "sm_90")


def values_of(kind: str, count: int, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    match kind:
        case "uniform":
            return rng.random(count, np.float32)
        case "exponents":
            return np.ldexp(rng.normal(size=count), rng.integers(-140, 100, count)).astype(np.float32)
        case "large at the end":
            values = rng.normal(size=count).astype(np.float32)
            values[-3:] = 1e38, -1e38, 3e37
            return values
        case _:
            values = rng.integers(0, 2**32, count, np.uint32).view(np.float32)
            values[: count // 2] = np.nan_to_num(values[: count // 2], posinf=1.0, neginf=2.0)
            return values


def places_of(kind: str, count: int, elements: int, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    if kind == "one":
        return np.full(count, elements - 1, np.int32)
    places = (
        rng.integers(0, elements, count) if kind == "even" else np.minimum(rng.geometric(1e-3, count), elements - 1)
    )
    return places.astype(np.int32)


def test_what_runs_instead_is_not_tuned_and_a_plan_has_the_kernel() -> None:
    arguments = np.zeros(3, np.int32), np.ones(3, np.float32), np.zeros(3, np.float32)
    runs: list[int] = []
    given = deposit._calls.given(arguments, {})
    given.buckets = Primitive("buckets", lambda *_: runs.append(1))
    with pytest.raises(lw.ArgumentError, match="do not run the kernel but go to buckets"):
        deposit._calls.job(given, None)
    deposit._calls.bind(given, None, None)()
    assert (runs, arguments[2].tolist()) == ([1], [0.0] * 3)
    deposit._calls.bind(given, None, Plan())()
    assert (runs, arguments[2].tolist()) == ([1], [3.0, 0.0, 0.0])


@pytest.mark.cuda
@pytest.mark.parametrize("values", ["uniform", "exponents", "large at the end", "any bits"])
@pytest.mark.parametrize(
    ("elements", "count", "places"),
    [
        (5, 100_003, "even"), (8_192, 99_999, "even"), (8_193, 200_001, "even"), (100_000, 300_000, "skewed"),
        (100_000, 50_000, "one"), (1_000_000, 400_007, "even"), (1_048_576, 16_384, "even"),
    ],
)  # fmt: skip
def test_buckets_have_the_bits_of_a_cpu(
    elements: int, count: int, places: str, values: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import cupy

    monkeypatch.setattr(buckets, "FEW", 1)
    rng = np.random.default_rng(count)
    place, v = places_of(places, count, elements, rng), values_of(values, count, rng)
    start = rng.normal(size=elements).astype(np.float32)
    expected = start.copy()
    with lw.device("cpu"):
        deposit(place, v, expected)
    for skipped in (0, 1):
        sums = cupy.asarray(start)
        given = [cupy.asarray(np.concatenate([a[:skipped], a]))[skipped:] for a in (place, v)]
        calls: list[int] = []
        add = float_sums.add_on_gpu
        monkeypatch.setattr(float_sums, "add_on_gpu", lambda *a: (calls.append(1), add(*a)))  # noqa: B023
        bound = deposit.bind(*given, sums)
        bound()
        monkeypatch.setattr(float_sums, "add_on_gpu", add)
        assert calls
        result = sums.get()
        assert ((result == expected) | (np.isnan(result) & np.isnan(expected))).all()
    with pytest.raises(lw.ArgumentError, match="go to buckets"):
        deposit.tune(*given, sums)
    by_plan = cupy.asarray(start)
    deposit(cupy.asarray(place), cupy.asarray(v), by_plan, plan=Plan(block=128))
    assert by_plan.get().tobytes() == result.tobytes()
