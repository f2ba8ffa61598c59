"""RecordArray: the records of many elements, in one allocation, in any layout, on any device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, cast

import numpy as np
from numpy.typing import NDArray

from lanewise import types as t
from lanewise.checks import shown
from lanewise.errors import ArgumentError, ArgumentTypeError
from lanewise.field_values import FieldViews, brought, check_type, rounded
from lanewise.layouts import Arrangement, Layout, default_layout
from lanewise.record import Field, Record, RecordValue, unknown_field
from lanewise.runtime.devices import resolve
from lanewise.runtime.memory import allocate, array_module, to_host
from lanewise.runtime.prepared import ArrayPlace, host_view
from lanewise.tables import html_table

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    B = TypeVar("B", bound=RecordValue, default=Any)
else:
    from typing import TypeVar

    B = TypeVar("B")

SHOWN = 8  # records in a notebook
MOST_PARTS = 64  # kinds of parts of an allocation that an array remembers


@dataclass(frozen=True, slots=True)
class Row:
    """See `RowOf`."""

    array: RecordArray[Any]
    index: int

    def read(self, field: Field) -> Any:
        views = self.array._views  # pyright: ignore[reportPrivateUsage]
        view = views.strided(field)
        if view is not None:
            return to_host(view[self.index])
        places = (views.at(leaf, self.index) for leaf in t.leaves(field.name, field.type))
        parts = [to_host(blocks[place]) for blocks, place in places]
        return np.array(parts) if isinstance(field.type, t.Vector) else parts[0]

    def write(self, field: Field, value: Any) -> None:
        components = self._rounded(field, value, (field.type.length,) if isinstance(field.type, t.Vector) else ())
        for component in range(components.size):
            self._put(field, component, components.reshape(-1)[component])

    def write_component(self, field: Field, component: int, value: Any) -> None:
        self._put(field, component, self._rounded(field, value, ())[()])

    def _rounded(self, field: Field, value: Any, shape: tuple[int, ...]) -> Any:
        """The value on the host, in the type of the field; a component stands for all."""
        name = f"{self.array.record.name}.{field.name}"
        values = brought(name, value, "cpu")
        if values.shape not in (shape, ()):
            raise ArgumentError(f"{name} is a {field.type}: wanted shape {shape} for a row, found {values.shape}")
        check_type(name, values, field.type)
        return np.broadcast_to(rounded(name, values, t.scalar_of(field.type).dtype), shape)

    def _put(self, field: Field, component: int, value: Any) -> None:
        leaf = t.leaves(field.name, field.type)[component]
        blocks, place = self.array._views.at(leaf, self.index)  # pyright: ignore[reportPrivateUsage]
        blocks[place] = value


class RecordArray(Generic[B]):
    """An array of records. Its fields are attributes.

    Reading a field gives an array of shape (n,) or (n, components) on the array's device: a view, writes go through,
    in every layout but AoSoA, whose blocks no single stride reaches: there it is a read-only copy. Assigning a field
    works in all layouts.
    """

    __slots__ = (
        "__weakref__",
        "_arrangement",
        "_buffers",
        "_count",
        "_data",
        "_device",
        "_layout",
        "_python_class",
        "_record",
    )

    _record: Record
    _count: int
    _layout: Layout
    _device: str
    _data: Any
    _python_class: type[B]
    _arrangement: Arrangement
    _buffers: dict[int, tuple[tuple[ArrayPlace, ...], list[Any]]]

    def __init__(
        self, record: Record, count: int, layout: Layout, device: str, data: Any, python_class: type[B]
    ) -> None:
        for name, value in (
            ("_record", record), ("_count", count), ("_layout", layout), ("_device", device), ("_data", data),
            ("_python_class", python_class), ("_arrangement", layout.arrange(record.leaves)), ("_buffers", {}),
        ):  # fmt: skip
            object.__setattr__(self, name, value)

    # ------------------------------------------------------------ making

    @classmethod
    def zeros(
        cls, record: Record, count: int, *, layout: Layout | None, device: str | None, python_class: type[B]
    ) -> RecordArray[B]:
        """`count` records of zeros.

        Raises `ArgumentError` for a count below 1, `DeviceError` when they do not fit the memory.
        """
        number: Any = count
        if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or number < 1:
            raise ArgumentError(
                f"{record.name}: the number of records must be a whole number from 1 on, found {shown(count)}"
            )
        where = resolve(device)
        layout = default_layout(record, where) if layout is None else checked_layout(layout)
        data = allocate(where, layout.arrange(record.leaves).nbytes(int(count)), f"{count:,} records of {record.name}")
        return cls(record, int(count), layout, where, data, python_class)

    @classmethod
    def from_fields(
        cls,
        record: Record,
        fields: Mapping[str, Any],
        *,
        layout: Layout | None,
        device: str | None,
        python_class: type[B],
    ) -> RecordArray[B]:
        """Records from one array (or a uniform argument) per field; fields left out are zero.

        Raises `ArgumentError` for an unknown field, a wrong shape, or a dtype that the field cannot hold.
        """
        where = resolve(device)
        for name in fields:
            if record.field(name) is None:
                raise ArgumentError(unknown_field(record, name))
        arrays = {name: brought(f"{record.name}.{name}", value, where) for name, value in fields.items()}
        for name, a in arrays.items():
            _check_shape(record, name, a.shape)
        counts = {name: len(a) for name, a in arrays.items() if a.ndim == _dimensions(record, name)}
        if not counts:
            raise ArgumentError(
                f"{record.name}.array needs at least one field with one row for each record, found only single values"
            )
        if len(set(counts.values())) > 1:
            raise ArgumentError(
                f"the fields of {record.name} differ in length: {', '.join(f'{n} has {c}' for n, c in counts.items())}"
            )
        result = cls.zeros(record, next(iter(counts.values())), layout=layout, device=where, python_class=python_class)
        for name, value in arrays.items():
            setattr(result, name, value)
        return result

    # ------------------------------------------------------------ fields

    def __getattr__(self, name: str) -> NDArray[Any]:
        # Copy, pickle and array libraries ask for names like this, also of an array that is not filled yet.
        if name.startswith("_"):
            raise AttributeError(name)
        field = self._record.field(name)
        if field is None:
            raise AttributeError(unknown_field(self._record, name))
        view = self._views.strided(field)
        return self._views.gathered(field) if view is None else view

    def __setattr__(self, name: str, value: Any) -> None:
        field = self._record.field(name)
        if field is None:
            raise AttributeError(unknown_field(self._record, name))
        values = self._checked(field, value)
        view = self._views.strided(field)
        if view is not None:
            view[...] = values
            return
        module = array_module(self._device)
        for component, leaf in enumerate(t.leaves(field.name, field.type)):
            blocks = self._views.blocks(leaf)
            padded = module.zeros(blocks.size, blocks.dtype)
            padded[: self._count] = values[..., component] if isinstance(field.type, t.Vector) else values
            blocks[...] = padded.reshape(blocks.shape)

    def _checked(self, field: Field, value: Any) -> Any:
        """Values on the device that fit the field's shape and type; a uniform argument is allowed."""
        name = f"{self._record.name}.{field.name}"
        values = brought(name, value, self._device)
        shape = (self._count, field.type.length) if isinstance(field.type, t.Vector) else (self._count,)
        if values.shape not in (shape, shape[1:]):
            raise ArgumentError(
                f"{name} is a {field.type}: wanted shape {shape}, or {shape[1:]} for all, found {values.shape}"
            )
        check_type(name, values, field.type)
        return rounded(name, values, t.scalar_of(field.type).dtype)

    @property
    def _views(self) -> FieldViews:
        return FieldViews(self._data, self._device, self._arrangement, self._count)

    # ------------------------------------------------------------ the whole array

    @property
    def record(self) -> Record:
        return self._record

    @property
    def layout(self) -> Layout:
        return self._layout

    @property
    def device(self) -> str:
        return self._device

    @property
    def nbytes(self) -> int:
        """The size of the allocation."""
        return self._arrangement.nbytes(self._count)

    @property
    def arrangement(self) -> Arrangement:
        """Where every scalar lies."""
        return self._arrangement

    @property
    def data(self) -> Any:
        """The allocation itself, as bytes on the device."""
        return self._data

    def _parts_at(self, places: tuple[ArrayPlace, ...]) -> list[Any]:
        """Parts of the allocation as numbers, on the host. Calls of kernels ask for the same ones again and again."""
        cached = self._buffers.get(id(places))
        if cached is None or cached[0] is not places:
            if len(self._buffers) >= MOST_PARTS:  # kernels come and go while an array lives
                self._buffers.clear()
            cached = self._buffers[id(places)] = (places, [host_view(self._data, p) for p in places])
        return cached[1]

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> B:
        """One record. It is a row of this array: what is assigned to its fields, or to components of its vectors, is written here."""
        return self._python_class.row_of(Row(self, self._place(index)))

    def __setitem__(self, index: int, value: RecordValue) -> None:
        """Replace one record by the values of another one of its class."""
        place, record = self._place(index), cast(Any, value)
        if not isinstance(record, RecordValue) or record.__record__ != self._record:
            raise ArgumentError(
                f"a row of {self._record.name} is replaced by a {self._record.name}(...), found {type(record).__name__}; "
                f"fields are arrays: .{self._record.fields[0].name}[{index}] = ..."
            )
        row = Row(self, place)
        for field, kept in [(f, getattr(record, f.name)) for f in self._record]:
            row.write(field, kept)

    def _place(self, index: int) -> int:
        number: Any = index
        if isinstance(number, bool) or not isinstance(number, (int, np.integer)):
            raise ArgumentTypeError(
                f"records are taken one by one with a whole number, found {shown(number)}; fields are arrays: "
                f".{self._record.fields[0].name}[...]"
            )
        if not -self._count <= index < self._count:
            raise IndexError(f"record {index} of {self._count}")
        return int(index) % self._count

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        # Without it NumPy would make an array of Python objects, record by record.
        first = self._record.fields[0].name
        raise ArgumentTypeError(
            f"an array of {self._record.name} is no array of numbers; take a field, for example .{first}"
        )

    def __iter__(self) -> Iterator[B]:
        return (self[i] for i in range(self._count))

    def numpy(self) -> dict[str, np.ndarray[Any, Any]]:
        """Copies of all fields on the host."""
        return {f.name: np.array(to_host(getattr(self, f.name))) for f in self._record}

    def with_layout(self, layout: Layout) -> RecordArray[B]:
        """The same records in another layout, on the same device."""
        result = RecordArray.zeros(
            self._record,
            self._count,
            layout=checked_layout(layout),
            device=self._device,
            python_class=self._python_class,
        )
        for field in self._record:
            setattr(result, field.name, getattr(self, field.name))
        return result

    def to(self, device: str) -> RecordArray[B]:
        """The same records, in the same layout, on another device: one copy of one allocation."""
        result = RecordArray.zeros(
            self._record, self._count, layout=self._layout, device=device, python_class=self._python_class
        )
        if isinstance(result.data, np.ndarray):
            result.data[...] = to_host(self._data)
        elif isinstance(self._data, np.ndarray):
            result.data.set(self._data)
        else:
            result.data[...] = self._data
        return result

    def copy(self) -> RecordArray[B]:
        return self.to(self._device)

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> RecordArray[B]:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        """Its fields, layout and device: it comes back on the same device, or not at all; `.to("cpu")` before is for other machines."""
        cls = self._python_class
        from lanewise.pickled import restored_array

        return restored_array, (
            cls.__module__, cls.__qualname__, self._record, self._layout, self._device, self.numpy()
        )  # fmt: skip

    def _repr_html_(self) -> str:
        """Its first records as a table."""
        shown = min(self._count, SHOWN)
        columns = [to_host(getattr(self, f.name)[:shown]) for f in self._record]
        rows = ((i, *(column[i] for column in columns)) for i in range(shown))
        more = [("…", *("…" for _ in columns))] if shown < self._count else []
        return html_table(["", *(f.name for f in self._record)], [*rows, *more], title=repr(self))

    def __repr__(self) -> str:
        return f"<{self._count:,} {self._record} as {self._layout} on {self._device}, {self.nbytes:,} bytes>"


def _dimensions(record: Record, name: str) -> int:
    field = record.field(name)
    return 2 if field is not None and isinstance(field.type, t.Vector) else 1


def _check_shape(record: Record, name: str, shape: tuple[int, ...]) -> None:
    """Refuse a shape that is neither one row for each record nor a uniform argument, before the number of records is known."""
    field = record.field(name)
    assert field is not None
    row = (field.type.length,) if isinstance(field.type, t.Vector) else ()
    if shape not in (row, (*shape[:1], *row)) or len(shape) > len(row) + 1:
        wanted = f"(n, {row[0]})" if row else "(n,)"
        raise ArgumentError(
            f"{record.name}.{name} is a {field.type}: wanted shape {wanted}, or {row} for all, found {shape}"
        )


def checked_layout(layout: Any) -> Layout:
    """A layout; raises `ArgumentError` for anything else."""
    if isinstance(layout, Layout):
        return layout
    described = layout.__name__ if isinstance(layout, type) else shown(layout)
    raise ArgumentError(f"a layout is lw.AoS(), lw.SoA(), lw.AoAS(), lw.SoAoAS() or lw.AoSoA(8), found {described}")
