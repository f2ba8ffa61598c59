"""Reductions of pairs mean one thing in every stage, plan, layout and search, and on every device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lanewise as lw
from lanewise.errors import PlanError
from lanewise.layouts import AoAS, AoS, AoSoA, SoA, SoAoAS
from lanewise.plan import Plan
from tests.corpus import Case
from tests.harness import Input, expected, run_kernels, run_public, stages
from tests.patterns.pair_reductions import CASES, EXACT, Point, extremes, points

LAYOUTS = [AoS(), SoA(), AoAS(), SoAoAS(), AoSoA(4)]
PLANS = [
    ("cpu", Plan()),
    ("cpu", Plan(targets=3)),
    ("cpu", Plan(across=3, targets=1)),
    ("cpu", Plan(across=64, targets=1)),
    ("cpu", Plan(tile=8, targets=2)),
    ("cuda", Plan()),
    ("cuda", Plan(slices=2, block=64, tile=64)),
    ("cuda", Plan(slices=2, block=64, tile=64, targets=2, parts=3)),
    ("cuda", Plan(parts=2, tile=32, prefetch="registers")),
    ("cuda", Plan(tile=0)),
    ("cuda", Plan(fission=True, slices=2, block=64, tile=64)),
]


def same_bits(found: Any, wanted: Any) -> None:
    for f, w in zip(found, wanted, strict=True):
        assert f.dtype == w.dtype
        assert f.tobytes() == w.tobytes()


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize(("kind", "plan"), PLANS, ids=lambda x: str(x))
def test_first_and_last_stage(case: Case, kind: str, plan: Plan) -> None:
    made = Input(case, 5, 70 if kind == "cuda" else 19, seed=3)
    staged = stages(case, SoA(), plan, kind, same=False)
    for name, kernels in (staged[0], staged[-1]):
        if plan.fission and name != staged[0][0]:
            continue  # several kernels, which `stages` does not tell apart
        close(made, run_kernels(kernels, made, SoA()))


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("sources", [None, 1, 50])
def test_layouts(case: Case, layout: Any, sources: int | None) -> None:
    made = Input(case, 37, sources, seed=1)
    close(made, run_public(made, layout, "cpu"))


@pytest.mark.parametrize("case", EXACT, ids=str)
def test_exact_reductions_have_the_same_bits_in_every_plan(case: Case) -> None:
    made = Input(case, 41, 300, seed=2)
    plain = run_public(made, SoA(), "cpu")
    sums = [n for n, r in enumerate(case.kernel.lowered.reduced) if not r[1].exact]
    for plan in (Plan(targets=1), Plan(across=7), Plan(targets=5), Plan(tile=16), Plan(tile=64, targets=2)):
        other = run_public(made, SoA(), "cpu", plan)
        same_bits([r for n, r in enumerate(other) if n not in sums], [r for n, r in enumerate(plain) if n not in sums])


def close(made: Input, found: Any) -> None:
    for f, w in zip(found, expected(made), strict=True):
        np.testing.assert_allclose(f, w, rtol=2e-5, atol=2e-4 if f.dtype.kind == "f" else 0)


SEARCHES = [
    lw.AllPairs(radius=0.7),
    lw.AllPairs(k=4),
    lw.StaticGrid(radius=0.7),
    lw.DynamicGrid(radius=0.7),
    lw.Neighbors(radius=0.7),
    lw.Nearest(k=4),
    lw.Nearest(k=4, radius=0.5),
]


@lw.pairwise
def near(target: Point, source: Point) -> tuple[
    lw.Min[lw.f32], lw.ArgMin[lw.f32], lw.ArgMax[lw.i32], lw.Any, lw.All, lw.Count, lw.KMin[lw.f32, 2], lw.ArgKMin[lw.i32, 3]
]:  # fmt: skip
    d = target.position - source.position
    d2 = lw.dot(d, d)
    return d2, d2, source.kind, source.kind > 2, source.kind > -5, source.kind > 0, source.weight, source.kind


def near_answer(search: Any, a: dict[str, Any], b: dict[str, Any], same: bool) -> list[Any]:
    d = a["position"][:, None] - b["position"][None]
    d2 = (d.astype("f8") ** 2).sum(-1)
    met = np.ones(d2.shape, bool)
    if search.radius is not None:
        met &= d2 < search.radius**2
    if search.k is not None:
        far = np.where(met & ~(np.eye(*d2.shape, dtype=bool) & same), d2, np.inf)
        rank = np.argsort(np.argsort(far, 1, kind="stable"), 1)
        met = (rank < search.k) & (far < np.inf)
    rows = []
    for i in range(len(met)):
        (js,) = np.nonzero(met[i])
        kinds = b["kind"][js]
        order = js[np.argsort(kinds, kind="stable")][:3]
        weights = np.sort(b["weight"][js])[:2]
        rows.append((
            d2[i, js].min() if len(js) else np.inf, js[d2[i, js].argmin()] if len(js) else -1, js[kinds.argmax()] if len(js) else -1,
            (kinds > 2).any(), (kinds > -5).all(), (kinds > 0).sum(),
            [*weights, *[np.inf] * (2 - len(weights))], [*order, *[-1] * (3 - len(order))],
        ))  # fmt: skip
    return [np.array(column) for column in zip(*rows, strict=True)]


def check_search(search: Any, layout: Any, device: str, n: int, m: int | None, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a = points(rng, n)
    b = a if m is None else points(rng, m)
    x = Point.array(**a, layout=layout, device=device)
    y = x if m is None else Point.array(**b, layout=layout, device=device)
    found = [r.get() if hasattr(r, "get") else r for r in near.using(search)(x, y)]
    for f, w in zip(found, near_answer(search, a, b, m is None), strict=True):
        np.testing.assert_allclose(f, w, rtol=1e-4)


@pytest.mark.parametrize("search", SEARCHES, ids=str)
@pytest.mark.parametrize("layout", [AoS(), SoA()], ids=str)
@pytest.mark.parametrize("m", [None, 150])
def test_searches(search: Any, layout: Any, m: int | None) -> None:
    check_search(search, layout, "cpu", 120, m, 5)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 40), st.integers(1, 60), st.sampled_from(EXACT))
def test_any_sizes(seed: int, n: int, m: int, case: Case) -> None:
    made = Input(case, n, m, seed=seed)
    close(made, run_public(made, SoA(), "cpu"))


def test_ties_go_to_the_smaller_index_whatever_the_order() -> None:
    weight = np.ones(500, "f4")
    place = np.random.default_rng(0).uniform(-1, 1, (500, 3)).astype("f4")
    a = Point.array(position=place, weight=weight, kind=np.zeros(500, "i4"))
    for search in (lw.AllPairs(radius=5.0), lw.StaticGrid(radius=5.0), lw.DynamicGrid(radius=5.0)):
        assert (near.using(search)(a, a)[2] == 0).all()
        assert (near.using(search)(a, a)[7] == [0, 1, 2]).all()
    assert (extremes(a, a)[2] == 0).all()


@pytest.mark.parametrize(
    ("plan", "reason"),
    [
        (Plan(tile=8, accumulate="f64"), "float64 accumulation cannot be applied to extremes: it has no sums"),
        (Plan(self_term="drop"), "a pair whose value is zero counts for min: it cannot be left out"),
    ],
)
def test_passes_that_rest_on_sums_refuse(plan: Plan, reason: str) -> None:
    a = Point.array(**points(np.random.default_rng(0), 9))
    if plan.self_term:

        @lw.pairwise
        def other(target: Point, source: Point) -> lw.Min[lw.f32]:
            return 0.0 if lw.same(target, source) else source.weight

        kernel = other
    else:
        kernel = extremes
    with pytest.raises(PlanError, match=reason):
        kernel.bind(a, a, plan=plan)


@pytest.mark.cuda
@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_cuda(case: Case, layout: Any) -> None:
    made = Input(case, 300, 1000, seed=1)
    found = run_public(made, layout, "cuda")
    close(made, found)
    same_bits(run_public(made, layout, "cuda"), found)
    if case in EXACT[:2]:
        for plan in (
            Plan(tile=128, slices=2, block=128),
            Plan(tile=128, block=128, parts=5),
            Plan(tile=0),
            Plan(targets=4, tile=128, block=128),
        ):
            same_bits(run_public(made, layout, "cuda", plan), found)


@pytest.mark.cuda
@pytest.mark.parametrize("search", SEARCHES, ids=str)
@pytest.mark.parametrize("m", [None, 1500])
def test_cuda_searches(search: Any, m: int | None) -> None:
    check_search(search, SoA(), "cuda", 1200, m, 5)
