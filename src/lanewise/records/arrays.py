"""RecordArray: the records of many elements, in one allocation, in any layout, on any device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, overload

import numpy as np

from lanewise.language.nested_records import class_within
from lanewise.language.record import Record, RecordValue
from lanewise.layouts import Arrangement, Layout, packed
from lanewise.records import assigning, moves, structures
from lanewise.records.keys import Key, read_key
from lanewise.records.open_layout import AUTO, LayoutArgument, checked_layout, read_layout
from lanewise.records.parts import PartOfRecords, columns_within
from lanewise.records.rows import ArrayRow
from lanewise.records.split_array import SplitArray
from lanewise.records.split_rows import copied, in_layout, split, split_rows, split_zeros
from lanewise.records.storage import Storage, check_number
from lanewise.runtime.memory import bring
from lanewise.runtime.mesh import Mesh, first_of, place_of
from lanewise.support.attributes import settings_by_name
from lanewise.support.errors import ArgumentError, ArgumentTypeError, brief
from lanewise.support.html_tables import html_table

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from lanewise.records.parts import FieldOrPart

    B = TypeVar("B", bound=RecordValue, default=Any)
else:
    from typing import TypeVar

    B = TypeVar("B")

SHOWN = 8  # records in a notebook


class RecordArray(Generic[B]):
    """An array of records. Its fields are attributes.

    Reading a field gives an array of shape (n,) or (n, components) on the array's device. It is a
    view, and writes go through, in every layout but AoSoA, where no single stride reaches the
    elements: there it is a read-only copy. Assigning a field works in all layouts.

    `bodies[10:20]` and `bodies[::2]` are views: arrays of records in the same memory, which kernels
    take. Masks and integers make copies on the device. An array that owns its memory can change its
    length. Views and rows from before then raise an error when they are used; fields from before
    are arrays of their library, and keep the old memory.

    An array may have a second side on the host, see `host`.
    """

    __slots__ = ("__weakref__", "_python_class", "_storage")

    _storage: Storage
    _python_class: type[B]

    def __init__(self, storage: Storage, python_class: type[B]) -> None:
        object.__setattr__(self, "_storage", storage)
        object.__setattr__(self, "_python_class", python_class)

    def _of(self, storage: Storage) -> RecordArray[B]:
        """Other records of the same class."""
        return RecordArray(storage, self._python_class)

    # ------------------------------------------------------------ making

    @classmethod
    @settings_by_name
    def zeros(
        cls,
        record: Record,
        count: int,
        *,
        layout: LayoutArgument | None,
        device: str | Mesh | None,
        python_class: type[B],
        host_layout: Layout | None = None,
    ) -> RecordArray[B]:
        """`count` records of zeros. host_layout: that of a second side on the host, see `host`.

        Raises `ArgumentError` for a negative count, `DeviceError` when they do not fit the memory.
        """
        count = check_number(f"{record.name}: the number of records", count)
        place = place_of(device)
        where = first_of(place)
        begun, left_open = read_layout(layout, record, where)
        if isinstance(place, Mesh):
            if layout == AUTO:
                raise refuse_auto(record, place)
            if host_layout is not None:
                raise ArgumentError(
                    f"an array of {record.name} on a mesh ({place}) has no side on the host; "
                    "leave host_layout= out, and take .numpy()"
                )
            return cls(split_zeros(record, count, begun, place), python_class)
        made = Storage.zeros(record, count, begun, where)
        if left_open:
            made.leave_open()
        if host_layout is not None:
            made.make_host(checked_layout(host_layout))
        return cls(made, python_class)

    @classmethod
    @settings_by_name
    def from_fields(
        cls,
        record: Record,
        fields: Mapping[str, Any],
        *,
        layout: LayoutArgument | None,
        device: str | Mesh | None,
        python_class: type[B],
        host_layout: Layout | None = None,
    ) -> RecordArray[B]:
        """Records from one array (or a uniform argument) per field; fields left out are zero.

        Raises `ArgumentError` for an unknown field, a wrong shape, or a dtype that the field cannot
        hold.
        """
        where = place_of(device)
        count, arrays = assigning.columns_of(record, fields, first_of(where))
        result = cls.zeros(
            record,
            count,
            layout=layout,
            device=where,
            python_class=python_class,
            host_layout=host_layout,
        )
        for name, value in arrays.items():
            setattr(result, name, value)
        return result

    # ------------------------------------------------------------ fields

    def __getattr__(self, name: str) -> FieldOrPart:
        # Copy, pickle and array libraries ask for names like this, also of an array that is not
        # filled yet.
        if name.startswith("_"):
            raise AttributeError(name)
        storage = self._storage
        if storage.record.part(name) is not None:
            cls = class_within(self._python_class, name)
            return PartOfRecords(self, name, cls)  # pyright: ignore[reportReturnType]
        field = assigning.field_of(storage.record, name)
        if (rows := split_rows(storage)) is not None:
            return rows.field(field)  # pyright: ignore[reportReturnType]
        return storage.field(field)

    @brief
    def __setattr__(self, name: str, value: Any) -> None:
        storage = self._storage
        if storage.record.part(name) is not None:
            for one, values in columns_within(storage.record, name, value, len(self)).items():
                setattr(self, one, values)
            return
        field = assigning.field_of(storage.record, name)
        rows = split_rows(storage) if isinstance(value, SplitArray) else None
        if rows is not None and rows.divides(value):
            for part, values in zip(rows.parts, value.parts, strict=True):
                assigning.assign_field(part, field, values)
            return
        assigning.assign_field(storage, field, value)

    def __delattr__(self, name: str) -> None:
        if name == "host":
            object.__delattr__(self, name)
            return
        if self.record.part(name) is None:
            assigning.field_of(self.record, name)
        raise AttributeError(
            f"every {self.record.name} has the field {name!r}, which cannot be deleted"
        )

    # ------------------------------------------------------------ the whole array

    @property
    def record(self) -> Record:
        return self._storage.record

    @property
    def layout(self) -> Layout:
        return self._storage.layout

    @property
    def device(self) -> str:
        return self._storage.device

    @property
    def nbytes(self) -> int:
        """The size of the allocation in bytes; for a view the size of its records."""
        return packed(self.layout).arrange(self.record.leaves).nbytes(self.capacity)

    @property
    def capacity(self) -> int:
        """The number of records that the memory can hold; for a view its length."""
        return self._storage.capacity

    @property
    def arrangement(self) -> Arrangement:
        """Where every scalar lies.

        Raises `ArgumentError` for a view that begins or steps within the blocks of its layout.
        """
        return self._storage.regular.arrangement

    @property
    def data(self) -> Any:
        """The allocation, as bytes on the device; a view has that of its array."""
        return self._storage.lent

    def __len__(self) -> int:
        return len(self._storage)

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
        (n,), or integers of shape (k,), give a copy on the same device.
        """
        match self._key(key):
            case int(index):
                return self._python_class.row_of(
                    ArrayRow(self._storage, index, self._storage.places)
                )
            case several:
                return self._of(moves.chosen(self._storage, several))

    @brief
    def __setitem__(self, key: Any, value: Any) -> None:
        """Replace one record by the values of another one of its class, or some by those of an
        array or by one for all.

        Raises `ArgumentError` for records of another class, device or number, and where a record
        would be assigned twice.
        """
        storage, chosen = self._storage, self._key(key)
        if isinstance(chosen, int):
            assigning.check_row(self.record, key, value)
            row = ArrayRow(storage, chosen, storage.places)
            for field, kept in [(f, getattr(value, f.name)) for f in self.record]:
                row.write(field, kept)
            return
        several = moves.as_span_or_places(storage, chosen)
        moves.assign(storage, several, self._rows(value, len(several)))

    def _rows(self, value: Any, count: int) -> Storage:
        """`count` records of a value that is assigned, in their own memory."""
        if isinstance(value, RecordValue):
            return assigning.repeated(self._storage, value, count)
        values = storage_alike(self, value)
        if len(value) != count:
            raise ArgumentError(
                f"{count:,} records of {self.record.name} are replaced by as many, found "
                f"{len(value):,}"
            )
        return moves.apart(values, self._storage)

    def _key(self, key: Any) -> Key:
        record = self.record
        if isinstance(key, SplitArray):
            key = bring(key.numpy(), self.device)
        return read_key(record.name, key, len(self), self.device, record.fields[0].name)

    # ------------------------------------------------------------ changes of length

    @brief
    def reserve(self, capacity: int) -> None:
        """Allocate memory for at least that many records, so that `append` needs no new memory up
        to this length.
        """
        capacity = check_number(f"{self.record.name}: the capacity", capacity)
        moves.reserve(self._storage, capacity)

    @brief
    def append(self, records: Any) -> None:
        """Append records: one record, a list, or an array on the same device.

        A full array moves to memory for 1.5 times its records, so appending n records one by one
        costs as much as a few copies of n. Raises `ArgumentError` for a view, which keeps its
        length.
        """
        self._storage.check_own("append")
        if isinstance(records, (RecordArray, PartOfRecords)):
            added = storage_alike(self, records)
        else:
            added = assigning.from_rows(self._storage, records)
        moves.append(self._storage, added)

    @brief
    def compact(self, mask: Any) -> int:
        """Keep the records for which `mask`, bool of shape (n,), is true, in their order; returns
        their number.

        The capacity stays. The records move to memory of the same size, because threads that work
        in place would overwrite what others still have to read. From a GPU only their number is
        copied to the host.
        """
        return moves.compact(self._storage, mask)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        # Without it NumPy would make an array of Python objects, record by record.
        first = self.record.fields[0].name
        raise ArgumentTypeError(
            f"an array of {self.record.name} is no array of numbers; take a field, for example "
            f".{first}, or .to_structured()"
        )

    def __iter__(self) -> Iterator[B]:
        """Its rows. Raises `ArgumentError` where the length has changed since the last one."""
        views = self._storage.places
        for i in range(views.count):
            if not self._storage.same_records(views):
                raise ArgumentError(
                    f"an array of {self.record.name} was changed in length while a loop ran over "
                    f"its {views.count:,} rows; loop over a "
                    ".copy() of it, or change it after the loop"
                )
            yield self[i]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of `to_structured()`: a structure of the fields; vectors have the shape
        (components,).
        """
        return structures.dtype_of(self._storage)

    @brief
    def to_structured(self, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """The records as a structured array of NumPy, of shape (n,).

        On the host it is a view if the layout keeps each record in one piece; writes to it then
        change this array. AoS, AoAS and AoSoA(1) always do, SoAoAS if all fields fit in one group,
        SoA if the record is a single scalar. Otherwise, and from a GPU, it is a read-only copy:
        writes raise `ValueError`. `copy=True` gives a writable copy, `copy=False` raises
        `ArgumentError` where there is no view.
        """
        return structures.structured(self._storage, copy)

    def dataframe(self) -> Any:
        """A copy as a table of pandas: a column for each scalar, `mass`, `position_x`,
        `position_y`, ...

        Raises `ArgumentError` where pandas is not installed.
        """
        return structures.dataframe(self._storage)

    @brief
    def contiguous(self, field: str) -> Any:
        """A copy of a field, of shape (n,) or (n, components), on the same device: C-contiguous,
        for libraries that take no strides.
        """
        return structures.contiguous(self._storage, field)

    def numpy(self) -> dict[str, np.ndarray[Any, Any]]:
        """Copies of all fields on the host; from the host side if the array has two."""
        storage = self._storage
        array = self.host if storage.side.sides is not None and storage.whole is None else self
        return {f.name: np.array(storage_of(array).on_host(f)) for f in self.record}

    @brief
    def with_layout(self, layout: LayoutArgument) -> RecordArray[B]:
        """The same records in another layout, on the same device or mesh; "auto" leaves the layout
        to the kernels.
        """
        if (rows := split_rows(self._storage)) is not None:
            if layout == AUTO:
                raise refuse_auto(self.record, rows.mesh)
            return self._of(in_layout(rows, checked_layout(layout)))
        begun, left_open = read_layout(layout, self.record, self.device)
        made = moves.relaid(self._storage, begun)
        if left_open:
            made.leave_open()
        return self._of(made)

    @brief
    def to(self, device: str | Mesh) -> RecordArray[B]:
        """The same records, in the same layout, on another device (one copy of one allocation), or
        on a mesh, divided by rows.

        The result has neither the views nor the spare memory of this array.

        If the array has a host side, the copy goes through that side, which may already have the
        fields.
        """
        place = place_of(device)
        if isinstance(place, Mesh):
            return self._of(split(self._storage, place))
        made = moves.on_device(self._storage, place)
        made.leave_open_like(self._storage)
        return self._of(made)

    def copy(self) -> RecordArray[B]:
        """An independent copy, with the same sides, or on the same mesh."""
        if (rows := split_rows(self._storage)) is not None:
            return self._of(copied(rows))
        return self._of(moves.own(self._storage))

    # ------------------------------------------------------------ the side on the host

    @property
    def host(self) -> RecordArray[B]:
        """The same records on the host, as an array of records on "cpu". Accessing this gives an
        array on a GPU a host side.

        Reading a field that has changed on the other side copies that field first; nothing else is
        copied. Fields of the host's side are read-only arrays; assigning fields, rows or slices of
        records works on both sides, and so do kernels and changes of length. An array on the CPU
        that was made without `host_layout=` is its own.
        """
        storage = self._storage
        if storage.is_on_host:
            return self
        if storage.side.sides is None:
            storage.owner.make_host()
        if storage.whole is not None:
            return self._of(storage.other())
        if storage.host is None:
            storage.host = self._of(storage.other())
        return storage.host

    @host.deleter
    def host(self) -> None:
        """Let the host's side go, and its memory.

        An array of it that a caller holds becomes independent.
        """
        self._storage.owner.drop_host()

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> RecordArray[B]:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        """Its fields, layout and device: it comes back on the same device, or mesh, or not at all;
        `.to("cpu")` before is for other machines.
        """
        cls, rows = self._python_class, split_rows(self._storage)
        from lanewise.facade import restored_array

        host = () if (layout := self._storage.layout_of_host) is None else (layout,)
        return restored_array, (
            cls.__module__,
            cls.__qualname__,
            self.record,
            packed(self.layout)
            if rows is not None or (left := self._storage.owner.open) is None or left.decided
            else AUTO,
            self.device if rows is None else rows.mesh,
            self.numpy(),
            *host,
        )

    def _repr_html_(self) -> str:
        """Its first records as a table."""
        shown = min(len(self), SHOWN)
        first = self[:shown]
        columns = [storage_of(first).on_host(f) for f in self.record]
        rows = ((i, *(column[i] for column in columns)) for i in range(shown))
        more = [("…", *("…" for _ in columns))] if shown < len(self) else []
        return html_table(["", *(f.name for f in self.record)], [*rows, *more], title=repr(self))

    def __repr__(self) -> str:
        kind = "a view" if self._storage.whole is not None else f"{self.nbytes:,} bytes"
        if (layout := self._storage.layout_of_host) is not None:
            kind += f", also as {layout} on the host"
        spare = f", memory for {self.capacity:,}" if self.capacity != len(self) else ""
        rows = split_rows(self._storage)
        where = self.device if rows is None else f"a mesh ({rows.mesh})"
        left = self._storage.owner.open
        lies = f"auto ({self.layout} so far)" if left and not left.decided else self.layout
        return f"<{len(self):,} {self.record} as {lies} on {where}, {kind}{spare}>"


def refuse_auto(record: Record, mesh: Mesh) -> ArgumentError:
    """Of arrays on a mesh."""
    return ArgumentError(
        f"layout='auto' is for arrays of {record.name} in one memory, and this one is on a mesh "
        f"({mesh}); give a layout: lw.choose_layout({record.name}, [kernels]) finds one"
    )


def storage_of(array: RecordArray) -> Storage:
    """Where the records of an array are, and what becomes of that."""
    return array._storage  # pyright: ignore[reportPrivateUsage]


def storage_alike(array: RecordArray, other: Any) -> Storage:
    """The storage of an array of the same records on the same device; refuses anything else."""
    if isinstance(other, PartOfRecords):
        other = other.copy()  # apart, also where it lies in this array
    if not isinstance(other, RecordArray):
        raise ArgumentError(f"wanted an array of {array.record}, found {type(other).__name__}")
    assigning.check_alike(storage_of(array), storage_of(other))
    return storage_of(other)


def class_of(array: RecordArray[B]) -> type[B]:
    """The class that its records are of."""
    return array._python_class  # pyright: ignore[reportPrivateUsage]
