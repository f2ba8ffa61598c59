"""What a layout makes of an access: memory moved in whole sectors or cache lines, and the
instructions that move it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lanewise.language.target import WARP
from lanewise.language.types import BOOL
from lanewise.layouts.base import Arrangement, Buffer, Slot

LINE = 128  # bytes that the first-level cache of a GPU serves at once
ELEMENTS = 256  # of the sample; strides repeat within it for every unit of memory
Addresses = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class Traffic:
    """Of one element, on average: bytes moved, loads and stores, and lines of 128 bytes that those
    of a warp touch.
    """

    nbytes: float
    instructions: int
    lines: float


def streamed(
    arrangement: Arrangement,
    read: Iterable[str],
    written: Iterable[str],
    unit: int,
    *,
    vector: bool,
) -> Traffic:
    """Neighbouring elements are touched together. `unit` is what memory moves at least, in bytes.

    What is stored only in part is read first: by a CPU always, by a GPU (`vector`) where a unit
    keeps other values.
    """
    read, written = tuple(read), tuple(written)
    addresses = _addresses(arrangement, (*read, *written))
    loaded = _units(addresses, read, unit)
    stored = _units(addresses, written, unit)
    filled = (
        stored
        if not vector
        else stored & _units(_addresses(arrangement, _others(arrangement, written)), None, unit)
    )
    count = _sample(arrangement)
    groups = _groups(arrangement, read, vector) + _groups(arrangement, written, vector)
    warps = np.arange(count) // WARP
    lines = sum(len(set(zip(warps.tolist(), (a // LINE).tolist(), strict=True))) for a in groups)
    return Traffic((len(loaded | filled) + len(stored)) * unit / count, len(groups), lines / count)


def gathered(
    arrangement: Arrangement,
    read: Iterable[str],
    written: Iterable[str],
    unit: int,
    *,
    vector: bool,
) -> Traffic:
    """Elements in no order: every unit serves one element only, and what is stored is read
    first.
    """
    read, written = tuple(read), tuple(written)
    touched = tuple(dict.fromkeys((*read, *written)))
    groups = _groups(arrangement, read, vector) + _groups(arrangement, written, vector)
    moved = _distinct(arrangement, touched, unit) + (
        _distinct(arrangement, written, unit) if written else 0.0
    )
    return Traffic(moved * unit, len(groups), float(len(groups)))


def _distinct(arrangement: Arrangement, leaves: tuple[str, ...], unit: int) -> float:
    """How many units these leaves of one element lie in, on average."""
    units = np.sort(np.stack([a // unit for a in _addresses(arrangement, leaves).values()]), axis=0)
    return float(np.mean(1 + np.count_nonzero(np.diff(units, axis=0), axis=0)))


def _sample(arrangement: Arrangement) -> int:
    return max(ELEMENTS, 8 * max(b.width for b in arrangement.buffers))


def _addresses(arrangement: Arrangement, leaves: Iterable[str]) -> dict[str, Addresses]:
    count = _sample(arrangement)
    starts = arrangement.starts(count)
    return {n: _places(arrangement, arrangement.slot(n), starts, count) for n in leaves}


def _places(arrangement: Arrangement, slot: Slot, starts: tuple[int, ...], count: int) -> Addresses:
    """The bytes at which a leaf of the first `count` elements lies: the affine form of
    `layouts/base.py`.
    """
    buffer: Buffer = arrangement.buffers[slot.buffer]
    block, lane = np.divmod(np.arange(count, dtype=np.int64), buffer.width)
    return starts[slot.buffer] + block * buffer.block + slot.offset + lane * slot.stride


def _units(addresses: dict[str, Addresses], leaves: tuple[str, ...] | None, unit: int) -> set[int]:
    """The units that these leaves (None: all) lie in; no leaf lies across two, since each is
    aligned to its size.
    """
    return {
        u
        for n in (addresses if leaves is None else leaves)
        for u in np.unique(addresses[n] // unit).tolist()
    }


def _others(arrangement: Arrangement, written: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(s.leaf for s in arrangement.slots if s.leaf not in written)


def _groups(arrangement: Arrangement, leaves: tuple[str, ...], vector: bool) -> list[Addresses]:
    """The addresses of every load or store: the vectors that layout lowering makes, or scalars."""
    starts, count = arrangement.starts(_sample(arrangement)), _sample(arrangement)
    groups: dict[tuple[int, int], Addresses] = {}
    for slot in map(arrangement.slot, leaves):
        lanes = arrangement.lanes(slot) if vector and slot.type != BOOL else 1
        size = lanes * slot.type.size
        first = slot.offset // size * size if lanes > 1 else slot.offset
        places = _places(arrangement, slot, starts, count) - slot.offset + first
        groups.setdefault((slot.buffer, first), places)
    return list(groups.values())
