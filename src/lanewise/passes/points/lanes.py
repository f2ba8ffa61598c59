"""Blocks of points for the threads of a CPU: lanes of SIMD registers along the last index, several
registers and rows of points in each.

    parallel for y: parallel for x: s = 0; for k: load a[y, k]: u; load b[k, x]: v; s = s + u * v;
    store c[y, x] = s
->  parallel for block: parallel for lane in range(16):
      for $y.number in ...: y#0 = ...; y#1 = ...; x#0 = $x.first + lane; x#1 = $x.first + lane + 16
        for k: load a[y#0, k]: u#0; load a[y#1, k]: u#1; load b[k, x#0]: v#0; load b[k, x#1]: v#1;
        s#0#0 = s#0#0 + u#0 * v#0; ...
The points of a block are those of a GPU's (merging.py): a SIMD register is a warp whose lanes run
together. What is different is who comes next: a thread of a CPU goes on to the following block
along one index, whose lines are still in its cache. Points beyond the end of the last index are
lanes that a mask leaves out. Blocks that a test of an edge cuts through load before it
(early_loads.py), without masks. What all rows of a block read of an array in a loop is packed side
by side first (packing.py). Where rows are another array's columns, as many rows as lanes make a
square, which is turned in registers; how squares follow each other stands in squares.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from lanewise.analysis import simd_operations
from lanewise.analysis.affine import AffineAccess, accesses
from lanewise.analysis.index_sums import index_sum
from lanewise.analysis.lane_sums import lane_sums
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.ir.spreading import spread_in_lanes
from lanewise.ir.traverse import apart, expressions, reads, statements, subexpressions, writes
from lanewise.language.target import LINE, LONG_IN_ORDER
from lanewise.language.types import BOOL, I64
from lanewise.passes.base import refuse
from lanewise.passes.points import guards, merging, packing
from lanewise.passes.points.shape import BLOCK, THREAD, Shape, first_of, thread_of

COUNTS = (4, 8, 16)  # lanes
ROUND = 128  # blocks that a thread runs one after the other along the last index
ROWS = 1024  # rows that share what was packed
# elements of a line before the first one that is written, and before that of each row
PHASE = own("phase")
ROW_PHASE = own("row.phase")
# whether it is written past the caches: else masks at both ends of rows cost more than they save
FAR = own("far")
LONG = 128  # lines of a row


def legal(kernel: ir.Kernel, shape: Shape, rounds: int = 0) -> str | None:
    """Why the pass does not apply, or None. rounds: as in `apply`."""
    loops, body = merging.nest(kernel)
    if shape.threads[shape.fast] not in COUNTS or shape.total != shape.threads[shape.fast]:
        return (
            f"a SIMD register has {', '.join(map(str, COUNTS[:-1]))} or {COUNTS[-1]} lanes; "
            f"{shape.total} were asked for"
        )
    if shape.fast != len(loops) - 1:
        return "lanes lie along the last index"
    if isinstance(loops[-1].extent, ir.Literal):
        return "it has one point, and lanes are neighbouring points"
    if min(shape.points) < 1:
        return f"{min(shape.points)} points a lane were asked for"
    if (points := math.prod(shape.points)) > merging.MOST_POINTS:
        return (
            f"wanted at most {merging.MOST_POINTS} points a lane, each of which is written out, "
            f"found {points}"
        )
    if reason := _apart(kernel, body, loops, shape):
        return reason
    if name := merging.steers(kernel):
        return (
            f"{name}, which it writes, decides where it reads or how often, and points beyond the "
            "end read nothing there"
        )
    if rounds and not packing.operands(kernel, shape, rounds):
        return "no elements are read by all rows of a block in a loop"
    if rounds:
        _, body = merging.nest(packing.apply(kernel, shape, rounds).kernel)
        return _unresolved(body, loops[-1].variable, spread_in_lanes(body, {loops[-1].variable}))
    return None


def _apart(
    kernel: ir.Kernel, body: ir.Block, loops: tuple[ir.Parallel, ...], shape: Shape
) -> str | None:
    """Why lanes cannot run together, or None."""
    last, body = loops[-1].variable, apart(body)  # accesses are known by identity
    varying = spread_in_lanes(body, {last})
    truths = {a.name for a in kernel.arrays if any(x.type == BOOL for x in a.leaves)}
    for s in statements(body):
        match s:
            case ir.Assign() | ir.If() | ir.LoadElement() | ir.StoreElement():
                pass
            case ir.For():
                if varying & {n for e in (s.start, s.stop, s.step) for n in reads(e)}:
                    return f"how often a loop runs depends on {last}, and lanes run together"
                if s.variable in varying:
                    return simd_operations.counts_apart(s)
            case _:
                return simd_operations.why_not_together(s)
        for e in expressions(s):
            if not varying.isdisjoint(reads(e)) and (reason := simd_operations.problem(e, varying)):
                return reason
    for a in accesses(body, (last,)):
        if a.is_store and a.way(last) == "same":
            return f"{a.array} is written where {last} says nothing"
        if not a.statement.indices or varying.isdisjoint(
            n for i in a.statement.indices for n in reads(i)
        ):
            continue
        if a.array in truths:
            return (
                f"{a.array} holds truth values, which take a byte each in memory and a bit each in "
                "a register"
            )
        if a.way(last) == "next":
            continue
        if (_is_turned(a, loops)) and shape.points[-2] == shape.total:
            continue  # as many rows as lanes make a square, which is turned in registers
        return f"neighbours along {last} do not touch neighbouring elements of {a.array}"
    return _unresolved(
        body,
        last,
        varying,
        frozenset(id(a.statement) for a in accesses(body, (last,)) if _is_turned(a, loops)),
    )


def _is_turned(a: AffineAccess, loops: tuple[ir.Parallel, ...]) -> bool:
    """Whether neighbours along the last index but one touch neighbouring elements, and those along
    the last one rows.
    """
    if len(loops) != 2 or a.loops or a.guards:
        return False
    *front, inner = a.statement.indices
    first, last = (x.variable for x in loops)
    if not isinstance(inner, ir.Local) or inner.name != first:
        return False
    return len(front) == 1 and isinstance(front[0], ir.Local) and front[0].name == last


def turned(kernel: ir.Kernel) -> tuple[AffineAccess, ...]:
    """Accesses of a kernel whose rows are another's columns."""
    loops, body = merging.nest(kernel)
    return tuple(a for a in accesses(body, (loops[-1].variable,)) if _is_turned(a, loops))


def _unresolved(
    body: ir.Block, last: str, varying: set[str], turned: frozenset[int] = frozenset()
) -> str | None:
    """Why the place of an access is not seen to move with its lane alone, or None."""
    sums = lane_sums(body, varying)
    for s in statements(body):
        if not isinstance(s, ir.LoadElement | ir.StoreElement) or id(s) in turned:
            continue
        for n, i in enumerate(s.indices):
            total = index_sum(i, sums)
            rest = total.without([last])
            moved = total.coefficient(last)
            if any(not varying.isdisjoint(reads(e)) for e in rest.terms) or moved not in (0, 1):
                return f"neighbours along {last} do not touch neighbouring elements of {s.array}"
            if moved and n != len(s.indices) - 1:
                return f"neighbours along {last} do not touch neighbouring elements of {s.array}"
    return None


def apply(kernel: ir.Kernel, shape: Shape, rounds: int = 0) -> ir.Kernel:
    """The kernel in blocks of this shape; raises `PlanError` for a shape that does not fit.

    rounds: of a loop, what is packed of the elements that all rows of a block read in them; 0 packs
    nothing.
    """
    if reason := legal(kernel, shape, rounds):
        raise refuse("SIMD lanes", kernel, reason)
    loops, _ = merging.nest(kernel)
    kind, rank = loops[0].extent.type, len(loops)
    down = bool(rounds)  # what was packed is used again
    walked = None if rank == 1 else rank - 2 if down else rank - 1
    counts = [build.ceil_divide(loop.extent, shape.side(d)) for d, loop in enumerate(loops)]
    begun = None if down else _begun_with_lines(kernel, shape)
    if begun is not None:
        line = begun.line
        counts[-1] = build.ceil_divide(build.add(loops[-1].extent, line - 1), shape.side(rank - 1))
    phase = PHASE if rank == 1 else ROW_PHASE
    most = ROUND if walked is None or not down else ROWS // shape.side(walked)
    head, total, walk = numbers(loops, counts, walked, max(1, most))
    lane = ir.Assign(thread_of(loops[-1].variable), ir.Local(THREAD, kind))

    def first(d: int) -> ir.Statement:
        place = build.multiply(ir.Local(number(loops[d].variable), kind), shape.side(d))
        moved = begun is not None and d == rank - 1
        return ir.Assign(
            first_of(loops[d].variable),
            build.subtract(place, ir.Local(phase, kind)) if moved else place,
        )

    packed = packing.apply(kernel, shape, rounds) if rounds else packing.nothing(kernel)
    inner: ir.Block = (
        merging.points_of_a_block(
            packed.kernel,
            shape,
            masked=rank - 1,
            early=True,
            before=() if begun is None else (rank - 1,),
        ),
    )
    others: list[ir.Statement] = [] if begun is None else [*begun.found]
    others += [first(d) for d in range(rank) if d != walked]
    others += [
        ir.Assign(thread_of(loop.variable), ir.Literal(0, kind))
        for d, loop in enumerate(loops)
        if d != rank - 1
    ]
    if walked is not None and walk is not None:
        if begun is not None:
            walk = _of_points(
                walk, begun.line, loops[-1].extent, ir.Local(phase, kind), shape.side(rank - 1)
            )
        walk = replace(walk, body=(first(walked), *inner))
        inner = (walk,) if down else tested_before(walk)
    block = (*head, lane, *others, *packed.before, *inner)
    lanes = ir.Parallel(THREAD, ir.Literal(shape.total, kind), block)
    arrays = packed.kernel.arrays
    if begun is not None:
        arrays = tuple(replace(a, ordered=a.name == begun.ordered) for a in arrays)
    return replace(packed.kernel, arrays=arrays, body=(ir.Parallel(BLOCK, total, (lanes,)),))


def _of_points(
    walk: ir.For, line: int, extent: ir.Expression, phase: ir.Local, side: int
) -> ir.For:
    """A walk whose first block begins `phase` points before the first one, without blocks that have
    no points.
    """
    stop = build.minimum(walk.stop, build.ceil_divide(build.add(extent, phase), side))
    start = walk.start if side >= line else build.maximum(walk.start, build.divide(phase, side))
    return replace(walk, start=start, stop=stop)


@dataclass(frozen=True, slots=True)
class _Begun:
    """Blocks that begin with lines of memory: the elements of one, and what finds how many of them
    lie before a row.

    ordered: the array that is written, where blocks follow each other as its elements do.
    """

    line: int
    found: ir.Block
    ordered: str | None


def _begun_with_lines(kernel: ir.Kernel, shape: Shape) -> _Begun | None:
    """How blocks begin with lines of memory; None where it matters not.

    Registers that are stored past the caches are lines then, where they would be parts of two.
    Legal for any kernel; it helps one that writes every element of a row of a single array, which
    nobody reads. Elements may be left out where blocks are in order.
    """
    loops, body = merging.nest(kernel)
    kind, last = loops[-1].extent.type, loops[-1].variable
    every = accesses(body, tuple(x.variable for x in loops))
    stores = [a for a in every if a.is_store]
    if len({a.array for a in stores}) != 1 or any(a.loops for a in stores):
        return None
    array = kernel.array(stores[0].array)
    line, ordered = LINE // array.leaves[0].type.size, _is_ordered(kernel, shape, array)
    if any(a.array == array.name for a in every if not a.is_store):
        return None
    side = shape.side(len(loops) - 1)
    if side % line and line % side:  # blocks that begin with lines would end within others
        return None
    place = stores[0].statement.indices[-1]
    alone = (
        len(stores) == 1
        and not stores[0].guards
        and isinstance(place, ir.Local)
        and place.name == last
    )
    if not alone and not ordered:
        return None
    found, name = ir.Assign(PHASE, ir.Builtin("phase", kind)), array.name if ordered else None
    if len(loops) == 1:
        return _Begun(line, (found,), name)
    phase = (
        phase_of_row(array, loops) if ordered else row_phase(kernel, array, loops[-1], ROW_PHASE)
    )
    far = (ir.Assign(FAR, ir.Builtin("far", BOOL)),) if ordered else ()
    return _Begun(line, (found, *far, phase), name)


def phase_of_row(array: ir.ArrayArgument, loops: tuple[ir.Parallel, ...]) -> ir.Assign:
    """How many elements of a line lie before the row of a block, of which each has one; 0 where
    rows are short or the array is.
    """
    kind = loops[-1].extent.type
    line = LINE // array.leaves[0].type.size
    before = ir.Cast(ir.Local(PHASE, loops[-1].extent.type), I64)
    row: ir.Expression = ir.Literal(0, I64)
    for loop, length in zip(loops, array.shape[1:], strict=False):
        whole = ir.Literal(length, I64) if isinstance(length, int) else ir.Local(length, kind)
        place = build.add(row, build.index_of(ir.Local(number(loop.variable), kind), I64))
        row = build.multiply(place, build.index_of(whole, I64))
    long = ir.Compare("<=", ir.Literal(LONG_IN_ORDER * line, kind), loops[-1].extent)
    phase = ir.Cast(build.remainder(build.add(row, before), line), kind)
    far = ir.Logical("and", ir.Local(FAR, BOOL), long)
    return ir.Assign(ROW_PHASE, ir.Select(far, phase, ir.Literal(0, kind), kind))


def _is_ordered(kernel: ir.Kernel, shape: Shape, array: ir.ArrayArgument) -> bool:
    """Whether points write the elements at their own indices, in the inside of the space each does,
    once; and blocks are lines.
    """
    loops, body = merging.nest(kernel)
    indices, line = tuple(x.variable for x in loops), LINE // array.leaves[0].type.size
    if line % shape.total or any(shape.side(d) != 1 for d in range(len(loops) - 1)):
        return False
    every = [a for a in accesses(body, indices) if a.is_store]
    _, plain = guards.decided(body, loops, shape, {p.name for p in kernel.counts + kernel.uniforms})
    inside = [a for a in accesses(plain, indices) if a.is_store]
    once = len(inside) == 1 and not inside[0].guards
    return once and all(_is_at_its_indices(a, indices) for a in every)


def _is_at_its_indices(a: AffineAccess, indices: tuple[str, ...]) -> bool:
    places = [i.name if isinstance(i, ir.Local) else "" for i in a.statement.indices]
    return places == list(indices)


def in_order(kernel: ir.Kernel, shape: Shape) -> bool:
    """Whether blocks of this shape write one after the other, in the order of memory: then edges
    are streams, too.
    """
    begun = _begun_with_lines(kernel, shape)
    return begun is not None and begun.ordered is not None


def rows_are_long(kernel: ir.Kernel, lengths: Mapping[str, Any]) -> bool:
    """Whether rows are streams also where they are not written in order, by the counts of a
    call.
    """
    loops, _ = merging.nest(kernel)
    extent = loops[-1].extent
    points = (
        int(lengths[extent.name])
        if isinstance(extent, ir.Local)
        else int(extent.value)
        if isinstance(extent, ir.Literal)
        else 0
    )
    return points >= LONG * min(LINE // a.leaves[0].type.size for a in kernel.arrays if a.written)


def row_phase(
    kernel: ir.Kernel, array: ir.ArrayArgument, along: ir.Parallel, name: str, phase: str = PHASE
) -> ir.Assign:
    """How many elements of a line lie before the beginning of every row of an array; 0 where rows
    begin anywhere, or a loop is short.

    phase: the variable that has this number of the array's first row.
    """
    length, kind, line = array.shape[-1], along.extent.type, LINE // array.leaves[0].type.size
    kinds = {p.name: p.type for p in kernel.counts + kernel.uniforms}
    row = ir.Literal(length, kind) if isinstance(length, int) else ir.Local(length, kinds[length])
    whole = build.equal(build.remainder(row, line), 0)
    # else masks at both ends cost more than they save
    long = ir.Compare("<=", ir.Literal(LONG * line, kind), along.extent)
    begin = ir.Select(
        ir.Logical("and", whole, long), ir.Local(phase, kind), ir.Literal(0, kind), kind
    )
    return ir.Assign(name, begin)


def tested_before(walk: ir.For) -> ir.Block:
    """A walk along a row, with the tests that depend on the row made before it.

    for $x.number: if 0 < $y.first and 0 < $x.first: A   ->   $tested.1 = 0 < $y.first; for
    $x.number: if $tested.1 and 0 < $x.first: A
    """
    changed = {n for s in statements((walk,)) for n in writes(s)}
    before: list[ir.Statement] = []

    def without(s: ir.Statement) -> ir.Statement:
        if not isinstance(s, ir.If):
            return s
        tests = build.conjuncts(s.condition)
        fixed = [t for t in tests if changed.isdisjoint(reads(t)) and _is_of_sums(t)]
        moving = [t for t in tests if t not in fixed]
        if fixed and moving:
            name = own(f"tested.{len(before) + 1}")
            before.append(ir.Assign(name, build.all_of(*fixed)))
            s = replace(s, condition=build.all_of(ir.Local(name, BOOL), *moving))
        return replace(s, otherwise=(without(s.otherwise[0]),)) if len(s.otherwise) == 1 else s

    *head, branch = walk.body
    walk = replace(walk, body=(*head, without(branch)))
    return *before, walk


def _is_of_sums(test: ir.Expression) -> bool:
    """Whether it compares sums of indices, which may be computed where they were not to be."""
    return all(
        isinstance(e, ir.Compare | ir.Local | ir.Literal)
        or (isinstance(e, ir.Binary) and e.operator in "+-*")
        for e in subexpressions(test)
    )


def number(index: str) -> str:
    """The number of a block along an index."""
    return own(f"{index}.number")


def numbers(
    loops: tuple[ir.Parallel, ...], counts: list[ir.Expression], walked: int | None, most: int
) -> tuple[ir.Block, ir.Expression, ir.For | None]:
    """The number of a block along each index but the one that is walked, how many there are, and
    the loop of the walk.
    """
    kind = loops[0].extent.type
    sides = [build.ceil_divide(c, most) if d == walked else c for d, c in enumerate(counts)]
    total: ir.Expression = ir.Literal(1, kind)
    for side in sides:
        total = build.multiply(total, side)
    done: list[ir.Statement] = []
    rest: ir.Expression = ir.Local(BLOCK, kind)
    for d in reversed(range(len(loops))):
        name = own(f"{loops[d].variable}.round") if d == walked else number(loops[d].variable)
        if d == 0:
            done.append(ir.Assign(name, rest))
            break
        count, behind = own(f"{loops[d].variable}.blocks"), own(f"{loops[d].variable}.behind")
        done += [
            ir.Assign(count, sides[d]),
            ir.Assign(behind, build.divide(rest, ir.Local(count, kind))),
            ir.Assign(
                name,
                build.subtract(rest, build.multiply(ir.Local(behind, kind), ir.Local(count, kind))),
            ),
        ]
        rest = ir.Local(behind, kind)
    if walked is None:
        return tuple(done), total, None
    start = build.multiply(ir.Local(own(f"{loops[walked].variable}.round"), kind), most)
    end = build.minimum(build.add(start, most), counts[walked])
    return (
        tuple(done),
        total,
        ir.For(number(loops[walked].variable), start, end, ir.Literal(1, kind), ()),
    )
