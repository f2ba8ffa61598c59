"""Tables read by elements, pairs and sites, and the indices of these, on every device without a GPU."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lanewise as lw
from lanewise.ir import nodes as ir
from lanewise.planning.plan import Plan
from lanewise.runtime.memory import array_module
from tests.patterns import tables as k
from tests.patterns.tables import Grain

HOSTS = pytest.mark.parametrize("device", ["cpu", "python"])


@HOSTS
@pytest.mark.parametrize("layout", k.LAYOUTS, ids=str)
def test_elements(device, layout):
    k.check_elements(device, layout, 37)
    k.check_noise(device, layout, 37)


@HOSTS
def test_returns_and_loops(device):
    k.check_early(device, 50)


@pytest.mark.parametrize("plan", [None, Plan(targets=4), Plan(targets=2, accumulate="f64"), Plan(tile=64)], ids=str)
def test_pairs(plan):
    k.check_pairs("cpu", 45, plan)


@pytest.mark.parametrize("layout", k.LAYOUTS, ids=str)
def test_pairs_in_every_layout(layout):
    k.check_pairs("cpu", 20, layout=layout)


def test_pairs_interpreted():
    k.check_pairs("python", 12)


@pytest.mark.grid(every=40)
@HOSTS
@pytest.mark.parametrize("search", [lw.Neighbors(radius=0.3), lw.Nearest(k=4)], ids=str)
def test_searches(device, search):
    k.check_search(device, search, 120 if device == "cpu" else 24)


@HOSTS
def test_interpolation(device):
    k.check_interpolation(device, 200 if device == "cpu" else 6)


@pytest.mark.quick("plain-no mask", "in-place-mask")
@pytest.mark.parametrize("walls", [False, True], ids=["no mask", "mask"])
@pytest.mark.parametrize("how", [{}, {"layout": lw.AoS()}, {"streaming": "in-place"}], ids=["plain", "AoS", "in-place"])
def test_sites(how, walls):
    mask = np.zeros((6, 8), int)
    mask[0], mask[4, 5] = 2, 2
    given_mask = mask if walls else None
    wanted = k.check_sites("python", mask=given_mask)
    np.testing.assert_allclose(k.check_sites("cpu", mask=given_mask, **how), wanted, atol=1e-6)


# ------------------------------------------------------------ interpolation


@given(
    st.sampled_from(k.EDGES),
    st.lists(st.floats(-8, 8, width=32), min_size=1, max_size=9),
    st.lists(st.floats(-100, 100, width=32), min_size=1, max_size=12),
)
def test_interpolation_is_what_float64_gives(edge, values, places):
    t, x = np.array(values, np.float32), np.array(places, np.float32)
    result, wanted = k.ONE[edge](x, t), _float64(edge, values, places)
    np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(lw.interpolate(t, x, edge=edge), wanted, rtol=1e-5, atol=1e-5)


def _float64(edge: str, values: list[float], places: list[float]) -> np.ndarray[Any, Any]:
    """By the elements that lie on either side, each found in a table that goes on."""
    n = len(values)

    def element(i: int) -> float:
        match edge:
            case "clamp":
                return values[min(max(i, 0), n - 1)]
            case "repeat":
                return values[i % n]
            case "mirror":
                return values[i % (2 * n)] if i % (2 * n) < n else values[2 * n - 1 - i % (2 * n)]
            case _:
                return values[i] if 0 <= i < n else 0.0

    below = [int(np.floor(x)) for x in places]
    return np.array([element(i) + (x - i) * (element(i + 1) - element(i)) for i, x in zip(below, places, strict=True)])


def test_what_is_not_a_number_gives_none():
    x = np.array([np.nan, np.inf, -np.inf], np.float32)
    t = np.array([3, 5], np.float32)
    for device in ("cpu",):
        assert np.isnan(k.clamp1(x, t)[0]), device
        np.testing.assert_array_equal(k.clamp1(x, t)[1:], [5, 3])
        np.testing.assert_array_equal(k.zero1(x, t)[1:], [0, 0])
        assert np.isnan(k.repeat1(x, t)).all()
        assert np.isnan(k.mirror1(x, t)).all()


@lw.threadwise
def stretched(y: lw.index, x: lw.index, t: lw.Array2[lw.f32], c: lw.Array2[lw.f32], factor: lw.f32):
    c[y, x] = lw.interpolate(t, lw.f32(y) * factor, lw.f32(x) * factor, edge="mirror")


@lw.elementwise
def around(x: lw.f32, t: lw.Array1[lw.f32]) -> tuple[lw.f32, lw.f32]:
    return lw.interpolate(t, x, edge="repeat"), lw.interpolate(t, x, edge="mirror")


@pytest.mark.parametrize("fast_math", [False, True])
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_every_turn_begins_with_the_first_value(device, fast_math):
    """A quotient with fast mathematics may be a little less than the number of turns."""
    for n in (3, 7, 41, 55, 61, 1000):
        turns = array_module(device).arange(-3000, 3000).astype("f4")
        table = array_module(device).arange(n).astype("f4")
        repeated, _ = around(turns * n, table, plan=lw.Plan(fast_math=fast_math))
        _, mirrored = around(turns * (2 * n), table, plan=lw.Plan(fast_math=fast_math))
        assert not repeated.any()
        assert not mirrored.any()


def test_threadwise_functions_interpolate_with_proof():
    t, c = k.table(5, 6), np.zeros((20, 30), np.float32)
    stretched(t, c, 0.3, grid=c.shape, checks=True)
    y, x = (np.arange(n, dtype=np.float32) * np.float32(0.3) for n in c.shape)
    np.testing.assert_allclose(c, lw.interpolate(t, y[:, None], x[None], edge="mirror"), atol=1e-6)


def test_interpolation_in_python():
    t = np.array([[1.0, 2.0], [3.0, 5.0]])
    assert lw.interpolate(t, 0.5, 0.5) == 2.75
    assert lw.interpolate(t, 1, 0) == 3.0
    for bad in (
        lambda: lw.interpolate([1, 2], 0.5), lambda: lw.interpolate(t, 0.5), lambda: lw.interpolate(t, 0.5, 1j),
        lambda: lw.interpolate(t, 0.5, 0.5, edge="wrap"), lambda: lw.interpolate(np.zeros(0), 0.5),
        lambda: lw.interpolate(t, np.zeros(2), np.zeros(3)), lambda: lw.index_of(3),
    ):  # fmt: skip
        with pytest.raises(lw.ArgumentError):
            bad()


# ------------------------------------------------------------ parts and orders


def test_random_numbers_do_not_hang_on_parts():
    count = 41
    at = np.arange(count, dtype=np.int32)
    wanted = lw.random(3, at)
    np.testing.assert_array_equal(k.shaken(np.zeros(count, np.float32), 3), wanted)
    total = k.shaken.sum(np.zeros(count, np.float32), 3)
    assert total == pytest.approx(wanted.astype(float).sum(), rel=1e-12)
    assert k.shaken.max(np.zeros(count, np.float32), 3) == wanted.max()


@lw.elementwise
def two_results(a: Grain, t: lw.Array1[lw.f32]) -> tuple[lw.f32, lw.f32]:
    if a.kind == 0:
        return t[a.kind], lw.random(1, lw.index_of(a))
    return t[a.kind] * 2, lw.interpolate(t, a.charge)


@pytest.mark.parametrize("plan", [None, Plan(fission=True), Plan(branches="apart"), Plan(fast_math=True)], ids=str)
def test_kernels_in_parts(plan):
    f, t = k.fields(60), k.table(k.KINDS)
    first, second = two_results(Grain.array(**f), t, plan=plan)
    one = f["kind"] == 0
    np.testing.assert_allclose(first, np.where(one, t[f["kind"]], 2 * t[f["kind"]]), rtol=1e-6)
    draws = lw.random(1, np.arange(60, dtype=np.int32))
    np.testing.assert_allclose(second, np.where(one, draws, lw.interpolate(t, f["charge"])), rtol=1e-5)


# ------------------------------------------------------------ bounds


def line(kernel: Any, text: str) -> int:
    source, first = inspect.getsourcelines(kernel.python)
    return first + next(n for n, row in enumerate(source) if text in row)


@HOSTS
def test_an_element_outside_is_named(device):
    f, levels, factors = k.fields(30), k.table(k.KINDS), k.table(k.KINDS, 5, kind=np.float64)
    f["kind"][[11, 20]] = 7, -2
    grains = Grain.array(**f, device=device)
    with pytest.raises(lw.VerificationError) as caught:
        k.look_up(grains, levels, factors, checks=True)
    text = str(caught.value)
    assert f":{line(k.look_up, 'levels[a.kind]')}:" in text
    assert "look_up: 'levels' is read outside of its elements" in text
    assert "the index is 7 in the element 11, and 'levels' has the shape (3,)" in text
    assert "wanted: 0 to 2" in text
    assert not np.asarray(grains.level).any()  # nothing has been changed
    grains.kind = k.fields(30)["kind"]
    k.look_up(grains, levels, factors, checks=True)
    assert np.asarray(grains.level).all()


@pytest.mark.grid(every=40)
@HOSTS
@pytest.mark.parametrize("search", [None, lw.Neighbors(radius=0.4), lw.Nearest(k=3)], ids=str)
def test_a_pair_outside_is_named(device, search):
    f = k.fields(20)
    f["kind"][13] = 3
    good, bad = Grain.array(**k.fields(20), device=device), Grain.array(**f, device=device)
    kernel = k.by_kind if search is None else k.by_kind.using(search)
    w = k.table(k.KINDS, k.KINDS)
    with pytest.raises(
        lw.VerificationError, match=r"index 0 is 3 in a pair of the target 13, and 'w' has the shape \(3, 3\)"
    ):
        kernel(bad, good, w, 0.01, checks=True)
    with pytest.raises(lw.VerificationError, match=r"index 1 is 3 in a pair of the target \d+, and 'w'"):
        kernel(good, bad, w, 0.01, checks=True)
    np.testing.assert_array_equal(kernel(good, good, w, 0.01, checks=True), kernel(good, good, w, 0.01))


@HOSTS
def test_a_site_outside_is_named(device):
    sites = k.relax.sites((4, 4), device=device, edges={"x": "periodic", "y": "periodic"})
    populations = np.full((9, 4, 4), 0.01, np.float32)
    populations[:, 2, 3] = 1
    k.relax.set_populations(sites, populations)
    before = k.relax.populations(sites)
    rate, mask = np.ones(2, np.float32), np.ones((4, 4), np.float32)
    with pytest.raises(
        lw.VerificationError, match=r"the index is 9 in the site \(2, 3\), and 'rate' has the shape \(2,\)"
    ):
        k.relax(sites, rate=rate, mask=mask, checks=True)
    np.testing.assert_array_equal(k.relax.populations(sites), before)


@lw.elementwise
def surely(a: Grain, t: lw.Array1[lw.f32], n: lw.i32):
    a.level = t[n] + t[lw.index_of(a)]


@lw.elementwise
def perhaps(a: Grain, t: lw.Array1[lw.f32]):
    if a.kind > 5:
        return
    if lw.index_of(a) < len(t):
        a.level = t[lw.index_of(a)]


def test_what_surely_is_outside_is_refused():
    grains, t = Grain.array(**k.fields(8)), k.table(8)
    for _ in range(2):
        surely(grains, t, 3)
    for _ in range(2):  # a call like an earlier one, but for a value
        with pytest.raises(
            lw.ArgumentError, match=r"the index is 8 with these arguments, and 't' has the shape \(8,\)"
        ):
            surely(grains, t, 8)
    with pytest.raises(lw.ArgumentError, match="the index goes from 0 to 7 with these arguments"):
        surely(grains, k.table(7), 3)
    perhaps(grains, k.table(5), checks=True)  # proved by its condition


def test_totals_are_tested_too():
    f = k.fields(9)
    f["kind"][4] = 5
    t = k.table(k.KINDS)
    good = Grain.array(**k.fields(9))
    assert two_results.sum(good, t, checks=True) == two_results.sum(good, t)
    with pytest.raises(lw.VerificationError, match="the index is 5 in the element 4"):
        two_results.sum(Grain.array(**f), t, checks=True)


def test_tests_belong_to_calls():
    grains, t = Grain.array(**k.fields(9)), k.table(k.KINDS)
    for method in (two_results.compile, two_results.tune, two_results.tuning_job):
        with pytest.raises(lw.ArgumentError, match="checks=True is for calls and for bind"):
            method(grains, t, checks=True)
    run = two_results.bind(grains, t, checks=True)
    run()
    grains.kind = np.full(9, 3)
    with pytest.raises(lw.VerificationError, match="the index is 3 in the element 0"):
        run()


def test_what_is_proved_is_not_tested():
    grains = Grain.array(**k.fields(8))
    arguments = perhaps._calls.given((grains, k.table(5)), {"checks": True})
    assert arguments.tests is None
    assert k.clamp1._calls.given((k.table(9), k.table(5)), {"checks": True}).tests is None


# ------------------------------------------------------------ refusals


def test_tables_that_do_not_fit():
    grains, factors = Grain.array(**k.fields(8)), k.table(k.KINDS, 5, kind=np.float64)
    for bad, text in (
        (k.table(3, kind=np.float64), "of float32, found one of float64 with shape"),
        (k.table(3, 2), "with 1 dimension of float32, found one of float32 with shape (3, 2)"),
        ([1.0, 2.0, 3.0], "must be a contiguous array of NumPy or CuPy"),
        (k.table(6)[::2], "is not contiguous"),
    ):
        with pytest.raises(lw.ArgumentError) as caught:
            k.look_up(grains, bad, factors)
        assert text in str(caught.value)
        assert "'levels'" in str(caught.value)
    with pytest.raises(lw.ArgumentError, match="checks= is True or False, found 1"):
        k.look_up(grains, k.table(3), factors, checks=1)
    with pytest.raises(lw.ArgumentError, match="noise has none"):
        k.noise(grains, 3, checks=True)


def test_a_table_is_no_view_of_what_is_written():
    values = np.zeros(24, np.float32)
    grains = Grain.array(**k.fields(8), layout=lw.SoA())
    level = grains.level
    with pytest.raises(lw.ArgumentError, match="shares memory with the table 'levels'"):
        k.look_up(grains, level, k.table(k.KINDS, 5, kind=np.float64))
    x, t = values[:8], values[4:12]
    for _ in range(2):
        with pytest.raises(lw.ArgumentError, match="out shares memory with the table 't'"):
            k.clamp1(x, t, out=values[8:16])
        k.clamp1(x, t)


def test_read_only_tables_are_read():
    t = k.table(5)
    t.flags.writeable = False
    for _ in range(2):
        np.testing.assert_allclose(k.clamp1(np.array([0.5], np.float32), t), lw.interpolate(t, np.float32([0.5])))


def test_passes_see_flat_places():
    lowered = k.look_up.lowered
    assert lowered.indexed is not None
    assert any(isinstance(s, ir.LoadElement) for s in lowered.indexed.body)
    assert not any(isinstance(s, ir.LoadElement) for s in lowered.function.body)
