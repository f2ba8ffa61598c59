"""Records on a mesh: the placement of an array whose rows lie on several devices, part by part."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any

from lanewise.language import types as t
from lanewise.language.record import Field, Record
from lanewise.layouts import Arrangement, Layout
from lanewise.records.moves import on_device, relaid
from lanewise.records.placement import RecordPlacement, Staying
from lanewise.records.split_array import SplitArray
from lanewise.records.storage import Storage
from lanewise.runtime.field_copies import field_copy
from lanewise.runtime.memory import array_module, bring, on
from lanewise.runtime.mesh import Mesh
from lanewise.support.errors import ArgumentError

ON_A_MESH = "its rows lie on a mesh"


@dataclass(frozen=True, slots=True, eq=False)
class SplitRows:
    """Rows one part after the other.

    parts: the storage of the records of each part of this process, some of which may have none.
    lengths: how many rows each part of the mesh has.
    """

    mesh: Mesh
    parts: tuple[Storage, ...]
    lengths: tuple[int, ...]

    @property
    def device(self) -> str:
        """The first part's: where columns and copies of records are brought together."""
        return self.parts[0].device

    @property
    def count(self) -> int:
        return sum(self.lengths)

    @property
    def memories(self) -> tuple[Any, ...]:
        return tuple(m for part in self.parts for m in part.places.memories)

    @property
    def is_regular(self) -> bool:
        return False

    def irregular(self, name: str, layout: Layout) -> str:
        del layout
        return f"this array of {name} lies on a mesh ({self.mesh})"

    def _pieces(self) -> Iterator[tuple[range, RecordPlacement]]:
        """The rows of each part of this process that has some, and where they are."""
        for part, rows in zip(self.parts, self.mesh.own_rows(self.lengths), strict=True):
            if rows:
                yield rows, part.places

    # ------------------------------------------------------------ reading

    def strided(self, field: Field, memory: Callable[[Any], Any] | None = None) -> Any:
        del field, memory

    def gathered(self, field: Field) -> Any:
        columns = [self.column(leaf) for leaf in t.leaves(field.name, field.type)]
        with on(self.device):
            stacked = isinstance(field.type, t.Vector)
            whole = array_module(self.device).stack(columns, axis=1) if stacked else columns[0]
        return field_copy(
            whole,
            f".{field.name} is a copy, as the rows lie on a mesh; assign the whole field, "
            f"array.{field.name} = values, or records: array[i].{field.name} = value, "
            "array[2:5] = records",
        )

    def field(self, field: Field) -> SplitArray:
        """A field for the user: of each part a view, where its layout has one."""
        return SplitArray(self.mesh, [part.field(field) for part in self.parts], self.lengths)

    def divides(self, values: SplitArray) -> bool:
        """Whether values have as many rows in every part."""
        return values.mesh == self.mesh and values.lengths == self.lengths

    def column(self, leaf: str) -> Any:
        return self.columns((leaf,))[leaf]

    def columns(self, leaves: Sequence[str]) -> dict[str, Any]:
        """Several leaves of all rows; those of one type go between processes together."""
        module = array_module(self.device)
        pieces = {n: [self._brought(p, n) for p in self.parts] for n in leaves}
        with on(self.device):
            own = {name: module.concatenate(columns) for name, columns in pieces.items()}
        if not self.mesh.everywhere:
            return own
        for dtype in dict.fromkeys(column.dtype for column in own.values()):
            names = [name for name, column in own.items() if column.dtype == dtype]
            with on(self.device):
                rows = module.stack([own[name] for name in names], axis=1)
            whole = self.mesh.gather(rows, self.lengths)
            with on(self.device):
                own |= {name: whole[:, n] for n, name in enumerate(names)}
        return own

    def _brought(self, part: Storage, leaf: str) -> Any:
        """A leaf of a part, on the first device. Some layouts compute it, where the part lies."""
        with on(part.device):
            column = part.places.column(leaf)
        return bring(column, self.device)

    def take(self, leaf: str, indices: Any) -> Any:
        column = self.column(leaf)
        with on(self.device):
            return column[indices]

    def at(self, leaf: str, index: int) -> tuple[Any, tuple[int, int]]:
        for rows, part in self._pieces():
            if index in rows:
                return part.at(leaf, index - rows.start)
        raise ArgumentError(
            f"row {index:,} lies in another process of the mesh ({self.mesh}); .numpy() has all "
            "rows, and is called by every process"
        )

    # ------------------------------------------------------------ writing

    def put(self, leaf: str, indices: Any, values: Any) -> None:
        column = self.column(leaf)
        with on(self.device):
            column[indices] = values
        self.fill(leaf, column)

    def fill(self, leaf: str, values: Any) -> None:
        single = getattr(values, "ndim", 0) == 0
        for rows, part in self._pieces():
            own = values if single else values[rows.start : rows.stop]
            part.fill(leaf, own if single else bring(own, part.device))

    # ------------------------------------------------------------ moving

    def move(self, indices: Any, to: RecordPlacement) -> None:
        for leaf in self.parts[0].record.leaves:
            to.fill(leaf.name, self.take(leaf.name, indices))

    def staying(self, mask: Any) -> Staying:
        with on(self.device):
            (kept,) = mask.nonzero()
        return Staying(len(kept), lambda to: self.move(kept, to))

    def cut(self, start: int, step: int, count: int, arrangement: Arrangement) -> SplitRows:
        del arrangement  # each part's storage knows its own
        chosen = range(start, start + step * count, step) if count else range(0)
        ends = accumulate(self.lengths, initial=0)
        pieces = [(first, _between(chosen, first, end)) for first, end in pairwise(ends)]
        own = self.mesh.own
        parts = tuple(
            part.cut(here.start - first if here else 0, step, len(here))
            for part, (first, here) in zip(self.parts, pieces[own.start : own.stop], strict=True)
        )
        return SplitRows(self.mesh, parts, tuple(len(here) for _, here in pieces))


def _between(numbers: range, first: int, end: int) -> range:
    """Those of some numbers that are not below `first`, and below `end`."""
    below = len(range(numbers.start, min(first, numbers.stop), numbers.step))
    until = len(range(numbers.start, min(end, numbers.stop), numbers.step))
    return numbers[below:until]


def split(storage: Storage, mesh: Mesh) -> Storage:
    """A copy of some records on a mesh, by rows."""
    lengths = _lengths(mesh, len(storage))
    parts = (
        on_device(storage.cut(rows.start, 1, len(rows)), device)
        for rows, device in zip(mesh.own_rows(lengths), mesh.devices, strict=True)
    )
    return over_mesh(SplitRows(mesh, tuple(parts), lengths))


def split_zeros(record: Record, count: int, layout: Layout, mesh: Mesh) -> Storage:
    """So many zeros on a mesh, by rows."""
    lengths = _lengths(mesh, count)
    parts = (
        Storage.zeros(record, len(rows), layout, device)
        for rows, device in zip(mesh.own_rows(lengths), mesh.devices, strict=True)
    )
    return over_mesh(SplitRows(mesh, tuple(parts), lengths))


def _lengths(mesh: Mesh, count: int) -> tuple[int, ...]:
    return tuple(map(len, mesh.rows(count)))


def copied(rows: SplitRows) -> Storage:
    """The same rows in their own memory, divided alike."""
    return over_mesh(replace(rows, parts=tuple(on_device(p, p.device) for p in rows.parts)))


def in_layout(rows: SplitRows, layout: Layout) -> Storage:
    """The same rows in another layout, divided alike."""
    return over_mesh(replace(rows, parts=tuple(relaid(p, layout) for p in rows.parts)))


def over_mesh(rows: SplitRows) -> Storage:
    """The storage of an array whose rows lie there."""
    first = rows.parts[0]
    return Storage(first.record, first.layout, rows, fixed=ON_A_MESH)


def split_rows(storage: Storage) -> SplitRows | None:
    """Where some records lie, if that is a mesh."""
    places = storage.places
    return places if isinstance(places, SplitRows) else None
