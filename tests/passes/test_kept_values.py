"""Values that several loops compute alike are kept, with the bits that they would have if they were computed again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.analysis.affine import nest_of
from lanewise.ir.printer import print_kernel
from lanewise.passes import kept_values, loop_sharing
from lanewise.passes.shared_loops import Sharing, shareable_loops
from lanewise.planning.plan import Plan
from lanewise.support.errors import PlanError
from tests.patterns.reductions import softmax


def arguments(m: int, n: int) -> dict[str, Any]:
    a = np.random.default_rng(n).normal(size=(m, n)).astype(np.float32)
    return {"a": a, "c": np.zeros_like(a)}


def meanings(kernel: Any) -> list[str]:
    """What would be kept of a kernel."""
    reference = kernel.compile(**arguments(3, 8), grid=3, plan=Plan(across=0)).reference
    return [str(v.loops) for v in kept_values.values_of(reference, nest_of(reference)[1], shareable_loops(reference))]


@lw.threadwise
def named(y: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    s = 0.0
    for k in range(a.shape[1]):
        e = lw.exp(-a[y, k])
        s += e
    for j in range(a.shape[1]):
        c[y, j] = lw.sqrt(s) * lw.exp(-a[y, j])


@lw.threadwise
def changing(y: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    t, s = 1.0, 0.0
    for k in range(a.shape[1]):
        s += lw.exp(a[y, k] * t)
    t = 0.5
    for k in range(a.shape[1]):
        c[y, k] = lw.exp(a[y, k] * t) + s


@lw.threadwise
def other_elements(y: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    s = 0.0
    for k in range(a.shape[1]):
        s += lw.exp(a[y, k])
    for k in range(a.shape[1]):
        c[y, k] = lw.exp(a[0, k]) + s


@lw.threadwise
def other_range(y: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    s = 0.0
    for k in range(a.shape[1]):
        s += lw.exp(a[y, k])
    for k in range(1, a.shape[1]):
        c[y, k] = lw.exp(a[y, k]) + s


@lw.threadwise
def cheap(y: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    s = 0.0
    for k in range(a.shape[1]):
        s += a[y, k] * 2.0
    for k in range(a.shape[1]):
        c[y, k] = a[y, k] * 2.0 + s


def test_what_is_kept() -> None:
    assert len(meanings(softmax)) == 1
    assert len(meanings(named)) == 1, "whatever the variables are called, and with a name for the value"
    assert meanings(changing) == [], "t changes between the loops"
    assert meanings(other_elements) == [], "elements of another row"
    assert meanings(other_range) == [], "loops over other ranges"
    assert meanings(cheap) == [], "a product is as fast as a load"


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("slices", [4, pytest.param(16, marks=pytest.mark.slow), 32])
@pytest.mark.parametrize("kernel", [softmax, named], ids=lambda k: k.__name__)
@pytest.mark.parametrize("n", [1, 2, 7, 8, 31, 32, 33, 63, 64, 65, 127, 200])
def test_the_bits_are_those_without_it(n: int, slices: int, kernel: Any) -> None:
    results = []
    for tile in (0, 32, 128):
        data = arguments(3, n)
        kernel(**data, grid=3, plan=Plan(slices=slices, tile=tile))
        results.append(data["c"])
    np.testing.assert_array_equal(results[0], results[1], "rows longer than what is kept")
    np.testing.assert_array_equal(results[0], results[2])
    if kernel is softmax:
        a = arguments(3, n)["a"].astype(np.float64)
        e = np.exp(a - a.max(axis=1, keepdims=True))
        np.testing.assert_allclose(results[0], e / e.sum(axis=1, keepdims=True), rtol=1e-5)


def test_infinities_and_what_is_no_number() -> None:
    data = arguments(4, 70)
    data["a"][0, 5], data["a"][1, 69], data["a"][2, 0] = np.nan, -np.inf, np.inf
    softmax(**data, grid=4, plan=Plan(slices=16, tile=64))
    assert np.isnan(data["c"][0]).all()
    assert np.isfinite(data["c"][1]).all()
    assert data["c"][1, 69] == 0
    assert np.isnan(data["c"][2]).all(), "infinity less infinity is no number, and is in the sum"
    assert np.isfinite(data["c"][3]).all()


def test_the_text_computes_an_exponential_once() -> None:
    reference = softmax.compile(**arguments(3, 8), grid=3, plan=Plan(across=0)).reference
    text = print_kernel(loop_sharing.apply(reference, Sharing("row", 4, 1, values=64)))
    inside = text[: text.rindex("$value.0.kept")]
    assert text.count("store $value.0.kept") == 1
    assert text.count("load $value.0.kept") == 1
    assert inside.count("exp(") == 2, "once for rounds that are kept, once for those beyond"


@pytest.mark.parametrize(("plan", "reason"), [
    (Plan(slices=16, tile=40), "40 rounds are not as many for each of 16 slices"),
])  # fmt: skip
def test_what_does_not_fit_is_refused(plan: Plan, reason: str) -> None:
    with pytest.raises(PlanError) as error:
        softmax(**arguments(3, 8), grid=3, plan=plan)
    assert reason in str(error.value)


def test_long_rows_keep_values_by_default() -> None:
    data = arguments(64, 4096)
    run = softmax.bind(**data, grid=64)
    assert "tile=16384, slices=" in run.compiled.plan.short()
