"""Give every live value of a kernel to its region: instructions, addresses, registers, the longest
chain, accesses to memory.

The accesses of neighbouring threads lie side by side, with gaps, at one place, or wherever data
tell.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lanewise.analysis.instructions import contracted, mix, node_cost
from lanewise.analysis.operation_costs import CPU_DIVIDER_LATENCY, CPU_LATENCY, latency_of
from lanewise.analysis.region import SECTOR, Pattern, Region, Values
from lanewise.analysis.sampling import Known, Sample, value_of
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import reads, rewrite, subexpressions

# by the number of an index, who accesses which buffer with it
Addresses = Mapping[int, list[tuple[Region, str]]]
_NOT_COMPUTED = frozenset({"leaf", "literal", "negate", "cast", "either"})


def settle(
    values: Values,
    addresses: Addresses,
    buffers: Mapping[str, ir.BufferArgument],
    *,
    fast_math: bool,
    on_gpu: bool,
) -> None:
    """Add to the regions what their live values cost."""
    _Settling(values, addresses, buffers, fast_math, on_gpu).run()


class _Settling:
    def __init__(
        self,
        values: Values,
        addresses: Addresses,
        buffers: Mapping[str, ir.BufferArgument],
        fast_math: bool,
        on_gpu: bool,
    ) -> None:
        self.values, self.table, self.homes = values, values.table, values.homes
        self.addresses, self.buffers, self.fast_math = addresses, buffers, fast_math
        self.on_gpu = on_gpu
        self.live = self.table.below({*values.roots, *addresses})
        self.gone = contracted(self.table, self.live, {n: id(self.homes[n]) for n in self.live})
        self.costs: dict[int, Counter[str]] = {}
        self.known: dict[int, dict[str, float]] = {}  # the cost of each value

    def run(self) -> None:
        used_as_value = self.table.below(set(self.values.roots))
        for n in self.live:
            home, cost = self.homes[n], self.cost(n)
            if n not in used_as_value and self.table.nodes[n].type.is_integer:
                cost = self.address_cost(n, home, cost)
            self.add(home, cost)
            self.note_operation(n, home)
        seen: set[tuple[int, str, int]] = set()
        for number, uses in self.addresses.items():
            for buffer in dict.fromkeys(b for _, b in uses):
                self.pointer(number, buffer, seen)
        # the live values of each region, in the order of computation
        own: dict[int, list[int]] = {}
        for n in sorted(self.live):
            own.setdefault(id(self.homes[n]), []).append(n)
        for region in self.values.top.walk():
            region.instructions += mix(self.costs.get(id(region), {}))
            region.words, region.latency = (
                self.words(region, own),
                self.latency(own.get(id(region), [])),
            )

    def cost(self, n: int) -> dict[str, float]:
        if n not in self.known:
            self.known[n] = node_cost(self.table, n, self.gone, fast_math=self.fast_math)
        return self.known[n]

    def add(self, home: Region, cost: Mapping[str, float]) -> None:
        self.costs.setdefault(id(home), Counter()).update(cost)

    def address_cost(self, n: int, home: Region, cost: dict[str, float]) -> dict[str, float]:
        """A constant distance is part of the access; what moves on with a loop is added once for
        each unrolled turn.
        """
        node = self.table.nodes[n]
        if node.operation in ("+", "-") and any(
            self.table.nodes[o].operation == "literal" for o in node.operands
        ):
            return {}
        return {k: c / home.unroll for k, c in cost.items()} if home.is_loop else cost

    def pointer(self, number: int, buffer: str, seen: set[tuple[int, str, int]]) -> None:
        """An address in global memory has 64 bits: made once for each buffer and base, moved on
        with the loop.
        """
        if self.buffers[buffer].space != "global":
            return
        base = self.base(number)
        home = self.homes[base]
        if (key := (id(home), buffer, base)) not in seen:
            seen.add(key)
            self.add(
                home, {"integer": 2 / home.unroll if home.role == "loop over sources" else 1.0}
            )

    def base(self, number: int) -> int:
        """A place without the constant distances that are added to it."""
        node = self.table.nodes[number]
        if node.operation in ("+", "-"):
            for constant, other in (node.operands, node.operands[::-1]):
                if self.table.nodes[constant].operation == "literal":
                    return self.base(other)
        return number

    def note_operation(self, n: int, home: Region) -> None:
        """Operations of floats as they are written, for units that do them in one instruction."""
        node = self.table.nodes[n]
        if n in self.gone or not node.type.is_float or node.operation in _NOT_COMPUTED:
            return
        fused = node.operation in ("+", "-") and any(o in self.gone for o in node.operands)
        key = ("fused" if fused else node.operation, node.type.size)
        home.operations[key] = home.operations.get(key, 0.0) + 1

    def words(self, region: Region, own: Mapping[int, list[int]]) -> int:
        """Values of enclosing regions that an innermost loop reads, and those that it carries:
        registers while it runs.
        """
        if not region.is_loop or any(r.is_loop for r in region.walk()[1:]):
            return 0
        inside = {n for r in region.walk() for n in own.get(id(r), [])}
        read = {o for n in inside for o in self.table.nodes[n].operands}
        held = (self.table.nodes[n] for n in (read - inside) | (inside & self.values.carried))
        return sum(max(1, n.type.size // 4) for n in held if n.operation != "literal")

    def wait(self, n: int, cost: Mapping[str, float]) -> float:
        """Cycles from the operands of a value to it."""
        if self.on_gpu:
            return latency_of(cost)
        divided = CPU_DIVIDER_LATENCY.get(self.table.nodes[n].operation)
        return divided or latency_of(cost, CPU_LATENCY)

    def latency(self, own_values: list[int]) -> float:
        """The longest chain of a region's own values, which are in the order of computation.

        A slow path that a value may take (division, roots) keeps a compiler from interleaving:
        chains that share none of them follow each other.
        """
        ends: dict[int, tuple[float, float]] = {}  # cycles, and branches on the way
        branches = 0.0
        for n in own_values:
            cost = self.cost(n)
            own = cost.get("branch", 0.0)
            branches += own
            before = max(
                (ends.get(o, (0.0, 0.0)) for o in self.table.nodes[n].operands), default=(0.0, 0.0)
            )
            ends[n] = (before[0] + self.wait(n, cost), before[1] + own)
        cycles, passed = max(ends.values(), default=(0.0, 0.0))
        return cycles * (max(1.0, branches / passed) if passed else 1.0)


SIMD_SAMPLE = 16  # neighbours that are looked at on a CPU
NOWHERE = np.iinfo(np.int64).min  # the sector of a thread that does not take part
LINE = 128  # bytes of one pass through the L1 cache or shared memory


@dataclass(frozen=True, slots=True)
class Lie:
    """The pattern of an access, the sectors and the passes that a warp takes (see
    `region.Access`).
    """

    pattern: Pattern
    sectors: float
    wavefronts: float
    lines: float = 0.0


# of a whole register of lanes, for which a block's one access stands
OF_LANES = Lie("gathered", 1.0, 0.0)


def lie_of_warp(places: Sample | None, active: Sample, size: int, step: float | None = None) -> Lie:
    """The lie of `size` bytes per thread at these elements; None for places that data tell.

    step: elements from such a place to that of the next thread, where it is known.
    """
    running = active.any(axis=1)
    lanes = round(float(active[running].sum(axis=1).mean())) if running.any() else active.shape[1]
    if places is None and step is not None:
        span = max(1.0, lanes * step) * size
        return Lie("streamed", max(1.0, span / SECTOR), max(1.0, min(span, lanes * size) / LINE))
    if places is None:
        sectors = lanes * max(1, -(-size // SECTOR))
        passes = max(lanes * size // LINE, lanes // 2, 1)
        return Lie("gathered", float(sectors), float(passes), float(lanes))
    everywhere = np.broadcast_to(places, active.shape)
    rows = everywhere if running.all() or not running.any() else everywhere[running]
    distances = np.diff(rows, axis=1)
    if alike := bool((distances == distances[:1]).all()):
        distances = distances[:1]
    units = _Units(rows, distances, size, alike)
    sectors = units.distinct(SECTOR) * max(1, size // SECTOR)
    if not distances.any():
        return Lie("broadcast", sectors, max(1.0, size / 8))
    lines = units.distinct(LINE)
    passes = max(_passes(rows, size), lines / LOOKUPS)
    return Lie("streamed" if (distances == 1).all() else "strided", sectors, passes, lines)


BANKS, WORD = 32, 4  # of the L1 cache and of shared memory, and the bytes of a word
LOOKUPS = 2  # of lines, in the time of a pass
LOOKED_AT = 32  # warps of a sample


def _passes(rows: Sample, size: int) -> float:
    """Passes of a warp's access, on average: in each, every bank gives one word to all who want
    it. Where lines begin does not matter.
    """
    few = rows[:: -(-len(rows) // LOOKED_AT)] * size // WORD
    words = np.sort((few[..., None] + np.arange(max(1, size // WORD))).reshape(len(few), -1))
    new = np.ones(words.shape, bool)
    new[:, 1:] = words[:, 1:] != words[:, :-1]
    banks = np.where(new, words % BANKS, BANKS) + np.arange(len(few))[:, None] * (BANKS + 1)
    wanted = np.bincount(banks.ravel(), minlength=len(few) * (BANKS + 1))
    most = wanted.reshape(len(few), BANKS + 1)[:, :BANKS].max(axis=1)
    return max(1.0, size / 8, float(most.mean()))


@dataclass(frozen=True, slots=True)
class _Units:
    """Units of memory that the first bytes of warps lie in.

    rows: the places of each warp's threads; distances: from each to the next, of one warp where
    they are alike in all, as they mostly are.
    """

    rows: Sample
    distances: Sample
    size: int
    alike: bool

    def distinct(self, unit: int) -> float:
        """How many there are, on average."""
        rows, distances = self.rows, self.distances
        if self.alike:  # only where it begins in a unit matters
            begins = rows[:, 0] * self.size % unit
            often = np.bincount(begins, minlength=unit)
            met = np.flatnonzero(often)
            each = _numbers((met[:, None] + (rows[0] - rows[0, 0]) * self.size) // unit)
            return float((each * often[met]).sum() / len(rows))
        if (distances >= 0).all():
            each = 1 + (np.diff(rows * self.size // unit, axis=1) != 0).sum(axis=1)
            return float(np.mean(each))
        return float(np.mean(_numbers(rows * self.size // unit)))


def _numbers(rows: Sample) -> Sample:
    """How many different values each row has."""
    ordered = np.sort(rows, axis=1)
    return 1 + (ordered[:, 1:] != ordered[:, :-1]).sum(axis=1)


def meaning(e: ir.Expression, meant: Mapping[str, ir.Expression]) -> ir.Expression:
    """An expression with what integer variables stand for in their place."""
    if not meant:
        return e
    return rewrite(e, lambda x: meant.get(x.name, x) if isinstance(x, ir.Local) else x)


def _is_sum(e: ir.Expression, variable: str) -> bool:
    """Whether neighbours along a variable are as far apart everywhere, as a compiler sees it."""
    return not any(
        isinstance(x, ir.Call | ir.Select) or (isinstance(x, ir.Binary) and x.operator in "//%")
        for x in subexpressions(e)
        if variable in reads(x)
    )


def lie_along_simd(index: ir.Expression, size: int, samples: Known, variable: str) -> Lie:
    """The same on a CPU, for elements or sources that neighbour each other in a SIMD register.

    `wavefronts` is the distance of neighbours here, 0 where it is not one number.
    """
    base = samples.get(variable)
    places = None
    if base is not None:
        places = value_of(index, {**samples, variable: np.asarray(base) + np.arange(SIMD_SAMPLE)})
    if places is None or not _is_sum(index, variable):
        return Lie("gathered", 1.0, 0.0)
    distances = np.unique(
        np.diff(np.broadcast_to(places, (*np.shape(places)[:-1], SIMD_SAMPLE)), axis=-1)
    )
    if len(distances) != 1:
        return Lie("gathered", 1.0, 0.0)
    distance = float(abs(distances[0]))
    pattern: Pattern = "broadcast" if distance == 0 else "streamed" if distance == 1 else "strided"
    return Lie(pattern, max(1.0, size / SECTOR), distance)


@dataclass(frozen=True, slots=True)
class Touch:
    """What the threads of the sample touch with one access: elements of `size` bytes, where
    `active`.
    """

    key: str
    places: Sample
    size: int
    active: Sample


def note_sectors(region: Region, touches: list[Touch], warps: int) -> None:
    """Sectors of each array's buffer that a warp touches in one execution of a region, each counted
    once; warps: of each block that is looked at.
    """
    for key in dict.fromkeys(t.key for t in touches):
        mine = [t for t in touches if t.key == key]
        sectors = [
            np.where(t.active, (t.places * t.size + d) // SECTOR, NOWHERE)
            for t in mine
            for d in range(0, t.size, SECTOR)
        ]
        every = np.concatenate([_changing(s) for s in sectors], axis=1)
        counts = _numbers(every) - (every == NOWHERE).any(axis=1)
        blocks = every.reshape(-1, warps * every.shape[1])
        of_blocks = _numbers(blocks) - (blocks == NOWHERE).any(axis=1)
        busy = max(1, int((counts > 0).sum()))
        region.sectors[key] = region.sectors.get(key, 0.0) + float(counts.sum()) / busy
        region.together[key] = region.together.get(key, 0.0) + float(of_blocks.sum()) / busy


def _changing(rows: Sample) -> Sample:
    """The columns that differ from the one before in some row: the others hold nothing new."""
    keep = np.ones(rows.shape[1], bool)
    keep[1:] = (rows[:, 1:] != rows[:, :-1]).any(axis=0)
    return rows if keep.all() else rows[:, keep]


ROWS_APART = (2, 3, 4)  # distances of rows that are looked for: a sample meets all in between


def rows_reached(touches: list[Touch], itemsize: int, shape: Sequence[int]) -> float:
    """The share of an array's rows that these accesses reach: strides leave some out.

    Rows are the places of all axes but the last one, whose sectors lie side by side.
    """
    share = 1.0
    for axis in range(len(shape) - 1):
        inner = math.prod(shape[axis + 1 :])
        met = [(t.places * t.size // itemsize)[t.active] // inner % shape[axis] for t in touches]
        rows = np.concatenate(met)
        share *= min((_residues(rows, a) / a for a in ROWS_APART if len(rows)), default=1.0)
    return share


def _residues(rows: Sample, divisor: int) -> int:
    return int(np.count_nonzero(np.bincount(rows % divisor, minlength=divisor)))
