"""The corpus on device="cpu", in every layout, against float64 NumPy; and against the interpreter through the public
interface.
"""

from __future__ import annotations

import numpy as np
import pytest

import lanewise as lw
from lanewise.planning.plan import Plan
from tests.corpus import CASES, LAYOUTS, PAIRWISE, case
from tests.harness import Input, assert_close, expected, run_public

SIZES = ((1, 1), (5, 31), (33, 7))


def inputs(c):
    """One array with itself, and two arrays, of awkward sizes."""
    if not c.pairwise:
        return [Input(c, n, seed=n) for n in (1, 33, 1000)]
    return [Input(c, n, None, seed=n) for n in (1, 33, 100)] + [Input(c, n, m, seed=n) for n, m in SIZES]


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("c", CASES, ids=lambda c: c.name)
def test_every_layout_against_numpy(c, layout):
    for given in inputs(c):
        found = run_public(given, LAYOUTS[layout], "cpu")
        assert_close(found, expected(given), c)
        for again, first in zip(run_public(given, LAYOUTS[layout], "cpu"), found, strict=True):
            assert again.tobytes() == first.tobytes()


@pytest.mark.parametrize("c", CASES, ids=lambda c: c.name)
def test_the_interpreter_agrees(c):
    given = Input(c, 9, 6 if c.pairwise else None, seed=3)
    assert_close(run_public(given, lw.SoA(), "cpu"), run_public(given, lw.SoA(), "python"), c)


@pytest.mark.grid(every=40)
@pytest.mark.parametrize(
    "plan", [Plan(targets=1), Plan(targets=8), Plan(tile=16, accumulate="f64"), Plan(targets=3, tile=7)], ids=str
)
@pytest.mark.parametrize("name", ["gravity", "gravity_potential", "count_ranks", "ranked_distance", "order"])
def test_plans(name, plan):
    for given in inputs(case(name)):
        assert_close(run_public(given, lw.SoA(), "cpu", plan), expected(given), given.case)


def test_fast_math():
    for given in inputs(case("gravity")):
        assert_close(run_public(given, lw.SoA(), "cpu", Plan(fast_math=True)), expected(given), given.case, scale=2.0)


def test_threads_change_no_bit(monkeypatch):
    given = Input(case("gravity"), 3000, seed=8)
    alone = run_public(given, lw.SoA(), "cpu")
    monkeypatch.setenv("LANEWISE_THREADS", "3")
    np.testing.assert_array_equal(run_public(given, lw.SoA(), "cpu")[0], alone[0])


def test_integer_sums_are_exact_in_any_layout():
    for c in PAIRWISE:
        if c.rtol == 0:
            results = [run_public(Input(c, 40), layout, "cpu") for layout in LAYOUTS.values()]
            assert all(a.tobytes() == b.tobytes() for r in results for a, b in zip(r, results[0], strict=True))
