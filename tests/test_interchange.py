"""Arrays of other libraries and other forms: what comes in is converted when nothing is lost, what goes out is a view
where it can be.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from tests.corpus_kernels import Body, Mixed
from tests.layouts.test_layouts import ALL


class OnlyDLPack:
    """An array of a library that shares its memory through DLPack and through nothing else."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self._array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()


class OnlyInterface:
    """An array that shows only NumPy's `__array_interface__`."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self._array = array
        self.__array_interface__ = array.__array_interface__


X = np.arange(12.0).reshape(4, 3)
FORMS: dict[str, Callable[[], Any]] = {
    "list": X.tolist, "tuple of rows": lambda: tuple(map(tuple, X)), "float64": lambda: X, "float32": lambda: X.astype("f4"),
    "int64": lambda: X.astype("i8"), "uint8": lambda: X.astype("u1"), "big endian": lambda: X.astype(">f8"),
    "columns": lambda: np.asfortranarray(X), "every second": lambda: np.repeat(X, 2, axis=0)[::2], "backwards": lambda: X[::-1][::-1],
    "read-only": lambda: np.frombuffer(X.tobytes()).reshape(4, 3), "DLPack": lambda: OnlyDLPack(X), "interface": lambda: OnlyInterface(X),
    "vectors": lambda: [lw.vec3(*row) for row in X], "field of other records": lambda: Body.array(velocity=X, layout=lw.AoS()).velocity,
    "field in blocks": lambda: Body.array(velocity=X, layout=lw.AoSoA(2)).velocity,
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_positions_in_any_form(form: str) -> None:
    bodies = Body.array(position=FORMS[form](), layout=lw.AoSoA(2))
    np.testing.assert_array_equal(bodies.position, X)
    assert bodies.position.dtype == np.float32
    bodies = bodies.with_layout(lw.SoAoAS())
    bodies.velocity = FORMS[form]()
    np.testing.assert_array_equal(bodies.velocity, X)


@pytest.mark.parametrize("layout", ALL, ids=str)
def test_fields_go_out_through_dlpack(layout: lw.Layout) -> None:
    """A view of the allocation where one stride reaches all elements; consumers of a copy might write to it."""
    bodies = Body.array(position=X, mass=np.arange(4), layout=layout)
    if bodies.position.flags.writeable:
        shared = np.from_dlpack(bodies.position)
        np.testing.assert_array_equal(shared, X)
        assert np.shares_memory(shared, bodies.data)
    else:
        with pytest.raises(
            BufferError, match=r"not shared by DLPack.*array\.contiguous\('position'\) is a copy to write to"
        ):
            np.from_dlpack(bodies.position)
    np.testing.assert_array_equal(np.from_dlpack(bodies.contiguous("position")), X)
    assert OnlyInterface(bodies.mass).__array_interface__["shape"] == (4,)


def test_whole_numbers_of_any_type_are_taken_when_they_fit() -> None:
    for dtype in ("i1", "u2", "i4", "u4", "i8", "u8"):
        records = Mixed.array(key=np.array([0, 100], dtype), stamp=np.array([1, 2], dtype), alive=[True, False])
        assert records.key.tolist() == [0, 100]
        assert records.stamp.dtype == np.int64
    assert Mixed.array(key=np.array([2**32 - 1])).key.tolist() == [2**32 - 1]
    with pytest.raises(lw.ArgumentError, match=rf"Mixed\.stamp holds i64: {2**63} does not fit"):
        Mixed.array(stamp=np.array([2**63], "u8"))
    with pytest.raises(
        lw.ArgumentError, match=r"Mixed.alive holds bool: int64 would lose information; convert it first"
    ):
        Mixed.array(alive=[0, 1])


def test_infinities_are_no_overflow() -> None:
    bodies = Body.array(mass=np.array([np.inf, np.nan, -np.inf, 3e38]))
    assert bodies.mass.tolist() == [np.inf, pytest.approx(np.nan, nan_ok=True), -np.inf, np.float32(3e38)]


@lw.elementwise
def mixture(x: lw.f32, n: lw.i32, u: lw.u32, wide: lw.i64, p: lw.bool, v: lw.vec2) -> tuple[lw.f32, lw.i64]:
    return x * n + v.x if p else v.y, wide + u


ARGUMENTS: dict[str, Any] = {"x": [1.0, 2.0], "n": 3, "u": 5, "wide": 2**40, "p": True, "v": (0.5, 0.25)}


@pytest.mark.parametrize(
    "changed",
    [
        {}, {"x": np.float64(1)} | {"n": np.array([3, 3])}, {"u": np.int64(5)}, {"u": np.array([5, 5])}, {"p": np.array([True, True])},
        {"v": lw.vec2(0.5, 0.25)}, {"v": np.array([0.5, 0.25])}, {"v": [[0.5, 0.25], [0.5, 0.25]]}, {"n": np.int8(3)},
        {"wide": np.array(2**40)},
    ],
)  # fmt: skip
def test_arguments_in_any_form(changed: dict[str, Any]) -> None:
    with lw.device("python"):
        first, second = mixture(**(ARGUMENTS | changed))
    assert first[0] == 3.5
    assert second.tolist() == [2**40 + 5] * 2


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"n": 2**31}, f"mixture: 'n' holds i32: {2**31} does not fit"),
        ({"u": -1}, "mixture: 'u' holds u32: -1 does not fit"),
        ({"n": 0.5}, "mixture: 'n' holds i32: float64 would lose information; convert it first"),
        ({"n": np.array([0.5, 1])}, "mixture: 'n' holds i32: float64 would lose information; convert it first"),
        ({"p": 1}, "mixture: 'p' holds bool: int64 would lose information; convert it first"),
        ({"x": 1e60}, r"mixture: 'x' holds float32: float64 values up to 1e\+60 do not fit"),
        ({"x": np.array([1e60, 0])}, r"mixture: 'x' holds float32: float64 values up to 1e\+60 do not fit"),
        ({"x": 1j}, r"mixture: 'x' must be an f32, found complex 1j"),
        ({"x": "1"}, "mixture: 'x' must be one f32 for all, or an array of them, found str '1'"),
        ({"v": (1, 2, 3)}, r"mixture: 'v' must be a vec2, found tuple \(1, 2, 3\)"),
        ({"v": 1.0}, "mixture: 'v' must be one vec2 for all, or an array of them, found float 1.0"),
        (
            {"v": [[1, 2], [3]]},
            r"mixture: 'v' must be one vec2 for all, or an array of them, found list \[\[1, 2\], \[3\]\]",
        ),
        ({"x": np.zeros((2, 2)), "n": [1, 2]}, r"the arrays differ in shape: x has \(2, 2\), n has \(2,\)"),
        ({"x": Body.zeros(2)}, "mixture: 'x' must be one f32 for all, or an array of them, found an array of Body"),
        ({"x": [Body.zeros(2)]}, "mixture: 'x'"),
        ({"x": [1, 2], "n": [1, 2, 3]}, "the arrays differ in length: x has 2, n has 3"),
        (
            {"x": 1.0},
            r"mixture: at least one argument must be an array, found single values \(.*\); one element is an ",
        ),
        ({"x": np.array(3.0)}, r"at least one argument must be an array, found .*x.*well, np.array\(\[3.0\]\)$"),
    ],
)
def test_arguments_that_do_not_fit(changed: dict[str, Any], text: str) -> None:
    with pytest.raises(lw.ArgumentError, match=text):
        mixture(**(ARGUMENTS | changed))


def test_results_are_not_written_to_an_array_that_is_read_only() -> None:
    out = np.zeros(2, np.float32)
    out.flags.writeable = False
    with pytest.raises(
        lw.ArgumentError, match=r"out must be .* found an array of float32 with shape \(2,\), which is read-only"
    ):
        mixture(**ARGUMENTS, out=(out, np.zeros(2, np.int64)))


def test_reductions_of_arrays() -> None:
    x = np.array([[1, 5], [3, -2]], np.float32)
    assert lw.sum(x).tolist() == [4, 3]
    assert lw.min(x).tolist() == [1, -2]
    assert lw.max(x[:, 0]) == 3.0
    assert lw.sum(np.full(10, 2**31 - 1, np.int32)) == 10 * (2**31 - 1)
    assert lw.sum(np.full(1000, 0.1, np.float32)) == pytest.approx(1000 * float(np.float32(0.1)), rel=1e-12)
    for values, text in (
        (np.zeros(0), "an array without elements has no smallest"),
        ([1, 2], "a reduction takes an array of values, found list"),
    ):
        with pytest.raises(lw.ArgumentError, match=text):
            lw.min(values)
