"""Sums in buckets on a CPU: the bits are those of the kernel, whatever the values, places and threads are."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lanewise as lw
from lanewise.language import exact_sums
from lanewise.language.exact_sums import FloatFormat
from lanewise.language.types import F32, I32, I64
from lanewise.patterns import plain_sums
from lanewise.patterns.plain_sums import PlainSum, plain_sum
from lanewise.planning.plan import Plan
from lanewise.primitives import buckets, direct_sums, float_sums
from lanewise.primitives.exact_sums import close_on_host
from lanewise.runtime import cpu


@lw.elementwise
def deposit(place: lw.i32, v: lw.f32, sums: lw.Array1[lw.f32]):
    lw.scatter_add(sums, place, v)


@lw.elementwise
def deposit_wide(place: lw.i64, v: lw.f64, sums: lw.Array1[lw.f64]):
    lw.scatter_add(sums, place, v)


@lw.elementwise
def deposit_whole(place: lw.i32, v: lw.i32, sums: lw.Array1[lw.i32]):
    lw.scatter_add(sums, place, v)


@lw.threadwise
def deposited(i: lw.index, place: lw.Array1[lw.i32], v: lw.Array1[lw.f32], sums: lw.Array1[lw.f32]):
    lw.scatter_add(sums, place[i], v[i])


@lw.threadwise
def counted(i: lw.index, place: lw.Array1[lw.i64], counts: lw.Array1[lw.u32]):
    lw.scatter_add(counts, place[i], 3)


@lw.threadwise
def shifted(i: lw.index, place: lw.Array1[lw.i32], v: lw.Array1[lw.f32], sums: lw.Array1[lw.f32]):
    lw.scatter_add(sums, place[i], v[i + 1])


@lw.threadwise
def turned(i: lw.index, place: lw.Array1[lw.i32], v: lw.Array1[lw.f32], sums: lw.Array1[lw.f32]):
    lw.scatter_add(sums, i, v[place[i]])


@lw.threadwise
def twice(i: lw.index, place: lw.Array1[lw.i32], v: lw.Array1[lw.f32], sums: lw.Array1[lw.f32]):
    lw.scatter_add(sums, place[i], v[i])
    lw.scatter_add(sums, place[i], v[i])


def test_what_is_recognised() -> None:
    assert plain_sum(deposit_whole.lowered.function.body) == PlainSum("sums", "place", "v", (I32, I32), False)
    found = plain_sum(deposited.lowered.function.body, "i")
    assert found == PlainSum("sums", "place", "v", (I32, F32), True)
    found = plain_sum(counted.lowered.function.body, "i")
    assert found is not None
    assert (found.value, found.kinds[0], found.exact) == (3, I64, False)
    for other in (shifted, turned, twice):
        assert plain_sum(other.lowered.function.body, "i") is None


def values_of(kind: str, count: int, rng: np.random.Generator, dtype: str) -> np.ndarray[Any, Any]:
    match kind:
        case "uniform":
            return rng.random(count).astype(dtype)
        case "exponents":
            low, high = (-140, 100) if dtype == "f4" else (-1060, 1000)
            return np.ldexp(rng.normal(size=count), rng.integers(low, high, count)).astype(dtype)
        case "large at the end":
            values = rng.normal(size=count).astype(dtype)
            values[-3:] = 1e38, -1e38, 3e37
            return values
        case "cancelling":
            values = (rng.normal(size=count) * 1e6).astype(dtype)
            values[1::2] = -values[: count // 2 * 2 : 2][: len(values[1::2])]
            return values
        case "largest":
            return np.full(count, np.finfo(dtype).max, dtype)
        case "smallest":
            return (rng.integers(-3, 4, count) * np.finfo(dtype).smallest_subnormal).astype(dtype)
        case _:
            whole = rng.integers(0, 2**64, count, np.uint64).view("f8") if dtype == "f8" else None
            values = rng.integers(0, 2**32, count, np.uint32).view("f4") if whole is None else whole
            values[: count // 2] = np.nan_to_num(values[: count // 2], posinf=1.0, neginf=2.0)
            return values


KINDS = ["uniform", "exponents", "large at the end", "cancelling", "largest", "smallest", "any bits"]


def same(a: Any, b: Any) -> bool:
    """Whether the bits are the same; all that is not a number is."""
    whole = np.uint32 if a.itemsize == 4 else np.uint64
    return bool(((a.view(whole) == b.view(whole)) | (np.isnan(a) & np.isnan(b))).all())


def choose(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that can goes this way, and values that wait are no reason for another one."""
    monkeypatch.setattr(direct_sums, "WAITING", 1)
    monkeypatch.setattr(direct_sums, "ADDED", 1e9)
    if way == "buckets":
        monkeypatch.setattr(direct_sums, "ROOM", 0)


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("values", KINDS)
@pytest.mark.parametrize(("kernel", "dtype"), [(deposit, "f4"), (deposit_wide, "f8")])
@pytest.mark.parametrize("way", ["directly", "buckets"])
def test_both_ways_have_the_bits_of_the_kernel(
    kernel: Any, dtype: str, values: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose(way, monkeypatch)
    monkeypatch.setattr(buckets, "HOST_FEW", 1)
    monkeypatch.setattr(buckets, "TILE", 1_000)
    monkeypatch.setattr(buckets, "SHARE", 2)
    monkeypatch.setattr(float_sums, "ROUND", 5_000)
    monkeypatch.setattr(float_sums, "ROUNDS", 9_000)
    rng = np.random.default_rng(7)
    for elements, count in ((1, 4_000), (5, 9_001), (3_000, 20_003), (70_000, 30_000)):
        place = rng.integers(0, elements, count).astype("i4" if dtype == "f4" else "i8")
        v = values_of(values, count, rng, dtype)
        start = (rng.normal(size=elements) * (elements > 5)).astype(dtype)
        expected = start.copy()
        kernel.bind(place, v, expected, plan=Plan())()
        for threads in (1, 2, 3):
            monkeypatch.setattr(cpu, "cpu_threads", lambda n=threads: n)
            sums, calls = start.copy(), list[int]()

            def counted_add(*given: Any, calls: list[int] = calls) -> None:
                calls.append(1)
                float_sums.add_on_host(*given)

            with monkeypatch.context() as patch:
                patch.setattr(plain_sums, "float_sums", SimpleNamespace(add_on_host=counted_add))
                kernel.bind(place, v, sums)()
            assert calls
            assert same(sums, expected)


@pytest.mark.parametrize("cached", [0, 2**23], ids=["buckets", "a copy for each thread"])
@pytest.mark.parametrize("threads", [1, 3])
def test_whole_numbers_wrap_and_places_outside_are_left_out(
    cached: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buckets, "HOST_FEW", 1)
    monkeypatch.setattr(buckets, "HOST_CACHED", cached)
    monkeypatch.setattr(cpu, "cpu_threads", lambda: threads)
    rng = np.random.default_rng(3)
    place = rng.integers(-5, 1_005, 40_000)
    v = rng.integers(-(2**31), 2**31, 40_000).astype(np.int32)
    sums, counts = np.arange(1_000, dtype=np.int32), np.full(1_000, 2**32 - 5, np.uint32)
    expected, expected_counts = sums.astype(np.int64), counts.astype(np.int64)
    inside = (place >= 0) & (place < 1_000)
    np.add.at(expected, place[inside], v[inside])
    np.add.at(expected_counts, place[inside], 3)
    deposit_whole(place.astype(np.int32), v, sums)
    counted(place, counts, grid=len(place))
    assert (sums == expected.astype(np.int32)).all()
    assert (counts == expected_counts.astype(np.uint32)).all()


def test_a_part_of_the_places_and_a_call_with_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buckets, "HOST_FEW", 1)
    rng = np.random.default_rng(4)
    place, v = rng.integers(0, 50, 9_000).astype(np.int32), rng.random(9_000, np.float32)
    found, tested = np.zeros(50, np.float32), np.zeros(50, np.float32)
    deposited(place, v, found, grid=7_000)
    deposited(place, v, tested, grid=7_000, checks=True)
    assert same(found, tested)
    assert np.allclose(found, np.bincount(place[:7_000], v[:7_000], 50))
    place[3] = 50
    with pytest.raises(lw.VerificationError, match="place"):
        deposited(place, v, tested, grid=7_000, checks=True)


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64"])
def test_histograms_of_many_bins(dtype: str) -> None:
    rng = np.random.default_rng(5)
    values = rng.integers(0 if dtype == "uint32" else -100, 90_100, 80_000).astype(dtype)
    inside = values[(values >= 0) & (values < 90_000)].astype(np.int64)
    assert (lw.histogram(values, bins=90_000) == np.bincount(inside, minlength=90_000)).all()


SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.0**-149, -(2.0**-126), 3.4e38, -3.4e38, np.inf, -np.inf, np.nan]
NARROW = st.builds(lambda n, e: float(n) * 2.0**e, st.integers(-(2**24), 2**24), st.integers(-10, 10))


@pytest.fixture
def short_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles, rounds and numbers of an element for few values, so that small cases meet all that large ones do."""
    monkeypatch.setattr(buckets, "TILE", 4)
    monkeypatch.setattr(buckets, "SHARE", 1)
    for name in ("ROUND", "ROUNDS", "MOST"):
        monkeypatch.setattr(float_sums, name, 40)
    monkeypatch.setattr(float_sums, "host_text_of", float_sums.host_text_of.__wrapped__)


@pytest.fixture(params=["directly", "buckets"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """By which way sums go, on three threads."""
    choose(request.param, monkeypatch)
    monkeypatch.setattr(cpu, "cpu_threads", lambda: 3)
    return request.param


@pytest.mark.grid(every=40)
@pytest.mark.usefixtures("short_rounds", "way")
@pytest.mark.parametrize("kind", [exact_sums.F32, exact_sums.F64], ids=lambda k: k.name)
@given(data=st.data())
def test_sums_are_those_of_the_definition(kind: FloatFormat, data: st.DataObject) -> None:
    any_float = st.floats(width=32 if kind is exact_sums.F32 else 64)
    one = data.draw(st.sampled_from([NARROW, NARROW | st.sampled_from(SPECIAL), any_float]))
    values = np.array(data.draw(st.lists(one, min_size=1, max_size=100)), kind.name)
    elements = data.draw(st.integers(1, 40))
    count = len(values)
    place = np.array(data.draw(st.lists(st.integers(-1, elements), min_size=count, max_size=count)), np.int64)
    start = np.resize(
        np.array(data.draw(st.lists(st.sampled_from(SPECIAL), min_size=1, max_size=9)), kind.name), elements
    )
    words = np.zeros(exact_sums.length(kind, elements), np.int64)
    for p, v in zip(place, values, strict=True):
        if 0 <= p < elements:
            exact_sums.add(kind, words, int(p), v)
    with np.errstate(over="ignore"):
        expected = np.array([exact_sums.rounded(kind, words, n, x) for n, x in enumerate(start)], kind.name)
    planes, found = np.zeros(exact_sums.length_in_planes(kind, elements), np.int64), start.copy()
    float_sums.add_on_host(place, values, planes, found)
    close_on_host(planes, found)
    assert same(found, expected)
    assert not planes.any()


@pytest.mark.parametrize("kind", [exact_sums.F32, exact_sums.F64], ids=lambda k: k.name)
@pytest.mark.parametrize("wide", [False, True])
def test_many_values_that_would_wait_go_to_buckets(kind: FloatFormat, wide: bool) -> None:
    """And few wait: then the others are added directly."""
    rng = np.random.default_rng(9)
    values = rng.normal(size=4_000).astype(kind.name)
    if wide:
        values[:3_000] *= np.resize(2.0 ** np.array([-100, 90, 30]), 3_000).astype(kind.name)
    else:
        values[-100:] *= np.dtype(kind.name).type(2.0**-100)
    place, found = rng.integers(-1, 9, 4_000), rng.normal(size=9).astype(kind.name)
    words = np.zeros(exact_sums.length(kind, 9), np.int64)
    for p, v in zip(place, values, strict=True):
        if 0 <= p < 9:
            exact_sums.add(kind, words, int(p), v)
    expected = np.array([exact_sums.rounded(kind, words, n, x) for n, x in enumerate(found)], kind.name)
    planes = np.zeros(exact_sums.length_in_planes(kind, 9), np.int64)
    assert direct_sums.add_directly(place, values, planes, found) is not wide
    if wide:
        assert not planes.any()
        float_sums.add_on_host(place, values, planes, found)
    close_on_host(planes, found)
    assert same(found, expected)


def test_a_sum_halfway_between_two_float32_is_rounded_once(way: str) -> None:
    values = np.array([1.0, 2.0**-24, 2.0**-60, 1.0, 2.0**-24, -(2.0**-60), 1.0, 3 * 2.0**-24, -(2.0**-60)], np.float32)
    place, found = np.repeat(np.arange(3), 3), np.zeros(3, np.float32)
    words = np.zeros(exact_sums.length_in_planes(exact_sums.F32, 3), np.int64)
    float_sums.add_on_host(place, values, words, found)
    assert words.any() == (way == "directly")  # float64 has no room for 1 and 2^-60
    close_on_host(words, found)
    assert found.tolist() == [1 + 2.0**-23, 1.0, 1 + 2.0**-23]


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("kind", [exact_sums.F32, exact_sums.F64], ids=lambda k: k.name)
def test_the_smallest_value_beside_the_largest(kind: FloatFormat) -> None:
    """Numbers of an element go to the words, and have bits at their very end."""
    least, most = np.finfo(kind.name).smallest_subnormal, np.finfo(kind.name).max
    values, place = np.array([least, most, -most, 3 * least], kind.name), np.zeros(4, np.int64)
    found, words = np.zeros(1, kind.name), np.zeros(exact_sums.length_in_planes(kind, 1), np.int64)
    float_sums.add_on_host(place, values, words, found)
    close_on_host(words, found)
    assert found.tolist() == [4 * least]


@pytest.mark.parametrize(("last", "rounded"), [(2.0**-50, 1 + 2.0**-23), (-(2.0**-50), 1.0)])
def test_so_is_one_of_which_nothing_waits(last: float, rounded: float) -> None:
    values, place = np.array([1.0, 2.0**-24, last], np.float32), np.zeros(3, np.int64)
    found, words = np.zeros(1, np.float32), np.zeros(exact_sums.length_in_planes(exact_sums.F32, 1), np.int64)
    assert direct_sums.add_directly(place, values, words, found)
    assert not words.any()
    assert found.tolist() == [rounded]
