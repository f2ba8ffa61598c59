"""RecordArray: the records of many elements, in one allocation, in any layout, on any device."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, cast, overload

import numpy as np
from numpy.typing import NDArray

from lanewise.language import types as t
from lanewise.language.record import Field, Record, RecordValue, unknown_field
from lanewise.language.target import CPU, target_of
from lanewise.layouts import Arrangement, Layout, default_layout, packed, strided
from lanewise.primitives import record_moves
from lanewise.records.field_values import FieldViews, brought, check_type, rounded
from lanewise.records.keys import (
    Key,
    Mask,
    Places,
    Span,
    check_distinct,
    checked_mask,
    places_of_mask,
    read_key,
)
from lanewise.records.two_sides import DEVICE, EVERY, HOST, Side, bit_of, on_host
from lanewise.runtime.devices import resolve
from lanewise.runtime.memory import allocate, copy_whole, on, to_host
from lanewise.runtime.prepared import Places as BufferPlaces
from lanewise.runtime.prepared import host_views
from lanewise.support.attributes import settings_by_name
from lanewise.support.checks import shown
from lanewise.support.errors import ArgumentError, ArgumentTypeError, brief
from lanewise.support.html_tables import html_table

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    B = TypeVar("B", bound=RecordValue, default=Any)
else:
    from typing import TypeVar

    B = TypeVar("B")

SHOWN = 8  # records in a notebook
MOST_PARTS = 64  # kinds of parts of an allocation that an array remembers
OF_ANOTHER = "its memory belongs to another array; .copy() is an array of its own"
GROWTH = 1.5  # a full array that grows gets memory for that many times its records


@dataclass(frozen=True, slots=True)
class Row:
    """See `RowOf`."""

    array: RecordArray[Any]
    index: int
    seen: FieldViews

    def _views(self, field: Field) -> FieldViews:
        views = places_of(self.array)
        if views is not self.seen:
            raise ArgumentError(
                f"this row of {self.array.record.name} was taken when its array had "
                f"{self.seen.count:,} records, and the array was changed "
                f"in length since; take it again: [{self.index}]"
            )
        self.array._side.read(bit_of(self.array.record, field.name))  # pyright: ignore[reportPrivateUsage]
        return views

    def read(self, field: Field) -> Any:
        views = self._views(field)
        view = views.strided(field)
        if view is not None:
            return to_host(view[self.index])
        places = (views.at(leaf, self.index) for leaf in t.leaves(field.name, field.type))
        parts = [to_host(blocks[place]) for blocks, place in places]
        return np.array(parts) if isinstance(field.type, t.Vector) else parts[0]

    def write(self, field: Field, value: Any) -> None:
        components = self._rounded(
            field, value, (field.type.length,) if isinstance(field.type, t.Vector) else ()
        )
        for component in range(components.size):
            self._put(field, component, components.reshape(-1)[component])

    def write_component(self, field: Field, component: int, value: Any) -> None:
        self._put(field, component, self._rounded(field, value, ())[()])

    def _rounded(self, field: Field, value: Any, shape: tuple[int, ...]) -> Any:
        """The value on the host, in the type of the field; a component stands for all."""
        name = f"{self.array.record.name}.{field.name}"
        values = brought(name, value, "cpu")
        if values.shape not in (shape, ()):
            raise ArgumentError(
                f"{name} is a {field.type}: wanted shape {shape} for a row, found {values.shape}"
            )
        check_type(name, values, field.type)
        return np.broadcast_to(rounded(name, values, t.scalar_of(field.type).dtype), shape)

    def _put(self, field: Field, component: int, value: Any) -> None:
        leaf = t.leaves(field.name, field.type)[component]
        blocks, place = self._views(field).at(leaf, self.index)
        with on(self.array.device):
            blocks[place] = value
        self.array._side.write(bit_of(self.array.record, field.name))  # pyright: ignore[reportPrivateUsage]


class RecordArray(Generic[B]):
    """An array of records. Its fields are attributes.

    Reading a field gives an array of shape (n,) or (n, components) on the array's device: a view,
    writes go through, in every layout but AoSoA, whose blocks no single stride reaches: there it is
    a read-only copy. Assigning a field works in all layouts.

    `bodies[10:20]` and `bodies[::2]` are views: arrays of records in the same memory, which kernels
    run over. Masks and whole numbers make copies on the device. An array that owns its memory can
    be changed in length. Views and rows that were taken before say so when they are used; fields
    that were taken before are arrays of their own library, and keep the memory that they had.

    An array may have a second side on the host, see `host`.
    """

    __slots__ = (
        "__weakref__",
        "_base",
        "_buffers",
        "_capacity",
        "_device",
        "_fixed",
        "_host",
        "_layout",
        "_python_class",
        "_record",
        "_seen",
        "_side",
        "_stands_for",
    )

    _record: Record
    _layout: Layout
    _device: str
    _python_class: type[B]
    _side: Side  # which side it is, if it has two; that of its array for a view
    _seen: FieldViews  # where the records are; another one after every change in length
    _capacity: int
    # of a view: the array that owns the memory, and where its records were
    _base: tuple[RecordArray, FieldViews] | None
    _host: RecordArray | None  # the array of the host's side, which does not hold this one
    _fixed: str  # why the length cannot be changed, if so
    # of a copy that a kernel gets in place of another array: that array
    _stands_for: RecordArray | None
    _buffers: dict[int, tuple[BufferPlaces, list[Any]]]

    def __init__(
        self,
        record: Record,
        count: int,
        layout: Layout,
        device: str,
        data: Any,
        python_class: type[B],
        fixed: str = "",
    ) -> None:
        """fixed: why the number of records stays as it is, if it does, for the error that says
        so.
        """
        self._set(
            _record=record,
            _layout=layout,
            _device=device,
            _python_class=python_class,
            _capacity=count,
            _base=None,
            _fixed=fixed,
            _seen=FieldViews(data, device, layout.arrange(record.leaves), count),
            _buffers={},
            _side=Side(),
            _host=None,
            _stands_for=None,
        )

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    # ------------------------------------------------------------ making

    @classmethod
    @settings_by_name
    def zeros(
        cls,
        record: Record,
        count: int,
        *,
        layout: Layout | None,
        device: str | None,
        python_class: type[B],
        host_layout: Layout | None = None,
    ) -> RecordArray[B]:
        """`count` records of zeros. host_layout: that of a second side on the host, see `host`.

        Raises `ArgumentError` for a negative count, `DeviceError` when they do not fit the memory.
        """
        _check_number(f"{record.name}: the number of records", count)
        where = resolve(device)
        layout = default_layout(record, where) if layout is None else checked_layout(layout)
        data = allocate(
            where,
            layout.arrange(record.leaves).nbytes(int(count)),
            f"{count:,} records of {record.name}",
        )
        made = cls(record, int(count), layout, where, data, python_class)
        if host_layout is not None:
            made._make_host(checked_layout(host_layout))
        return made

    @classmethod
    @settings_by_name
    def from_fields(
        cls,
        record: Record,
        fields: Mapping[str, Any],
        *,
        layout: Layout | None,
        device: str | None,
        python_class: type[B],
        host_layout: Layout | None = None,
    ) -> RecordArray[B]:
        """Records from one array (or a uniform argument) per field; fields left out are zero.

        Raises `ArgumentError` for an unknown field, a wrong shape, or a dtype that the field cannot
        hold.
        """
        where = resolve(device)
        for name in fields:
            if record.field(name) is None:
                raise ArgumentError(unknown_field(record, name))
        arrays = {
            name: brought(f"{record.name}.{name}", value, where) for name, value in fields.items()
        }
        for name, a in arrays.items():
            _check_shape(record, name, a.shape)
        counts = {name: len(a) for name, a in arrays.items() if a.ndim == _dimensions(record, name)}
        if not counts:
            raise ArgumentError(
                f"{record.name}.array needs at least one field with one row for each record, found "
                "only single values"
            )
        if len(set(counts.values())) > 1:
            raise ArgumentError(
                f"the fields of {record.name} differ in length: "
                f"{', '.join(f'{n} has {c}' for n, c in counts.items())}"
            )
        result = cls.zeros(
            record,
            next(iter(counts.values())),
            layout=layout,
            device=where,
            python_class=python_class,
            host_layout=host_layout,
        )
        for name, value in arrays.items():
            setattr(result, name, value)
        return result

    # ------------------------------------------------------------ fields

    def __getattr__(self, name: str) -> NDArray[Any]:
        # Copy, pickle and array libraries ask for names like this, also of an array that is not
        # filled yet.
        if name.startswith("_"):
            raise AttributeError(name)
        field = self._record.field(name)
        if field is None:
            raise AttributeError(unknown_field(self._record, name))
        return self._side.field(self._record, self._places, field)

    @brief
    def __setattr__(self, name: str, value: Any) -> None:
        field = self._record.field(name)
        if field is None:
            raise AttributeError(unknown_field(self._record, name))
        values, views, bit = self._checked(field, value), self._places, bit_of(self._record, name)
        if self._base is not None:  # the other records keep theirs
            self._side.read(bit)
        view = views.strided(field)
        if view is not None:
            with on(self._device):
                view[...] = values
        else:
            for component, leaf in enumerate(t.leaves(field.name, field.type)):
                views.fill(
                    leaf, values[..., component] if isinstance(field.type, t.Vector) else values
                )
        self._side.write(bit)

    def __delattr__(self, name: str) -> None:
        if name == "host":
            object.__delattr__(self, name)
            return
        if self._record.field(name) is None:
            raise AttributeError(unknown_field(self._record, name))
        raise AttributeError(
            f"every {self._record.name} has the field {name!r}, which cannot be deleted"
        )

    def _checked(self, field: Field, value: Any) -> Any:
        """Values on the device that fit the field's shape and type; a uniform argument is
        allowed.
        """
        name = f"{self._record.name}.{field.name}"
        values = brought(name, value, self._device)
        shape = (len(self), field.type.length) if isinstance(field.type, t.Vector) else (len(self),)
        if values.shape not in (shape, shape[1:]):
            raise ArgumentError(
                f"{name} is a {field.type}: wanted shape {shape}, or {shape[1:]} for all, found "
                f"{values.shape}"
            )
        check_type(name, values, field.type)
        return rounded(name, values, t.scalar_of(field.type).dtype)

    @property
    def _views(self) -> FieldViews:
        """Where the records are, for whoever changes some of them."""
        views = self._current
        self._side.write(EVERY)
        return views

    @property
    def _current(self) -> FieldViews:
        """Where the records are, for whoever reads them."""
        views = self._places
        self._side.read(EVERY)
        return views

    @property
    def _places(self) -> FieldViews:
        """Where the records are, whatever they hold."""
        if self._base is not None:
            base, seen = self._base
            if base._seen is not seen:
                raise ArgumentError(
                    f"this view was taken when its array of {self._record.name} had {seen.count:,} "
                    "records, and the array was changed in "
                    "length since; take the view again"
                )
        return self._seen

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
        """The size of the allocation; of a view what its records take."""
        arrangement = packed(self._layout).arrange(self._record.leaves)
        return arrangement.nbytes(self._capacity)

    @property
    def capacity(self) -> int:
        """How many records there is memory for; of a view how many it has."""
        return self._capacity

    @property
    def arrangement(self) -> Arrangement:
        """Where every scalar lies.

        Raises `ArgumentError` for a view that begins or steps within the blocks of its layout.
        """
        views = self._places
        if not views.is_regular:
            raise ArgumentError(f"{self._irregular()}; kernels run over a .copy() of it")
        return views.arrangement

    def _irregular(self) -> str:
        """Why kernels cannot run over a view."""
        width = max(b.width for b in self._seen.arrangement.buffers)
        how = "steps" if self._seen.step > 1 else "begins"
        return (
            f"this view of an array of {self._record.name} {how} within the blocks of {width} "
            f"records of {self._layout}"
        )

    @property
    def data(self) -> Any:
        """The allocation itself, as bytes on the device; views have that of their array."""
        return self._side.memory(self._places)

    def _progression(self) -> tuple[int, int]:
        """Where this begins in the array that owns the memory, and its step, both counted in its
        records.
        """
        whole = (self if self._base is None else self._base[0])._seen
        views, own = self._seen, whole.arrangement.buffers[0]
        away = views.arrangement.starts(views.count)[0] - whole.arrangement.starts(whole.count)[0]
        step = views.arrangement.buffers[0].block // own.block * views.step
        return away // own.block * own.width + views.first, step

    def _parts_at(self, places: BufferPlaces) -> list[Any]:
        """Parts of the allocation as numbers, on the host.

        Calls of kernels ask for the same ones again and again.
        """
        cached = self._buffers.get(id(places))
        if cached is None or cached[0] is not places:
            if len(self._buffers) >= MOST_PARTS:  # kernels come and go while an array lives
                self._buffers.clear()
            cached = self._buffers[id(places)] = (places, host_views(self._seen.data, places))
        return cached[1]

    def __len__(self) -> int:
        return self._seen.count

    @overload
    def __getitem__(self, key: int) -> B: ...
    @overload
    def __getitem__(
        self, key: slice | Sequence[int] | Sequence[bool] | np.ndarray[Any, Any]
    ) -> RecordArray[B]: ...
    @brief
    def __getitem__(self, key: Any) -> Any:
        """A record, or an array of them.

        A number gives a row of this array: what is assigned to its fields, or to components of its
        vectors, is written here. A slice gives a view: an array in the same memory. A mask of shape
        (n,), or whole numbers of shape (k,), give a copy on the same device.
        """
        match self._key(key):
            case int(index):
                return self._python_class.row_of(Row(self, index, self._places))
            case Span(start, step, count):
                return self._cut(start, step, count)
            case Places(indices):
                return self._taken(indices)
            case Mask(mask):
                return self._kept(mask)

    @brief
    def __setitem__(self, key: Any, value: Any) -> None:
        """Replace one record by the values of another one of its class, or some by those of an
        array or by one for all.

        Raises `ArgumentError` for records of another class, device or number, and where a record
        would be assigned twice.
        """
        chosen = self._key(key)
        if isinstance(chosen, Mask):
            chosen = places_of_mask(self._record.name, chosen.values, len(self), self._device)
        if isinstance(chosen, int):
            self._check_row(key, value)
            row = Row(self, chosen, self._places)
            for field, kept in [(f, getattr(value, f.name)) for f in self._record]:
                row.write(field, kept)
            return
        count = chosen.count if isinstance(chosen, Span) else len(chosen)
        if isinstance(chosen, Places):
            check_distinct(self._record.name, chosen)
        values = self._rows(value, count)
        source = values._current
        to = (
            self._views
            if isinstance(chosen, Places)
            else self._cut(chosen.start, chosen.step, count)._views
        )
        for leaf in self._record.leaves:
            column = source.column(leaf.name)
            if isinstance(chosen, Places):
                to.put(leaf.name, chosen.indices, column)
            else:
                to.fill(leaf.name, column)

    def _check_row(self, key: Any, value: Any) -> None:
        if not isinstance(value, RecordValue) or value.__record__ != self._record:
            raise ArgumentError(
                f"a row of {self._record.name} is replaced by a {self._record.name}(...), found "
                f"{type(value).__name__}; "
                f"fields are arrays: .{self._record.fields[0].name}[{key}] = ..."
            )

    def _rows(self, value: Any, count: int) -> RecordArray:
        """`count` records of a value that is assigned: an array of its own, or one in other
        memory.
        """
        if isinstance(value, RecordValue):
            self._check_row("...", value)
            fields = {
                f.name: np.broadcast_to(np.asarray(getattr(value, f.name)), (count, *_row(f)))
                for f in self._record
            }
            made = RecordArray.zeros(
                self._record,
                count,
                layout=packed(self._layout),
                device=self._device,
                python_class=self._python_class,
            )
            for name, values in fields.items():
                setattr(made, name, values)
            return made
        self._check_alike(value)
        if len(value) != count:
            raise ArgumentError(
                f"{count:,} records of {self._record.name} are replaced by as many, found "
                f"{len(value):,}"
            )
        return value.copy() if value._places.data is self._places.data else value

    def _check_alike(self, value: Any) -> None:
        """Refuse what is no array of the same records on the same device."""
        if not isinstance(value, RecordArray) or value._record != self._record:
            other = (
                f"an array of {value._record}"
                if isinstance(value, RecordArray)
                else type(value).__name__
            )
            raise ArgumentError(f"wanted an array of {self._record}, found {other}")
        if value._device != self._device:
            raise ArgumentError(
                f"the arrays of {self._record.name} lie on different devices ({value._device} and "
                f"{self._device}); move one with "
                f'.to("{self._device}")'
            )

    def _key(self, key: Any) -> Key:
        return read_key(
            self._record.name, key, len(self), self._device, self._record.fields[0].name
        )

    def _cut(self, start: int, step: int, count: int) -> RecordArray:
        """A view of some records."""
        step = step if count > 1 else 1
        views = self._places
        blocks = any(b.width > 1 for b in views.arrangement.buffers)
        layout = self._layout if blocks else strided(self._layout, step)
        part = views.cut(start, step, count, layout.arrange(self._record.leaves))
        made = object.__new__(RecordArray)
        made._set(
            _record=self._record,
            _layout=layout,
            _device=self._device,
            _python_class=self._python_class,
            _capacity=count,
            _base=self._base or (self, views),
            _seen=part,
            _buffers={},
            _side=self._side,
            _host=None,
            _fixed="a view has the records that it was cut with; .copy() is an array of its own",
            _stands_for=None,
        )
        return made

    def _taken(self, indices: Any) -> RecordArray:
        """A copy of some records."""
        made = self._empty(len(indices))
        record_moves.take(self._current, indices, made._views)
        return made

    def _kept(self, mask: Any) -> RecordArray:
        """A copy of the records that a mask keeps."""
        kept = record_moves.kept(self._device, mask)
        made = self._empty(kept.count)
        kept.move(self._current, made._views)
        return made

    def _empty(self, count: int) -> RecordArray:
        """As many records like these, without the gaps of a view."""
        return RecordArray.zeros(
            self._record,
            count,
            layout=packed(self._layout),
            device=self._device,
            python_class=self._python_class,
        )

    # ------------------------------------------------------------ changes of length

    @brief
    def reserve(self, capacity: int) -> None:
        """Have memory for that many records at least, so that `append` needs no other until they
        are there.
        """
        _check_number(f"{self._record.name}: the capacity", capacity)
        self._check_own("reserve")
        if capacity <= self._capacity:
            return
        data = allocate(
            self._device,
            self._layout.arrange(self._record.leaves).nbytes(int(capacity)),
            f"{capacity:,} records of {self._record.name}",
        )
        self._lie(data, int(capacity), len(self), self._current)

    @brief
    def append(self, records: Any) -> None:
        """Add records at the end: a record, a list of them, or an array of them on the same device.

        A full array moves to memory for one and a half times its records, so that n records one by
        one cost as much as some copies of n. Raises `ArgumentError` for a view, which has the
        length that it was cut with.
        """
        self._check_own("append")
        added = self._added(records)
        if not len(added):
            return
        before, count = len(self), len(self) + len(added)
        # the memory may go, and lies in another order afterwards
        if added._places.data is self._places.data:
            added = added.copy()
        source = added._current
        if count > self._capacity:
            self.reserve(max(count, int(self._capacity * GROWTH)))
        self._lie(self._current.data, self._capacity, count)
        end = self._cut(before, 1, len(added))._views
        for leaf in self._record.leaves:
            end.fill(leaf.name, source.column(leaf.name))

    @brief
    def compact(self, mask: Any) -> int:
        """Keep the records for which `mask`, bool of shape (n,), is true, in their order; how many
        there are.

        The capacity stays, and the records go to memory of the same size: in place threads would
        overwrite what others still have to read. From a GPU nothing comes to the host but that
        number.
        """
        self._check_own("compact")
        mask = checked_mask(self._record.name, mask, len(self), self._device)
        kept = record_moves.kept(self._device, mask)
        if kept.count == len(self):
            return kept.count
        source = self._current
        nbytes = self._layout.arrange(self._record.leaves).nbytes(self._capacity)
        data = allocate(
            self._device, nbytes, f"{self._capacity:,} records of {self._record.name}", zeroed=False
        )
        self._lie(data, self._capacity, kept.count)
        kept.move(source, self._views)
        return kept.count

    def _lie(self, data: Any, capacity: int, count: int, old: FieldViews | None = None) -> None:
        """Have `count` records in an allocation for `capacity`; those of `old` are copied there."""
        arrangement = self._layout.arrange(self._record.leaves)
        if capacity != count:
            arrangement = arrangement.at(arrangement.starts(capacity))
        views = FieldViews(data, self._device, arrangement, count)
        if old is not None:
            for leaf in self._record.leaves:
                views.fill(leaf.name, old.column(leaf.name))
        self._set(_seen=views, _capacity=capacity, _buffers={})
        if (sides := self._side.sides) is not None:
            other = sides.moved(self._side.number, views, capacity)
            if other is not None:
                other._set(
                    _seen=sides.places[1 - self._side.number], _capacity=capacity, _buffers={}
                )

    def _check_own(self, method: str) -> None:
        if self._fixed:
            raise ArgumentError(
                f"{method} changes the length of an array of {self._record.name}, and {self._fixed}"
            )

    def _added(self, records: Any) -> RecordArray:
        """What is appended, as an array."""
        if isinstance(records, RecordArray):
            self._check_alike(records)
            return records
        rows = [records] if isinstance(records, RecordValue) else records
        if not isinstance(rows, (list, tuple)):
            raise ArgumentError(
                f"append takes a {self._record.name}, a list of them or an array of them, found "
                f"{type(records).__name__}"
            )
        for number, row in enumerate(cast("list[Any]", rows)):
            if not isinstance(row, RecordValue) or row.__record__ != self._record:
                raise ArgumentError(
                    f"append takes records of {self._record}, found {_described(row)} at place "
                    f"{number}"
                )
        made = self._empty(len(rows))
        if rows:
            for f in self._record:
                setattr(made, f.name, np.array([np.asarray(getattr(row, f.name)) for row in rows]))
        return made

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        # Without it NumPy would make an array of Python objects, record by record.
        first = self._record.fields[0].name
        raise ArgumentTypeError(
            f"an array of {self._record.name} is no array of numbers; take a field, for example "
            f".{first}, or .to_structured()"
        )

    def __iter__(self) -> Iterator[B]:
        """Its rows. Raises `ArgumentError` where the length has changed since the last one."""
        views = self._places
        for i in range(views.count):
            if self._places is not views:
                raise ArgumentError(
                    f"an array of {self._record.name} was changed in length while a loop ran over "
                    f"its {views.count:,} rows; loop over a "
                    ".copy() of it, or change it after the loop"
                )
            yield self[i]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of `to_structured()`: a structure of fields, those of vectors with the shape
        (components,).
        """
        from lanewise.records.interchange import dtype_of

        return dtype_of(self)

    @brief
    def to_structured(self, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """The records as a structured array of NumPy, of shape (n,).

        Of AoS and AoAS on the host it is a view: what is written to it is written here. Of the
        other layouts, and from a GPU, it is a copy: a read-only one that says so, or with
        `copy=True` one to write to. `copy=False` raises `ArgumentError` where it would be a copy.
        """
        from lanewise.records.interchange import structured

        return structured(self, copy)

    def dataframe(self) -> Any:
        """A copy as a table of pandas: a column for each scalar, `mass`, `position_x`,
        `position_y`, ...

        Raises `ArgumentError` where pandas is not installed.
        """
        from lanewise.records.interchange import dataframe

        return dataframe(self)

    @brief
    def contiguous(self, field: str) -> Any:
        """A copy of a field, of shape (n,) or (n, components), on the same device: C-contiguous,
        for libraries that take no strides.
        """
        from lanewise.records.interchange import contiguous

        return contiguous(self, field)

    def numpy(self) -> dict[str, np.ndarray[Any, Any]]:
        """Copies of all fields on the host: of the host's side, where the array has two."""
        array = self.host if self._side.sides is not None and self._base is None else self
        return {f.name: np.array(array._on_host(f)) for f in self._record}

    def _on_host(self, field: Field) -> Any:
        """A field as an array of NumPy, for reading at once."""
        return on_host(self._side, self._record, self._places, field)

    @brief
    def with_layout(self, layout: Layout) -> RecordArray[B]:
        """The same records in another layout, on the same device."""
        result = RecordArray.zeros(
            self._record,
            len(self),
            layout=checked_layout(layout),
            device=self._device,
            python_class=self._python_class,
        )
        source = self._current
        for leaf in self._record.leaves:
            result._views.fill(leaf.name, source.column(leaf.name))
        return result

    @brief
    def to(self, device: str) -> RecordArray[B]:
        """The same records, in the same layout, on another device: one copy of one allocation.

        Views and spare memory are left behind.

        From a device with a side on the host that goes through the host's side, whose fields may be
        there already.
        """
        where, sides = resolve(device), self._side.sides
        if (
            sides is not None
            and where != self._device
            and where == sides.places[1 - self._side.number].device
        ):
            return self._other(where).with_layout(packed(self._layout))
        if self._base is not None or self._capacity != len(self):
            own = self.with_layout(packed(self._layout))
            return own if where == self._device else own.to(device)
        result = RecordArray.zeros(
            self._record,
            len(self),
            layout=self._layout,
            device=where,
            python_class=self._python_class,
        )
        copy_whole(result._places.data, self._current.data)
        return result

    def copy(self) -> RecordArray[B]:
        """An array of its own, with as many sides."""
        made = self.to(self._device)
        if (layout := self._layout_of_host()) is not None:
            made._make_host(layout)
        return made

    # ------------------------------------------------------------ the side on the host

    @property
    def host(self) -> RecordArray[B]:
        """The same records on the host, as an array of records on "cpu": the host's side, which an
        array on a GPU has from now on.

        What is read on one side after the other one has changed is copied there then, field by
        field, and nothing else is. Fields of the host's side are read-only arrays; assigning
        fields, rows or slices of records works on both sides, and so do kernels and changes of
        length. An array on the CPU that was made without `host_layout=` is its own.
        """
        sides = self._side.sides
        if self._side.number == HOST or (sides is None and target_of(self._device).host_memory):
            return self
        if sides is None:
            owner_of(self)._make_host(default_layout(self._record, CPU.name))
        return self._other(CPU.name)

    @host.deleter
    def host(self) -> None:
        """Let the host's side go, and its memory.

        An array of it that somebody has becomes one of its own.
        """
        whole = owner_of(self)
        sides = whole._side.sides
        if sides is None:
            return
        if whole._side.number == HOST:
            raise ArgumentError(
                f"this is the host's side of an array of {self._record.name}; delete .host of that "
                "array"
            )
        sides.read(DEVICE, EVERY)
        whole._set(_host=None)
        if (left := sides.array(HOST)) is not None:
            sides.read(HOST, EVERY)
            left._set(_side=Side(), _fixed="")
        whole._side.sides = None

    def _make_host(self, layout: Layout) -> None:
        if self._fixed == OF_ANOTHER:
            raise ArgumentError(
                f"an array of {self._record.name} has one side where its memory is that of another "
                "array; .copy() is an array of its own"
            )
        sides = self._side.make_two(
            self._record, self._places, self._capacity, (self._layout, layout)
        )
        sides.belongs(DEVICE, self)

    def _other(self, device: str) -> RecordArray[B]:
        """The array of the other side; of a view the same part of it."""
        if self._base is not None:
            start, step = self._progression()
            return self._base[0]._other(device)._cut(start, step, len(self))
        number, sides = 1 - self._side.number, self._side.sides
        assert sides is not None
        if (known := sides.array(number)) is not None:
            return known
        made = object.__new__(RecordArray)
        made._set(
            _record=self._record,
            _layout=sides.layouts[number],
            _device=device,
            _python_class=self._python_class,
            _capacity=self._capacity,
            _base=None,
            _fixed=self._fixed,
            _seen=sides.places[number],
            _buffers={},
            _side=Side(number, sides),
            _host=None,
            _stands_for=None,
        )
        sides.belongs(number, made)
        if number == HOST:
            self._set(_host=made)
        return made

    def _layout_of_host(self) -> Layout | None:
        """That of the host's side, where there is one beside this."""
        sides = self._side.sides
        return None if sides is None or self._side.number == HOST else sides.layouts[HOST]

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> RecordArray[B]:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        """Its fields, layout and device: it comes back on the same device, or not at all;
        `.to("cpu")` before is for other machines.
        """
        cls = self._python_class
        from lanewise.records.pickled import restored_array

        host = () if (layout := self._layout_of_host()) is None else (layout,)
        return restored_array, (
            cls.__module__,
            cls.__qualname__,
            self._record,
            packed(self._layout),
            self._device,
            self.numpy(),
            *host,
        )

    def _repr_html_(self) -> str:
        """Its first records as a table."""
        shown = min(len(self), SHOWN)
        first = self[:shown]
        columns = [first._on_host(f) for f in self._record]
        rows = ((i, *(column[i] for column in columns)) for i in range(shown))
        more = [("…", *("…" for _ in columns))] if shown < len(self) else []
        return html_table(["", *(f.name for f in self._record)], [*rows, *more], title=repr(self))

    def __repr__(self) -> str:
        kind = "a view" if self._base is not None else f"{self.nbytes:,} bytes"
        if (layout := self._layout_of_host()) is not None:
            kind += f", also as {layout} on the host"
        spare = f", memory for {self._capacity:,}" if self._capacity != len(self) else ""
        return f"<{len(self):,} {self._record} as {self._layout} on {self._device}, {kind}{spare}>"


def _described(row: Any) -> str:
    """What stands where a record should: another record with its fields, as a class that was made
    anew has the old name.
    """
    return f"one of {row.__record__}" if isinstance(row, RecordValue) else type(row).__name__


def _dimensions(record: Record, name: str) -> int:
    field = record.field(name)
    return 2 if field is not None and isinstance(field.type, t.Vector) else 1


def _check_shape(record: Record, name: str, shape: tuple[int, ...]) -> None:
    """Refuse a shape that is neither one row for each record nor a uniform argument, before the
    number of records is known.
    """
    field = record.field(name)
    assert field is not None
    row = (field.type.length,) if isinstance(field.type, t.Vector) else ()
    if shape not in (row, (*shape[:1], *row)) or len(shape) > len(row) + 1:
        wanted = f"(n, {row[0]})" if row else "(n,)"
        raise ArgumentError(
            f"{record.name}.{name} is a {field.type}: wanted shape {wanted}, or {row} for all, "
            f"found {shape}"
        )


def checked_layout(layout: Any) -> Layout:
    """A layout; raises `ArgumentError` for anything else."""
    if isinstance(layout, Layout):
        return layout
    described = layout.__name__ if isinstance(layout, type) else shown(layout)
    raise ArgumentError(
        f"a layout is lw.AoS(), lw.SoA(), lw.AoAS(), lw.SoAoAS() or lw.AoSoA(8), found {described}"
    )


def concatenate(arrays: Sequence[RecordArray]) -> RecordArray:
    """The records of several arrays, one after the other, in an array of its own: in the layout and
    on the device of the first.

    Raises `ArgumentError` for none, and for arrays of different records or on different devices.
    """
    parts: Any = arrays
    if isinstance(parts, RecordArray) or not isinstance(parts, (list, tuple)) or not parts:
        raise ArgumentError(
            f"concatenate takes a list of at least one array of records, found {shown(parts)}"
        )
    first = cast("list[Any]", parts)[0]
    if not isinstance(first, RecordArray):
        raise ArgumentError(
            f"concatenate takes arrays of records, found {type(first).__name__} at place 0"
        )
    for part in parts:
        first._check_alike(part)  # pyright: ignore[reportPrivateUsage]
    result = first._empty(sum(map(len, parts)))  # pyright: ignore[reportPrivateUsage]
    begin = 0
    for part in parts:
        result[begin : begin + len(part)] = part
        begin += len(part)
    return result


def places_of(array: RecordArray) -> FieldViews:
    """Where the records of an array are. It is another object after every change in length: who has
    bound memory sees that by it.

    Raises `ArgumentError` for a view of an array that was changed in length since.
    """
    return array._seen if array._base is None else array._places  # pyright: ignore[reportPrivateUsage]


def host_field(array: RecordArray, field: Field) -> Any:
    """A field as an array of NumPy, for reading at once: nobody is lent the memory."""
    return array._on_host(field)  # pyright: ignore[reportPrivateUsage]


def owner_of(array: RecordArray) -> RecordArray:
    """The array that owns the memory: of a view the one that it was cut of."""
    return array if array._base is None else array._base[0]  # pyright: ignore[reportPrivateUsage]


def side_of(array: RecordArray) -> Side:
    """Which side of its array this is: who reads or changes fields says so to it, see `Side.read`
    and `Side.write`.
    """
    return array._side  # pyright: ignore[reportPrivateUsage]


def side_at(array: RecordArray, places: FieldViews | None) -> Side | None:
    """`side_of` an array whose records are there still, else None."""
    seen = array._seen if array._base is None else array._places  # pyright: ignore[reportPrivateUsage]
    return array._side if seen is places else None  # pyright: ignore[reportPrivateUsage]


def check_usable(array: RecordArray, kernel: str, name: str) -> None:
    """Raise `ArgumentError` where kernels cannot run over the records as they lie."""
    if not places_of(array).is_regular:
        why = array._irregular()  # pyright: ignore[reportPrivateUsage]
        raise ArgumentError(
            f"{kernel}: {name!r}: {why}; kernels run over whole blocks. Pass a .copy() of it, and "
            "assign that to the slice if the kernel changes it, or choose a layout without blocks"
        )


def are_same(one: RecordArray, other: RecordArray) -> bool:
    """Whether these are the same records: the same memory, from the same one on, and as many."""
    if one is other:
        return True
    a, b = places_of(one), places_of(other)
    if a.data is not b.data:
        return False
    return (a.arrangement, a.arrangement.starts(a.count), a.count, a.first, a.step) == (
        b.arrangement, b.arrangement.starts(b.count), b.count, b.first, b.step
    )  # fmt: skip


def host_layout_of(array: RecordArray) -> Layout | None:
    """That of its second side on the host, if it has two and is not that side itself."""
    return array._layout_of_host()  # pyright: ignore[reportPrivateUsage]


def owns_its_memory(array: RecordArray) -> bool:
    """Whether the memory was allocated for these records, or for those that this is a view of."""
    return not owner_of(array)._fixed  # pyright: ignore[reportPrivateUsage]


def progression_of(array: RecordArray) -> tuple[int, int]:
    """Which records of the array that owns the memory these are: the first one, and the step."""
    return array._progression()  # pyright: ignore[reportPrivateUsage]


def stood_for(array: RecordArray) -> RecordArray:
    """The array whose elements these are: another one for a copy that a kernel gets in its
    place.
    """
    original = array._stands_for  # pyright: ignore[reportPrivateUsage]
    return array if original is None else original


def stand_for(copy: RecordArray, original: RecordArray) -> None:
    """Say of a new copy that its elements are those of the original."""
    copy._set(_stands_for=original)  # pyright: ignore[reportPrivateUsage]


def overlapping(one: RecordArray, other: RecordArray) -> bool:
    """Whether some record of one is a record of the other."""
    a, b = places_of(one), places_of(other)
    if not a.count or not b.count:
        return False
    if a.data is not b.data:  # arrays over the memory of others may share it
        (begin, end), (other_begin, other_end) = a.bounds(), b.bounds()
        return a.device == b.device and begin < other_end and other_begin < end
    (first, step), (start, apart) = one._progression(), other._progression()  # pyright: ignore[reportPrivateUsage]
    here = range(first, first + (a.count - 1) * step + 1, step)
    return meet(here, range(start, start + (b.count - 1) * apart + 1, apart))


def meet(a: range, b: range) -> bool:
    """Whether two ranges with positive steps have a number in common: by the Chinese remainder
    theorem.
    """
    first, last = max(a[0], b[0]), min(a[-1], b[-1])
    divisor = math.gcd(a.step, b.step)
    if first > last or (b[0] - a[0]) % divisor:
        return False
    turns = (
        (b[0] - a[0]) // divisor * pow(a.step // divisor, -1, b.step // divisor)
        if b.step > divisor
        else 0
    )
    common, period = a[0] + turns * a.step, math.lcm(a.step, b.step)
    return common + -((common - first) // period) * period <= last


def _check_number(what: str, number: Any) -> None:
    if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or number < 0:
        raise ArgumentError(f"{what} must be a whole number from 0 on, found {shown(number)}")


def _row(field: Field) -> tuple[int, ...]:
    return (field.type.length,) if isinstance(field.type, t.Vector) else ()
