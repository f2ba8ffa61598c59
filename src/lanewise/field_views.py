"""Fields as arrays that share the memory of a record array."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from lanewise import types as t
from lanewise.layouts import Arrangement
from lanewise.record import Field
from lanewise.runtime.memory import array_module


@dataclass(frozen=True, slots=True)
class FieldViews:
    """The allocation of `count` records on a device, and where everything lies in it."""

    data: Any
    device: str
    arrangement: Arrangement
    count: int

    def strided(self, field: Field) -> Any:
        """A view of shape (count,) or (count, components), or None when its elements have no common stride."""
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
        return self._view(slots[0].type, shape, strides, places[0])

    def blocks(self, leaf: str) -> Any:
        """A leaf as a view of shape (blocks, width): it exists in every layout."""
        slot = self.arrangement.slot(leaf)
        buffer = self.arrangement.buffers[slot.buffer]
        shape = (-(-self.count // buffer.width), buffer.width)
        return self._view(slot.type, shape, (buffer.block, slot.stride), self.arrangement.address(leaf, 0, self.count))

    def at(self, leaf: str, index: int) -> tuple[Any, tuple[int, int]]:
        """A view that holds this scalar in every layout, and where in it."""
        view = self.blocks(leaf)
        return view, divmod(index, view.shape[1])

    def gathered(self, field: Field) -> Any:
        """A copy of shape (count,) or (count, components), read-only on the host: nobody should hope that writes go through."""
        columns = [self.blocks(leaf).reshape(-1)[: self.count] for leaf in t.leaves(field.name, field.type)]
        stacked = isinstance(field.type, t.Vector)
        copy = array_module(self.device).stack(columns, axis=1) if stacked else columns[0].copy()
        if isinstance(copy, np.ndarray):
            copy.flags.writeable = False
        return copy

    def _view(self, scalar: t.Scalar, shape: tuple[int, ...], strides: tuple[int, ...], start: int) -> Any:
        if isinstance(self.data, np.ndarray):
            return np.ndarray(shape, scalar.dtype, self.data, start, strides)
        return array_module(self.device).ndarray(shape, scalar.dtype, self.data.data + start, strides)
