"""Blocks of threads, each of which computes a box of points: thread-block merging and thread
merging in all dimensions.

    parallel for y: parallel for x: for k: load a[y, k]: u; load b[k, x]: v; s = s + u * v
->  y#0 = ...; y#1 = ...; x#0 = ...; x#1 = ...
    for k: load a[y#0, k]: u#0; load a[y#1, k]: u#1; load b[k, x#0]: v#0; load b[k, x#1]: v#1; s#0#0
    = s#0#0 + u#0 * v#0; ...
A statement is copied once for each value of the indices that it depends on, one index after the
other. Blocks in the inside of the space compute without tests. In the others points beyond the end
take the place of the last one, and store nothing: all threads meet every barrier.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

from lanewise.analysis.affine import nest
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import numbered, own
from lanewise.ir.spreading import control, spread
from lanewise.ir.traverse import (
    blocks,
    flat_map,
    reads,
    rename,
    rewrite,
    rewrite_statement,
    statements,
    writes,
)
from lanewise.language.types import Scalar
from lanewise.passes import thread_mapping
from lanewise.passes.base import refuse
from lanewise.passes.points import bringing_back, early_loads, guards, one_by_one, wrapping
from lanewise.passes.points.shape import BLOCK, THREAD, Shape, first_of, thread_of

Order = Literal["rows", "panels", "diagonal"]
MOST_POINTS = 256  # of a thread or a lane: compilers take minutes for a thousand
PANEL = 8  # rows of blocks that are computed together


def legal(kernel: ir.Kernel, shape: Shape) -> str | None:
    """Why the pass does not apply, or None."""
    if reason := thread_mapping.legal(kernel, shape.total):
        return reason
    loops, _ = nest(kernel)
    if len(loops) != len(shape.threads):
        return (
            f"it has {len(loops)} indices, and blocks of {len(shape.threads)} dimensions were "
            "requested"
        )
    if min(shape.points) < 1:
        return f"{min(shape.points)} points per thread were requested"
    if (points := math.prod(shape.points)) > MOST_POINTS:
        return (
            f"wanted at most {MOST_POINTS} points per thread, each of which is written out, found "
            f"{points}"
        )
    if shape.points[shape.fast] % shape.group(shape.fast):
        return f"{shape.points[shape.fast]} points are no groups of {shape.adjacent} neighbours"
    if name := steers(kernel):
        return (
            f"{name}, which it writes, decides where it reads or how often, and points beyond the "
            "end read nothing there"
        )
    return None


def apply(
    kernel: ir.Kernel,
    shape: Shape,
    order: Order = "rows",
    min_blocks: int = 0,
    *,
    early: bool = False,
) -> ir.Kernel:
    """The kernel mapped to blocks of this shape; raises `PlanError` for a shape that does not fit.

    early: whether blocks that the user's tests of edges cut through load before these tests, where
    that is legal.
    """
    if reason := legal(kernel, shape):
        raise refuse("thread merging", kernel, reason)
    loops, _ = nest(kernel)
    head, total = _head(loops, shape, order)
    grid = ir.Grid(total, 1, shape.total, min_blocks=min_blocks)
    return replace(kernel, body=(*head, points_of_a_block(kernel, shape, early=early)), grid=grid)


def points_of_a_block(
    kernel: ir.Kernel,
    shape: Shape,
    masked: int | None = None,
    *,
    early: bool = False,
    before: tuple[int, ...] = (),
) -> ir.If:
    """What a thread does for its points: without tests in the inside of the space, with tests in
    the blocks at its end.

    masked: the position of an index along which points beyond the end stay where they are, and read
    nothing. early: see `apply`. before: the positions of indices along which there may be points
    before the first one as well.
    """
    loops, body = nest(kernel)
    written = {a.name: a.leaves[0].type for a in kernel.arrays if a.written and a.space == "global"}
    kinds = {a.name: a.leaves[0].type for a in kernel.arrays if a.space == "global"}
    kind = loops[0].extent.type
    ends = [
        build.add(ir.Local(first_of(x.variable), kind), shape.side(d)) for d, x in enumerate(loops)
    ]
    inside = [ir.Compare("<=", end, loop.extent) for end, loop in zip(ends, loops, strict=True)]
    begun = {d: _begun(ir.Local(first_of(loops[d].variable), kind)) for d in before}
    around: tuple[ir.Expression, ...] = ()
    single = early and masked is None and not before
    inner, point, early = body, body, early and not (masked is not None and wrapping.wraps(kernel))
    if masked is not None and wrapping.wraps(kernel):
        inner, around, point = wrapping.divided(kernel, shape)
    elif masked is None:
        around, inner, point = bringing_back.divided(kernel, shape)
    conditions, plain = guards.decided(
        inner, loops, shape, {p.name for p in kernel.counts}, {p.name for p in kernel.uniforms}
    )
    conditions = (*conditions, *around)
    tested = tuple(kinds if d == masked else written for d in range(len(loops)))
    moved = early_loads.apply(kernel, body, loops, shape) if early and conditions else None
    layered = moved is not None  # tests need registers
    others = (
        one_by_one.apply(point, loops, shape)
        if single and conditions and one_by_one.legal(point, shape)
        else _copies(loops, point, shape, tested, masked, layered=layered, before=before)
    )
    if moved is not None:
        tests, loaded = moved
        # Points beyond the end of a masked index load as well, which are not read.
        there = [test for d, test in enumerate(inside) if d != masked] + [
            test for d, test in begun.items() if d != masked
        ]
        stored = tuple({} if d == masked else None for d in range(len(loops)))
        at_edges = _copies(loops, loaded, shape, stored, masked, layered=True, before=before)
        others = (ir.If(build.all_of(*there, *tests), at_edges, others),)
    plain = _copies(loops, plain, shape, (None,) * len(loops), layered=layered)
    return ir.If(build.all_of(*inside, *begun.values(), *conditions), plain, others)


def _begun(place: ir.Local) -> ir.Expression:
    return ir.Compare("<=", ir.Literal(0, place.type), place)


def steers(kernel: ir.Kernel) -> str | None:
    """An array that is written and whose values, read again, decide about indices or loops."""
    _, body = nest(kernel)
    deciding = steering(body)
    for array in sorted(a.name for a in kernel.arrays if a.written):
        names = {
            n
            for s in statements(body)
            if isinstance(s, ir.LoadElement) and s.array == array
            for n in s.names
        }
        if names & deciding:
            return array
    return None


def steering(body: ir.Block) -> set[str]:
    """The variables that decide, on whatever way, where elements lie, how long loops are, or which
    ones end.
    """
    names: set[str] = set()
    for s in statements(body):
        match s:
            case ir.LoadElement() | ir.StoreElement() | ir.ScatterElement():
                names |= {n for i in s.indices for n in reads(i)}
            case ir.For() | ir.While():
                names |= control(s)
            case _:
                continue
    parts = [
        (
            control(s),
            {*writes(s), *(n for b in blocks(s) for x in statements(b) for n in writes(x))},
        )
        for s in statements(body)
    ]
    while True:
        before = len(names)
        for used, written in parts:
            if not written.isdisjoint(names):
                names |= used
        if len(names) == before:
            return names


def _head(
    loops: tuple[ir.Parallel, ...], shape: Shape, order: Order
) -> tuple[ir.Block, ir.Expression]:
    """Where a block begins, which of its threads this one is; and how many blocks there are."""
    kind = loops[0].extent.type
    head: list[ir.Statement] = [
        ir.Assign(BLOCK, ir.Builtin("block", kind)), ir.Assign(THREAD, ir.Builtin("thread", kind)),
    ]  # fmt: skip
    within: ir.Expression = ir.Local(THREAD, kind)
    places = shape.order()
    for n, d in enumerate(places):
        last = n == len(places) - 1
        place = within if last else build.remainder(within, shape.threads[d])
        head.append(ir.Assign(thread_of(loops[d].variable), place))
        within = build.divide(within, shape.threads[d])
    counts = [build.ceil_divide(loop.extent, shape.side(d)) for d, loop in enumerate(loops)]
    total: ir.Expression = ir.Literal(1, kind)
    for c in reversed(counts):
        total = build.multiply(c, total)
    numbers, extra = _numbers(loops, counts, order, kind)
    head += extra
    for d, loop in enumerate(loops):
        head.append(ir.Assign(first_of(loop.variable), build.multiply(numbers[d], shape.side(d))))
    return tuple(head), total


def _numbers(
    loops: tuple[ir.Parallel, ...], counts: list[ir.Expression], order: Order, kind: Scalar
) -> tuple[list[ir.Expression], ir.Block]:
    """The number of a block along each index, the last index first."""
    extra: list[ir.Statement] = []

    def name(value: ir.Expression, text: str) -> ir.Local:
        extra.append(ir.Assign(own(text), value))
        return ir.Local(own(text), kind)

    rest: ir.Expression = ir.Local(BLOCK, kind)
    numbers: list[ir.Expression] = []
    for d in reversed(range(len(loops))):
        if d == 0:
            numbers.insert(0, rest)
            break
        count = name(counts[d], f"{loops[d].variable}.blocks")
        behind = name(build.divide(rest, count), f"{loops[d].variable}.behind")
        numbers.insert(0, build.subtract(rest, build.multiply(behind, count)))
        rest = behind
    if order == "rows" or len(loops) < 2:
        return numbers, tuple(extra)
    x, y = name(numbers[-1], "block.x"), name(numbers[-2], "block.y")
    width = ir.Local(own(f"{loops[-1].variable}.blocks"), kind)
    height = name(counts[-2], "block.rows")
    if order == "diagonal":
        # consecutive blocks differ in both: the first ones are the diagonal itself
        number = name(build.add(build.multiply(y, width), x), "block.number")
        along = name(build.divide(number, height), "block.diagonal")
        down = name(build.subtract(number, build.multiply(along, height)), "block.down")
        across = build.remainder(build.add(along, down), width)
        return [*numbers[:-2], down, across], tuple(extra)
    place = build.add(build.multiply(build.remainder(y, PANEL), width), x)
    first = name(build.multiply(build.divide(y, PANEL), PANEL), "panel.first")
    rows = name(build.minimum(build.subtract(height, first), PANEL), "panel.rows")
    across = name(build.divide(name(place, "panel.place"), rows), "panel.x")
    down = build.subtract(ir.Local(own("panel.place"), kind), build.multiply(across, rows))
    return [*numbers[:-2], build.add(first, down), across], tuple(extra)


Tested = tuple[dict[str, Scalar] | None, ...]
"""For each index the arrays that points beyond its end must not read, with the types of their
elements; None where there are no such
points.
"""


def _copies(
    loops: tuple[ir.Parallel, ...],
    body: ir.Block,
    shape: Shape,
    tested: Tested,
    masked: int | None = None,
    *,
    layered: bool = False,
    before: tuple[int, ...] = (),
) -> ir.Block:
    """The body for all points of a thread. layered: one layer after the other, if it has any."""
    starts: list[ir.Statement] = []
    for d in reversed(shape.order()):  # the copies of neighbours lie side by side
        loop, points = loops[d], shape.points[d]
        kind = loop.extent.type
        at, arrays = own(f"{loop.variable}.at"), tested[d]
        if arrays is not None:
            test = build.less(ir.Local(at, kind), loop.extent)
            if d in before:
                test = ir.Logical("and", _begun(ir.Local(at, kind)), test)
            own_place = spread(body, {loop.variable}) if d == masked else None
            there = None if masked is None else (loop.variable, at)
            body = flat_map(
                body,
                lambda s, test=test, arrays=arrays, own=own_place, there=there: _guarded(
                    s, test, arrays, own, there
                ),
            )
        copies = Copies(spread(body, {loop.variable, at}), points)
        body = (
            copies.layers(body)
            if layered and d == 0 and len(loops) > 2 and _is_straight(body)
            else copies.block(body)
        )
        for p in range(points):
            name, raw = _name(loop.variable, p, points), _name(at, p, points)
            place = build.add(
                ir.Local(first_of(loop.variable), kind), shape.place(d, p, loop.variable, kind)
            )
            if arrays is None:
                starts.append(ir.Assign(name, place))
                continue
            starts.append(ir.Assign(raw, place))
            last = ir.Local(raw, kind)
            moved = last if d == masked else build.minimum(last, build.subtract(loop.extent, 1))
            starts.append(
                ir.Assign(name, build.maximum(moved, 0) if d in before and d != masked else moved)
            )
    return (*starts, *body)


def _is_straight(body: ir.Block) -> bool:
    """Whether there are but values, loads and stores, some of them under tests."""
    return all(
        isinstance(s, ir.Assign | ir.LoadElement | ir.StoreElement | ir.If)
        for s in statements(body)
    )


def _name(name: str, p: int, points: int) -> str:
    return name if points == 1 else numbered(name, p)


def _guarded(
    s: ir.Statement,
    test: ir.Expression,
    tested: dict[str, Scalar],
    of: set[str] | None = None,
    there: tuple[str, str] | None = None,
) -> ir.Block:
    """A store, and a load of an array that is tested, only for points that exist; of loads those
    alone whose place depends on `of`.

    there: an index, and its name before it was moved to a point that exists: stores have nothing to
    do with others.
    """
    match s:
        case ir.StoreElement() | ir.ScatterElement():
            if there is not None:
                name, raw = there
                s = replace(
                    s,
                    indices=tuple(rewrite(i, lambda e: _renamed(e, name, raw)) for i in s.indices),
                )
            return (ir.If(test, (s,)),)
        case ir.LoadElement() if s.array in tested:
            if of is not None and of.isdisjoint(n for i in s.indices for n in reads(i)):
                return (s,)
            kind = tested[s.array]
            return (ir.Assign(s.name, build.zero(kind)), ir.If(test, (s,)))
        case _:
            return (s,)


def _renamed(e: ir.Expression, name: str, new: str) -> ir.Expression:
    return ir.Local(new, e.type, e.location) if isinstance(e, ir.Local) and e.name == name else e


class Copies:
    """Repeats the statements that depend on an index, once for each of a thread's points along
    it.
    """

    def __init__(self, varying: set[str], points: int) -> None:
        self.varying, self.points = varying, points
        self._names = [{n: _name(n, p, points) for n in varying} for p in range(points)]

    def block(self, block: ir.Block) -> ir.Block:
        return tuple(new for s in block for new in self.statement(s))

    def layers(self, block: ir.Block) -> ir.Block:
        """One point after the other: a layer's values are used up before the next one is read, and
        need no registers then.
        """
        return tuple(new for p in range(self.points) for s in block for new in self._copy(s, p))

    def _copy(self, s: ir.Statement, p: int) -> ir.Block:
        if any((control(x) | set(writes(x))) & self.varying for x in statements((s,))):
            return rename((s,), self._names[p])
        return () if p else (s,)

    def statement(self, s: ir.Statement) -> ir.Block:
        # once for each point, also where all points scatter the same
        scatters = isinstance(s, ir.ScatterElement)
        if not scatters and not (control(s) | set(writes(s))) & self.varying:
            return (rewrite_statement(s, lambda e: e, self.block),)
        copies: list[ir.Statement] = []
        for p in range(self.points):
            copies += rename((s,), self._names[p])
        return tuple(copies)
