"""Records moved within a device, all fields at once: those that a mask keeps, in their order, or
those of a list.

On a GPU the mask is counted first (`primitives.mask_count`), which says where each block begins to
write. A block lists the places of its records that stay in shared memory, and neighbouring threads
move neighbours of the list. So every record that stays is read and written once, writes are
coalesced, and the order is that of the array.

On a CPU the mask becomes a list of places, and threads share the list: whole structures where both
layouts have the same ones, else scalar by scalar, through one small kernel for every size of what
is moved, which serves all records and layouts. NumPy's own indexing needs no compiler, and is as
fast where there are few records.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Protocol

import numpy as np

from lanewise.language.target import target_of
from lanewise.layouts import Arrangement, Buffer, Slot
from lanewise.primitives import compaction
from lanewise.primitives.mask_count import PLACES, THREADS, counted
from lanewise.runtime import cpu
from lanewise.runtime.device import get_device
from lanewise.runtime.memory import address, array_module, on

UNITS = {1: "unsigned char", 2: "unsigned short", 4: "unsigned int", 8: "uint2", 16: "uint4"}

KEEP = """
extern "C" __global__ void __launch_bounds__(THREADS)
records_keep_kernel(const unsigned short *bits, const int *counts, const long long *groups, {pointers})
{{
    __shared__ unsigned short places[TILE];  // of those that stay, from the block's first record on
    int total;
    const long long start = kept_places(bits, counts, groups, places, total);
#pragma unroll 4
    for (int q = threadIdx.x; q < total; q += THREADS) {{
        const long long i = {place}, p = start + q;
{moves}
    }}
}}
"""

FEW = 1 << 14  # records for which NumPy's indexing takes less than asking threads
GRAIN = 4096  # records
TAKE_ON_HOST = """def records_take_host_kernel(places, source, to, pieces, begin, end):
    theirs, own = empty(1024, int64), empty(1024, int64)
    for tile in range(begin, end, 1024):  # so that places, and blocks of several scalars, are found in the caches
        stop = min(tile + 1024, end)
        known = -1  # the piece whose scalars lie at `theirs` and go to `own`, counted from the first one
        for n in range(len(pieces)):
            from_start, from_block, from_stride, from_bits = pieces[n, 0], pieces[n, 1], pieces[n, 2], pieces[n, 3]
            start, block, stride, bits, units = pieces[n, 4], pieces[n, 5], pieces[n, 6], pieces[n, 7], pieces[n, 8]
            if from_bits or bits:
                same = known >= 0
                for k in (1, 2, 3, 5, 6, 7):
                    same = same and pieces[n, k] == pieces[known, k]
                if not same:
                    from_lanes, lanes, known = (1 << from_bits) - 1, (1 << bits) - 1, n
                    for p in range(tile, stop):
                        place = places[uint64(p)]
                        theirs[uint64(p - tile)] = (place >> from_bits) * from_block + (place & from_lanes) * from_stride
                        own[uint64(p - tile)] = (p >> bits) * block + (p & lanes) * stride
                for p in range(stop - tile):
                    to[uint64(start + own[uint64(p)])] = source[uint64(from_start + theirs[uint64(p)])]
            elif units == 1:
                for p in range(tile, stop):
                    to[uint64(start + p * block)] = source[uint64(from_start + places[uint64(p)] * from_block)]
            else:
                for p in range(tile, stop):
                    i, o = from_start + places[uint64(p)] * from_block, start + p * block
                    for k in range(units):
                        to[uint64(o + k)] = source[uint64(i + k)]
"""
# A piece is a structure or a scalar: where the first one lies, how far apart blocks and the numbers
# of a block are, of how many a block consists as a power of two, the same of where it goes, and how
# many numbers it is. All is counted in numbers as large as `source`'s.

TAKE = """
extern "C" __global__ void __launch_bounds__({threads})
records_take_kernel(const long long *places, {pointers}, long long n)
{{
    const long long p = blockIdx.x * {threads}LL + threadIdx.x;
    if (p >= n) return;
    const long long i = {place};
{moves}
}}
"""


class Records(Protocol):
    """Records on a device: their memory, where everything lies in it, and how many there are.

    See `records.field_values`.
    """

    @property
    def data(self) -> Any: ...
    @property
    def device(self) -> str: ...
    @property
    def arrangement(self) -> Arrangement: ...
    @property
    def count(self) -> int: ...
    @property
    def first(self) -> int: ...
    @property
    def step(self) -> int: ...
    @property
    def is_regular(self) -> bool: ...
    def fill(self, leaf: str, values: Any) -> None: ...
    def take(self, leaf: str, places: Any) -> Any: ...


def kept(device: str, mask: Any) -> KeptOnHost | KeptOnDevice:
    """What a mask, an array of the device of shape (n,) and type bool, keeps of the records of an
    array there.
    """
    return KeptOnHost(mask) if target_of(device).host_memory else KeptOnDevice(device, mask)


def take(source: Records, places: Any, to: Records) -> None:
    """Copy the records of these places, int64 on the device, to other memory there."""
    (_take_on_host if target_of(source.device).host_memory else _take_on_device)(source, places, to)


# ------------------------------------------------------------ on a CPU


class KeptOnHost:
    """What a mask keeps of records on the host. `count`: how many."""

    __slots__ = ("_places", "count")

    def __init__(self, mask: Any) -> None:
        few = len(mask) < FEW or len(mask) > compaction.MOST
        self._places = (
            np.flatnonzero(mask) if few else compaction.places(np.ascontiguousarray(mask))
        )
        self.count = len(self._places)

    def move(self, source: Records, to: Records) -> None:
        """Copy the records that stay to other memory."""
        _take_on_host(source, self._places, to)


def _take_on_host(source: Records, places: Any, to: Records) -> None:
    if len(places) < FEW:
        for slot in source.arrangement.slots:
            to.fill(slot.leaf, source.take(slot.leaf, places))
        return
    places = np.ascontiguousarray(places, np.int64)
    kernel = cpu.own_kernel(TAKE_ON_HOST, "records_take_host")
    if not source.is_regular:
        places = source.first + places * source.step
    for unit, pieces in _pieces(source, to).items():
        parts = [v.data[: len(v.data) // unit * unit].view(f"u{unit}") for v in (source, to)]
        cpu.run_range(kernel, (places, *parts, np.array(pieces, np.int64)), len(places), GRAIN)


def _pieces(source: Records, to: Records) -> dict[int, list[tuple[int, ...]]]:
    """What is moved, by the size of its numbers in bytes; see `TAKE_ON_HOST`."""
    found: dict[int, list[tuple[int, ...]]] = {}
    starts = list(
        zip(source.arrangement.starts(source.count), to.arrangement.starts(to.count), strict=True)
    )
    for n, (a, b) in enumerate(
        zip(source.arrangement.buffers, to.arrangement.buffers, strict=True)
    ):
        one, other = starts[n]
        if a.width == b.width == 1:
            size = b.own or b.block
            unit = next(
                u
                for u in (8, 4, 2, 1)
                if not any(x % u for x in (size, a.block, b.block, one, other))
            )
            piece = (
                one // unit,
                a.block // unit,
                0,
                0,
                other // unit,
                b.block // unit,
                0,
                0,
                size // unit,
            )
            found.setdefault(unit, []).append(piece)
            continue
        for slot in source.arrangement.slots:
            if slot.buffer == n:
                u, its = slot.type.size, to.arrangement.slot(slot.leaf)
                lies = (
                    (one + slot.offset) // u,
                    a.block // u,
                    slot.stride // u,
                    a.width.bit_length() - 1,
                )
                goes = (
                    (other + its.offset) // u,
                    b.block // u,
                    its.stride // u,
                    b.width.bit_length() - 1,
                )
                found.setdefault(u, []).append((*lies, *goes, 1))
    return found


# ------------------------------------------------------------ on a GPU


class KeptOnDevice:
    """What a mask keeps of records on a GPU. `count`: how many, the only thing that comes to the
    host.
    """

    __slots__ = ("_counted", "count")

    def __init__(self, device: str, mask: Any) -> None:
        with on(device):
            self._counted = counted(device, array_module(device).ascontiguousarray(mask))
        self.count = self._counted.count

    def move(self, source: Records, to: Records) -> None:
        """Copy the records that stay to other memory."""
        if not self.count:
            return
        text = keep_text(
            source.arrangement.unpinned, to.arrangement.unpinned, source.first, source.step
        )
        mask = self._counted
        _launch(
            "records_keep", text, (mask.bits, mask.counts, mask.groups), source, to, (), mask.tiles
        )


def _take_on_device(source: Records, places: Any, to: Records) -> None:
    if places.size:
        text = take_text(
            source.arrangement.unpinned, to.arrangement.unpinned, source.first, source.step
        )
        count = (np.int64(places.size),)
        _launch(
            "records_take", text, (address(places),), source, to, count, -(-places.size // THREADS)
        )


def _launch(
    name: str,
    text: str,
    lists: tuple[int, ...],
    source: Records,
    to: Records,
    numbers: tuple[Any, ...],
    blocks: int,
) -> None:
    addresses = [*lists]
    for views in (source, to):
        first = address(views.data)
        addresses += [first + start for start in views.arrangement.starts(views.count)]
    get_device(source.device).load(text, name, THREADS).launch((blocks, 1), (*addresses, *numbers))


@cache
def keep_text(source: Arrangement, to: Arrangement, first: int, step: int) -> str:
    """The kernel that moves what a mask keeps, from one layout to another one."""
    return PLACES + KEEP.format(
        pointers=_pointers(source, to),
        place=_place("blockIdx.x * (long long)TILE + places[q]", first, step),
        moves=_moves(source, to, " " * 8),
    )


@cache
def take_text(source: Arrangement, to: Arrangement, first: int, step: int) -> str:
    """The kernel that moves the records of a list, from one layout to another one."""
    return TAKE.format(
        threads=THREADS,
        pointers=_pointers(source, to),
        place=_place("places[p]", first, step),
        moves=_moves(source, to, " " * 4),
    )


def _place(index: str, first: int, step: int) -> str:
    """A record counted from the beginning of its first block."""
    return index if (first, step) == (0, 1) else f"{first} + ({index}) * {step}"


def _pointers(source: Arrangement, to: Arrangement) -> str:
    return ", ".join(
        [f"const char *__restrict__ from{n}" for n in range(len(source.buffers))]
        + [f"char *__restrict__ to{n}" for n in range(len(to.buffers))]
    )


def _moves(source: Arrangement, to: Arrangement, indent: str) -> str:
    """All loads, then the stores of what they bring: whole structures where both sides have the
    same ones, else leaf by leaf.
    """
    loads: list[str] = []
    stores: list[str] = []
    for n, (a, b) in enumerate(zip(source.buffers, to.buffers, strict=True)):
        if a.width == b.width == 1:
            size = b.own or b.block
            unit = next(
                u
                for u in sorted(UNITS, reverse=True)
                if not any(x % u for x in (size, a.block, b.block))
            )
            places = [
                (f"i * {a.block}LL + {k}", f"p * {b.block}LL + {k}", unit)
                for k in range(0, size, unit)
            ]
        else:
            slots = [(s, to.slot(s.leaf)) for s in source.slots if s.buffer == n]
            places = [(_offset("i", a, s), _offset("p", b, d), s.type.size) for s, d in slots]
        for i, p, unit in places:
            kind, part = UNITS[unit], f"part{len(loads)}"
            loads.append(
                f"{indent}const {kind} {part} = *reinterpret_cast<const {kind} *>(from{n} + {i});"
            )
            stores.append(f"{indent}*reinterpret_cast<{kind} *>(to{n} + {p}) = {part};")
    return "\n".join(loads + stores)


def _offset(index: str, buffer: Buffer, slot: Slot) -> str:
    return (
        f"{index} / {buffer.width} * {buffer.block}LL + {slot.offset} + {index} % {buffer.width} * "
        f"{slot.stride}"
    )
