"""Floats that are added to elements one after the other: `lw.scatter_add(..., exact=False)`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.explanation.calls import compile_call
from tests.fuzz.texts import executed


@lw.threadwise
def added(i: lw.index, place: lw.Array1[lw.i32], v: lw.Array1[lw.f32], sums: lw.Array1[lw.f32]):
    lw.scatter_add(sums, place[i], v[i], exact=False)


@lw.threadwise
def added_twice(i: lw.index, place: lw.Array1[lw.i32], v: lw.Array1[lw.f64], sums: lw.Array1[lw.f64]):
    lw.scatter_add(sums, place[i], 2 * v[i], exact=False)


class Grain(lw.Record):
    place: lw.i32
    weight: lw.f32


@lw.elementwise
def deposited(g: Grain, sums: lw.Array2[lw.f32]):
    lw.scatter_add(sums, (g.place, 1), g.weight, exact=False)


def in_order(place: np.ndarray, v: np.ndarray, bins: int) -> np.ndarray:
    sums = np.ones(bins, v.dtype)
    for p, x in zip(place, v, strict=True):
        sums[p] += x
    return sums


RNG = np.random.default_rng(7)
PLACES = RNG.integers(0, 50, 30_000).astype(np.int32)
VALUES = RNG.normal(size=30_000)


@pytest.mark.parametrize("threads", ["1", "2"])
def test_they_are_rounded_in_the_order_of_a_loop(threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANEWISE_THREADS", threads)
    v = VALUES.astype(np.float32)
    wanted = in_order(PLACES, v, 50)
    sums = np.ones(50, np.float32)
    added(PLACES, v, sums, grid=len(PLACES))
    np.testing.assert_array_equal(sums, wanted)
    table = np.ones((50, 3), np.float32)
    deposited(Grain.array(place=PLACES, weight=v), table)
    np.testing.assert_array_equal(table[:, 1], wanted)
    np.testing.assert_array_equal(table[:, [0, 2]], 1)
    wide = np.ones(50)
    added_twice(PLACES, VALUES, wide, grid=len(PLACES))
    np.testing.assert_array_equal(wide, in_order(PLACES, 2 * VALUES, 50))


def test_the_text_adds_plainly_and_the_report_says_so() -> None:
    compiled = added.compile(PLACES, VALUES.astype(np.float32), np.ones(50, np.float32), grid=len(PLACES))
    assert "lw_scatter_sum" not in compiled.source
    assert "atomicrmw" not in compiled.source
    assert "sums rounded one after the other" in str(compiled.explain())


def test_the_interpreter_adds_in_that_order() -> None:
    v = VALUES[:300].astype(np.float32)
    sums = np.ones(50, np.float32)
    with lw.device("python"):
        added(PLACES[:300], v, sums, grid=300)
    np.testing.assert_array_equal(sums, in_order(PLACES[:300], v, 50))


def test_a_gpu_adds_exactly() -> None:
    given = (PLACES, VALUES.astype(np.float32), np.ones(50, np.float32))
    offline: Any = compile_call(added, *given, grid=len(PLACES), device="cuda", arch="sm_90")
    assert "lw_scatter_sum(" in offline.executable.source
    assert "an exact sum in words" in str(offline.explain())


@pytest.mark.cuda
def test_on_a_gpu() -> None:
    v = VALUES.astype(np.float32)
    cupy = pytest.importorskip("cupy")
    sums = cupy.ones(50, np.float32)
    added(cupy.asarray(PLACES), cupy.asarray(v), sums, grid=len(PLACES))
    wanted = np.ones(50)
    np.add.at(wanted, PLACES, v.astype(np.float64))
    np.testing.assert_array_equal(sums.get(), wanted.astype(np.float32))


def test_what_keywords_there_are() -> None:
    @lw.threadwise
    def wrong(i: lw.index, n: lw.i32, sums: lw.Array1[lw.f32]):
        lw.scatter_max(sums, i, 1.0, exact=False)

    with pytest.raises(lw.CompileError, match=r"exact=True or exact=False, and that of lw\.scatter_add alone"):
        wrong(1, np.ones(5, np.float32), grid=5)


WHOLE = ["i32", "u32", "i64"]


@pytest.mark.parametrize("kind", WHOLE)
@pytest.mark.parametrize("pattern", ["threadwise", "elementwise"])
def test_whole_numbers_have_no_order(kind: str, pattern: str) -> None:
    """Their sums are exact in every order: what would change nothing is refused, in every pattern."""
    array, text = f"lw.Array1[lw.{kind}]", "lw.scatter_add(sums, i, 1, exact={exact})"
    heads = {
        "threadwise": f"@lw.threadwise\ndef f(i: lw.index, sums: {array}):\n    {text}\n",
        "elementwise": f"@lw.elementwise\ndef f(i: lw.i32, sums: {array}):\n    {text}\n",
    }
    for exact in (True, False):
        sums = np.zeros(3, {"i32": "i4", "u32": "u4", "i64": "i8"}[kind])
        with executed(heads[pattern].format(exact=exact), f"whole_{kind}_{pattern}_{exact}.py") as names:
            given = (np.arange(3, dtype=np.int32), sums) if pattern == "elementwise" else (sums,)
            grid = {} if pattern == "elementwise" else {"grid": 3}
            if exact:
                names.f(*given, **grid)
                assert sums.tolist() == [1, 1, 1]
                continue
            with pytest.raises(lw.CompileError) as error:
                names.f(*given, **grid)
        assert "sums of integers are exact in every order" in str(error.value)
        assert f"found: exact=False for elements of {kind}" in str(error.value)
        assert "wanted: lw.scatter_add(sums, i, 1)" in str(error.value)


def test_in_python_it_adds_one_number() -> None:
    sums = np.zeros(3, np.float32)
    lw.scatter_add(sums, 1, 2.5, exact=False)
    assert sums.tolist() == [0, 2.5, 0]
