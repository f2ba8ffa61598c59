"""What a kernel reads and writes: the fields of its records with their role and frequency, the
bytes that a layout moves, and reuse.

Reuse is how often a byte that was loaded from global memory is used before it is loaded again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from lanewise.analysis.regions import SECTOR, UNKNOWN_COUNT, KernelWork, Pattern, known_counts
from lanewise.analysis.sampling import Known, value_of
from lanewise.ir import nodes as ir
from lanewise.ir.names import MARK, count_of
from lanewise.ir.traverse import blocks, locals_in, writes

Role = Literal["target", "source", "element", "result"]


@dataclass(frozen=True, slots=True)
class FieldAccess:
    """How a kernel uses one field of one array.

    `times` says how often each element is accessed in a launch: 1 for a target, the number of
    targets for a source. `together` are the fields that one access brings along, this one included;
    `bytes` are those of the field's leaves that are wanted. Neighbouring threads find neighbours
    ("streamed"), one place ("broadcast") or places that data tell ("gathered"). `counted`: whether
    `times` is known; in loops whose length data tell it is a guess.
    """

    array: str
    role: Role
    field: str
    leaves: tuple[str, ...]
    read: bool
    written: bool
    pattern: Pattern
    times: float
    bytes: int
    together: tuple[str, ...]
    counted: bool = True


def field_accesses(
    kernel: ir.Kernel, environment: Mapping[str, object] | None = None
) -> tuple[FieldAccess, ...]:
    """The accesses of a kernel before layout lowering, one row for each field, role and pattern, in
    order of the text.

    `environment` holds the counts by their names in the IR (`$target.count`); missing ones are
    taken as 65,536.
    """
    walk = _Walk(kernel, known_counts(kernel, environment))
    walk.block(kernel.body, 1.0)
    return tuple(walk.rows.values())


class _Walk:
    def __init__(self, kernel: ir.Kernel, samples: Known) -> None:
        self.kernel, self.samples = kernel, samples
        self.rows: dict[tuple[str, str, Pattern], FieldAccess] = {}
        self.loops: dict[str, Pattern] = {}
        self.loaded: set[str] = set()
        self.counted = True

    def block(self, block: ir.Block, times: float) -> None:
        for s in block:
            inner, counted = times, self.counted
            match s:
                case ir.Parallel():
                    self.loops[s.variable] = "streamed"
                    inner *= self._number(s.extent)
                case ir.For():
                    self.loops[s.variable] = (
                        "broadcast" if s.role in ("sources", "tiles") else "strided"
                    )
                    span = self._number(s.stop, 0.0) - self._number(s.start, 0.0)
                    inner *= (
                        max(0.0, span / max(1.0, self._number(s.step, 1.0)))
                        if span
                        else UNKNOWN_COUNT
                    )
                    self.counted &= all(
                        value_of(e, self.samples) is not None for e in (s.start, s.stop)
                    )
                case ir.While():
                    self.counted = False
                case ir.LoadRecord():
                    self._note(s.array, s.index, [leaf for leaf, _ in s.reads], times, write=False)
                    self.loaded.update(writes(s))
                case ir.StoreRecord():
                    self._note(s.array, s.index, [leaf for leaf, _ in s.writes], times, write=True)
                case _:
                    pass
            for nested in blocks(s):
                self.block(nested, inner)
            self.counted = counted

    def _number(self, e: ir.Expression, unknown: float = UNKNOWN_COUNT) -> float:
        value = value_of(e, self.samples)
        return unknown if value is None else float(np.mean(value))

    def _note(
        self, array: str, index: ir.Expression, leaves: list[str], times: float, *, write: bool
    ) -> None:
        a = self.kernel.array(array)
        if a.space != "global":
            return
        used = {x.name for x in locals_in(index)}
        pattern: Pattern = "gathered" if used & self.loaded else "strided"
        for name, kind in self.loops.items():
            if name in used and pattern != "gathered":
                pattern = kind
        length = self._length(array)
        by_field: dict[str, list[str]] = {}
        kinds = {x.name: x for x in a.leaves}
        for leaf in leaves:
            by_field.setdefault(kinds[leaf].field, []).append(leaf)
        for field, mine in by_field.items():
            key = (array, field, pattern)
            size = sum(kinds[leaf].type.size for leaf in mine)
            row = FieldAccess(
                array,
                self._role(array),
                field,
                tuple(mine),
                not write,
                write,
                pattern,
                times / length,
                size,
                tuple(by_field),
                self.counted,
            )
            old = self.rows.get(key)
            if old is not None:
                row = replace(
                    old,
                    read=old.read or row.read,
                    written=old.written or write,
                    times=max(old.times, row.times),
                    leaves=tuple(dict.fromkeys(old.leaves + row.leaves)),
                    together=tuple(dict.fromkeys(old.together + row.together)),
                    bytes=max(old.bytes, row.bytes),
                    counted=old.counted and row.counted,
                )
            self.rows[key] = row

    def _length(self, array: str) -> float:
        value = self.samples.get(count_of(array))
        if value is None:
            value = self.samples.get(self.kernel.counts[0].name) if self.kernel.counts else None
        return max(1.0, float(value) if value is not None else UNKNOWN_COUNT)

    def _role(self, array: str) -> Role:
        if array.startswith(MARK):
            return "result"
        if not self.kernel.pattern.over_pairs:
            return "element"
        return "target" if array == self.kernel.arrays[0].name else "source"


# ---------------------------------------------------------------- after layout lowering


@dataclass(frozen=True, slots=True)
class ArrayTraffic:
    """Bytes that a launch moves for one array of global memory.

    `useful` are wanted; `requested` are those of the loads and stores, with lanes of vector loads
    that nothing wants; `moved` are whole sectors of 32 bytes between the L1 and L2 caches, a sector
    that a warp touches twice counted once.
    """

    array: str
    read: bool
    written: bool
    useful: float
    requested: float
    moved: float


def layout_traffic(work: KernelWork) -> tuple[ArrayTraffic, ...]:
    """The bytes that a lowered kernel moves for each array, on the whole launch."""
    warps = work.blocks * -(-work.threads // 32)
    lanes = min(32, work.threads)
    arrays = {b.name: b.array for b in work.kernel.buffers}
    rows: dict[str, ArrayTraffic] = {}
    for r in work.regions:
        for a in r.accesses:
            if a.space != "global":
                continue
            old = rows.get(
                arrays[a.buffer], ArrayTraffic(arrays[a.buffer], False, False, 0.0, 0.0, 0.0)
            )
            factor = r.executions * warps * lanes
            rows[old.array] = replace(
                old,
                read=old.read or not a.write,
                written=old.written or a.write,
                useful=old.useful + factor * a.useful,
                requested=old.requested + factor * a.bytes,
            )
        for key, sectors in r.sectors.items():
            old = rows[key.partition("/")[0]]
            rows[old.array] = replace(
                old, moved=old.moved + r.executions * warps * sectors * SECTOR
            )
    return tuple(rows.values())


@dataclass(frozen=True, slots=True)
class Reuse:
    """`used` bytes by all applications of the kernel's functions, `loaded` bytes by its loads of
    global memory.
    """

    array: str
    used: float
    loaded: float

    @property
    def factor(self) -> float:
        """Uses of each loaded byte: 1 without any reuse."""
        return self.used / self.loaded if self.loaded else 0.0


def reuse(work: KernelWork) -> tuple[Reuse, ...]:
    """The reuse of every array that a lowered kernel reads from global memory.

    Each application of the user's function wants the leaves of every array that the kernel reads of
    it. What shared
    memory and registers keep for more than one application is loaded once: a source staged for a
    block by as many as the block has targets.
    """
    lanes = min(32, work.threads)
    warps = work.blocks * -(-work.threads // 32)
    applications = sum(r.executions * r.applications for r in work.regions) * warps * lanes
    record: dict[str, dict[str, int]] = {}
    arrays = {b.name: b for b in work.kernel.buffers}
    for r in work.regions:
        for a in r.accesses:
            if a.space == "global" and not a.write:
                b = arrays[a.buffer]
                slots = record.setdefault(b.array, {})
                for name in a.names:
                    if name:
                        slots[name.partition("#")[0].rpartition(".staged")[2]] = b.type.size
    rows: list[Reuse] = []
    for t in layout_traffic(work):
        if t.array in record and applications:
            leaves: dict[str, int] = {}
            for name, size in record[t.array].items():
                leaves[_leaf(name)] = size
            rows.append(Reuse(t.array, applications * sum(leaves.values()), t.useful))
    return tuple(rows)


def _leaf(name: str) -> str:
    """A variable without the array or stage that it was loaded for: `position.x` of
    `$staged.position.x`.
    """
    return name.partition(".")[2] or name
