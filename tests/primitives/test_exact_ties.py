"""Exact sums that lie half-way between two floats go to the even one, however many words and whichever path
they take.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.language.exact_sums import F32, F64, FloatFormat
from tests.primitives.test_exact_sums import nearest, on

DEVICES = ["cpu", "python", pytest.param("cuda", marks=pytest.mark.cuda)]
KINDS = pytest.mark.parametrize("kind", [F32, F64], ids=lambda kind: kind.name)
BITS = {F32.name: 24, F64.name: 53}
LOWEST = {F32.name: -149, F64.name: -1074}  # exponents of the smallest and of the largest steps between neighbours
HIGHEST = {F32.name: 104, F64.name: 971}
MANY = 65_536  # values from which on a CPU adds over buckets


@lw.elementwise
def added32(place: lw.i32, v: lw.f32, sums: lw.Array1[lw.f32]):
    lw.scatter_add(sums, place, v)


@lw.elementwise
def added64(place: lw.i32, v: lw.f64, sums: lw.Array1[lw.f64]):
    lw.scatter_add(sums, place, v)


def tie(rng: np.random.Generator, kind: FloatFormat) -> tuple[float, list[float]]:
    """What an element holds, and values with which the sum is half-way between two floats, or hardly more or less."""
    bits, sign = BITS[kind.name], float(rng.choice((-1.0, 1.0)))
    lowest, highest = LOWEST[kind.name] + 2, HIGHEST[kind.name] - 2
    step = int(rng.integers(lowest, highest)) if rng.random() < 0.7 else int(rng.integers(-40, 10))
    # Even and odd ones, and such from which rounding carries into the next power of two.
    whole = int(
        rng.choice(
            (
                2 ** (bits - 1),
                2 ** (bits - 1) + 1,
                2**bits - 1,
                2**bits - 2,
                int(rng.integers(2 ** (bits - 1), 2**bits)),
            )
        )
    )
    start, half = whole * 2.0**step, 2.0 ** (step - 1)
    form = int(rng.integers(6))
    values = [half] if form else [half / 2, half / 2]
    if form == 2:  # more or less than half-way, by the smallest number there is
        values.append(float(rng.choice((-1.0, 1.0))) * 2.0 ** LOWEST[kind.name])
    elif form == 3:  # the same, which cancels
        values += [2.0 ** LOWEST[kind.name], -(2.0 ** LOWEST[kind.name])]
    elif form == 4:  # a large one that cancels
        values = [start * 2, *values, -start * 2]
    elif form == 5:  # three halves: beyond the next one
        values.append(2.0**step)
    return sign * start, [sign * v for v in values]


def problem(kind: FloatFormat, elements: int, seed: int) -> tuple[Any, Any, Any, Any]:
    """Places and values in a random order, what the elements hold, and what they become by fractions."""
    rng = np.random.default_rng(seed)
    drawn = [tie(rng, kind) for _ in range(elements)]
    starts = np.array([s for s, _ in drawn], kind.name)
    starts[::3] = 0  # then all of it is among the values
    given = [(i, x) for i, (s, v) in enumerate(drawn) for x in (*v, *([s] if not i % 3 else []))]
    order = rng.permutation(len(given))
    place, values = np.array([given[n][0] for n in order], np.int32), np.array([given[n][1] for n in order], kind.name)
    assert np.isfinite(values).all()
    wanted = np.array([nearest(kind, starts[i], values[place == i]) for i in range(elements)], kind.name)
    return place, values, starts, wanted


@KINDS
@pytest.mark.parametrize("device", DEVICES)
def test_ties_go_to_the_even_float(device: str, kind: FloatFormat) -> None:
    place, values, starts, wanted = problem(kind, 240, 3)
    exact = [
        sum((Fraction(float(x)) for x in values[place == i]), Fraction(float(starts[i]))) for i in range(len(starts))
    ]
    towards = np.nextafter(
        wanted,
        np.array(
            [np.inf if x > Fraction(float(w)) else -np.inf for x, w in zip(exact, wanted, strict=True)], kind.name
        ),
    )
    ties = sum(
        abs(Fraction(float(w)) - x) == abs(Fraction(float(t)) - x) != 0
        for w, t, x in zip(wanted, towards, exact, strict=True)
    )
    assert ties > 80
    assert on(device, kind, place, values, starts).tobytes() == wanted.tobytes()


@KINDS
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_ties_go_to_the_even_float_wherever_words_begin(device: str, kind: FloatFormat) -> None:
    """Sums of numbers of one magnitude lie in few neighbouring words, and are rounded without a look at the others."""
    rng, bits = np.random.default_rng(6), BITS[kind.name]
    for step in range(-34, 34):
        whole = [
            2 ** (bits - 1),
            2 ** (bits - 1) + 1,
            2**bits - 1,
            *(int(x) for x in rng.integers(2 ** (bits - 1), 2**bits, 9)),
        ]
        starts = np.array([x * 2.0**step * sign for x in whole for sign in (1, -1)], kind.name)
        values = np.sign(starts) * kind_of(kind)(2.0 ** (step - 1))
        place = np.arange(len(starts), dtype=np.int32)
        wanted = np.array([nearest(kind, s, np.array([v])) for s, v in zip(starts, values, strict=True)], kind.name)
        assert on(device, kind, place, values, starts).tobytes() == wanted.tobytes(), f"step 2^{step}"
        both = on(device, kind, np.concatenate([place, place]), np.concatenate([starts, values]), np.zeros_like(starts))
        assert both.tobytes() == wanted.tobytes(), f"step 2^{step}, all of it added"


def kind_of(kind: FloatFormat) -> Any:
    """NumPy's type of a format."""
    return np.dtype(kind.name).type


@KINDS
def test_ties_go_to_the_even_float_through_buckets(kind: FloatFormat) -> None:
    """A CPU adds so many values over buckets: pairs that cancel fill up what is missing."""
    place, values, starts, wanted = problem(kind, 240, 4)
    rng = np.random.default_rng(1)
    filler = rng.choice(np.array([0.5, 2.0**-20, 3.0], kind.name), MANY // 2)
    at = rng.integers(0, len(starts), MANY // 2).astype(np.int32)
    order = rng.permutation(len(values) + 2 * len(filler))
    place, values = np.concatenate([place, at, at])[order], np.concatenate([values, filler, -filler])[order]
    for kernel in (added32 if kind is F32 else added64,):
        sums = starts.copy()
        with lw.device("cpu"):
            kernel(place, values, sums)
        assert sums.tobytes() == wanted.tobytes()


@KINDS
@pytest.mark.parametrize("less", [40, 52, 60, 70, 90])
def test_a_little_beside_a_tie_decides_through_buckets(kind: FloatFormat, less: int) -> None:
    """What is far below the last bit of a float of 64 bits is not lost before the sum is rounded."""
    rng, own = np.random.default_rng(less), kind_of(kind)
    bits, count = BITS[kind.name], 400
    starts = np.array(
        [float(rng.integers(2 ** (bits - 1), 2**bits)) * 2.0 ** (1 - bits) for _ in range(count)], kind.name
    )
    half, little = own(2.0**-bits), own(2.0 ** -(bits + less))
    sign = rng.choice(np.array([1, -1, 0], kind.name), count)
    place = np.tile(np.arange(count, dtype=np.int32), 3)
    values = np.concatenate([starts, np.full(count, half), sign * little]).astype(kind.name)
    wanted = np.array([nearest(kind, own(0), values[place == i]) for i in range(count)], kind.name)
    filler = rng.choice(np.array([0.5, 0.25, 1.0], kind.name), MANY // 2)
    at = rng.integers(0, count, MANY // 2).astype(np.int32)
    order = rng.permutation(len(values) + 2 * len(filler))
    place, values = np.concatenate([place, at, at])[order], np.concatenate([values, filler, -filler])[order]
    for start in (np.zeros(count, kind.name), starts):
        sums, gone = start.copy(), -start  # what the element holds is taken away again, where it holds something
        with lw.device("cpu"):
            (added32 if kind is F32 else added64)(
                np.concatenate([place, np.arange(count, dtype=np.int32)]), np.concatenate([values, gone]), sums
            )
        assert sums.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("device", DEVICES)
def test_the_next_number_that_a_float_cannot_hold(device: str) -> None:
    """2^53 + 1 is a tie, and so is 2^24 + 1 with what cancels beside it."""
    two = np.zeros(3, np.int32)
    found = on(device, F64, two[:2], np.array([2.0**53, 1.0]), np.zeros(1))
    assert found[0] == 2.0**53
    found = on(
        device, F32, np.zeros(4, np.int32), np.array([2.0**24, 1.0, 1e-30, -1e-30], np.float32), np.zeros(1, np.float32)
    )
    assert found[0] == 2.0**24
    found = on(device, F64, two, np.array([2.0**53, 1.0, 2.0]), np.zeros(1))
    assert found[0] == 2.0**53 + 4


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", ["int32", "int64", "uint32"])
def test_sums_of_whole_numbers_wrap(device: str, kind: str) -> None:
    """Modulo two to the number of bits, as Python's integers say."""
    rng = np.random.default_rng(2)
    limits = np.iinfo(kind)
    values = rng.choice(np.array([limits.min, limits.max, limits.max - 1, 1, 3], kind), 200)
    place, starts = (
        rng.integers(0, 7, 200).astype(np.int32),
        rng.integers(limits.min, limits.max, 7, kind, endpoint=True),
    )
    bits = 8 * np.dtype(kind).itemsize
    whole = [int(starts[i]) + sum(int(v) for v in values[place == i]) for i in range(7)]
    wanted = np.array([(x - int(limits.min)) % 2**bits + int(limits.min) for x in whole], kind)
    assert on(device, None, place, values, starts, WHOLE[kind]).tobytes() == wanted.tobytes()  # type: ignore[arg-type]


@lw.threadwise
def whole32(i: lw.index, place: lw.Array1[lw.i32], v: lw.Array1[lw.i32], sums: lw.Array1[lw.i32]):
    lw.scatter_add(sums, place[i], v[i])


@lw.threadwise
def whole64(i: lw.index, place: lw.Array1[lw.i32], v: lw.Array1[lw.i64], sums: lw.Array1[lw.i64]):
    lw.scatter_add(sums, place[i], v[i])


@lw.threadwise
def whole_u32(i: lw.index, place: lw.Array1[lw.i32], v: lw.Array1[lw.u32], sums: lw.Array1[lw.u32]):
    lw.scatter_add(sums, place[i], v[i])


WHOLE = {"int32": whole32, "int64": whole64, "uint32": whole_u32}
