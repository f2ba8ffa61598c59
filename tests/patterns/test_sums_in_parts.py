"""Floats that are added in order by parts of a launch with their own sums: `lw.Plan(parts=...)` on a CPU."""

from __future__ import annotations

import time
import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.compiler.default_plans import complete_plan
from lanewise.explanation.calls import compile_call
from lanewise.language.target import Machine
from lanewise.planning.plan import NEUTRAL, Plan
from lanewise.primitives.sums_in_parts import _Sums, edges, run_in_parts
from lanewise.runtime import cpu
from lanewise.tuning.space import KernelSpace, make_estimator

RNG = np.random.default_rng(11)
ROW = 256  # elements at whose multiples long parts begin
BINS = 37


@lw.threadwise
def added(i: lw.index, place: lw.Array1[lw.i32], v: lw.Array1[lw.f32], sums: lw.Array1[lw.f32]):
    lw.scatter_add(sums, place[i], v[i], exact=False)


@lw.threadwise
def added_wide(i: lw.index, place: lw.Array1[lw.i32], v: lw.Array1[lw.f64], sums: lw.Array1[lw.f64]):
    lw.scatter_add(sums, place[i], v[i], exact=False)


class Grain(lw.Record):
    place: lw.i32
    weight: lw.f32


@lw.elementwise
def deposited(g: Grain, sums: lw.Array2[lw.f32]):
    lw.scatter_add(sums, (g.place, 1), g.weight, exact=False)


def edges_of(n: int, parts: int) -> list[int]:
    places = [n * p // parts for p in range(parts)]
    return [x if x < ROW else x // ROW * ROW for x in places] + [n]


def in_parts(place: np.ndarray, v: np.ndarray, sums: np.ndarray, parts: int) -> np.ndarray:
    """What the plan says, in ordinary Python: the first part adds to the array, the others to zeros."""
    total, edges = sums.copy(), edges_of(len(v), parts)
    for part in range(parts):
        own = total if not part else np.full_like(sums, -0.0)
        for n in range(edges[part], edges[part + 1]):
            own[place[n]] += v[n]
        if part:
            total = total + own
    return total


def drawn(n: int, kind: Any) -> tuple[np.ndarray, np.ndarray]:
    return RNG.integers(0, BINS, n).astype(np.int32), (RNG.normal(size=n) * 10.0 ** RNG.integers(-3, 4, n)).astype(kind)


SIZES = (0, 1, 2, 3, 4, 5, 6, 255, 256, 257, 1023, 1024, 1500, 5003)


@pytest.mark.parametrize("threads", ["1", "2", "3"])
@pytest.mark.parametrize("kind", [np.float32, np.float64], ids=["f32", "f64"])
def test_parts_have_their_own_sums(threads: str, kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every bit, at sizes around those of parts and rows, on any number of threads."""
    monkeypatch.setenv("LANEWISE_THREADS", threads)
    monkeypatch.setattr(cpu, "HANDING_OVER", 1e-12)  # any work is worth a thread
    kernel = added if kind is np.float32 else added_wide
    for n in SIZES:
        place, v = drawn(n, kind)
        begun = RNG.normal(size=BINS).astype(kind)
        for parts in (1, 2, 4, 5, 16):
            wanted = in_parts(place, v, begun, parts).tobytes()
            for _ in range(2):
                sums = begun.copy()
                kernel(place, v, sums, grid=n, plan=lw.Plan(parts=parts))
                assert sums.tobytes() == wanted, (n, parts)
            if kind is np.float32 and n:
                table = np.zeros((BINS, 3), np.float32)
                table[:, 1] = begun
                deposited(Grain.array(place=place, weight=v), table, plan=lw.Plan(parts=parts))
                assert table[:, 1].tobytes() == wanted, (n, parts)
                assert not table[:, [0, 2]].any()


def test_numbers_that_do_not_round_are_those_of_the_interpreter() -> None:
    place, v = RNG.integers(0, BINS, 700).astype(np.int32), RNG.integers(-50, 50, 700).astype(np.float32)
    found = []
    for device, plan in (("python", None), ("cpu", lw.Plan(parts=5)), ("cpu", None)):
        sums = np.ones(BINS, np.float32)
        with lw.device(device):
            added(place, v, sums, grid=len(v), plan=plan)
        found.append(sums.tobytes())
    assert len(set(found)) == 1


def test_elements_that_a_part_does_not_reach_keep_their_bits() -> None:
    """Also negative zeros, and the signs of sums that are one value."""
    begun = np.array([-0.0, 0.0, np.nan, -np.inf, -0.0, 1e-45, -0.0], np.float32)
    place = np.repeat(np.array([4, 6, 6], np.int32), [1, 1, 2])
    v = np.array([-0.0, -0.0, -0.0, 0.0], np.float32)
    for parts in (1, 2, 3, 4):
        sums = begun.copy()
        added(place, v, sums, grid=4, plan=lw.Plan(parts=parts))
        wanted = begun.copy()
        wanted[6] = 0.0
        assert sums.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("threads", ["1", "3"])
def test_sums_without_a_number_say_no_more_than_kernels(threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Infinities of both signs in different parts, and sums beyond the type, whatever NumPy would do about them."""
    monkeypatch.setenv("LANEWISE_THREADS", threads)
    monkeypatch.setattr(cpu, "HANDING_OVER", 1e-12)
    v = np.array([np.inf, 3e38, 1e-45, -np.inf, 3e38, 1e-45], np.float32)
    place = np.array([0, 1, 2, 0, 1, 2], np.int32)
    for parts in (1, 2, 6):
        sums = np.zeros(3, np.float32)
        with warnings.catch_warnings(), np.errstate(all="raise"):
            warnings.simplefilter("error")  # threads have NumPy's settings of their own
            added(place, v, sums, grid=6, plan=lw.Plan(parts=parts))
        np.testing.assert_array_equal(sums, np.array([np.nan, np.inf, 3e-45], np.float32))


@lw.threadwise
def of_all_kinds(
    y: lw.index, x: lw.index, v: lw.Array2[lw.f32], twice: lw.Array2[lw.f32], counts: lw.Array1[lw.i64], most: lw.Array1[lw.f32],
    least: lw.Array1[lw.i32], exact: lw.Array1[lw.f64], sums: lw.Array2[lw.f32], wide: lw.Array1[lw.f64],
):  # fmt: skip
    b = (y * 7 + x) % len(counts)
    twice[y, x] = 2 * v[y, x]
    lw.scatter_add(counts, b, y + x)
    lw.scatter_max(most, b, v[y, x])
    lw.scatter_min(least, b, x - y)
    lw.scatter_add(exact, b, lw.f64(v[y, x]))
    lw.scatter_add(sums, (b % 3, b), v[y, x], exact=False)
    if v[y, x] > 0:
        lw.scatter_add(wide, b, lw.f64(v[y, x]), exact=False)


@pytest.mark.parametrize("threads", ["1", "2", "3"])
def test_beside_all_else_that_a_kernel_writes(threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANEWISE_THREADS", threads)
    monkeypatch.setattr(cpu, "HANDING_OVER", 1e-12)
    v = RNG.normal(size=(41, 50)).astype(np.float32)
    y, x = np.indices(v.shape)
    b, rows = ((y * 7 + x) % BINS).reshape(-1), edges_of(41, 4)
    for checks in (False, True):
        sums, wide, exact = np.ones((3, BINS), np.float32), np.zeros(BINS), np.zeros(BINS)
        counts, least = np.zeros(BINS, np.int64), np.full(BINS, 999, np.int32)
        most, twice = np.full(BINS, -9, np.float32), np.zeros_like(v)
        of_all_kinds(
            v, twice, counts, most, least, exact, sums, wide, grid=v.shape, plan=lw.Plan(parts=4), checks=checks
        )  # fmt: skip
        np.testing.assert_array_equal(twice, 2 * v)
        found, low = np.zeros(BINS, np.int64), np.full(BINS, 999)
        high = np.full(BINS, -9, np.float32)
        np.add.at(found, b, (y + x).reshape(-1))
        np.minimum.at(low, b, (x - y).reshape(-1))
        np.maximum.at(high, b, v.reshape(-1))
        np.testing.assert_array_equal(counts, found)
        np.testing.assert_array_equal(least, low)
        np.testing.assert_array_equal(most, high)
        np.testing.assert_allclose(
            exact, np.bincount(b, v.reshape(-1).astype(np.float64), BINS), rtol=1e-12, atol=1e-13
        )
        total, double = np.ones((3, BINS), np.float32), np.zeros(BINS)
        for part, (first, last) in enumerate(pairwise(rows)):
            own = total if not part else np.full_like(total, -0.0)
            far = double if not part else np.full_like(double, -0.0)
            for at, value in zip(b[first * 50 : last * 50], v[first:last].reshape(-1), strict=True):
                own[at % 3, at] += value
                far[at] += np.float64(value) if value > 0 else 0.0
            total, double = (total, double) if not part else (total + own, double + far)
        assert sums.tobytes() == total.tobytes()
        np.testing.assert_array_equal(wide, double)


class Walker(lw.Record):
    at: lw.f32
    mass: lw.f32


@lw.elementwise
def moved(p: Walker, step: lw.f32, density: lw.Array1[lw.f32]) -> lw.f32:
    p.at += step
    lw.scatter_add(density, lw.i32(p.at) % len(density), p.mass, exact=False)
    return p.at * p.mass


def test_records_that_are_updated_and_results() -> None:
    at, mass = RNG.uniform(0, 20, 900).astype(np.float32), RNG.random(900, np.float32)
    walkers, density = Walker.array(at=at, mass=mass), np.zeros(9, np.float32)
    weighed = moved(walkers, 0.5, density, plan=lw.Plan(parts=3))
    there = at + np.float32(0.5)
    np.testing.assert_array_equal(walkers.at, there)
    np.testing.assert_array_equal(weighed, there * mass)
    assert density.tobytes() == in_parts(there.astype(np.int32) % 9, mass, np.zeros(9, np.float32), 3).tobytes()


# ------------------------------------------------------------ how many parts


def plan_of(n: int, bins: int, kernel: Any = added, kind: Any = np.float32) -> Any:
    """Of a call that is not run: memory is not touched."""
    empty = np.empty
    return kernel.compile(empty(n, np.int32), empty(n, kind), empty(bins, kind), grid=n).plan


@pytest.mark.parametrize(
    ("n", "bins", "parts"),
    [
        (0, 50, 1), (1, 50, 1), (30_000, 50, 1), (262_143, 50, 1), (262_144, 50, 2), (1_000_000, 50, 4), (2_097_152, 50, 16),
        (100_000_000, 50, 16), (1_000_000, 10_000, 4), (1_000_000, 100_000, 2), (1_000_000, 125_001, 1), (1_000_000, 0, 4),
        (100_000_000, 4_000_000, 4), (100_000_000, 40_000_000, 1),
    ],
)  # fmt: skip
def test_parts_are_the_default_where_copies_are_few_beside_additions(n: int, bins: int, parts: int) -> None:
    assert plan_of(n, bins).parts == parts


def test_no_machine_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    """How many threads there are changes neither the plan nor a bit."""
    n = 600_000
    place, v = drawn(n, np.float32)
    found = set()
    for threads in ("1", "2", "3", "7"):
        monkeypatch.setenv("LANEWISE_THREADS", threads)
        fresh, sums = lw.threadwise(added.python), np.zeros(BINS, np.float32)
        fresh(place, v, sums, grid=n)
        assert fresh.compile(place, v, sums, grid=n).plan.parts == 4
        found.add(sums.tobytes())
    assert len(found) == 1
    subject = added._calls.subject
    work = subject.work(added._calls.given((place, v, sums), {"grid": n}))
    assert {complete_plan(None, Machine("cpu", cores), work).parts for cores in (1, 4, 128)} == {4}


def test_elementwise_calls_count_all_their_additions() -> None:
    @lw.elementwise
    def twice(g: Grain, sums: lw.Array2[lw.f32]):
        lw.scatter_add(sums, (g.place, 0), g.weight, exact=False)
        lw.scatter_add(sums, (g.place, 1), g.weight, exact=False)

    grains = Grain.array(place=np.zeros(140_000, np.int32), weight=np.zeros(140_000, np.float32))
    table = np.zeros((10, 2), np.float32)
    assert deposited.compile(grains, np.zeros((10, 3), np.float32)).plan.parts == 1
    assert twice.compile(grains, table).plan.parts == 2
    assert twice.compile(grains, table, plan=lw.Plan(parts=1)).plan.parts == 1


@lw.threadwise
def exactly(i: lw.index, place: lw.Array1[lw.i32], v: lw.Array1[lw.f32], sums: lw.Array1[lw.f32]):
    lw.scatter_add(sums, place[i], v[i])


@lw.elementwise
def counted(place: lw.i32, counts: lw.Array1[lw.i32]):
    lw.scatter_add(counts, place, 1)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda plan: exactly(*drawn(9, np.float32), np.zeros(BINS, np.float32), grid=9, plan=plan), "Plan(parts=3): only a GPU divides the sources"),
        (lambda plan: counted(drawn(9, np.float32)[0], np.zeros(BINS, np.int32), plan=plan), "Plan(parts=3): only a GPU divides the sources"),
    ],
)  # fmt: skip
def test_kernels_without_sums_in_order_have_no_parts(call: Any, words: str) -> None:
    with pytest.raises(lw.PlanError) as error:
        call(lw.Plan(parts=3))
    assert words in str(error.value)
    assert "but for floats that are added in order, lw.scatter_add(..., exact=False)" in str(error.value)


def test_parts_are_bounded() -> None:
    n = 1_000
    place, v = drawn(n, np.float32)
    with pytest.raises(lw.PlanError, match="0 parts were requested"):
        added(place, v, np.zeros(BINS, np.float32), grid=n, plan=lw.Plan(parts=0))
    large = np.zeros(100_000_000, np.float32)  # memory that nothing touches
    with pytest.raises(lw.PlanError) as error:
        added(place, v, large, grid=n, plan=lw.Plan(parts=3))
    assert str(error.value) == (
        "Plan(parts=3): the sums of all parts may take 1,200,000,000 bytes; wanted at most 1,073,741,824, which are 2 parts of these arrays"
    )


@pytest.mark.parametrize("parts", [2, 4])
def test_a_gpu_has_no_such_parts(parts: int) -> None:
    """Its threads add exactly, in any order: what parts would mean there is said, not ignored."""
    n = 50
    given = (*drawn(n, np.float32), np.ones(BINS, np.float32))
    with pytest.raises(lw.PlanError) as error:
        compile_call(added, *given, grid=n, device="cuda", arch="sm_90", requested=lw.Plan(parts=parts))
    assert "it scatters" in str(error.value)
    place, v, _ = given
    with pytest.raises(lw.PlanError) as error:
        compile_call(
            deposited,
            Grain.array(place=place, weight=v),
            np.zeros((BINS, 3), np.float32),
            device="cuda",
            arch="sm_90",
            requested=lw.Plan(parts=parts),
        )
    assert "splitting of sources cannot be applied to deposited: a GPU adds floats exactly, in any order" in str(
        error.value
    )


# ------------------------------------------------------------ what is said, and tried


def test_the_report_says_what_parts_do_and_take() -> None:
    n = 1_000_000
    given = (np.zeros(n, np.int32), np.zeros(n, np.float32), np.zeros(10_000, np.float32))
    text = " ".join(str(added.compile(*given, grid=n).explain()).split())
    assert "splitting of sources 4 yes" in text
    assert "4 parts have their own sums" in text
    assert "copies of 40,000 bytes" in text
    alone = " ".join(str(added.compile(*given, grid=n, plan=lw.Plan(parts=1)).explain()).split())
    assert "splitting of sources 1 no" in alone


@pytest.mark.parametrize("kernel", [added, deposited], ids=["threadwise", "elementwise"])
def test_tuning_tries_parts(kernel: Any) -> None:
    place, v = drawn(2_000, np.float32)
    if kernel is added:
        job = added.tuning_job(place, v, np.zeros(BINS, np.float32), grid=len(v))
    else:
        job = deposited.tuning_job(Grain.array(place=place, weight=v), np.zeros((BINS, 3), np.float32))
    axes = [f.axes.get("parts") for f in KernelSpace(job, make_estimator(job)).families]
    assert (1, 2, 4, 8, 16, 32) in axes


# ------------------------------------------------------------ whatever the timing


def test_parts_that_are_done_in_any_order_are_added_in_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts that a slow thread has come last, and wait for none that is not begun."""
    monkeypatch.setenv("LANEWISE_THREADS", "3")
    monkeypatch.setattr(cpu, "HANDING_OVER", 1e-12)
    place, v = drawn(60, np.float32)
    wanted = in_parts(place, v, np.ones(BINS, np.float32), 6).tobytes()
    for slow in range(6):

        def kernel(sums: np.ndarray, begin: int, end: int, slow: int = slow) -> None:
            if begin == slow * 10:
                time.sleep(0.01)
            for n in range(begin, end):
                sums[place[n]] += v[n]

        sums = np.ones(BINS, np.float32)
        run_in_parts(kernel, (sums,), edges(60, 6), (0,), ())
        assert sums.tobytes() == wanted


def test_copies_are_used_again() -> None:
    array = np.zeros(3, np.float32)
    sums = _Sums([array])
    first = sums.of(1)
    assert sums.of(0)[0] is array
    sums.done(1, first)  # waits for the first one
    assert sums.of(2) is not first
    sums.done(0, sums.of(0))
    assert sums.of(3) is first
    assert NEUTRAL.parts == 1
    assert Plan().parts is None
