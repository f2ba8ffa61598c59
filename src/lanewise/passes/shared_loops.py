"""Loops whose rounds the threads of a block may share, and the ways to share them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lanewise.analysis.affine import accesses, nest_of
from lanewise.analysis.reductions import (
    Shareable,
    indices_in,
    is_steady,
    over_one_range,
    shareable,
)
from lanewise.analysis.running import read_so_far
from lanewise.analysis.running import running as running_rounds
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.ir.traverse import reads, rewrite_statement, statements, writes
from lanewise.language.target import WARP
from lanewise.language.types import Scalar

Way = Literal["row", "column"]
INSIDE, SLICE, LANE = own("inside"), own("slice"), own("lane")


@dataclass(frozen=True, slots=True)
class Sharing:
    """How the threads of a block share loops: `slices` threads for each of `lanes` points. unroll:
    of the shared loops.

    keep: elements of a row, read by several loops over one range, that are kept in shared memory
    from the first one on.
    values: rounds whose values are kept there, where several loops over one range compute the same
    ones (kept_values.py). warp: threads that exchange values without shared memory: the lanes of a
    CPU do, however many they are.
    """

    way: Way
    slices: int
    lanes: int
    unroll: int = 1
    keep: int = 0
    values: int = 0
    warp: int = WARP

    @property
    def threads(self) -> int:
        return self.slices * self.lanes


def examined_loops(kernel: ir.Kernel, *, running: bool = False) -> dict[int, Shareable | str]:
    """The loops of a reference kernel by their place in the body of a thread: how threads may share
    their rounds, or why they may not. running: also rounds that read what was gathered so far,
    which the threads of a GPU can share along rows.
    """
    indices, body = nest_of(kernel)
    found: dict[int, Shareable | str] = {}
    for n, s in enumerate(body):
        if isinstance(s, ir.For):
            found[n] = shareable(body, n, indices)
            if running and isinstance(found[n], str) and read_so_far(s):
                found[n] = running_rounds(kernel, body, n, indices)
    return found


def shareable_loops(kernel: ir.Kernel, *, running: bool = False) -> dict[int, Shareable]:
    """Those of them whose rounds threads may share."""
    examined = examined_loops(kernel, running=running)
    return {n: x for n, x in examined.items() if isinstance(x, Shareable)}


def best_way(kernel: ir.Kernel, *, running: bool = False) -> Way:
    """In which way the loads of the shared loops are coalesced."""
    rows, columns = coalesced(kernel, running=running)
    return "column" if columns > rows else "row"


def coalesced(kernel: ir.Kernel, *, running: bool = False) -> tuple[int, int]:
    """How many accesses of the shared loops have neighbours in neighbouring rounds, and how many in
    neighbouring points.

    What no point changes comes from a cache either way, and counts as neither.
    """
    indices, body = nest_of(kernel)
    loops = shareable_loops(kernel, running=running)
    inner = {id(x.inner): x.inner.variable for x in loops.values()}
    rows = columns = 0
    for a in accesses(body, indices):
        loop = next((x for x in a.loops if id(x.statement) in inner), None)
        if loop is None or all(a.way(i) == "same" for i in indices):
            continue
        rows += a.way(loop.variable) == "next"
        columns += a.way(indices[-1]) == "next"
    return rows, columns


@dataclass(frozen=True, slots=True)
class ElementRow:
    """Elements of an array that several loops over one range read: with which indices, in the words
    of the first loop.
    """

    name: str
    type: Scalar
    array: str
    indices: tuple[ir.Expression, ...]
    loops: tuple[int, ...]
    first: ir.For

    def is_read_by(self, s: ir.LoadElement, loop: ir.For, number: int) -> bool:
        return (
            number in self.loops
            and s.array == self.array
            and indices_in(s, loop, self.first) == self.indices
        )


def rows_of(kernel: ir.Kernel, loops: dict[int, Shareable]) -> tuple[ElementRow, ...]:
    """The rows that are worth keeping: of arrays that the kernel does not write, read by several
    loops that begin at 0.
    """
    written = {s.array for s in statements(kernel.body) if isinstance(s, ir.StoreElement)}
    kinds = {a.name: a.leaves[0].type for a in kernel.arrays}
    if not (plain := over_one_range(loops)):
        return ()
    first = next(iter(plain.values()))
    readers: dict[tuple[str, tuple[ir.Expression, ...]], list[int]] = {}
    for n, loop in plain.items():
        changed = frozenset(x for s in statements(loop.body) for x in writes(s))
        for s in loop.body:
            if not isinstance(s, ir.LoadElement) or s.array in written:
                continue
            steady = all(is_steady(i, changed) for i in s.indices)
            if steady and any(loop.variable in reads(i) for i in s.indices):
                numbers = readers.setdefault((s.array, indices_in(s, loop, first)), [])
                numbers += [] if n in numbers else [n]
    kept = [(key, numbers) for key, numbers in readers.items() if len(numbers) > 1]
    return tuple(
        ElementRow(own(f"kept.{i}"), kinds[array], array, indices, tuple(numbers), first)
        for i, ((array, indices), numbers) in enumerate(kept)
    )


def with_inner(loop: ir.For, inner: ir.For, rounds: ir.Block) -> ir.Block:
    """A nest of loops whose inner one is replaced by others."""

    def visit(block: ir.Block) -> ir.Block:
        new: list[ir.Statement] = []
        for s in block:
            new += rounds if s is inner else (rewrite_statement(s, lambda e: e, visit),)
        return tuple(new)

    return visit((loop,))


def nest_index(kernel: ir.Kernel) -> Scalar:
    """The type of the indices of a reference kernel."""
    (outer,) = kernel.body
    assert isinstance(outer, ir.Parallel)
    return outer.extent.type
