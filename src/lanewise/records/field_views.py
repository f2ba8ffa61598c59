"""Fields as arrays that share the memory of a record array: the placement of one allocation."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lanewise.language import types as t
from lanewise.language.record import Field
from lanewise.layouts import Arrangement, Layout
from lanewise.primitives import record_moves
from lanewise.records.placement import RecordPlacement, Staying
from lanewise.runtime.field_copies import field_copy
from lanewise.runtime.memory import address, array_module, on


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class FieldViews:
    """Records on a device: the allocation, where everything lies in it, and how many there are.

    Of layouts in blocks the first record may lie within a block (`first`), and the others `step`
    apart: only fields and copies reach those, kernels do not. Where a layout has no blocks, offsets
    and steps are in the arrangement.
    """

    data: Any
    device: str
    arrangement: Arrangement
    count: int
    first: int = 0
    step: int = 1

    @property
    def memories(self) -> tuple[Any, ...]:
        """The allocation."""
        return (self.data,)

    @property
    def is_regular(self) -> bool:
        """Whether the arrangement alone says where everything lies, as kernels ask for."""
        return self.first == 0 and self.step == 1

    def irregular(self, name: str, layout: Layout) -> str:
        """Why kernels cannot run over these records of a view."""
        width = max(b.width for b in self.arrangement.buffers)
        how = "steps" if self.step > 1 else "begins"
        return (
            f"this view of an array of {name} {how} within the blocks of {width} records of "
            f"{layout}"
        )

    def bounds(self) -> tuple[int, int]:
        """The addresses of the first byte of the records and of the one behind them."""
        starts, first = self.arrangement.starts(self.count), address(self.data)
        last = self.first + (self.count - 1) * self.step + 1
        ends = (
            start + buffer.bytes_for(last)
            for start, buffer in zip(starts, self.arrangement.buffers, strict=True)
        )
        return first + min(starts), first + max(ends)

    def cut(self, start: int, step: int, count: int, arrangement: Arrangement) -> FieldViews:
        """`count` of these records from `start` on, `step` apart, in the same memory.

        arrangement: with that step, if it has no blocks.
        """
        if not count:
            start, step = 0, 1
        starts, buffers = self.arrangement.starts(self.count), self.arrangement.buffers
        width = math.lcm(*(b.width for b in buffers))
        blocks, first = (start, 0) if width == 1 else divmod(self.first + start * self.step, width)
        moved = tuple(
            s + blocks * (width // b.width) * b.block for s, b in zip(starts, buffers, strict=True)
        )
        apart = 1 if width == 1 or count <= 1 else self.step * step
        return FieldViews(self.data, self.device, arrangement.at(moved), count, first, apart)

    def strided(self, field: Field, memory: Callable[[Any], Any] | None = None) -> Any:
        """A view of shape (count,) or (count, components), or None when its elements have no common
        stride.

        memory: makes of the allocation the array of bytes that the view shall be one of.
        """
        leaves = t.leaves(field.name, field.type)
        slots = [self.arrangement.slot(leaf) for leaf in leaves]
        buffer = self.arrangement.buffers[slots[0].buffer]
        blocks = {(b.width, b.block) for b in (self.arrangement.buffers[s.buffer] for s in slots)}
        if blocks != {(1, buffer.block)}:
            return None
        places = [self.arrangement.address(leaf, 0, self.count) for leaf in leaves]
        gaps = {b - a for a, b in itertools.pairwise(places)}
        if len(gaps) > 1:
            return None
        shape: tuple[int, ...] = (self.count,)
        strides: tuple[int, ...] = (buffer.block,)
        if isinstance(field.type, t.Vector):
            shape, strides = (self.count, field.type.length), (buffer.block, gaps.pop())
        return self._view(slots[0].type, shape, strides, places[0], memory)

    def blocks(self, leaf: str) -> Any:
        """A leaf as a view of shape (blocks, width): it exists in every layout."""
        slot = self.arrangement.slot(leaf)
        buffer = self.arrangement.buffers[slot.buffer]
        last = self.first + (self.count - 1) * self.step
        shape = (last // buffer.width + 1 if self.count else 0, buffer.width)
        return self._view(
            slot.type,
            shape,
            (buffer.block, slot.stride),
            self.arrangement.address(leaf, 0, self.count),
        )

    def at(self, leaf: str, index: int) -> tuple[Any, tuple[int, int]]:
        """A view that holds this scalar in every layout, and where in it."""
        view = self.blocks(leaf)
        return view, divmod(self.first + index * self.step, view.shape[1])

    def gathered(self, field: Field) -> Any:
        """A copy of shape (count,) or (count, components), read-only: no caller should hope that
        writes go through.
        """
        columns = [self.column(leaf) for leaf in t.leaves(field.name, field.type)]
        stacked = isinstance(field.type, t.Vector)
        with on(self.device):
            copy = (
                array_module(self.device).stack(columns, axis=1) if stacked else columns[0].copy()
            )
        width = max(b.width for b in self.arrangement.buffers)
        lies = f"in blocks of {width} records" if width > 1 else "in several pieces"
        return field_copy(
            copy,
            f".{field.name} is a copy, as the field lies {lies}; assign the whole field, "
            f"array.{field.name} = values, or "
            f"records: array[i].{field.name} = value, array[2:5] = records; "
            f"array.contiguous({field.name!r}) is a copy to write to",
        )

    def column(self, leaf: str) -> Any:
        """A leaf of all records, of shape (count,): a view where the layout has no blocks, else
        perhaps a copy.
        """
        if not self.count:
            return self._none(leaf)
        last = self.first + (self.count - 1) * self.step
        with on(self.device):
            return self.blocks(leaf).reshape(-1)[self.first : last + 1 : self.step]

    def take(self, leaf: str, places: Any) -> Any:
        """A copy of a leaf of some records; `places` are integers below count, on the
        device.
        """
        with on(self.device):
            view, at = self._at(leaf, places)
            return view[at]

    def put(self, leaf: str, places: Any, values: Any) -> None:
        """Assign a leaf of some records."""
        with on(self.device):
            view, at = self._at(leaf, places)
            view[at] = values

    def move(self, indices: Any, to: RecordPlacement) -> None:
        """Copy some records to other memory, all fields at once."""
        record_moves.take(self, indices, in_one_memory(to))

    def staying(self, mask: Any) -> Staying:
        """What a mask keeps."""
        kept = record_moves.kept(self.device, mask)
        return Staying(kept.count, lambda to: kept.move(self, in_one_memory(to)))

    def fill(self, leaf: str, values: Any) -> None:
        """Assign a leaf of all records, and nothing else."""
        if not self.count:
            return
        with on(self.device):
            self._fill(leaf, values)

    def _fill(self, leaf: str, values: Any) -> None:
        blocks = self.blocks(leaf)
        width = blocks.shape[1]
        if width == 1:
            blocks[:, 0] = values
        elif not self.is_regular:
            self.put(leaf, array_module(self.device).arange(self.count), values)
        else:
            whole = self.count // width
            values = array_module(self.device).broadcast_to(values, (self.count,))
            blocks[:whole] = values[: whole * width].reshape(whole, width)
            blocks[whole:, : self.count - whole * width] = values[whole * width :]

    def _at(self, leaf: str, places: Any) -> tuple[Any, Any]:
        view = self.blocks(leaf)
        if view.shape[1] == 1:
            return view[:, 0], places
        index = places if self.is_regular else self.first + places * self.step
        return view, (index // view.shape[1], index % view.shape[1])

    def _none(self, leaf: str) -> Any:
        return array_module(self.device).zeros(0, self.arrangement.slot(leaf).type.dtype)

    def _view(
        self,
        scalar: t.Scalar,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        start: int,
        memory: Callable[[Any], Any] | None = None,
    ) -> Any:
        if not shape[0]:
            return array_module(self.device).zeros(shape, scalar.dtype)
        data = self.data if memory is None else memory(self.data)
        if isinstance(data, np.ndarray):
            return np.ndarray(shape, scalar.dtype, data, start, strides)
        return array_module(self.device).ndarray(shape, scalar.dtype, data.data + start, strides)


def in_one_memory(placement: RecordPlacement) -> FieldViews:
    """A placement that is known to be one allocation, such as that of new records."""
    assert isinstance(placement, FieldViews), placement
    return placement
