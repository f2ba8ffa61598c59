"""Parts of one array as targets and as sources: a call over parts gives the rows of the call over the whole, also with
`lw.same`.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.ir.printer import print_kernel
from lanewise.language import types as t
from lanewise.launch.arguments import Arguments
from lanewise.launch.support import compile_kernel
from lanewise.patterns.pairwise.build import PairwiseArguments, build_pairwise
from lanewise.patterns.pairwise.kernel import Pairwise
from lanewise.patterns.search import Search
from lanewise.patterns.search.points import points_of
from lanewise.planning.plan import NEUTRAL
from lanewise.runtime.memory import to_host
from lanewise.support.errors import PlanError

DEVICES = ["python", "cpu", pytest.param("cuda", marks=pytest.mark.cuda)]
COUNT, RADIUS = 48, 2.0


class Body(lw.Record):
    position: lw.vec2
    mass: lw.f32


@lw.pairwise
def met(target: Body, source: Body) -> tuple[lw.i32, lw.i32, lw.f32]:
    """How often an element met itself, how many others, and their mass."""
    if lw.same(target, source):
        return 1, 0, 0.0
    return 0, 1, source.mass


@lw.pairwise
def potential(target: Body, source: Body) -> lw.f64:
    if lw.same(target, source):
        return 0.0
    d = source.position - target.position
    return -lw.f64(source.mass) * lw.rsqrt(lw.f64(lw.dot(d, d)))


@lw.pairwise
def softened(target: Body, source: Body, softening2: lw.f32) -> lw.vec2:
    if lw.same(target, source):
        return lw.vec2(0.0)
    d = source.position - target.position
    return source.mass * d * lw.rsqrt(lw.dot(d, d) + softening2) ** 3


SLICES = [
    slice(None), slice(0, 10), slice(5, 31), slice(31, None), slice(None, None, 2), slice(1, None, 3), slice(7, 40, 6), slice(4, 5),
    slice(8, 8),
]  # fmt: skip
BLOCKS = [slice(0, 12), slice(8, 30), slice(None), slice(40, None)]
PAIRS = list(itertools.product(SLICES, SLICES))
SOME_PAIRS = [
    (slice(0, 10), slice(None)), (slice(None), slice(5, 31)), (slice(5, 31), slice(7, 40, 6)), (slice(None, None, 2), slice(1, None, 3)),
    (slice(1, None, 3), slice(None, None, 2)), (slice(4, 5), slice(None)), (slice(0, 10), slice(31, None)),
    (slice(None), slice(None)), (slice(None, None, 2), slice(1, None, 2)), (slice(8, 8), slice(None)),
]  # fmt: skip
LAYOUTS = [lw.SoA(), lw.AoS(), lw.SoAoAS(), lw.AoAS(16)]
SEARCHES: dict[str, Search] = {
    "every pair": lw.AllPairs(),
    "all within, no structure": lw.AllPairs(radius=RADIUS),
    "nearest, no structure": lw.AllPairs(k=3),
    "neighbours": lw.Neighbors(radius=RADIUS),
    "static grid": lw.StaticGrid(radius=RADIUS),
    "static grid, k": lw.StaticGrid(radius=RADIUS, k=3),
    "static grid, k anywhere": lw.StaticGrid(k=3),
    "curve": lw.DynamicGrid(radius=RADIUS),
    "curve, k": lw.DynamicGrid(radius=RADIUS, k=3),
    "curve, k anywhere": lw.DynamicGrid(k=3),
    "sort": lw.DynamicGrid(radius=RADIUS, order="sort"),
    "1-D": lw.DynamicGrid(radius=RADIUS, order="1-D"),
    "3-D": lw.DynamicGrid(radius=RADIUS, order="3-D"),
    "nearest": lw.Nearest(k=3),
    "periodic": lw.StaticGrid(radius=RADIUS, k=3, world=lw.Periodic((8.0, 8.0))),
}  # fmt: skip


def some(seed: int, layout: lw.Layout, device: str) -> Any:
    rng = np.random.default_rng(seed)
    place, mass = rng.uniform(0, 8, (COUNT, 2)).astype("f4"), rng.uniform(1, 2, COUNT).astype("f4")
    return Body.array(position=place, mass=mass, layout=layout, device=device)


def numbers(results: Any) -> list[np.ndarray[Any, Any]]:
    return [np.asarray(to_host(r)) for r in (results if isinstance(results, tuple) else (results,))]


def wanted(bodies: Any, targets: slice, sources: slice, search: Search) -> list[np.ndarray[Any, Any]]:
    """By brute force: elements are the same where their numbers in the array are."""
    place, mass = (np.asarray(to_host(x)) for x in (bodies.position, bodies.mass))
    here, there = np.arange(COUNT)[targets], np.arange(COUNT)[sources]
    d = place[here][:, None] - place[there][None]
    if isinstance(search.world, lw.Periodic):
        d -= 8 * np.floor(d / 8 + 0.5)
    d2, same = (d * d).sum(axis=2, dtype="f4"), here[:, None] == there[None]
    near = np.ones_like(same) if search.radius is None else d2 < search.radius**2
    if search.k is not None:
        near &= ~same
        rank = np.argsort(np.argsort(np.where(near, d2, np.inf), axis=1, kind="stable"), axis=1, kind="stable")
        near &= rank < search.k
    others = near & ~same
    return [(near & same).sum(axis=1), others.sum(axis=1), (others * mass[there]).sum(axis=1)]


def check(bodies: Any, pair: tuple[slice, slice], name: str, kernel: Pairwise = met) -> None:
    search, (targets, sources) = SEARCHES[name], pair
    if search.k is not None and len(bodies[sources]) < search.k:
        return
    found = numbers(kernel.using(search)(bodies[targets], bodies[sources]))
    for one, other in zip(found, wanted(bodies, targets, sources, search), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, err_msg=f"{name}, {pair}")


QUICK = {
    "python": ["every pair", "static grid", "curve, k", "nearest, no structure"],
    "cpu": ["every pair", "curve, k"],
    "cuda": list(SEARCHES),
}
SLOW = {"cpu": ["static grid", "all within, no structure", "static grid, k anywhere", "nearest"]}


@pytest.mark.parametrize(
    ("device", "search"),
    [
        pytest.param(d, s, marks=[pytest.mark.cuda] if d == "cuda" else mark)
        for searches, mark in ((QUICK, []), (SLOW, [pytest.mark.slow]))
        for d, chosen in searches.items()
        for s in chosen
    ],
)
def test_an_element_of_a_part_is_the_same_as_in_the_whole(device: str, search: str) -> None:
    bodies = some(1, lw.SoA(), device)
    for pair in SOME_PAIRS:
        check(bodies, pair, search)


@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_an_element_of_any_part_is_the_same(layout: lw.Layout, search: str, device: str) -> None:
    bodies = some(2, layout, device)
    for pair in PAIRS:
        check(bodies, pair, search)


@pytest.mark.parametrize("search", ["every pair", pytest.param("static grid", marks=pytest.mark.slow), "curve, k"])
def test_blocks_of_aosoa(search: str) -> None:
    bodies = some(3, lw.AoSoA(4), "cpu")
    for pair in itertools.product(BLOCKS, BLOCKS):
        check(bodies, pair, search)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("search", ["every pair", pytest.param("static grid", marks=pytest.mark.slow), "curve"])
def test_rows_of_a_part_are_rows_of_the_whole(search: str, device: str) -> None:
    """Unsoftened potentials are not a number where an element meets itself unseen."""
    bodies, kernel = some(4, lw.SoA(), device), potential.using(SEARCHES[search])
    (whole,) = numbers(kernel(bodies, bodies))
    for part in SLICES:
        (rows,) = numbers(kernel(bodies[part], bodies))
        np.testing.assert_allclose(rows, whole[part], rtol=1e-12)
    halves = [numbers(kernel(bodies, bodies[p]))[0] for p in (slice(None, 20), slice(20, None))]
    np.testing.assert_allclose(sum(halves), whole, rtol=1e-12)


PLANS = [
    lw.Plan(targets=4), lw.Plan(tile=128), lw.Plan(targets=2, tile=128, hoist=True), lw.Plan(self_term="loops"),
    lw.Plan(self_term="drop"), lw.Plan(across=4, targets=1), lw.Plan(across=256, targets=1), lw.Plan(accumulate="f64"), lw.Plan(fission=True),
    lw.Plan(branches="apart"), lw.Plan(vector_bits=512), lw.Plan(fma=True),
]  # fmt: skip
GPU_PLANS = [
    lw.Plan(block=128), lw.Plan(tile=128, slices=4, block=128), lw.Plan(parts=4, tile=64, block=64), lw.Plan(block=64, uniforms="global"),
    lw.Plan(tile=64, unroll=4, block=64, prefetch="registers"), lw.Plan(targets=2, tile=64, block=64, prefetch="async"),
    lw.Plan(self_term="loops", block=64), lw.Plan(block=1),
]  # fmt: skip


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
@pytest.mark.parametrize("turn", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_plans_keep_what_is_the_same(turn: int, device: str) -> None:
    """Each plan with one of two functions; in the other turn with the other one."""
    bodies, done = some(5, lw.SoA(), device), 0
    functions = ((met, ()), (softened, (0.01,)))
    for n, plan in enumerate([*PLANS, *(GPU_PLANS if device == "cuda" else [])]):
        for kernel, values in functions if device == "cuda" else (functions[(n + turn) % 2],):
            (targets, sources) = SOME_PAIRS[done % 5]
            try:
                found = numbers(kernel(bodies[targets], bodies[sources], *values, plan=plan))
            except PlanError:
                continue
            done += 1
            for one, other in zip(found, numbers(kernel(bodies[targets], bodies[sources], *values)), strict=True):
                np.testing.assert_allclose(one, other, rtol=2e-4, atol=1e-4, err_msg=str(plan))
            if kernel is met:
                assert (found[0] == wanted(bodies, targets, sources, lw.AllPairs())[0]).all(), plan
    assert done >= (12 if device == "cuda" else 6)


def test_only_parts_pay_for_what_is_the_same() -> None:
    bodies = some(5, lw.SoA(), "cpu")
    for search in (lw.AllPairs(), lw.StaticGrid(radius=RADIUS, k=3)):
        assert "itself" in met.using(search).compile(bodies[3:], bodies).source
        assert "itself" not in met.using(search).compile(bodies, bodies).source
        assert "itself" not in met.using(search).compile(bodies[:9], bodies[9:]).source


@pytest.mark.parametrize(
    "plan", [*GPU_PLANS[:2], *(pytest.param(p, marks=pytest.mark.slow) for p in GPU_PLANS[2:])], ids=str
)
def test_kernels_over_parts_compile_for_a_gpu(plan: lw.Plan) -> None:
    record: Any = Body.__record__
    arguments = PairwiseArguments(
        ("target", record, lw.SoAoAS()), ("source", record, lw.SoAoAS()), {"softening2": t.F32}, False, parts=True
    )
    reference = build_pairwise(softened.lowered, arguments, t.I32)
    assert compile_kernel(reference, plan.filled(NEUTRAL), "cuda", arch="sm_90").cubins


@pytest.mark.parametrize(
    "name",
    [
        "static grid, k",
        *(pytest.param(n, marks=pytest.mark.slow) for n in ("static grid", "curve, k", "nearest, no structure")),
    ],
)
def test_searches_over_parts_compile_for_a_gpu(name: str) -> None:
    bodies = some(5, lw.SoAoAS(), "cpu")
    search, kernel = SEARCHES[name], met.using(SEARCHES[name])
    assert kernel.searched is not None
    arguments = Arguments(records={"target": bodies[3:], "source": bodies})
    structure = search.make(points_of(bodies, "position"))
    copied = kernel.searched.specialiser.copied(arguments) if structure.order is not None else ()
    reference = kernel.searched.specialiser.reference(arguments, search, structure, copied, t.I32)
    assert "$itself" in print_kernel(reference)
    assert compile_kernel(reference, lw.Plan(block=128).filled(NEUTRAL), "cuda", arch="sm_90").cubins


def test_one_kernel_serves_all_parts() -> None:
    bodies = some(6, lw.SoA(), "cpu")
    one, other = (met.compile(bodies[part], bodies).executable for part in (slice(3, None), slice(9, 20)))
    assert one is other


def test_calls_do_not_take_each_others_parts() -> None:
    """Repeated and bound calls, one after the other: each with the parts that it was given."""
    bodies, copy = some(7, lw.SoA(), "cpu"), some(7, lw.SoA(), "cpu")
    parts = [slice(0, 20), slice(10, 30), slice(28, 48), slice(0, 40, 2)]
    for search in (lw.AllPairs(), lw.AllPairs(k=3), lw.StaticGrid(radius=RADIUS)):
        kernel = met.using(search)
        bound = {n: kernel.bind(bodies[p], bodies) for n, p in enumerate(parts)}
        for n, part in [*enumerate(parts)] * 3:
            for source, identical in ((bodies, True), (copy, False)):
                found = numbers(kernel(bodies[part], source))
                if identical:
                    expected = wanted(bodies, part, slice(None), search)
                    assert (numbers(bound[n]())[1] == expected[1]).all()
                    assert (found[0] == expected[0]).all()
                    assert (found[1] == expected[1]).all()
                else:
                    assert (found[0] == 0).all()


@pytest.mark.parametrize(
    "search", ["static grid", *(pytest.param(s, marks=pytest.mark.slow) for s in ("every pair", "nearest"))]
)
def test_two_sides_have_the_same_elements(search: str) -> None:
    fields = {"position": some(8, lw.SoA(), "cpu").position, "mass": some(8, lw.SoA(), "cpu").mass}
    bodies = Body.array(**fields, layout=lw.AoS(), host_layout=lw.SoA(), device="cpu")
    kernel = met.using(SEARCHES[search])
    for targets, sources in SOME_PAIRS[:6]:
        for here, there in ((bodies, bodies.host), (bodies.host, bodies)):
            found = numbers(kernel(here[targets], there[sources]))
            assert (found[1] == wanted(bodies, targets, sources, SEARCHES[search])[1]).all()


def test_memory_of_others() -> None:
    """Arrays that lie in memory of somebody else may have elements in common, whichever array was made of
    which part.
    """
    bytes_of = np.zeros(COUNT * Body.dtype.itemsize + 64, np.uint8)
    begin = -bytes_of.ctypes.data % 16
    memory = bytes_of[begin:][: COUNT * Body.dtype.itemsize].view(Body.dtype)
    memory[:] = some(9, lw.AoS(), "cpu").to_structured(copy=True)
    whole, part = Body.array(memory, copy=False), Body.array(memory[8:32], copy=False)
    expected = wanted(whole, slice(8, 32), slice(None), lw.AllPairs())
    for _ in range(3):
        assert (numbers(met(part, whole))[1] == expected[1]).all()
    assert numbers(met(part[::3], whole[::2]))[0].tolist() == [1, 0, 1, 0, 1, 0, 1, 0]
    assert numbers(met(whole, Body.array(memory, copy=False)))[0].all()


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param([*SLICES[:3], SLICES[1]], id="few"),
        pytest.param([*SLICES[3:6], *SLICES[1:3]], id="others", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("search", [pytest.param("every pair", marks=pytest.mark.slow), "static grid"])
def test_gradients_know_the_element_itself(search: str, parts: list[slice]) -> None:
    bodies, kernel = some(10, lw.SoA(), "cpu"), potential.using(SEARCHES[search])
    of_targets, of_sources = kernel.gradient("target.position"), kernel.gradient("source.position")
    whole, there = of_targets(bodies, bodies), of_sources(bodies, bodies)
    assert np.isfinite(whole).all()
    weights = np.linspace(0, 1, COUNT)
    weighed, weighed_there = (
        of_targets(bodies, bodies, cotangent=weights),
        of_sources(bodies, bodies, cotangent=weights),
    )
    for part in parts:
        np.testing.assert_allclose(of_targets(bodies[part], bodies), whole[part], rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(of_sources(bodies, bodies[part]), there[part], rtol=1e-4, atol=1e-4)
        mine = of_targets(bodies[part], bodies, cotangent=weights[part])
        np.testing.assert_allclose(mine, weighed[part], rtol=1e-4, atol=1e-4)
        mine = of_sources(bodies, bodies[part], cotangent=weights)
        np.testing.assert_allclose(mine, weighed_there[part], rtol=1e-4, atol=1e-4)


def test_a_stale_part_says_so() -> None:
    bodies = some(11, lw.SoA(), "cpu")
    bodies.reserve(100)
    part, call = bodies[:10], met.bind(bodies[:10], bodies)
    bodies.append(bodies[:1])
    for attempt in (lambda: met(part, bodies), call):
        with pytest.raises(lw.ArgumentError, match="changed in length"):
            attempt()


def test_copies_have_elements_of_their_own() -> None:
    bodies = some(12, lw.SoA(), "cpu")
    for copy in (bodies.copy(), bodies[np.ones(COUNT, bool)], bodies[np.arange(COUNT)], bodies[:30].copy()):
        assert not numbers(met(copy, bodies))[0].any()
