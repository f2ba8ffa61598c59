"""A record within the records of an array: `bodies.shape`, whose fields are fields of the array."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from lanewise.language.record import RESERVED, Record, RecordValue, unknown_field
from lanewise.layouts import Layout
from lanewise.records.split_array import SplitArray
from lanewise.support.articles import an
from lanewise.support.checks import shown
from lanewise.support.errors import ArgumentError, ArgumentTypeError, brief

if TYPE_CHECKING:
    from lanewise.records.arrays import RecordArray

    class FieldOrPart(np.ndarray[Any, np.dtype[Any]]):
        """What type checkers take a name of an array of records for: an array of numbers, or
        records within the records, whose fields they do not know.
        """

        def __getattr__(self, name: str) -> FieldOrPart: ...
        def __setattr__(self, name: str, value: Any) -> None: ...


class PartOfRecords:
    """The records of one name within all records of an array, in its memory.

    `bodies.shape.radius` is a field of `bodies`, read and assigned as others are; `bodies.shape[3]`
    is what `bodies[3].shape` is, `bodies.shape[2:5]` that of the view `bodies[2:5]`. Kernels take
    the array itself, or a `copy()` of this, which `copy.copy`, `copy.deepcopy` and pickle make too.
    Assigned or appended to an array of such records it is as good as that copy.
    """

    __slots__ = ("__weakref__", "_array", "_name", "_python_class")

    _array: RecordArray
    _name: str
    _python_class: type[RecordValue]

    def __init__(self, array: RecordArray, name: str, python_class: type[RecordValue]) -> None:
        object.__setattr__(self, "_array", array)
        object.__setattr__(self, "_name", name)
        object.__setattr__(self, "_python_class", python_class)

    def _of(self, array: RecordArray) -> PartOfRecords:
        """Those within other records of the same class."""
        return PartOfRecords(array, self._name, self._python_class)

    @property
    def record(self) -> Record:
        found = self._array.record.part(self._name)
        assert found is not None
        return found

    @property
    def layout(self) -> Layout:
        """That of the whole array."""
        return self._array.layout

    @property
    def device(self) -> str:
        return self._array.device

    # ------------------------------------------------------------ fields

    def __getattr__(self, name: str) -> FieldOrPart:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._array, self._full(name))

    @brief
    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._array, self._full(name), value)

    def __delattr__(self, name: str) -> None:
        delattr(self._array, self._full(name))

    def _full(self, name: str) -> str:
        if self.record.field(name) is None and self.record.part(name) is None:
            own = f"; .{self._name}.copy() is an array, which has it" if name in RESERVED else ""
            raise AttributeError(unknown_field(self.record, name) + own)
        return f"{self._name}.{name}"

    # ------------------------------------------------------------ records

    def __len__(self) -> int:
        return len(self._array)

    def __iter__(self) -> Iterator[Any]:
        return (_within(row, self._name) for row in self._array)

    @brief
    def __getitem__(self, key: Any) -> Any:
        """The record within a row, or within an array of rows: views and copies as of the array."""
        chosen = self._array[key]
        if isinstance(chosen, RecordValue):
            return _within(chosen, self._name)
        return self._of(chosen)

    @brief
    def __setitem__(self, key: Any, value: Any) -> None:
        """Replace the record within one row, or within some.

        Raises `ArgumentError` as assignments to the array do.
        """
        chosen: Any = self._array[key]
        if isinstance(chosen, RecordValue):
            setattr(chosen, self._name, value)
            return
        setattr(chosen, self._name, value)
        if not isinstance(key, slice):  # a copy was chosen
            self._array[key] = chosen

    def copy(self) -> RecordArray:
        """An array of these records alone, in their own memory on the same device, in its default
        layout.

        Raises `ArgumentError` for an array on a mesh.
        """
        fields = {f.name: getattr(self, f.name) for f in self.record}
        if any(isinstance(values, SplitArray) for values in fields.values()):
            raise ArgumentError(
                f".{self._name}.copy(): the records lie on a mesh; take .{self._name}.numpy()"
            )
        return self._python_class.array(None, device=self.device, **fields)

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> RecordArray:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        return self.copy().__reduce__()

    def numpy(self) -> dict[str, np.ndarray[Any, Any]]:
        """Copies of all its fields on the host."""
        head = f"{self._name}."
        fields = self._array.numpy().items()
        return {n[len(head) :]: values for n, values in fields if n.startswith(head)}

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        first = self.record.fields[0].name
        raise ArgumentTypeError(
            f"records {self.record.name} are no array of numbers; take a field, for example "
            f".{self._name}.{first}, or .{self._name}.copy(), an array of them alone"
        )

    def __repr__(self) -> str:
        return f"<.{self._name}: {self.record.name} of {self._array!r}>"


def _within(row: Any, name: str) -> Any:
    """The record of that name within a row; with dots, the one within that."""
    for one in name.split("."):
        row = getattr(row, one)
    return row


def columns_within(record: Record, name: str, value: Any, count: int | None) -> dict[str, Any]:
    """The fields of a record within others as what is assigned to each, by its full name.

    value: a record, or as many as `count` (None: any number of them) in an array.
    """
    wanted = record.part(name)
    assert wanted is not None
    several = not isinstance(value, RecordValue)
    if (getattr(value, "record", None) if several else value.__record__) != wanted:
        raise ArgumentError(
            f"{record.name}.{name} is {an(wanted.name)}: wanted {wanted.name}(...) for all, or an "
            f"array of {wanted.name}, found {shown(value)}"
        )
    length = len(value) if several else count
    if count is not None and length != count:
        raise ArgumentError(
            f"{record.name}.{name}: {count:,} records are replaced by as many, found {length:,}"
        )
    return {f"{name}.{f.name}": getattr(value, f.name) for f in wanted}
