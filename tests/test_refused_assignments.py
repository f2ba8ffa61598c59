"""A refused assignment or call leaves every byte as it was."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lanewise as lw
from lanewise.support.errors import ArgumentError, LanewiseError
from tests.layouts.test_layouts import ALL


@lw.record
class Many:
    f: lw.f32
    d: lw.f64
    i: lw.i32
    u: lw.u32
    l: lw.i64  # noqa: E741
    b: lw.bool
    v: lw.vec3
    w: lw.dvec2
    n: lw.ivec3


@lw.elementwise
def shift(one: Many, by: lw.vec3, count: lw.i32) -> tuple[lw.f32, lw.vec3]:
    one.v += by
    one.i += count
    return one.f, one.v


COUNT = 5


def filled(layout: Any) -> Any:
    rng = np.random.default_rng(0)
    return Many.array(
        f=rng.random(COUNT), d=rng.random(COUNT), i=rng.integers(-9, 9, COUNT), u=rng.integers(0, 9, COUNT), l=rng.integers(-9, 9, COUNT),
        b=rng.random(COUNT) < 0.5, v=rng.random((COUNT, 3)), w=rng.random((COUNT, 2)), n=rng.integers(-9, 9, (COUNT, 3)), layout=layout,
    )  # fmt: skip


def refused(array: Any, call: Any) -> str:
    before = bytes(array.data)
    with pytest.raises(LanewiseError) as caught:
        call()
    assert bytes(array.data) == before
    return str(caught.value)


@pytest.mark.parametrize("layout", ALL, ids=str)
def test_numbers_that_become_infinite(layout):
    array = filled(layout)

    def one() -> None:
        array.f = np.array([9.0, 8.0, 1e300, 7.0, 6.0])

    def vectors() -> None:
        array.v = np.array([[1.0, 2.0, 3.0]] * 4 + [[1.0, 2.0, -1e39]])

    def for_all() -> None:
        array.v = (1.0, 1e300, 2.0)

    assert refused(array, one) == "Many.f holds float32: float64 values up to 1e+300 do not fit"
    assert refused(array, vectors) == "Many.v holds float32: float64 values up to 1e+39 do not fit"
    assert refused(array, for_all) == "Many.v holds float32: float64 values up to 1e+300 do not fit"
    array.f = [np.inf, -np.inf, np.nan, 3.4e38, 0]  # infinities stay what they are
    assert np.isinf(array.f).tolist() == [True, True, False, False, False]


SHAPES = st.sampled_from([(), (COUNT,), (COUNT, 3), (COUNT, 2), (3,), (2,), (COUNT + 1,), (0,), (1,), (COUNT, 3, 1)])
NUMBERS = st.sampled_from([0, 1, -1, 2**31, 2**32, 2**63 - 1, -(2**31) - 1, 0.5, 3e38, 1e39, -1e300, np.inf, np.nan])
DTYPES = st.sampled_from(["f8", "f4", "f2", "i8", "i4", "u8", "u4", "i1", "?", "c16", "O", "U3", "M8[s]", ">f8", ">i4"])


@st.composite
def arrays(draw: Any) -> Any:
    shape, dtype = draw(SHAPES), np.dtype(draw(DTYPES))
    values = draw(st.lists(NUMBERS, min_size=1, max_size=4))
    count = int(np.prod(shape))
    numbers = np.array([values[n % len(values)] for n in range(count)], "f8").reshape(shape)
    with np.errstate(all="ignore"):
        return numbers.astype(dtype) if dtype.kind != "M" else numbers.astype("i8").astype(dtype)


@given(layout=st.sampled_from(ALL), name=st.sampled_from("fdiulbvwn"), value=arrays(), masked=st.booleans())
def test_any_assignment_is_done_or_changes_nothing(layout, name, value, masked):
    array = filled(layout)
    given_values = np.ma.masked_array(value, mask=np.arange(value.size).reshape(value.shape) == 0) if masked else value
    before = array.numpy()
    untouched = bytes(array.data)
    try:
        setattr(array, name, given_values)
    except ArgumentError:
        assert bytes(array.data) == untouched
        return
    assert not (masked and value.size)
    after = array.numpy()
    expected = np.broadcast_to(value, after[name].shape)
    np.testing.assert_array_equal(after[name], expected.astype(after[name].dtype))
    for other in before:
        if other != name:
            np.testing.assert_array_equal(after[other], before[other])


@given(
    layout=st.sampled_from(ALL), by=st.one_of(arrays(), st.just((1, 2, 3))), count=st.one_of(arrays(), st.just(1)),
    out=st.one_of(st.none(), st.tuples(arrays(), arrays()), arrays()),
)  # fmt: skip
def test_any_call_is_done_or_changes_nothing(layout, by, count, out):
    array = filled(layout)
    results = out if isinstance(out, tuple) else (out,)
    before = bytes(array.data), [r.tobytes() for r in results if r is not None]
    try:
        shift(array, by, count, out=out)
    except LanewiseError:
        assert (bytes(array.data), [r.tobytes() for r in results if r is not None]) == before


def test_masks_are_not_lost():
    array = filled(None)
    hole = np.ma.masked_array([1.0, 2, 3, 4, 5], mask=[0, 0, 1, 0, 0])

    def assign() -> None:
        array.d = hole

    assert refused(array, assign) == "Many.d: 1 of 5 elements are masked; wanted values, for example .filled(0)"
    array.d = np.ma.masked_array([1.0, 2, 3, 4, 5], mask=False)
    assert array.d.tolist() == [1, 2, 3, 4, 5]
    with pytest.raises(ArgumentError, match="'points': 1 of 6 elements are masked"):
        lw.nearest(np.ma.masked_less(np.arange(6.0).reshape(2, 3), 1), 1)
