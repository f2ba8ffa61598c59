"""What a call makes of other types than the declared ones, the same in all patterns: values are rounded to the declared
type, arrays that are passed as memory are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import lanewise as lw

GIVEN = {
    "float64": np.array([0.1, 16777217.0, -1e-3]),
    "float16": np.array([0.1, 2.0, -3.0], np.float16),
    "int64": np.array([16777217, -5, 7]),
    "int32": np.array([16777219, -5, 7], np.int32),
    "uint8": np.array([1, 2, 255], np.uint8),
    "bool": np.array([True, False, True]),
}


class Mark(lw.Record):
    x: lw.f32


@lw.elementwise
def itself(value: lw.f32) -> lw.f32:
    return value


@lw.elementwise
def beside(mark: Mark, value: lw.f32) -> lw.f32:
    return mark.x + value


@lw.pairwise
def between(target: Mark, source: Mark, value: lw.f32) -> lw.f32:
    return target.x + value


@lw.elementwise
def looked_up(mark: Mark, table: lw.Array1[lw.f32]) -> lw.f32:
    return mark.x + table[0]


@lw.pairwise
def looked_up_twice(target: Mark, source: Mark, table: lw.Array1[lw.f32]) -> lw.f32:
    return table[0]


@lw.threadwise
def of_threads(i: lw.index, a: lw.Array1[lw.f32], value: lw.f32, result: lw.Array1[lw.f32]):
    result[i] = a[i] + value


def marks(count: int = 3) -> lw.RecordArray:
    return Mark.array(x=np.zeros(count, np.float32))


def by_threads(a: Any, value: Any) -> NDArray[np.float32]:
    out = np.empty(len(a), np.float32)
    of_threads(a, value, out, grid=(len(a),))
    return out


def by_step(value: Any) -> Any:
    call = beside.bind(marks(1), value)
    return call()


ARRAYS: dict[str, Callable[[Any], Any]] = {
    "elements": itself,
    "records and values": lambda a: beside(marks(len(a)), a),
    "a field that is made": lambda a: Mark.array(x=a).x,
    "a field that is assigned": lambda a: assigned(a).x,
}
NUMBERS: dict[str, Callable[[Any], Any]] = {
    "elements": lambda n: beside(marks(1), n)[0],
    "bound": lambda n: by_step(n)[0],
    "pairs": lambda n: between(marks(1), marks(1), n)[0],
    "threads": lambda n: by_threads(np.zeros(1, np.float32), n)[0],
}
MEMORY: dict[str, Callable[[Any], Any]] = {
    "elements": lambda a: looked_up(marks(), a),
    "pairs": lambda a: looked_up_twice(marks(), marks(), a),
    "threads": lambda a: by_threads(a, 0.0),
}


def assigned(values: Any) -> lw.RecordArray:
    array = marks(len(values))
    array.x = values
    return array


@pytest.mark.parametrize("kind", GIVEN)
@pytest.mark.parametrize("way", ARRAYS)
def test_arrays_of_values_are_rounded_to_the_declared_type(way: str, kind: str) -> None:
    given = GIVEN[kind]
    before = given.copy()
    result = np.asarray(ARRAYS[way](given))
    np.testing.assert_array_equal(result, given.astype(np.float32), strict=True)
    np.testing.assert_array_equal(given, before)


@pytest.mark.parametrize("kind", GIVEN)
@pytest.mark.parametrize("way", NUMBERS)
def test_single_values_are_rounded_to_the_declared_type(way: str, kind: str) -> None:
    for number in (*GIVEN[kind], *GIVEN[kind].tolist()):
        assert NUMBERS[way](number) == np.float32(number)


@pytest.mark.parametrize("kind", GIVEN)
@pytest.mark.parametrize("way", MEMORY)
def test_memory_is_passed_unchanged_or_refused(way: str, kind: str) -> None:
    with pytest.raises(lw.ArgumentError, match=r"nothing is converted.*make it one of float32") as refused:
        MEMORY[way](GIVEN[kind])
    assert f"of float32, found one of {kind}" in str(refused.value)


@pytest.mark.parametrize("way", ["elements", "records and values", "a field that is made", "a field that is assigned"])
def test_floats_are_no_integers_and_large_ones_no_float32(way: str) -> None:
    with pytest.raises(lw.ArgumentError, match="do not fit"):
        ARRAYS[way](np.array([1e300, 0.0]))
