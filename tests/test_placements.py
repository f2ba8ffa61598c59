"""An array whose records lie in two memories: what `RecordPlacement` asks for is all that indexing, copies,
assignments and conversions need; kernels refuse it by name, and run over the parts in one memory."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.language import types as t
from lanewise.language.record import Field
from lanewise.layouts import Arrangement, Layout
from lanewise.records.arrays import RecordArray
from lanewise.records.field_views import FieldViews
from lanewise.records.placement import RecordPlacement, Staying
from lanewise.records.storage import Storage
from lanewise.support.errors import ArgumentError


class Grain(lw.Record):
    position: lw.vec3
    mass: lw.f32
    serial: lw.i64


@lw.elementwise
def doubled(a: Grain) -> lw.f32:
    a.mass *= 2
    return a.mass


@dataclass(frozen=True, eq=False)
class Halves:
    """Rows of NumPy in two structured arrays, one behind the other: as they lie on two devices."""

    one: np.ndarray[Any, Any]
    other: np.ndarray[Any, Any]
    device: str = "cpu"
    is_regular: bool = False

    @property
    def count(self) -> int:
        return len(self.one) + len(self.other)

    @property
    def memories(self) -> tuple[Any, ...]:
        return (_owner(self.one), _owner(self.other))

    def irregular(self, name: str, layout: Layout) -> str:
        return f"this array of {name} lies in two memories"

    def strided(self, field: Field, memory: Callable[[Any], Any] | None = None) -> Any:
        return None

    def gathered(self, field: Field) -> Any:
        whole = np.concatenate([self.one[field.name], self.other[field.name]])
        whole.flags.writeable = False
        return whole

    def column(self, leaf: str) -> Any:
        return np.concatenate([_column(self.one, leaf), _column(self.other, leaf)])

    def take(self, leaf: str, indices: Any) -> Any:
        return self.column(leaf)[indices]

    def at(self, leaf: str, index: int) -> tuple[Any, tuple[int, int]]:
        part, index = (self.one, index) if index < len(self.one) else (self.other, index - len(self.one))
        return _column(part, leaf)[:, None], (index, 0)

    def put(self, leaf: str, indices: Any, values: Any) -> None:
        whole = self.column(leaf)
        whole[indices] = values
        self.fill(leaf, whole)

    def fill(self, leaf: str, values: Any) -> None:
        values, n = np.broadcast_to(values, (self.count,)), len(self.one)
        _column(self.one, leaf)[:], _column(self.other, leaf)[:] = values[:n], values[n:]

    def move(self, indices: Any, to: RecordPlacement) -> None:
        for leaf in _leaves():
            to.fill(leaf, self.take(leaf, indices))

    def staying(self, mask: Any) -> Staying:
        kept = np.flatnonzero(mask)
        return Staying(len(kept), lambda to: self.move(kept, to))

    def cut(self, start: int, step: int, count: int, arrangement: Arrangement) -> RecordPlacement:
        """A half in one memory is what every array lies in; else the parts of both halves."""
        n, stop = len(self.one), start + step * (count - 1) + 1
        if count and (stop <= n or start >= n):
            half, begin = (self.one, start) if stop <= n else (self.other, start - n)
            away = half[begin:].__array_interface__["data"][0] - _owner(half).__array_interface__["data"][0]
            return FieldViews(_owner(half), self.device, arrangement.at((away,)), count)
        first = max(0, start - n) if start >= n else -(n - start) % step
        return Halves(self.one[start : min(stop, n) : step], self.other[first : max(0, stop - n) : step])


def _owner(rows: np.ndarray[Any, Any]) -> Any:
    """The bytes of the allocation."""
    return rows.base


def _leaves() -> list[str]:
    return [leaf.name for leaf in Grain.__record__.leaves]


def _column(rows: np.ndarray[Any, Any], leaf: str) -> Any:
    name, _, part = leaf.partition(".")
    return rows[name][:, "xyz".index(part)] if part else rows[name]


def _rows(n: int) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(3)
    rows = _aligned(n)
    rows["position"], rows["mass"], rows["serial"] = rng.random((n, 3)), rng.random(n), np.arange(n)
    return rows


def _aligned(n: int) -> np.ndarray[Any, Any]:
    return Grain.zeros(n, layout=lw.AoS(), device="cpu").to_structured()


def _halves(n: int = 11, first: int = 5) -> tuple[RecordArray[Grain], np.ndarray[Any, Any]]:
    rows = _rows(n)
    one, other = _aligned(first), _aligned(n - first)
    one[:], other[:] = rows[:first], rows[first:]
    storage = Storage(Grain.__record__, lw.AoS(), Halves(one, other), fixed="its rows lie in two memories")
    return RecordArray(storage, Grain), rows.copy()


def _same(array: RecordArray[Grain], rows: np.ndarray[Any, Any]) -> None:
    assert len(array) == len(rows)
    for name in ("position", "mass", "serial"):
        np.testing.assert_array_equal(getattr(array, name), rows[name])


KEYS = (
    slice(None), slice(1, 4), slice(6, 11), slice(3, 9), slice(0, 11, 2), slice(4, 11, 3), slice(2, 2), slice(10, 11),
    np.array([10, 0, 5, 4]), np.arange(11) % 3 == 0,
)  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=lambda k: str(k).replace("\n", ""))
def test_it_is_indexed_and_assigned_as_numpy_is(key: Any) -> None:
    array, rows = _halves()
    _same(array[key], rows[key])
    chosen = rows[key]
    chosen["mass"] += 1
    array[key] = Grain.array(chosen)
    rows[key] = chosen
    _same(array, rows)


def test_parts_of_slices_are_views_that_lie_where_the_whole_does() -> None:
    array, rows = _halves()
    part = array[2:10:2]
    part.mass = 7
    part[1:].serial = np.arange(3)
    rows["mass"][2:10:2], rows["serial"][4:10:2] = 7, np.arange(3)
    _same(array, rows)


def test_rows_are_read_and_written() -> None:
    array, rows = _halves()
    for i in (0, 4, 5, -1):
        array[i].position.y, array[i].mass = 9, 3
        rows["position"][i, 1], rows["mass"][i] = 9, 3
        assert array[i].serial == rows["serial"][i]
    array[4] = Grain(position=(1, 2, 3), mass=4, serial=77)
    rows[4] = ((1, 2, 3), 4, 77)
    _same(array, rows)
    assert [row.serial for row in array] == rows["serial"].tolist()


def test_fields_are_read_and_assigned() -> None:
    array, rows = _halves()
    array.mass = np.arange(11)
    array.position = (1, 2, 3)
    rows["mass"], rows["position"] = np.arange(11), (1, 2, 3)
    _same(array, rows)
    with pytest.raises(ValueError, match="read-only"):
        array.mass[0] = 1


def test_it_is_converted_and_copied() -> None:
    array, rows = _halves()
    structured = array.to_structured(copy=True)
    assert structured.dtype == Grain.dtype
    np.testing.assert_array_equal(structured, rows)
    for made in (array.copy(), array.to("cpu"), array.with_layout(lw.SoA()), pickle.loads(pickle.dumps(array))):
        _same(made, rows)
        made.mass = 0
    np.testing.assert_array_equal(array.numpy()["mass"], rows["mass"])
    np.testing.assert_array_equal(array.contiguous("position"), rows["position"])
    _same(lw.concatenate([array, array[3:9]]), np.concatenate([rows, rows[3:9]]))
    grown = array.copy()
    grown.append(array)
    _same(grown, np.concatenate([rows, rows]))
    assert grown.compact(grown.serial < 3) == 6
    assert repr(array) == "<11 Grain(position: vec3, mass: f32, serial: i64) as AoS on cpu, 264 bytes>"
    assert "<td>10</td>" not in array._repr_html_()  # pyright: ignore[reportPrivateUsage]


def test_an_assignment_within_it_sees_what_was_there_before() -> None:
    array, rows = _halves()
    array[1:9] = array[0:8]
    rows[1:9] = rows[0:8].copy()
    array[0:4] = array[1:5]
    rows[0:4] = rows[1:5].copy()
    _same(array, rows)


def test_kernels_run_over_what_lies_in_one_memory() -> None:
    array, rows = _halves()
    for part in (array[:5], array[5:]):
        np.testing.assert_array_equal(doubled(part), 2 * rows["mass"][part.serial])
    rows["mass"] *= 2
    _same(array, rows)
    for _ in range(2):  # also once the kernel knows calls
        with pytest.raises(
            ArgumentError, match=r"doubled: 'a': this array of Grain lies in two memories; kernels of this"
        ):
            doubled(array)
    with pytest.raises(ArgumentError, match="two memories"):
        _ = array.data
    with pytest.raises(ArgumentError, match="changes the length of an array of Grain, and its rows lie in two"):
        array.append(rows[:1])
    assert t.leaves("position", t.Vector(t.F32, 3)) == tuple(_leaves()[:3])
