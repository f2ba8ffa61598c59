"""Blocks of points that begin with lines of memory, so that whole lines are stored at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lanewise.analysis.affine import AffineAccess, accesses
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.language.target import LINE, LONG_IN_ORDER
from lanewise.language.types import BOOL, I64
from lanewise.passes.points import guards, merging
from lanewise.passes.points.shape import Shape, number_of

# elements of a line before the first one that is written, and before that of each row
PHASE = own("phase")
ROW_PHASE = own("row.phase")
# whether it is written past the caches: else masks at both ends of rows cost more than they save
FAR = own("far")
LONG = 128  # lines of a row


@dataclass(frozen=True, slots=True)
class LineStarts:
    """Blocks that begin with lines of memory: the elements of one, and what finds how many of them
    lie before a row.

    ordered: the array that is written, where blocks follow each other as its elements do.
    """

    line: int
    found: ir.Block
    ordered: str | None


def line_starts(kernel: ir.Kernel, shape: Shape) -> LineStarts | None:
    """How blocks begin with lines of memory; None where it matters not.

    Registers that are stored past the caches are lines then, where they would be parts of two.
    Legal for any kernel; it helps one that writes every element of a row of a single array, which
    nothing reads. Elements may be left out where blocks are in order.
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
        return LineStarts(line, (found,), name)
    phase = (
        phase_of_row(array, loops) if ordered else row_phase(kernel, array, loops[-1], ROW_PHASE)
    )
    far = (ir.Assign(FAR, ir.Builtin("far", BOOL)),) if ordered else ()
    return LineStarts(line, (found, *far, phase), name)


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
        place = build.add(row, build.index_of(ir.Local(number_of(loop.variable), kind), I64))
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
    are streams as well.
    """
    begun = line_starts(kernel, shape)
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
