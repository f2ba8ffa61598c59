"""Reductions of pairs mean one thing in every stage, plan, layout and search, and on every device."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lanewise as lw
from lanewise.compiler.default_plans import complete_plan
from lanewise.compiler.pipeline import build_program
from lanewise.compiler.work import describe_work
from lanewise.language.target import Machine
from lanewise.layouts import AoAS, AoS, AoSoA, SoA, SoAoAS
from lanewise.planning.plan import Plan
from lanewise.support.errors import PlanError
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


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize(("kind", "plan"), PLANS, ids=lambda x: str(x))
def test_first_and_last_stage(case: Case, kind: str, plan: Plan) -> None:
    made = Input(case, 5, 70 if kind == "cuda" else 19, seed=3)
    staged = stages(case, SoA(), plan, kind, same=False)
    for name, kernels in (staged[0], staged[-1]):
        if plan.fission and name != staged[0][0]:
            continue  # several kernels, which `stages` does not tell apart
        close(made, run_kernels(kernels, made, SoA()))


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("sources", [None, 1, 50])
def test_layouts(case: Case, layout: Any, sources: int | None) -> None:
    made = Input(case, 37, sources, seed=1)
    close(made, run_public(made, layout, "cpu"))


@lw.pairwise
def limits(target: Point, source: Point) -> tuple[
    lw.Min[lw.i32], lw.Max[lw.i32], lw.ArgMin[lw.i32], lw.ArgMax[lw.i32], lw.KMin[lw.i32, 3], lw.ArgKMin[lw.i32, 3]
]:  # fmt: skip
    return source.kind, source.kind, source.kind, source.kind, source.kind, source.kind


@pytest.mark.parametrize("search", [None, lw.AllPairs(radius=9), lw.DynamicGrid(radius=9), lw.Neighbors(radius=9)])
def test_the_limits_of_integers_are_values_too(search: Any) -> None:
    """They are what no source gives; yet a source that gives them is there."""
    low, high = np.iinfo("i4").min, np.iinfo("i4").max
    kernel = limits if search is None else limits.using(search)
    position = np.random.default_rng(0).random((70, 3)).astype("f4")
    for start, *rest in product((low, high), (low, 0, high), (low, high)):
        for n in (1, 2, 70):
            kinds = np.array([start, *rest] * n, "i4")[:n]
            order = np.argsort(kinds, kind="stable")[:3]
            sources = Point.array(position=position[:n], weight=np.ones(n, "f4"), kind=kinds)
            found = [
                r[0].tolist() for r in kernel(Point.array(position=position[:2], kind=[0, 0], weight=[0, 0]), sources)
            ]
            beyond = [high] * (3 - len(order)), [-1] * (3 - len(order))
            assert found == [
                kinds.min(), kinds.max(), kinds.argmin(), kinds.argmax(), [*kinds[order], *beyond[0]], [*order, *beyond[1]]
            ]  # fmt: skip


@pytest.mark.quick("boxes")
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


@pytest.mark.grid(every=40)
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


@lw.pairwise
def bare(target: Point, source: Point) -> lw.ArgMin:
    return source.weight


@lw.pairwise
def of_truths(target: Point, source: Point) -> lw.Min[lw.bool]:
    return source.weight > 0


@lw.pairwise
def of_whole_numbers(target: Point, source: Point) -> lw.LogSumExp[lw.i32]:
    return source.kind


@lw.pairwise
def of_a_vector(target: Point, source: Point) -> lw.KMin[lw.vec3, 3]:
    return source.position


@lw.pairwise
def of_a_number(target: Point, source: Point) -> lw.Any:
    return source.weight


@lw.elementwise
def elementwise(point: Point) -> lw.Min[lw.f32]:
    return point.weight


REFUSED = [
    (bare, "lw.ArgMin needs the type of what a pair gives", "wanted: lw.ArgMin[lw.f32]"),
    (of_truths, "lw.Min does not reduce values of this type", "found: lw.Min of bool"),
    (of_whole_numbers, "lw.LogSumExp does not reduce values of this type", "wanted: floats"),
    (of_a_vector, "lw.KMin does not reduce values of this type", "wanted: one number per pair"),
    (of_a_number, "the result is of type bool", "found: a value of type f32"),
    (elementwise, "a reduction belongs to a pairwise function", "wanted: @lw.pairwise above the function"),
]


@pytest.mark.parametrize(("kernel", "message", "detail"), REFUSED, ids=lambda x: getattr(x, "__name__", ""))
def test_refused_annotations(kernel: Any, message: str, detail: str) -> None:
    a = Point.array(**points(np.random.default_rng(0), 3))
    with pytest.raises(lw.CompileError) as caught:
        kernel(a) if kernel is elementwise else kernel(a, a)
    assert message in str(caught.value)
    assert detail in str(caught.value)


@pytest.mark.parametrize("k", [0, 33, 2.5, True, "3"])
def test_a_list_has_a_length_from_1_to_32(k: Any) -> None:
    with pytest.raises(lw.ArgumentError, match=r"wanted lw\.KMin\[lw\.f32, k\] with an integer k from 1 to 32"):
        lw.KMin[lw.f32, k]


def test_sources_that_give_infinity_or_nan_are_left_out() -> None:
    weight = np.array([np.nan, np.inf, 3.0, 3.0, -np.inf], "f4")
    one = Point.array(position=np.zeros((1, 3)), weight=[1.0], kind=[0])
    for chosen, wanted in (([0, 1], (-1, 1)), ([0, 1, 2, 3], (2, 1)), ([2, 3, 4], (2, 0))):
        sources = Point.array(
            position=np.zeros((len(chosen), 3)), weight=weight[chosen], kind=np.zeros(len(chosen), "i4")
        )
        low, high, least, most, *_ = extremes(one, sources)
        assert most[0] == wanted[1]
        assert least[0] == wanted[0]
        assert low[0] == np.fmin.reduce(weight[chosen])
        assert high[0] == np.fmax.reduce(weight[chosen])


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("axes", [1, 4, 7])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_nearest_and_neighbors_in_any_dimension(axes: int, dtype: str) -> None:
    rng = np.random.default_rng(axes)
    x, q = rng.normal(size=(400, axes)).astype(dtype), rng.normal(size=(30, axes)).astype(dtype)
    d2 = ((q[:, None] - x[None]) ** 2).sum(-1)
    indices, distances = lw.nearest(x, 4, queries=q)
    np.testing.assert_array_equal(indices, np.argsort(d2, 1, kind="stable")[:, :4])
    np.testing.assert_allclose(distances, np.sqrt(np.sort(d2, 1)[:, :4]), rtol=1e-5)
    rows = lw.neighbors(x, 0.8, queries=q)
    for row, near_ in zip(rows, d2 < 0.64, strict=True):
        np.testing.assert_array_equal(row, np.nonzero(near_)[0])


def test_what_structures_do_not_divide_is_refused() -> None:
    x = np.random.default_rng(0).normal(size=(400, 5))
    with pytest.raises(lw.ArgumentError, match="positions of 5 axes are met by all pairs"):
        lw.nearest(x, 1, radius=1.0, search=lw.StaticGrid(k=1, radius=1.0))
    with pytest.raises(lw.ArgumentError, match=r"with 1 to 64 axes, found \(3, 65\)"):
        lw.nearest(np.zeros((3, 65)), 1)


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


@lw.record
class Wide:
    a: lw.i64
    b: lw.f32
    c: lw.dvec2
    d: lw.i32


@lw.pairwise
def wide_extremes(target: Wide, source: Wide) -> tuple[lw.ArgMin[lw.dvec4], lw.ArgMax[lw.ivec4], lw.Count]:
    x = source.c.x + lw.f64(source.b) + lw.f64(source.d)
    return lw.dvec4(x, x, x, x), lw.ivec4(source.d, source.d, source.d, source.d), source.a > lw.i64(0)


def test_default_plans_have_room_for_states() -> None:
    """What slices of a block exchange are states, and a state is larger than its result."""
    record: Any = Wide
    wide = record.array(a=np.arange(3), b=0.0, c=np.zeros((3, 2)), d=1, device="cpu")
    reference = wide_extremes.compile(wide, wide).reference
    for targets in (1, 100, 5000, 10**6):
        plan = complete_plan(None, Machine("cuda", 132), describe_work(reference, targets))
        build_program(reference, plan, "cuda")
