"""The very same call again: what is kept of one call is never launched for another."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.launch.again import Again
from lanewise.launch.repeatable import Repeatable


class Weight(lw.Record):
    mass: lw.f32


KEEP = Repeatable._keep.__code__  # pyright: ignore[reportPrivateUsage]
PLACES = sorted({line for *_, line in KEEP.co_lines() if line})[1:]


@pytest.mark.parametrize("place", PLACES, ids=lambda place: f"line {place - PLACES[0]}")
def test_another_thread_may_come_between(place: int) -> None:
    """Before this line of what keeps a call, a thread makes other calls until one of them is kept."""

    @lw.elementwise
    def scaled(weight: Weight, by: lw.f32) -> lw.f32:
        return by * weight.mass

    ours, theirs = Weight.array(mass=np.ones(3)), Weight.array(mass=np.full(5, 2.0))
    between: list[int] = []

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        del argument
        if frame.f_code is KEEP and event == "line" and frame.f_lineno == place and scaling and not between:
            sys.settrace(None)
            between.append(place)
            for _ in range(70):
                scaled(theirs, 3.0)
        return trace if frame.f_code is KEEP else None

    scaling = False
    scaled(ours, 1.0)
    scaling = True
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        n = 0
        while not between and n < 40:
            n += 1
            assert np.array_equal(scaled(ours, float(n)), np.full(3, n, np.float32))
    finally:
        sys.settrace(before)
    assert between
    for _ in range(3):
        assert np.array_equal(scaled(theirs, 3.0), np.full(5, 6, np.float32))
    assert np.array_equal(scaled(ours, 19.0), np.full(3, 19, np.float32))


@lw.threadwise
def copied(j: lw.index, i: lw.index, a: lw.Array2[lw.f32], b: lw.Array2[lw.f32]):
    b[j, i] = a[j, i]


def test_a_shape_is_the_same_grid_and_an_equal_tuple_of_other_numbers_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    a = np.random.default_rng(0).random((1, 6), np.float32)
    taken = list[bool]()
    take = Again.take

    def noted(self: Again, arguments: tuple[Any, ...]) -> Any:
        found = take(self, arguments)
        taken.append(found is not None)
        return found

    monkeypatch.setattr(Again, "take", noted)
    b = np.empty_like(a)
    for _ in range(6):
        b[:] = 0
        copied(a, b, grid=a.shape)  # another tuple each time
        np.testing.assert_array_equal(b, a)
    assert taken[-1]
    with pytest.raises(lw.ArgumentError, match=r"6\.0"):
        copied(a, b, grid=(1, 6.0))
    with pytest.raises(lw.ArgumentError, match="True"):
        copied(a, b, grid=(True, 6))
    with pytest.raises(lw.ArgumentError, match="shares memory"):
        copied(a, a, grid=a.shape)
    c = np.zeros_like(a)
    copied(a, c, grid=(1, 5))
    np.testing.assert_array_equal(c[:, :5], a[:, :5])
    assert c[0, 5] == 0


class Shaped(lw.Record):
    """Its fields have names of what calls look at first of an array."""

    shape: lw.f32
    flags: lw.f32
    ndim: lw.i32


class Raising:
    @property
    def shape(self) -> Any:
        raise RuntimeError("nobody asks")


class Ambiguous:
    shape = np.array([3, 3])


def often(kind: str) -> Any:
    """A new kernel of a pattern."""
    match kind:
        case "values":

            @lw.elementwise
            def total(x: lw.f32, y: lw.f32) -> lw.f32:
                return x + y

            return total
        case "records":

            @lw.elementwise
            def heavier(weight: Weight, y: lw.f32) -> lw.f32:
                return weight.mass + y

            return heavier
        case "pairs":

            @lw.pairwise
            def around(target: Weight, source: Weight, y: lw.f32) -> lw.f32:
                return source.mass + y

            return around
        case "lists":

            @lw.segmentwise
            def of_each(weight: Weight, y: lw.f32) -> lw.f32:
                return weight.mass * y

            return of_each
        case _:

            @lw.threadwise
            def moved(i: lw.index, a: lw.Array1[lw.f32], b: lw.Array1[lw.f32], s: lw.f32):
                b[i] = s * a[i]

            return moved


def ended(call: Any, *arguments: Any, **named: Any) -> tuple[str, str]:
    """How a call ends."""
    try:
        result = call(*arguments, **named)
    except Exception as error:
        return type(error).__name__, str(error).partition(" object at ")[0]
    return "result", repr(result)


@pytest.mark.parametrize("kind", ["values", "records", "pairs", "lists", "threads"])
def test_what_is_no_argument_is_refused_in_the_same_words_after_many_calls(kind: str) -> None:
    weight, x = Weight.array(mass=np.ones(3)), np.full(3, 2, np.float32)
    good: dict[str, tuple[Any, ...]] = {
        "values": (x, x.copy()), "records": (weight, x), "pairs": (weight, weight, 1.0), "lists": (lw.ragged(weight, counts=[1, 2]), 2.0),
        "threads": (x, np.zeros(3, np.float32), 1.0),
    }  # fmt: skip
    named: dict[str, Any] = {"grid": 3} if kind == "threads" else {}
    shaped = Shaped.array(shape=[1, 2, 3])
    bad = [
        shaped,
        shaped[:2],
        weight,
        Raising(),
        Ambiguous(),
        None,
        "x",
        object(),
        np.ma.array(x, mask=[True, False, False]),
    ]
    kernel = often(kind)
    for position in range(len(good[kind])):
        for value in bad:
            for _ in range(12):
                kernel(*good[kind], **named)
            arguments = [*good[kind]]
            arguments[position] = value
            first = ended(often(kind), *arguments, **named)
            assert first[0] == "ArgumentError" or (value is weight and first[0] == "result")
            assert ended(kernel, *arguments, **named) == first, (position, value)
