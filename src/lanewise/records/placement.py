"""What an array of records asks of the place where its records lie.

`FieldViews` is the one of an allocation on one device. Another one, with rows on several devices,
is indexed, copied, assigned and brought to the host alike. Kernels ask for more: one memory, and an
arrangement that says where everything lies in it (`is_regular`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from lanewise.language.record import Field
from lanewise.layouts import Arrangement, Layout


@dataclass(frozen=True, slots=True)
class Staying:
    """What a mask keeps of some records: how many, and what copies them to other memory."""

    count: int
    move: Callable[[RecordPlacement], None]


class RecordPlacement(Protocol):
    """Records on a device. `leaf` is a scalar of a record, such as `position.x`; columns, indices
    and masks are arrays of that device.
    """

    @property
    def device(self) -> str:
        """Where columns of it are, and copies of its records."""
        ...

    @property
    def count(self) -> int: ...

    @property
    def memories(self) -> tuple[Any, ...]:
        """All allocations that it lies in: two placements without a common one share no record."""
        ...

    @property
    def is_regular(self) -> bool:
        """Whether it is one memory whose arrangement says where everything lies, as kernels ask
        for.
        """
        ...

    def irregular(self, name: str, layout: Layout, /) -> str:
        """Why it is not: a clause about an array of records of that name."""
        ...

    # ------------------------------------------------------------ reading

    def strided(self, field: Field, memory: Callable[[Any], Any] | None = None) -> Any:
        """A field as a view of shape (count,) or (count, components); None where there is none.

        memory: makes of an allocation the array of bytes that the view shall be one of.
        """
        ...

    def gathered(self, field: Field, /) -> Any:
        """A field as a read-only copy, which says so."""
        ...

    def column(self, leaf: str, /) -> Any:
        """A leaf of all records, of shape (count,)."""
        ...

    def take(self, leaf: str, indices: Any, /) -> Any:
        """A leaf of some records: a copy."""
        ...

    def at(self, leaf: str, index: int, /) -> tuple[Any, tuple[int, int]]:
        """An array that holds this scalar, for reading and writing, and where in it."""
        ...

    # ------------------------------------------------------------ writing

    def put(self, leaf: str, indices: Any, values: Any, /) -> None:
        """Assign a leaf of some records."""
        ...

    def fill(self, leaf: str, values: Any, /) -> None:
        """Assign a leaf of all records."""
        ...

    # ------------------------------------------------------------ moving

    def move(self, indices: Any, to: RecordPlacement, /) -> None:
        """Copy some records, in that order, to new ones."""
        ...

    def staying(self, mask: Any, /) -> Staying:
        """What a mask keeps."""
        ...

    def cut(
        self, start: int, step: int, count: int, arrangement: Arrangement, /
    ) -> RecordPlacement:
        """`count` of these records from `start` on, `step` apart, where they lie.

        arrangement: that of the array, with this step where its layout has no blocks.
        """
        ...
