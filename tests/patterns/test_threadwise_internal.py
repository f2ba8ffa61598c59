"""Naive kernels whose plans and models met internal errors: types that differ between tiles, booleans in tiles,
functions of nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.compiler.default_plans import complete_plan
from lanewise.compiler.pipeline import build_program
from lanewise.compiler.work import describe_work
from lanewise.explanation.build import explain
from lanewise.explanation.offline import compile_offline
from lanewise.explanation.rows_of_calls import counts_of
from lanewise.explanation.subject import Subject
from lanewise.language import types as t
from lanewise.language.target import Machine, target_of
from lanewise.models.devices import table_model
from lanewise.planning.plan import Plan
from tests.patterns.threadwise import run_stage

N = 8


@lw.threadwise
def following(
    y: lw.index, x: lw.index, b: lw.Array2[lw.f32], v: lw.Array1[lw.f32], q: lw.Array1[lw.bool], c: lw.Array2[lw.f32], n: lw.i32, m: lw.i32
):  # fmt: skip
    s = b[x, y]
    for k in range(m):
        if q[k]:
            s += b[n - 1 - x, x] + v[y]
        else:
            s -= b[lw.min(y + 3, n - 1), x]
    for k in range(n):
        s += b[k, k] * v[k] - b[(x + y) % n, y]
    c[y, x] = s


@lw.threadwise
def tiles(
    x: lw.index, a: lw.Array2[lw.f64], b: lw.Array2[lw.f64], e: lw.Array1[lw.i32], c: lw.Array1[lw.f64], n: lw.i32
):
    s = b[e[x], x]
    for k in range(n):
        s += a[lw.min(k + 3, n - 1), x]
    for j in range(n):
        s += a[x, j]
    c[x] = s + lw.f64(e[x])


@lw.threadwise
def nothing(x: lw.index, e: lw.Array1[lw.i32], c: lw.Array1[lw.f64]):
    return
    c[x] += 2


@lw.threadwise
def lowest(z: lw.index, y: lw.index, x: lw.index, a: lw.Array1[lw.f32], c: lw.Array3[lw.f32]):
    c[z, y, x] += 1.0 if lw.i32(x) < -2147483648 else a[y]


def arguments(kernel: Any) -> tuple[dict[str, Any], tuple[int, ...]]:
    """Integers for a kernel, and its grid."""
    rng = np.random.default_rng(3)
    given: dict[str, Any] = {}
    for name, kind in kernel.signature.arrays.items():
        dtype = t.scalar_of(kind.element).dtype
        given[name] = rng.integers(0, 2 if dtype.kind == "b" else N, (N,) * kind.rank).astype(dtype)
    given |= {n: {"n": N, "m": 3}[n] for n in kernel.signature.parameters if n in ("n", "m")}
    return given, (N,) * len([n for n in "zyx" if n in kernel.signature.indices])


PLANS = (
    Plan(),
    Plan(targets=2),
    Plan(targets=4),
    Plan(tile=8, prefetch="registers", block=64),
    Plan(tile=8, targets=4, neighbours="last", block=64),
    Plan(tile=4, targets=2, block=32),
)


@pytest.mark.quick("following", "nothing")
@pytest.mark.parametrize("kernel", [following, tiles, nothing, lowest], ids=lambda k: k.__name__)
def test_every_plan_means_the_same_and_is_explained(kernel: Any) -> None:
    given, grid = arguments(kernel)
    wanted = {n: a.copy() if isinstance(a, np.ndarray) else a for n, a in given.items()}
    with lw.device("python"):
        kernel(**wanted, grid=grid)
        environment = kernel.compile(**given, grid=grid).environment
    calls = kernel._calls
    call = calls.given((), {**given, "grid": grid})
    reference = calls.skeleton.build(calls.lowered, calls.signature, call, t.I32)
    work = describe_work(reference, N ** len(grid), target_of("cuda"))
    for wish in PLANS:
        plan = complete_plan(wish, Machine("cuda", 132), work)
        if isinstance(refused := _built(reference, plan), str):
            assert "Plan(" in refused or "cannot be applied" in refused
            continue
        found = {n: a.copy() if isinstance(a, np.ndarray) else a for n, a in given.items()}
        run_stage(refused, found, environment)
        np.testing.assert_array_equal(found["c"], wanted["c"])
    plan = complete_plan(None, Machine("cuda", 132), work)
    counts = counts_of(environment, (), reference)
    model = table_model("sm_90")
    subject = Subject(kernel.__name__, reference, plan, "cuda", model, environment, counts, {}, work, ())
    assert explain(subject, resources={}, measure_resources=False).rows


def _built(reference: Any, plan: Any) -> Any:
    try:
        return build_program(reference, plan, "cuda").kernels[0]
    except lw.PlanError as error:
        return str(error)


class Body(lw.Record):
    a: lw.f64
    b: lw.i32


@lw.elementwise
def numbers(e: Body) -> tuple[lw.dvec2, lw.i32]:
    for i in range(3):
        j = lw.i32(i)  # noqa: F841
    return lw.dvec2(-2, 1), e.b


def test_a_loop_that_computes_nothing_is_explained() -> None:
    assert compile_offline(numbers, 19, "cuda", arch="sm_90").explain(measure_resources=False).rows


def test_nothing_runs_on_a_cpu() -> None:
    c = np.zeros(N)
    with lw.device("cpu"):
        nothing(np.ones(N, np.int32), c, grid=N)
    assert not c.any()
