"""Blocks of points for the threads of a CPU: lanes of SIMD registers along the last index, several
registers and rows of points in each.

    parallel for y: parallel for x: s = 0; for k: load a[y, k]: u; load b[k, x]: v; s = s + u * v;
    store c[y, x] = s
->  parallel for block: parallel for lane in range(16):
      for $y.number in ...: y#0 = ...; y#1 = ...; x#0 = $x.first + lane; x#1 = $x.first + lane + 16
        for k: load a[y#0, k]: u#0; load a[y#1, k]: u#1; load b[k, x#0]: v#0; load b[k, x#1]: v#1;
        s#0#0 = s#0#0 + u#0 * v#0; ...
The points of a block are those of a GPU's (merging.py): a SIMD register is a warp whose lanes run
together. What is different is who comes next: a thread of a CPU continues to the following block
along one index, whose lines are still in its cache. Points beyond the end of the last index are
lanes that a mask leaves out. Blocks that a test of an edge cuts through load before it
(early_loads.py), without masks. What all rows of a block read of an array in a loop is packed side
by side first (packing.py). Where rows are another array's columns, as many rows as lanes make a
square, which is turned in registers; how squares follow each other stands in squares.py.
Indices that go round the ends of rows do so in blocks at an edge alone (wrapping.py).
"""

from __future__ import annotations

import math
from dataclasses import replace

from lanewise.analysis import simd_operations
from lanewise.analysis.affine import AffineAccess, accesses
from lanewise.analysis.index_sums import index_sum
from lanewise.analysis.lane_sums import lane_sums
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.ir.spreading import spread_in_lanes
from lanewise.ir.traverse import (
    apart,
    expressions,
    reads,
    statements,
    subexpressions,
    written_in,
)
from lanewise.language.types import BOOL
from lanewise.passes.base import refuse
from lanewise.passes.points import merging, packing, wrapping
from lanewise.passes.points.line_starts import PHASE, ROW_PHASE, line_starts
from lanewise.passes.points.shape import BLOCK, THREAD, Shape, first_of, number_of, thread_of

COUNTS = (4, 8, 16)  # lanes
ROUND = 128  # blocks that a thread runs one after the other along the last index
ROWS = 1024  # rows that share what was packed


def legal(kernel: ir.Kernel, shape: Shape, rounds: int = 0) -> str | None:
    """Why the pass does not apply, or None. rounds: as in `apply`."""
    if rounds and wrapping.wraps(kernel):
        return "what all rows of a block read goes round the ends of rows, and is not packed"
    kernel = wrapping.inside(kernel)
    loops, body = merging.nest(kernel)
    if shape.threads[shape.fast] not in COUNTS or shape.total != shape.threads[shape.fast]:
        return (
            f"a SIMD register has {', '.join(map(str, COUNTS[:-1]))} or {COUNTS[-1]} lanes; "
            f"{shape.total} were requested"
        )
    if shape.fast != len(loops) - 1:
        return "lanes lie along the last index"
    if isinstance(loops[-1].extent, ir.Literal):
        return "it has one point, and lanes are neighbouring points"
    if min(shape.points) < 1:
        return f"{min(shape.points)} points per lane were requested"
    if (points := math.prod(shape.points)) > merging.MOST_POINTS:
        return (
            f"wanted at most {merging.MOST_POINTS} points per lane, each of which is written out, "
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
    has_arrays = False
    for s in statements(body):
        match s:
            case ir.Assign() | ir.If() | ir.LoadElement() | ir.StoreElement():
                pass
            case ir.DeclareArray() | ir.SetElement():
                has_arrays = True
            case ir.For():
                if varying & {n for e in (s.start, s.stop, s.step) for n in reads(e)}:
                    return f"how often a loop runs depends on {last}, and lanes run together"
                if s.variable in varying:
                    return simd_operations.counts_apart(s)
            case _:
                return simd_operations.why_not_together(s)
        for e in expressions(s):
            if varying.isdisjoint(reads(e)):
                continue
            if reason := simd_operations.problem(e, varying, arrays=True):
                return reason
    if has_arrays and (reason := simd_operations.array_problem(body, varying)):
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
                f"{a.array} holds booleans, which take a byte each in memory and a bit each in "
                "a register"
            )
        if a.way(last) == "next":
            continue
        if not has_arrays and _is_turned(a, loops) and shape.points[-2] == shape.total:
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
    begun = None if down else line_starts(wrapping.inside(kernel), shape)
    if begun is not None:
        line = begun.line
        counts[-1] = build.ceil_divide(build.add(loops[-1].extent, line - 1), shape.side(rank - 1))
    phase = PHASE if rank == 1 else ROW_PHASE
    most = ROUND if walked is None or not down else ROWS // shape.side(walked)
    head, total, walk = numbers(loops, counts, walked, max(1, most))
    lane = ir.Assign(thread_of(loops[-1].variable), ir.Local(THREAD, kind))

    def first(d: int) -> ir.Statement:
        place = build.multiply(ir.Local(number_of(loops[d].variable), kind), shape.side(d))
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


def tested_before(walk: ir.For) -> ir.Block:
    """A walk along a row, with the tests that depend on the row made before it.

    for $x.number: if 0 < $y.first and 0 < $x.first: A   ->   $tested.1 = 0 < $y.first; for
    $x.number: if $tested.1 and 0 < $x.first: A
    """
    changed = written_in((walk,))
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
        name = own(f"{loops[d].variable}.round") if d == walked else number_of(loops[d].variable)
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
        ir.For(number_of(loops[walked].variable), start, end, ir.Literal(1, kind), ()),
    )
