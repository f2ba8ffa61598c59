"""Exact sums of floats: the definition against fractions, and all devices against the definition."""

from __future__ import annotations

import threading
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lanewise as lw
from lanewise.compiler.pipeline import build_program
from lanewise.language import exact_sums
from lanewise.language.exact_sums import F32, F64, FloatFormat
from lanewise.launch.executable import generated_texts
from lanewise.planning.plan import NEUTRAL, Plan
from lanewise.primitives.exact_sums import text_of
from lanewise.runtime.nvrtc import compile_cubin


@lw.threadwise
def total32(i: lw.index, place: lw.Array1[lw.i32], v: lw.Array1[lw.f32], sums: lw.Array1[lw.f32]):
    lw.scatter_add(sums, place[i], v[i])


@lw.threadwise
def total64(i: lw.index, place: lw.Array1[lw.i32], v: lw.Array1[lw.f64], sums: lw.Array1[lw.f64]):
    lw.scatter_add(sums, place[i], v[i])


KERNELS = {F32.name: total32, F64.name: total64}
DEVICES = [pytest.param("cuda", marks=pytest.mark.cuda), "cpu", "python"]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 1.5, 2.0**-149, -(2.0**-126), 3.4e38, -3.4e38, np.inf, -np.inf, np.nan]
SPECIAL64 = [*SPECIAL, 5e-324, -1.7e308, 1.7e308, 2.0**-1022, 2.0**53 + 2]


def numbers(kind: FloatFormat) -> Any:
    one = st.sampled_from(SPECIAL if kind is F32 else SPECIAL64) | st.floats(width=32 if kind is F32 else 64)
    return st.lists(one, max_size=30)


def nearest(kind: FloatFormat, start: Any, values: np.ndarray[Any, Any]) -> Any:
    """The float nearest to the sum, by fractions."""
    own = np.dtype(kind.name).type
    every = np.array([start, *values], kind.name)
    if not np.isfinite(every).all():
        with np.errstate(invalid="ignore"):
            return own(every[~np.isfinite(every)].sum())
    exact = sum(map(Fraction, every.astype(float).tolist()), Fraction(0))
    try:
        guess = float(exact)
    except OverflowError:
        return own(np.inf if exact > 0 else -np.inf)
    if kind is F64:
        return own(guess)
    with np.errstate(over="ignore"):
        near = np.float32(guess)
    if not np.isfinite(near):
        limit = Fraction(2) ** 128 - Fraction(2) ** 103
        near = near if abs(exact) >= limit else np.copysign(np.finfo(np.float32).max, near)
        return own(near)
    with np.errstate(over="ignore"):
        near_ones = np.nextafter(near, own(-np.inf)), near, np.nextafter(near, own(np.inf))
    around = [x for x in near_ones if np.isfinite(x)]
    return min(around, key=lambda x: (abs(Fraction(float(x)) - exact), int(x.view(np.uint32)) & 1))


def on(device: str, kind: FloatFormat, place: Any, values: Any, sums: Any, kernel: Any = None) -> Any:
    """The sums after a call; the arrays stay as they are."""
    arrays = [place, values, sums.copy()]
    kernel = kernel or KERNELS[kind.name]
    if device == "cuda":
        import cupy

        arrays = [cupy.asarray(a) for a in arrays]
        kernel(*arrays, grid=len(place))
        return arrays[2].get()
    with lw.device(device):
        kernel(*arrays, grid=len(place))
    return arrays[2]


def same(a: Any, b: Any) -> bool:
    """Whether two numbers are one, or both none."""
    return bool(a == b or (a != a and b != b))


@pytest.mark.parametrize("kind", [F32, F64], ids=lambda k: k.name)
@given(data=st.data())
def test_the_definition_is_the_nearest_float(kind: FloatFormat, data: st.DataObject) -> None:
    values = np.array(data.draw(numbers(kind)), kind.name)
    start = np.dtype(kind.name).type(data.draw(st.sampled_from(SPECIAL)))
    words = np.zeros(exact_sums.length(kind, 20), np.int64)
    for v in values:
        exact_sums.add(kind, words, 17, v)
    result = exact_sums.rounded(kind, words, 17, start)
    assert result.dtype == kind.name
    if words.any():
        assert same(result, nearest(kind, start, values))
    else:
        assert result.tobytes() == start.tobytes()
        assert start != start or same(start, nearest(kind, start, values))


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", [F32, F64], ids=lambda k: k.name)
@given(data=st.data())
def test_every_device_has_the_bits_of_the_definition(device: str, kind: FloatFormat, data: st.DataObject) -> None:
    values = np.array(data.draw(numbers(kind)), kind.name)
    place = np.array(data.draw(st.lists(st.integers(0, 18), min_size=len(values), max_size=len(values))), np.int32)
    start = np.resize(np.array(data.draw(st.lists(st.sampled_from(SPECIAL), min_size=1, max_size=19)), kind.name), 19)
    words = np.zeros(exact_sums.length(kind, 19), np.int64)
    for p, v in zip(place, values, strict=True):
        exact_sums.add(kind, words, int(p), v)
    expected = np.array([exact_sums.rounded(kind, words, n, x) for n, x in enumerate(start)], kind.name)
    result = on(device, kind, place, values, start)
    assert all(same(a, b) and (a != a or a.tobytes() == b.tobytes()) for a, b in zip(result, expected, strict=True))
    order = np.random.default_rng(len(values)).permutation(len(values))
    assert on(device, kind, place[order], values[order], start).tobytes() == result.tobytes()


@pytest.mark.parametrize("device", ["cpu", "python"])
def test_words_that_cancel_leave_an_element_as_it_was(device: str) -> None:
    values = np.array([0.5 + 2.0**-33, 0.5 + 2.0**-33, -1.0 - 2.0**-32])
    for exponent in range(64):  # at some the words of the positive values carry where those of the negative one do not
        result = on(device, F64, np.zeros(3, np.int32), values * 2.0**exponent, np.array([-0.0]))
        assert np.signbit(result[0])


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", [F32, F64], ids=lambda k: k.name)
def test_words_that_wrap_lose_nothing(device: str, kind: FloatFormat) -> None:
    count = 1_000 if device == "python" else 100_000
    large = np.float32(2.0**96 * 1.9999) if kind is F32 else np.float64(2.0**500 * 1.9999999)
    values = np.full(count, large, kind.name)
    values[-1] = 1.0  # far below what a float could still hold
    place = np.zeros(count, np.int32)
    expected = nearest(kind, 0.0, values)
    assert on(device, kind, place, values, np.zeros(1, kind.name))[0] == expected
    assert on(device, kind, place, -values, np.zeros(1, kind.name))[0] == -expected
    both = np.concatenate([values, -values[:-1]])
    assert on(device, kind, np.zeros(len(both), np.int32), both, np.zeros(1, kind.name))[0] == 1.0


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", [F32, F64], ids=lambda k: k.name)
@pytest.mark.parametrize("small", [0.0, 1.0, 2.0**-149, -(2.0**-149)])
def test_sums_far_beyond_the_largest_float_are_infinite(device: str, kind: FloatFormat, small: float) -> None:
    for count in (1, 2, 3, 4, 5, 9, 200):
        values = np.full(count + 1, np.finfo(kind.name).max, kind.name)
        values[count // 2] = small
        start, place = np.zeros(1, kind.name), np.zeros(count + 1, np.int32)
        expected = nearest(kind, 0.0, values)
        assert on(device, kind, place, values, start)[0] == expected
        assert on(device, kind, place, -values, start)[0] == -expected


@pytest.mark.parametrize("device", DEVICES)
def test_a_bound_call_adds_again_and_a_failed_one_leaves_nothing_behind(device: str) -> None:
    place, values, sums = np.array([0, 5], np.int32), np.ones(2, np.float32), np.zeros(2, np.float32)
    with lw.device(device) if device != "cuda" else lw.device("cpu"):
        if device == "cuda":
            import cupy

            place, values, sums = (cupy.asarray(a) for a in (place, values, sums))
        bound = total32.bind(place, values, sums, grid=2, checks=True)
        with pytest.raises(lw.VerificationError, match="the index is 5 in the thread i = 1"):
            bound()
        assert sums.tolist() == [0.0, 0.0]
        place[1] = 1
        bound()
        bound()
    assert sums.tolist() == [2.0, 2.0]


@pytest.mark.quick("3")
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_of_a_cpu_change_no_bits(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from lanewise.runtime import cpu

    rng = np.random.default_rng(3)
    n = 200_000
    place = rng.integers(0, 100, n).astype(np.int32)
    values = (rng.normal(size=n) * 10.0 ** rng.integers(-10, 10, n)).astype(np.float32)
    expected = np.array([nearest(F32, 0.0, values[place == p]) for p in range(100)])
    monkeypatch.setattr(cpu, "cpu_threads", lambda: threads)
    assert (on("cpu", F32, place, values, np.zeros(100, np.float32)) == expected).all()


@pytest.mark.parametrize("kind", [F32, F64], ids=lambda k: k.name)
def test_the_texts_compile_for_a_gpu(kind: FloatFormat) -> None:
    arrays = np.zeros(3, np.int32), np.ones(3, kind.name), np.zeros(3, kind.name)
    compiled = KERNELS[kind.name].compile(*arrays, grid=3)
    program = build_program(compiled.reference, Plan(block=128).filled(NEUTRAL), "cuda")
    (text,) = generated_texts(program, "cuda", locations=False)
    assert "lw_scatter_sum(sums_array, " in text
    compile_cubin(text, compiled.reference.name, "sm_90")
    compile_cubin(text_of(kind.name), "exact_sums", "sm_90")
    assert "an exact sum in words next to the array, rounded once after the kernel" in " ".join(
        str(compiled.explain()).split()
    )


@lw.elementwise
def add_twice(place: lw.i32, v: lw.f32, sums: lw.Array1[lw.f32]):
    lw.scatter_add(sums, place, 2.0 * v)


def test_threads_that_share_a_bound_call_take_turns() -> None:
    """Its words are one piece of memory: what a thread adds is rounded into the sums before the next one begins."""
    n = 20_000
    sums = np.zeros(64, np.float32)
    call = add_twice.bind(np.arange(n, dtype=np.int32) % 64, np.ones(n, np.float32), sums, plan=lw.Plan())

    def work() -> None:
        for _ in range(100):
            call.launch()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sums.tolist() == [400 * 2.0 * len(range(k, n, 64)) for k in range(64)]
