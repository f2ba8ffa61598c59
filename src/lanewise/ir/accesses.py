"""Statements that touch memory: records and elements of arrays, until layouts are lowered, and then
scalars of buffers; copies within a block as well.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from lanewise.ir.expressions import Expression
from lanewise.ir.roles import (
    Counted,
    Declared,
    Loaded,
    StatementNode,
    Stored,
)
from lanewise.language.scatter import Operation as ScatterOperation
from lanewise.support.errors import NOWHERE, Location

__all__ = [
    "CommitAsync",
    "CopyAsync",
    "CopyElement",
    "CopyLanes",
    "Load",
    "LoadElement",
    "LoadRecord",
    "Prefetch",
    "PrefetchElement",
    "Scatter",
    "ScatterElement",
    "ScatterOperation",
    "Store",
    "StoreElement",
    "StoreRecord",
    "WaitAsync",
]


@dataclass(frozen=True, slots=True)
class LoadRecord(StatementNode):
    """Read leaves of one record of an array into variables: pairs of (leaf, variable).

    `across` > 1: of that many neighbouring records. The first is at `index`, a multiple of their
    number; the pairs of one follow those of the one before.
    """

    array: Loaded
    index: Expression
    reads: tuple[tuple[str, Declared], ...]
    across: int = 1


@dataclass(frozen=True, slots=True)
class StoreRecord(StatementNode):
    """Write leaves of one record of an array: pairs of (leaf, value); `across` as in
    `LoadRecord`.
    """

    array: Stored
    index: Expression
    writes: tuple[tuple[str, Expression], ...]
    across: int = 1


@dataclass(frozen=True, slots=True)
class LoadElement(StatementNode):
    """Read one element of an array that has a shape into a variable; an index for each dimension,
    the slowest first.

    Indices are integers of any type. None is negative or beyond its dimension. `more`:
    variables that take the elements behind it in the last dimension, at once; the last index and
    the length of that dimension are multiples of their number. `early`: the load is made before a
    test that decides whether its value counts, so that an index may be outside of its dimension;
    the place is in the array.
    """

    array: Loaded
    indices: tuple[Expression, ...]
    name: Declared
    location: Location = field(default=NOWHERE, compare=False, repr=False)
    more: tuple[Declared, ...] = ()
    early: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, *self.more)


@dataclass(frozen=True, slots=True)
class StoreElement(StatementNode):
    """Write one element of an array that has a shape, or `more`; indices as in `LoadElement`."""

    form: ClassVar[str] = "store {array}[{indices}] = {values}"

    array: Stored
    indices: tuple[Expression, ...]
    value: Expression
    location: Location = field(default=NOWHERE, compare=False, repr=False)
    more: tuple[Expression, ...] = ()

    @property
    def values(self) -> tuple[Expression, ...]:
        return (self.value, *self.more)


@dataclass(frozen=True, slots=True)
class ScatterElement(StatementNode):
    """Add a value to one element of an array that has a shape, or take the smaller or larger of the
    two; indices as in `LoadElement`.

    Many threads may do so with one element at the same time: the result has the same bits whatever
    their order, for `language.scatter` says what is combined how. The kernel neither reads nor
    stores elements of the array. Of a sum of floats the array has words of
    `lanewise.language.exact_sums` instead of its elements; indices are those of the elements.
    """

    form: ClassVar[str] = "scatter {operation} {array}[{indices}], {value}"

    array: Counted
    indices: tuple[Expression, ...]
    operation: ScatterOperation
    value: Expression
    location: Location = field(default=NOWHERE, compare=False, repr=False)

    @property
    def name(self) -> str:
        """The function that the user calls."""
        return f"scatter_{'add' if self.operation == 'sum' else self.operation}"


@dataclass(frozen=True, slots=True)
class PrefetchElement(StatementNode):
    """Ask for the line of memory of an element that is loaded later; indices as in `LoadElement`.

    The place may be outside of the array, and nothing that a kernel computes depends on it. A core
    of a CPU waits less for what it requested; threads of a GPU take turns instead.
    """

    form: ClassVar[str] = "prefetch {array}[{indices}]"

    array: str
    indices: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class CopyElement(StatementNode):
    """Begin to copy an element of an array that has a shape from global into shared memory, past
    the registers.

    `across`: so many neighbours of the last dimension at once; both last indices, and the lengths
    of both last dimensions, are multiples of it. `there`: where it is false zeros are stored and
    nothing is read, so that the place may be outside of the source. When the place may be touched
    is as after `CopyAsync`.
    """

    array: Stored
    indices: tuple[Expression, ...]
    source: Loaded
    source_indices: tuple[Expression, ...]
    across: int = 1
    there: Expression | None = None


@dataclass(frozen=True, slots=True)
class CopyAsync(StatementNode):
    """Begin to copy leaves of one record from global into shared memory, past the registers.

    The place must not be touched until this thread has met a `WaitAsync`; other threads have to
    meet a `Barrier` after that.
    """

    array: Stored
    index: Expression
    source: Loaded
    source_index: Expression
    leaves: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CommitAsync(StatementNode):
    form: ClassVar[str] = "commit async"

    """The copies that this thread has begun since the last commit are a group, which may be
    empty.
    """


@dataclass(frozen=True, slots=True)
class WaitAsync(StatementNode):
    """Wait until copies that this thread has begun are done: all of them, or with `pending` all
    groups but the last so many.
    """

    pending: int = 0


@dataclass(frozen=True, slots=True)
class Load(StatementNode):
    """One lowered load of `len(names)` neighbouring scalars; an empty name is a lane that no one
    wants.
    """

    buffer: Loaded
    index: Expression
    names: tuple[Declared, ...]
    location: Location = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Store(StatementNode):
    """One lowered store of `len(values)` neighbouring scalars."""

    form: ClassVar[str] = "store {buffer}[{index}]: {values}"

    buffer: Stored
    index: Expression
    values: tuple[Expression, ...]
    location: Location = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Prefetch(StatementNode):
    """One lowered `PrefetchElement`: the place of a scalar of a global buffer."""

    form: ClassVar[str] = "prefetch {buffer}[{index}]"

    buffer: str
    index: Expression


@dataclass(frozen=True, slots=True)
class Scatter(StatementNode):
    """One lowered scatter: a scalar of a global buffer is combined with a value, as in
    `ScatterElement`.
    """

    form: ClassVar[str] = "scatter {operation} {buffer}[{index}], {value}"

    buffer: Counted
    index: Expression
    operation: ScatterOperation
    value: Expression
    location: Location = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class CopyLanes(StatementNode):
    """One lowered asynchronous copy of `lanes` neighbouring scalars: 4, 8 or 16 bytes on a multiple
    of their size.

    They are those of one element of a global buffer from `source_lane` on, and of one element of a
    shared buffer from `lane` on.
    `there`: as of `CopyElement`. `once`: no thread of another block that is close wants them, so
    that they are not kept in L1.
    """

    buffer: Stored
    index: Expression
    lane: int
    source: Loaded
    source_index: Expression
    source_lane: int
    lanes: int
    there: Expression | None = None
    once: bool = False
