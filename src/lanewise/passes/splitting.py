"""Divide the tiles of the sources over several blocks (parts), and add their sums in a second
kernel, in order.

    for tile in range(a, b): ...; store result[i]
->  for tile in range(max(a, first), min(b, last)): ...; store partial[part * n + i]        then:
result[i] = sum of partial[part * n + i] A part leaves the state of each reduction, which for sums
is the result itself; merging states is associative and commutative, so that parts may have any
sources of a target (for sums up to rounding, which the fixed order repeats). It costs scratch
memory of one result a target and part; it serves launches with so few targets that slices cannot
fill the GPU.
"""

from __future__ import annotations

from dataclasses import replace

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import MARK, copy_of, own, partial_of
from lanewise.ir.pattern import COMBINE
from lanewise.ir.reductions import Accumulator
from lanewise.ir.traverse import flat_map, reads, statements
from lanewise.language.types import F64
from lanewise.passes.base import find_parallel, has_tiles, refuse
from lanewise.passes.states import is_plain, of_array, state_array

PART, FIRST, LAST = own("part"), own("first.tile"), own("last.tile")


def legal(kernel: ir.Kernel, parts: int) -> str | None:
    """Why the pass does not apply, or None."""
    if parts < 1:
        return f"{parts} parts were requested"
    if not has_tiles(kernel):
        return "its sources are not cut into tiles"
    if find_parallel(kernel, own("block")) is None:
        return "its targets are not mapped to blocks"
    return None


def apply(kernel: ir.Kernel, parts: int) -> tuple[ir.Kernel, ir.Kernel]:
    """The kernel that leaves partial states in `$partial.*` arrays, and the kernel that merges
    them.
    """
    if reason := legal(kernel, parts):
        raise refuse("splitting of sources", kernel, reason)
    written = [a for a in kernel.arrays if a.written and a.space == "global"]
    partial = {a.name: state_array(kernel, a, partial_of(a.name)) for a in written}
    count = kernel.counts[0]
    part, first, last = (ir.Local(n, count.type) for n in (PART, FIRST, LAST))
    tiles = next(
        s
        for s in reversed(list(statements(kernel.body)))
        if isinstance(s, ir.For) and s.role == "tiles"
    ).stop
    per_part = build.ceil_divide(tiles, parts)
    bounds = (
        ir.Assign(FIRST, build.multiply(part, per_part)),
        ir.Assign(LAST, build.add(first, per_part)),
    )

    def visit(s: ir.Statement) -> ir.Block:
        match s:
            case ir.For(role="tiles"):
                return (
                    replace(
                        s, start=build.maximum(s.start, first), stop=build.minimum(s.stop, last)
                    ),
                )
            case ir.StoreRecord() if s.array in partial:
                place = build.add(build.multiply(part, ir.Local(count.name, count.type)), s.index)
                return (
                    replace(
                        s, array=partial[s.array].name, index=place, writes=_state_writes(kernel, s)
                    ),
                )
            case ir.Parallel() if s.variable == own("block"):
                return (ir.Parallel(PART, ir.Literal(parts, count.type), (*bounds, s)),)
            case _:
                return (s,)

    arrays = tuple(partial.get(a.name, a) for a in kernel.arrays)
    length = build.multiply(ir.Local(count.name, count.type), parts)
    scratch = tuple(ir.Scratch(p.name, length) for p in partial.values())
    split = replace(kernel, arrays=arrays, body=flat_map(kernel.body, visit), scratch=scratch)
    return split, _combine(kernel, written, partial, parts)


def _state_writes(kernel: ir.Kernel, s: ir.StoreRecord) -> tuple[tuple[str, ir.Expression], ...]:
    """The states instead of the results that are made of them."""
    reductions = of_array(kernel, s.array)
    if is_plain(reductions):
        return s.writes
    copies = {copy_of(n) for _, e in s.writes for n in reads(e)} - {""}
    if copies:
        (copy,) = copies
        reductions = tuple(a.copy(int(copy)) for a in reductions)
    return tuple((f"s{n}", x) for n, x in enumerate(x for a in reductions for x in a.state))


def _combine(
    kernel: ir.Kernel,
    written: list[ir.ArrayArgument],
    partial: dict[str, ir.ArrayArgument],
    parts: int,
) -> ir.Kernel:
    count = kernel.counts[0]
    n, i, part = (ir.Local(name, count.type) for name in (count.name, own("i"), PART))
    place, all_parts = build.add(build.multiply(part, n), i), ir.Literal(parts, part.type)
    body: list[ir.Statement] = []
    for a in written:
        reductions = of_array(kernel, a.name)
        if is_plain(reductions) and all(r.reduction.adds for r in reductions):
            body += add_parts(a, partial[a.name].name, place, part, i, all_parts)
        else:
            body += merge_parts(a, partial[a.name], reductions, place, part, i, all_parts)
    arrays = (*(replace(p, written=False) for p in partial.values()), *written)
    loop = ir.Parallel(i.name, n, tuple(body))
    return ir.Kernel(
        f"{kernel.name}_combine", COMBINE, arrays, (), (count,), (loop,), location=kernel.location
    )


def merge_parts(
    a: ir.ArrayArgument,
    partial: ir.ArrayArgument,
    reductions: tuple[Accumulator, ...],
    place: ir.Expression,
    part: ir.Local,
    i: ir.Local,
    parts: ir.Expression,
    *,
    unroll: int = 1,
) -> ir.Block:
    """Merge the states of the parts of one element of one result array, in order, and store what
    they finish as.
    """
    bare = a.name.removeprefix(MARK)
    others = tuple(ir.Local(own(f"piece.{bare}.{x.name}"), x.type) for x in partial.leaves)
    load = ir.LoadRecord(
        partial.name,
        place,
        tuple((x.name, o.name) for x, o in zip(partial.leaves, others, strict=True)),
    )
    merges, first = list[ir.Statement](), 0
    for r in reductions:
        merges += r.merge(others[first : first + len(r.state)])
        first += len(r.state)
    zero, one = ir.Literal(0, part.type), ir.Literal(1, part.type)
    loop = ir.For(part.name, zero, parts, one, (load, *merges), role="slices", unroll=unroll)
    results = zip(
        (x.name for x in a.leaves), (e for r in reductions for e in r.finish()), strict=True
    )
    return (
        *(s for r in reductions for s in r.start()),
        loop,
        ir.StoreRecord(a.name, i, tuple(results)),
    )


def add_parts(
    a: ir.ArrayArgument,
    partial: str,
    place: ir.Expression,
    part: ir.Local,
    i: ir.Local,
    parts: ir.Expression,
    *,
    unroll: int = 1,
    wide: bool = False,
) -> ir.Block:
    """Sum the parts of one element of one result array, in order; `wide` adds floats in float64."""
    bare = a.name.removeprefix(MARK)
    totals = {
        x.name: ir.Local(own(f"total.{bare}.{x.name}"), F64 if wide and x.type.is_float else x.type)
        for x in a.leaves
    }
    pieces = {x.name: ir.Local(own(f"piece.{bare}.{x.name}"), x.type) for x in a.leaves}
    clear = tuple(
        ir.Assign(x.name, ir.Literal(0.0 if x.type.is_float else 0, x.type))
        for x in totals.values()
    )
    load = ir.LoadRecord(partial, place, tuple((leaf, x.name) for leaf, x in pieces.items()))
    adds = tuple(
        ir.Assign(x.name, ir.Binary("+", x, build.cast(pieces[leaf], x.type), x.type))
        for leaf, x in totals.items()
    )
    zero, one = ir.Literal(0, part.type), ir.Literal(1, part.type)
    loop = ir.For(part.name, zero, parts, one, (load, *adds), role="slices", unroll=unroll)
    return (
        *clear,
        loop,
        ir.StoreRecord(
            a.name, i, tuple((x.name, build.cast(totals[x.name], x.type)) for x in a.leaves)
        ),
    )
