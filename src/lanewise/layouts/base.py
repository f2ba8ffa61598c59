"""What every layout answers: where each leaf of a record lies, as one affine form.

A leaf of element i lies in a buffer at byte `start + (i // width) * block + offset + (i % width) *
stride`. All buffers of a record array lie in one allocation, each starting at a multiple of
`ALIGNMENT`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lanewise.language.record import Leaf
from lanewise.language.types import Scalar

WAY = 4096  # bytes of one way of a first-level cache
LARGE = 1 << 16  # bytes of a buffer for which that matters; tiles in shared memory are smaller
ALIGNMENT = 128  # bytes: one cache line of a GPU, two of a CPU
VECTOR_BYTES = 16  # the widest load of one GPU thread


@dataclass(frozen=True, slots=True)
class Slot:
    """Where a leaf lies within one block of its buffer."""

    leaf: str
    type: Scalar
    buffer: int
    offset: int
    stride: int


@dataclass(frozen=True, slots=True)
class Buffer:
    """A run of equal blocks; each block holds `width` elements and takes `block` bytes.

    own: the first bytes of a block that are its elements', where other elements lie in the rest; 0:
    all of them.
    """

    name: str
    width: int
    block: int
    own: int = 0

    def bytes_for(self, count: int) -> int:
        blocks = -(-count // self.width)
        return (
            blocks * self.block
            if not self.own or not blocks
            else (blocks - 1) * self.block + self.own
        )


@dataclass(frozen=True, slots=True)
class Arrangement:
    """The slots and buffers of one record in one layout, for any number of elements.

    pinned: where the buffers start, for a part of an allocation that was laid out for more elements
    than there are.
    """

    slots: tuple[Slot, ...]
    buffers: tuple[Buffer, ...]
    pinned: tuple[int, ...] = ()

    def at(self, starts: tuple[int, ...]) -> Arrangement:
        """The same, with buffers that start at these bytes."""
        return replace(self, pinned=starts)

    @property
    def unpinned(self) -> Arrangement:
        """How elements lie, wherever the buffers start."""
        return replace(self, pinned=()) if self.pinned else self

    def slot(self, leaf: str) -> Slot:
        return next(s for s in self.slots if s.leaf == leaf)

    def starts(self, count: int) -> tuple[int, ...]:
        """The byte at which each buffer starts when there are `count` elements.

        Elements of the same index would fall into the same set of a cache if the buffers lay at
        multiples of its ways apart: then a line more stands between them.
        """
        if self.pinned:
            return self.pinned
        starts, position = [], 0
        for buffer in self.buffers:
            starts.append(position)
            plain = buffer.width == 1 and not buffer.own
            size = (
                -(-(count * buffer.block if plain else buffer.bytes_for(count)) // ALIGNMENT)
                * ALIGNMENT
            )
            position += size + (ALIGNMENT if size >= LARGE and size % WAY == 0 else 0)
        return tuple(starts)

    def ends(self, starts: tuple[int, ...], count: int) -> tuple[int, ...]:
        """The byte behind each buffer that starts there. Calls of new sizes ask: what most buffers
        are comes first.
        """
        return tuple(
            [
                start + count * b.block
                if b.width == 1 and not b.own
                else start + b.bytes_for(count)
                for start, b in zip(starts, self.buffers, strict=True)
            ]
        )

    def nbytes(self, count: int) -> int:
        """The size of the one allocation; 0 where no leaf is kept."""
        if not self.buffers:
            return 0
        return self.starts(count)[-1] + self.buffers[-1].bytes_for(count)

    def address(self, leaf: str, index: int, count: int) -> int:
        """The byte of `leaf` of element `index`, from the start of the allocation."""
        slot = self.slot(leaf)
        buffer = self.buffers[slot.buffer]
        block, lane = divmod(index, buffer.width)
        return (
            self.starts(count)[slot.buffer]
            + block * buffer.block
            + slot.offset
            + lane * slot.stride
        )

    def lanes(self, slot: Slot) -> int:
        """How many scalars one vector load around this slot may bring (1, 2 or 4): aligned, whole,
        of one type.
        """
        buffer = self.buffers[slot.buffer]
        if buffer.width != 1:
            return 1
        for lanes in (4, 2):
            size = lanes * slot.type.size
            if size > VECTOR_BYTES or buffer.block % size or buffer.own % size:
                continue
            start = slot.offset // size * size
            others = [
                s
                for s in self.slots
                if s.buffer == slot.buffer and start <= s.offset < start + size
            ]
            if all(s.type == slot.type for s in others):
                return lanes
        return 1

    def lies_beside(self, slot: Slot, records: int) -> bool:
        """Whether one vector load may bring this leaf of 2 or 4 neighbouring records, the first at
        a multiple of their number.
        """
        buffer, size = self.buffers[slot.buffer], records * slot.type.size
        stride = slot.stride if buffer.width > 1 else buffer.block
        aligned = slot.offset % size == 0 and (
            buffer.width == 1 or not (buffer.width % records or buffer.block % size)
        )
        return records in (2, 4) and size <= VECTOR_BYTES and stride == slot.type.size and aligned


class Layout(ABC):
    """Where each scalar of an array of records lies: `lw.AoS()`, `lw.SoA()`, `lw.AoAS()`,
    `lw.SoAoAS()` or `lw.AoSoA()`.

    `Body.array(..., layout=lw.AoSoA(8))` takes one, and `bodies.with_layout(...)` copies an array
    into another one. Layouts are frozen dataclasses, compared and hashed by value. To write your
    own, derive from this class and define `arrange`.
    """

    __slots__ = ()

    @abstractmethod
    def arrange(self, leaves: Sequence[Leaf]) -> Arrangement:
        """Place the leaves of a record; see `Arrangement`."""


def place_structure(
    name: str, leaves: Sequence[Leaf], buffer: int, align: int | None = None
) -> tuple[list[Slot], Buffer]:
    """Lay leaves one after the other, each on a multiple of its size, and round the whole up to
    `align` bytes.
    """
    slots: list[Slot] = []
    position = 0
    for leaf in leaves:
        position = -(-position // leaf.type.size) * leaf.type.size
        slots.append(Slot(leaf.name, leaf.type, buffer, position, 0))
        position += leaf.type.size
    align = align or max(leaf.type.size for leaf in leaves)
    return slots, Buffer(name, 1, -(-position // align) * align)
