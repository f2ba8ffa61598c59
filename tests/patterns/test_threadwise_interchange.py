"""Loops that change places with their points: every stage and the machine code give the bits of points that go down their columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lanewise as lw
from lanewise.compiler.default_plans import complete_plan
from lanewise.compiler.pipeline import build_program
from lanewise.compiler.work import describe_work
from lanewise.ir import nodes as ir
from lanewise.ir.pattern import Work
from lanewise.ir.printer import print_kernel
from lanewise.language.target import CPU, Machine
from lanewise.planning.plan import NEUTRAL, Plan
from lanewise.support.errors import PlanError, VerificationError
from tests.emit.comments import entry
from tests.patterns.test_threadwise import copies
from tests.patterns.threadwise import run_stage, stages

EXTENTS = st.sampled_from([0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 64, 97])
PLANS = {
    "rounds at once": Plan(across=4, targets=2, tile=16, unroll=4), "one round": Plan(across=8, tile=8),
    "one tile": Plan(across=4, tile=1024, unroll=8),
}  # fmt: skip
DOWN = Plan(across=8, targets=2)


@lw.threadwise
def product(x: lw.index, a: lw.Array2[lw.f32], v: lw.Array1[lw.f32], c: lw.Array2[lw.f32]):
    s = 0.0
    for k in range(a.shape[0]):
        s += a[k, x] * v[k]
    c[0, x] = s


@lw.threadwise
def softmax_of_columns(x: lw.index, a: lw.Array2[lw.f32], v: lw.Array1[lw.f32], c: lw.Array2[lw.f32]):
    m = v[0]
    for k in range(a.shape[0]):
        m = lw.max(m, a[k, x])
    s = 0.0
    for k in range(a.shape[0]):
        s += lw.exp(a[k, x] - m)
    for k in range(a.shape[0]):
        c[k, x] = lw.exp(a[k, x] - m) / s


@lw.threadwise
def place_of_largest(x: lw.index, a: lw.Array2[lw.f32], v: lw.Array1[lw.f32], c: lw.Array2[lw.f32]):
    where, largest = -1, v[0]
    n = a.shape[0] - 1
    for k in range(a.shape[0]):
        here = n - k
        if a[here, x] > largest:
            largest = a[here, x]
            where = here
    c[0, x] = lw.f32(where)
    if where > 0 and x % 2 == 0:
        c[1, x] = largest


@lw.threadwise
def running(x: lw.index, a: lw.Array2[lw.f32], v: lw.Array1[lw.f32], c: lw.Array2[lw.f32]):
    """A recurrence, every second row, whose last term is read after the loop."""
    before, s, term = 0.0, 1.0, v[0]
    for k in range(1, a.shape[0], 2):
        term = a[k, x] - before
        before = s
        s = s * 0.5 + term
        c[k, x] = s
    c[0, x] = before + term


@lw.threadwise
def backwards(x: lw.index, a: lw.Array2[lw.f32], v: lw.Array1[lw.f32], c: lw.Array2[lw.f32]):
    weight = v[0] * 2.0
    at = x + 1
    for k in range(a.shape[0] - 1, -1, -1):
        if at < a.shape[1]:
            c[k, x] = a[k, at] * weight + v[k]
        else:
            c[k, x] = weight


@lw.threadwise
def added_in_place(x: lw.index, a: lw.Array2[lw.f32], v: lw.Array1[lw.f32], c: lw.Array2[lw.f32]):
    c[0, x] = v[0]
    for k in range(2, a.shape[0]):
        for i in range(2):
            c[0, x] += a[k, x] * lw.f32(i)
    for k in range(3, a.shape[0] - 2):
        c[0, x] += a[k, x]
    if a.shape[1] > 3:
        c[1, x] = a[1, x]


@lw.threadwise
def of_several(z: lw.index, y: lw.index, x: lw.index, a: lw.Array2[lw.f32], v: lw.Array1[lw.f32], d: lw.Array3[lw.f64]):
    first = y * 3
    s = lw.f64(0.0)
    for k in range(first, a.shape[0]):
        s += lw.f64(a[k, x] * v[k - first + z])
    d[z, y, x] = s


@dataclass(frozen=True)
class Case:
    """A kernel of one index, and whether an element of `v` has to be there, or so many rows."""

    kernel: Any
    rows: int = 0


CASES = {
    c.kernel.python.__name__: c
    for c in (
        Case(product, 1), Case(softmax_of_columns, 1), Case(place_of_largest, 2), Case(running, 1), Case(backwards, 1),
        Case(added_in_place, 2),
    )
}  # fmt: skip


def arguments(rows: int, columns: int) -> dict[str, Any]:
    rng = np.random.default_rng(rows * 100 + columns)
    a, v = rng.normal(size=(rows, columns)).astype("f4"), rng.normal(size=rows).astype("f4")
    return {"a": a, "v": v, "c": np.full((rows, columns), 7, "f4")}


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("case", CASES)
def test_all_shapes_have_the_bits_of_points_that_go_down_columns(case: str, name: str) -> None:
    @settings(deadline=None, suppress_health_check=list(HealthCheck))
    @given(EXTENTS, EXTENTS)
    def holds(rows: int, columns: int) -> None:
        kernel, least = CASES[case].kernel, CASES[case].rows
        data = arguments(max(rows, least), columns)
        results = []
        for plan in (PLANS[name], DOWN):
            changed = copies(data)
            kernel(**changed, grid=columns, plan=plan)
            results.append(changed["c"])
        np.testing.assert_array_equal(*results)

    holds()


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("case", CASES)
def test_every_stage_means_the_same(case: str, name: str) -> None:
    kernel, data = CASES[case].kernel, arguments(11, 21)
    compiled = kernel.compile(**data, grid=21, plan=Plan(across=0))
    stages: list[ir.Kernel] = []
    build_program(compiled.reference, PLANS[name].filled(NEUTRAL), "cpu", lambda stage, k: stages.append(k))
    expected = copies(data)
    run_stage(compiled.reference, expected, compiled.environment)
    for stage in stages:
        changed = copies(data)
        run_stage(stage, changed, compiled.environment)
        np.testing.assert_array_equal(changed["c"], expected["c"])
    changed = copies(data)
    kernel(**changed, grid=21, plan=PLANS[name])
    np.testing.assert_allclose(changed["c"], expected["c"], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("columns", [1, 16, 37])
def test_points_of_several_indices(columns: int) -> None:
    data = arguments(13, columns)
    data["v"] = np.arange(16, dtype="f4")
    results = []
    for plan in (PLANS["rounds at once"], Plan(across=0)):
        d = np.zeros((3, 4, columns))
        of_several(data["a"], data["v"], d, grid=d.shape, plan=plan)
        results.append(d)
    np.testing.assert_array_equal(*results)


@lw.threadwise
def beyond(x: lw.index, a: lw.Array2[lw.f32], v: lw.Array1[lw.f32], c: lw.Array2[lw.f32], n: lw.i32):
    s = 0.0
    for k in range(n):
        s += a[k, x] * v[k * k]
    c[0, x] = s


def test_what_is_outside_is_reported_as_ever() -> None:
    data = arguments(9, 21)
    beyond(**data, n=3, grid=21, plan=PLANS["rounds at once"], checks=True)
    with pytest.raises(VerificationError) as error:
        beyond(**data, n=4, grid=21, plan=PLANS["rounds at once"], checks=True)
    assert "v[k * k]" in str(error.value)


# ------------------------------------------------------------ refusals and plans


@lw.threadwise
def halved(x: lw.index, a: lw.Array2[lw.f32], v: lw.Array1[lw.f32], c: lw.Array2[lw.f32]):
    weight, s = 1.0, 0.0
    for k in range(a.shape[0]):
        s += a[k, x] * weight
        weight *= 0.5
    c[0, x] = s


@lw.threadwise
def last_weight(x: lw.index, a: lw.Array2[lw.f32], v: lw.Array1[lw.f32], c: lw.Array2[lw.f32]):
    weight, s = 1.0, 0.0
    for k in range(a.shape[0]):
        weight = v[k]
        s += a[k, x] * weight
    c[0, x] = s * weight  # of the last round


@lw.threadwise
def any_above(x: lw.index, a: lw.Array2[lw.f32], v: lw.Array1[lw.f32], c: lw.Array2[lw.f32]):
    found = False
    for k in range(a.shape[0]):
        found = found or a[k, x] > v[k]
    c[0, x] = 1.0 if found else 0.0


@lw.threadwise
def nested(x: lw.index, a: lw.Array2[lw.f32], v: lw.Array1[lw.f32], c: lw.Array2[lw.f32]):
    s = 0.0
    for k in range(a.shape[0]):
        for i in range(k):
            s += a[i, x] * v[k]
    c[0, x] = s


@pytest.mark.parametrize(("kernel", "plan", "reason"), [
    (product, Plan(across=4, tile=6), "a tile has whole registers of 4 points, and at most 16384; 6 were requested"),
    (product, Plan(across=4, tile=1 << 15), "at most 16384; 32768 were requested"),
    (product, Plan(across=4, tile=8, unroll=3), "1, 2, 4, 8 or 16 rounds go together; 3 were requested"),
    (product, Plan(across=4, unroll=8), "rounds go together in tiles of points"),
    (halved, Plan(across=4, tile=8), "weight, which all points share, changes after they read it"),
    (last_weight, Plan(across=4, tile=8), "weight, which all points share, goes from round to round"),
    (any_above, Plan(across=4, tile=8), "found is a boolean"),
    (nested, Plan(across=4, tile=8), "no elements are read by all rows of a block in a loop"),
])  # fmt: skip
def test_what_does_not_fit_is_refused(kernel: Any, plan: Plan, reason: str) -> None:
    with pytest.raises(PlanError) as error:
        kernel(**arguments(5, 9), grid=9, plan=plan)
    assert reason in str(error.value)


def chosen(kernel: Any, rows: int, columns: int, cores: int = 2) -> str:
    compiled = kernel.compile(**arguments(3, 5), grid=5, plan=Plan(across=0))
    environment = {**compiled.environment, "$a.shape0": rows, "$v.shape0": rows}
    work = describe_work(compiled.reference, columns, CPU)
    assert isinstance(work, Work)
    if work.rounds is not None:
        work = work.__class__(
            **{**{n: getattr(work, n) for n in work.__slots__}, "rounds": work.rounds.at(environment)}
        )
    return complete_plan(Plan(), Machine("cpu", cores, 256), work).short()


def test_default_plans() -> None:
    assert chosen(product, 8192, 8192) == "targets=2, tile=4096, unroll=8, across=8"
    assert chosen(product, 8192, 6000) == "targets=2, tile=1024, unroll=8, across=8", "even work for both cores"
    assert chosen(product, 8192, 8192, cores=32) == "targets=16, across=8", "too few columns for all cores"
    assert chosen(product, 8, 8192) == "targets=16, across=8", "too few rounds"
    assert chosen(softmax_of_columns, 8192, 8192) == "targets=2, tile=2048, unroll=8, across=8", "two variables"
    assert chosen(nested, 8192, 8192) == "targets=16, across=8", "a loop in a loop"


def test_golden_texts(golden: Callable[[str, str], None]) -> None:
    plan = Plan(across=4, tile=8, unroll=2)
    compiled = product.compile(**arguments(5, 9), grid=9, plan=plan)
    lanes = print_kernel(stages(compiled.reference, plan, "cpu")["SIMD lanes"])
    golden("loop interchange", "\n".join([lanes, entry(compiled.source)]))
