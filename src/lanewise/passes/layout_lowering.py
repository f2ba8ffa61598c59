"""Turn loads and stores of records into loads and stores of buffers, as wide as the layout allows.

    load body[i]: position.x, position.y, position.z, mass   ->   load body_position_mass[i]: x, y,
    z, mass      (SoAoAS, one 16-byte load)
                                                              ->   load body_position_x[i]: x; ...
                                                              (SoA, four 4-byte loads)
    load body[i, 2 records]: mass#0, mass#1                  ->   load body_mass[i / 2]: mass#0,
    mass#1          (SoA, one 8-byte load)
A store that covers a vector only in part writes the rest back unchanged when it was loaded anyway,
else it stores scalars.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lanewise.analysis.index_sums import IndexSum, index_sum
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.functions import functions, map_functions
from lanewise.ir.traverse import flat_map, reads, statements, used_in
from lanewise.language.types import BOOL, I32, I64
from lanewise.layouts import Slot

WIDEST = 16  # bytes of a copy, and those that may go past the L1 cache


def apply(kernel: ir.Kernel, *, vector_loads: bool) -> ir.Kernel:
    """Lower every access; `vector_loads` allows more than one scalar in a load (a GPU's vector
    types).
    """
    lowering = _Lowering(kernel, vector_loads)
    if any(
        isinstance(s, ir.LoadRecord) for f in functions(kernel.body) for s in statements(f.body)
    ):
        reading = map_functions(
            kernel, lambda f: replace(f, body=flat_map(f.body, lowering.statement))
        )
        body = flat_map(reading.body, lowering.statement)
    else:
        body = flat_map(kernel.body, lowering.statement)
    lowered = replace(kernel, body=body, buffers=tuple(lowering.buffers.values()))
    # without buffers it touches nothing
    shaped = lowered.buffers and any(a.shape for a in kernel.arrays)
    return _without_unread_counts(lowered) if shaped else lowered


def _without_unread_counts(kernel: ir.Kernel) -> ir.Kernel:
    """The lengths of dimensions that no place is made of are no arguments of the launch."""
    ends = (kernel.grid.extent,) if kernel.grid is not None else ()
    used = used_in(kernel.body)
    used |= {n for e in (*ends, *(s.length for s in kernel.scratch)) for n in reads(e)}
    return replace(kernel, counts=tuple(c for c in kernel.counts if c.name in used))


@dataclass(frozen=True, slots=True)
class _Group:
    """The slots that one load brings: `lanes` scalars, aligned to their common size."""

    buffer: int
    start: int
    lanes: int
    slots: tuple[Slot | None, ...]


class _Lowering:
    def __init__(self, kernel: ir.Kernel, vector_loads: bool) -> None:
        self.kernel, self.vector_loads = kernel, vector_loads
        self.buffers: dict[tuple[str, int, str, int], ir.BufferArgument] = {}
        # Records whose variables keep the names of their leaves: the rest of a vector can be
        # written back from them.
        self.loaded = {
            (s.array, s.index)
            for s in statements(kernel.body)
            if isinstance(s, ir.LoadRecord) and _keeps_names(s)
        }
        self.stored = {
            s.array: {leaf for leaf, _ in s.writes}
            for s in statements(kernel.body)
            if isinstance(s, ir.StoreRecord)
        }

    def statement(self, s: ir.Statement) -> ir.Block:
        match s:
            case ir.LoadRecord(across=records) | ir.StoreRecord(across=records) if records > 1:
                return self._across(s)
            case ir.LoadRecord():
                return self._load(s)
            case ir.StoreRecord():
                return self._store(s)
            case ir.LoadElement() | ir.StoreElement() | ir.ScatterElement():
                return (self._element(s),)
            case ir.PrefetchElement():
                return (ir.Prefetch(*self._place(s.array, s.indices, 1)),)
            case ir.CopyAsync():
                return self._copies(s)
            case ir.CopyElement():
                return (self._copy(s),)
            case ir.Draw():
                return (replace(s, counter=self._counter(s.counter)),)
            case ir.AwaitTurn() | ir.EndTurn():
                return (replace(s, turns=self._counter(s.turns)),)
            case _:
                return (s,)

    def _counter(self, name: str) -> str:
        """The buffer of an array with one integer an element."""
        array = self.kernel.array(name)
        return self._buffer(array, self._group(array, array.arrangement.slots[0], 1)).name

    def _group(self, array: ir.ArrayArgument, slot: Slot, lanes: int) -> _Group:
        size = lanes * slot.type.size
        start = slot.offset // size * size
        own = {s.offset: s for s in array.arrangement.slots if s.buffer == slot.buffer}
        slots = (
            tuple(own.get(start + i * slot.type.size) for i in range(lanes))
            if lanes > 1
            else (slot,)
        )
        return _Group(slot.buffer, start if lanes > 1 else slot.offset, lanes, slots)

    def _lanes(self, array: ir.ArrayArgument, slot: Slot) -> int:
        """One load brings this many scalars."""
        return array.arrangement.lanes(slot) if self._has_vectors(slot) else 1

    def _has_vectors(self, slot: Slot) -> bool:
        """CUDA has no vectors of booleans."""
        return self.vector_loads and slot.type != BOOL

    def _load(self, s: ir.LoadRecord) -> ir.Block:
        array = self.kernel.array(s.array)
        names = dict(s.reads)
        groups = dict.fromkeys(
            self._group(array, x, self._lanes(array, x)) for x in map(array.arrangement.slot, names)
        )
        whole = set[str]()
        if array.written and array.space == "global" and _keeps_names(s):
            whole = self.stored.get(s.array, whole)
        loads: list[ir.Statement] = []
        for g in groups:
            # the rest of this vector is needed for the store
            written_back = any(x and x.leaf in whole for x in g.slots)
            lanes = tuple(
                ""
                if x is None
                else names.get(x.leaf, f"{s.array}.{x.leaf}" if written_back else "")
                for x in g.slots
            )
            buffer = self._buffer(array, g)
            loads.append(ir.Load(buffer.name, self._index(array, g, s.index), lanes))
        return tuple(loads)

    def _element(self, s: ir.ElementAccess) -> ir.Statement:
        """An element of an array with a shape: row after row."""
        across = 1 if isinstance(s, ir.ScatterElement) else 1 + len(s.more)
        buffer, place = self._place(s.array, s.indices, across)
        match s:
            case ir.LoadElement():
                return ir.Load(buffer, place, s.names, s.location)
            case ir.StoreElement():
                return ir.Store(buffer, place, s.values, s.location)
            case ir.ScatterElement():
                return ir.Scatter(buffer, place, s.operation, s.value, s.location)

    def _copy(self, s: ir.CopyElement) -> ir.Statement:
        """Blocks that read the same elements are far apart, so that copies as wide as the L2 cache
        takes them leave L1 alone.
        """
        (to, place), (source, origin) = (
            self._place(name, indices, s.across)
            for name, indices in ((s.array, s.indices), (s.source, s.source_indices))
        )
        once = s.across * self.kernel.array(s.array).leaves[0].type.size == WIDEST
        return ir.CopyLanes(to, place, 0, source, origin, 0, s.across, s.there, once)

    def _place(
        self, name: str, indices: tuple[ir.Expression, ...], across: int
    ) -> tuple[str, ir.Expression]:
        """The buffer of an array with a shape, and where in it `across` neighbours are."""
        array = self.kernel.array(name)
        kinds = {p.name: p.type for p in self.kernel.counts + self.kernel.uniforms}
        index = I32 if self.vector_loads and (array.narrow or array.space == "shared") else I64
        place: ir.Expression = build.index_of(indices[0], index)
        for i, n in zip(indices[1:], array.shape[1:], strict=True):
            length = ir.Literal(n, index) if isinstance(n, int) else ir.Local(n, kinds[n])
            place = build.add(
                build.multiply(place, build.index_of(length, index)), build.index_of(i, index)
            )
        slot = array.arrangement.slots[0]
        group = _Group(slot.buffer, slot.offset, across, (slot,) * across)
        return self._buffer(array, group).name, _in_groups(place, across)

    def _across(self, s: ir.LoadRecord | ir.StoreRecord) -> ir.Block:
        """A leaf of neighbouring records at once where they lie side by side, else record by
        record.
        """
        array, body = self.kernel.array(s.array), list[ir.Statement]()
        each = len(_leaves(s)) // s.across
        for n, leaf in enumerate(_leaves(s)[:each]):
            slot = array.arrangement.slot(leaf)
            if not (self._has_vectors(slot) and array.arrangement.lies_beside(slot, s.across)):
                for r in range(s.across):
                    body += self.statement(_single(s, r, r * each + n))
                continue
            row = _Group(slot.buffer, slot.offset, s.across, (slot,) * s.across)
            buffer, index = self._buffer(array, row).name, self._index_across(array, row, s.index)
            match s:
                case ir.LoadRecord():
                    body.append(ir.Load(buffer, index, tuple(name for _, name in s.reads[n::each])))
                case ir.StoreRecord():
                    body.append(
                        ir.Store(buffer, index, tuple(value for _, value in s.writes[n::each]))
                    )
        return tuple(body)

    def _index_across(
        self, array: ir.ArrayArgument, row: _Group, index: ir.Expression
    ) -> ir.Expression:
        """The place of a group of neighbouring records, counted in such groups; `index` is that of
        the first.
        """
        buffer = array.arrangement.buffers[row.buffer]
        if buffer.width == 1:
            return build.divide(index, row.lanes)
        size = row.lanes * (row.slots[0] or array.arrangement.slots[0]).type.size
        within = build.add(
            build.divide(build.remainder(index, buffer.width), row.lanes), row.start // size
        )
        block = build.multiply(
            _wide(array, build.divide(index, buffer.width)), buffer.block // size
        )
        return build.add(block, _wide(array, within))

    def _store(self, s: ir.StoreRecord) -> ir.Block:
        array = self.kernel.array(s.array)
        values = dict(s.writes)
        stores: dict[_Group, tuple[ir.Expression, ...]] = {}
        for slot in map(array.arrangement.slot, values):
            group = self._group(array, slot, self._lanes(array, slot))
            missing = [x for x in group.slots if x is not None and x.leaf not in values]
            if missing and not ((s.array, s.index) in self.loaded and self._touched(array, group)):
                group = self._group(array, slot, 1)
            stores[group] = tuple(
                build.zero(slot.type)
                if x is None
                else values.get(x.leaf, ir.Local(f"{s.array}.{x.leaf}", x.type))
                for x in group.slots
            )
        return tuple(
            ir.Store(self._buffer(array, g).name, self._index(array, g, s.index), v)
            for g, v in stores.items()
        )

    def _copies(self, s: ir.CopyAsync) -> ir.Block:
        """As few copies as both layouts allow: neighbours in one that are neighbours in the other
        go together, up to 16 bytes.
        """
        to, source = self.kernel.array(s.array), self.kernel.array(s.source)
        copies: dict[ir.CopyLanes, None] = {}
        for leaf in s.leaves:
            slot, origin = to.arrangement.slot(leaf), source.arrangement.slot(leaf)
            group, origins = (
                self._group(a, x, self._lanes(a, x)) for a, x in ((to, slot), (source, origin))
            )
            lane, source_lane = group.slots.index(slot), origins.slots.index(origin)
            lanes = max(
                n
                for n in (1, 2, 4)
                if _alike(group, lane // n * n, origins, source_lane // n * n, n)
            )
            copy = ir.CopyLanes(
                self._buffer(to, group).name,
                self._index(to, group, s.index),
                lane // lanes * lanes,
                self._buffer(source, origins).name,
                self._index(source, origins, s.source_index),
                source_lane // lanes * lanes,
                lanes,
            )
            copies[copy] = None
        return tuple(copies)

    def _touched(self, array: ir.ArrayArgument, group: _Group) -> bool:
        """Whether a load of this array loads this group at all."""
        read = {
            leaf
            for s in statements(self.kernel.body)
            if isinstance(s, ir.LoadRecord) and s.array == array.name
            for leaf, _ in s.reads
        }
        return any(x is not None and x.leaf in read for x in group.slots)

    def _index(self, array: ir.ArrayArgument, group: _Group, index: ir.Expression) -> ir.Expression:
        """The place of the group in its buffer, counted in loads."""
        buffer = array.arrangement.buffers[group.buffer]
        unit = group.lanes * next(x for x in group.slots if x is not None).type.size
        factor, offset = buffer.block // unit, group.start // unit
        if buffer.width == 1:
            return build.add(
                build.multiply(_wide(array, index) if factor > 1 else index, factor), offset
            )
        # Within a block 32 bits are enough, and take half the instructions on a GPU.
        within = build.add(build.remainder(index, buffer.width), offset)
        block = build.multiply(_wide(array, build.divide(index, buffer.width)), factor)
        return build.add(block, _wide(array, within))

    def _buffer(self, array: ir.ArrayArgument, group: _Group) -> ir.BufferArgument:
        slot = next(x for x in group.slots if x is not None)
        own = array.arrangement.buffers[group.buffer]
        key = (array.name, group.buffer, slot.type.name, group.lanes)
        if key not in self.buffers:
            name = array.name if own.name in ("records", "blocks") else f"{array.name}.{own.name}"
            if any(b.name == name for b in self.buffers.values()):
                name = f"{name}.{slot.type}" + (f"x{group.lanes}" if group.lanes > 1 else "")
            unit = slot.type.size * group.lanes
            length = -(-own.bytes_for(array.length) // unit) if array.space == "shared" else 0
            self.buffers[key] = ir.BufferArgument(
                name,
                array.name,
                group.buffer,
                slot.type,
                group.lanes,
                array.written,
                array.space,
                length,
                -(-own.bytes_for(array.constant) // unit) if array.constant else 0,
                array.once,
                array.ordered,
                array.apart,
            )
        return self.buffers[key]


def _in_groups(place: ir.Expression, across: int) -> ir.Expression:
    """A place that is a multiple of a number, counted in such groups."""
    if across == 1:
        return place
    total = index_sum(place)
    if all(c % across == 0 for c in (total.constant, *total.terms.values())):
        return IndexSum(
            total.constant // across, {e: c // across for e, c in total.terms.items()}
        ).expression(place.type)
    return ir.Binary(
        ">>", place, ir.Literal(across.bit_length() - 1, place.type), place.type, bounded=True
    )


def _wide(array: ir.ArrayArgument, index: ir.Expression) -> ir.Expression:
    """An index that may be multiplied: with 64 bits in global memory."""
    return index if array.space == "shared" or index.type == I64 else ir.Cast(index, I64)


def _leaves(s: ir.LoadRecord | ir.StoreRecord) -> tuple[str, ...]:
    return tuple(leaf for leaf, _ in (s.reads if isinstance(s, ir.LoadRecord) else s.writes))


def _single(s: ir.LoadRecord | ir.StoreRecord, record: int, pair: int) -> ir.Statement:
    """One of the pairs of several records, as an access to its record."""
    index = build.add(s.index, record)
    match s:
        case ir.LoadRecord():
            return ir.LoadRecord(s.array, index, (s.reads[pair],))
        case ir.StoreRecord():
            return ir.StoreRecord(s.array, index, (s.writes[pair],))


def _keeps_names(s: ir.LoadRecord) -> bool:
    return all(variable == f"{s.array}.{leaf}" for leaf, variable in s.reads)


def _alike(to: _Group, lane: int, source: _Group, source_lane: int, lanes: int) -> bool:
    """Whether that many lanes of one group may be copied from those of the other: the same leaves,
    or lanes that nothing reads.
    """
    pieces = to.slots[lane : lane + lanes], source.slots[source_lane : source_lane + lanes]
    if any(len(piece) < lanes for piece in pieces):
        return False
    return all(
        x is None or (y is not None and x.leaf == y.leaf) for x, y in zip(*pieces, strict=True)
    )
