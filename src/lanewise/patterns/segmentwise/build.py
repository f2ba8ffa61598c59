"""segmentwise: for every cell, the sum of a function over the items of its segment.

parallel for cell: segment = cell / dense; place = cell - segment * dense
    load template[place]; sum = 0
    for item in range(first[segment], last[segment]): load sft[item]; sum += f(template, sft)
    store result[place * segments + segment]
"""

from __future__ import annotations

from dataclasses import dataclass

from lanewise.frontend.function import Lowered
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import identifier
from lanewise.ir.values import load_used, pairs, record_array, uniform_leaves, value_array
from lanewise.language import types as t
from lanewise.language.record import Record
from lanewise.language.types import I32, I64, Scalar
from lanewise.layouts import Layout
from lanewise.patterns.results import result_arrays, sum_name
from lanewise.patterns.segmentwise.names import (
    CELL,
    CELLS,
    DENSE,
    FIRST,
    ITEM,
    ITEMS,
    LAST,
    PLACE,
    SEGMENT,
    SEGMENTS,
    first_of,
    last_of,
)
from lanewise.patterns.segmentwise.pattern import SEGMENTWISE
from lanewise.support.errors import CompileError

Owner = tuple[str, Record, Layout]


@dataclass(frozen=True, slots=True)
class SegmentwiseArguments:
    """The record of the dense axis (parameter name, record, layout), if there is one, that of an
    item, rows of values, and uniforms.
    """

    dense: Owner | None
    item: Owner
    rows: dict[str, t.ValueType]
    uniforms: dict[str, t.ValueType]


def build_segmentwise(
    lowered: Lowered, arguments: SegmentwiseArguments, index: Scalar
) -> ir.Kernel:
    """The reference kernel: one cell at a time, its items in order.

    Raises `CompileError` for results that cannot be summed.
    """
    _check(lowered)
    f = lowered.function
    cells, segments, dense, items = (
        ir.Parameter(n, index) for n in (CELLS, SEGMENTS, DENSE, ITEMS)
    )
    cell, segment, place = (ir.Local(n, index) for n in (CELL, SEGMENT, PLACE))
    arrays: list[ir.ArrayArgument] = [value_array(n, I64, written=False) for n in (FIRST, LAST)]
    head: list[ir.Statement] = []
    where: ir.Expression = segment
    if arguments.dense is not None:
        n = ir.Local(DENSE, index)
        head.append(ir.Assign(SEGMENT, build.divide(cell, n)))
        head.append(ir.Assign(PLACE, build.subtract(cell, build.multiply(segment, n))))
        arrays.append(_array(arguments.dense))
        head += load_used(f, *arguments.dense[:2], place)
        where = build.add(build.multiply(place, ir.Local(SEGMENTS, index)), segment)
    read, sums = _sums(f, arguments, segment)
    stores: list[ir.Statement] = []
    written: list[ir.ArrayArgument] = []
    for name, kind in result_arrays(lowered):
        written.append(value_array(name, kind, written=True))
        writes = tuple(
            (leaf, ir.Local(sum_name(v), t.scalar_of(kind))) for leaf, v in pairs(name, kind)
        )
        stores.append(ir.StoreRecord(name, where, writes))
    over, extent = (CELL, CELLS) if arguments.dense is not None else (SEGMENT, SEGMENTS)
    used = {p.name for p in f.parameters}
    beyond = (ir.Parameter(f"{row}.beyond", t.I64) for row in arguments.rows)
    counts = (cells, segments, dense, items) if arguments.dense is not None else (segments, items)
    return ir.Kernel(
        identifier(f.name),
        SEGMENTWISE,
        (*arrays, *read, *written),
        uniform_leaves(f, arguments.uniforms) + tuple(p for p in beyond if p.name in used),
        counts,
        (ir.Parallel(over, ir.Local(extent, index), (*head, *sums, *stores)),),
        location=f.location,
    )


def _sums(
    f: ir.Function, arguments: SegmentwiseArguments, segment: ir.Local
) -> tuple[list[ir.ArrayArgument], ir.Block]:
    """What a function gives for the items of a segment, summed up in their order; and the arrays
    that this reads in addition to the segment's ends.
    """
    index, item = segment.type, ir.Local(ITEM, segment.type)
    arrays = [_array(arguments.item)]
    inside: list[ir.Statement] = [*load_used(f, *arguments.item[:2], item)]
    used = {p.name for p in f.parameters}
    for row, kind in arguments.rows.items():
        if any(f"{row}.{part}" in used for part in ("first", "length", "beyond")):
            arrays += [value_array(n, I64, written=False) for n in (first_of(row), last_of(row))]
            arrays.append(value_array(row, kind, written=False))
            inside += _row(row, item)
    results = [ir.Local(f"${r.name}", r.type) for r in f.results]
    sums = [ir.Local(sum_name(r.name), r.type) for r in results]
    parameters = tuple(ir.Local(p.name, p.type) for p in f.parameters)
    inside.append(ir.Apply(f, parameters, tuple(r.name for r in results)))
    inside += [ir.Assign(s.name, build.plus(s, r)) for s, r in zip(sums, results, strict=True)]
    first, last = (build.cast(ir.Local(n, I64), index) for n in (FIRST, LAST))
    return arrays, (
        ir.LoadRecord(FIRST, segment, (("value", FIRST),)),
        ir.LoadRecord(LAST, segment, (("value", LAST),)),
        *(ir.Assign(s.name, build.zero(s.type)) for s in sums),
        ir.For(ITEM, first, last, ir.Literal(1, index), tuple(inside), role="sources"),
    )


def _check(lowered: Lowered) -> None:
    if lowered.uses_same:
        raise CompileError(
            "lw.same asks about the pairs of a pairwise function", lowered.function.location,
            found="a segmentwise function", wanted="fields that say which item it is",
        )  # fmt: skip
    for kind in lowered.results:
        if t.scalar_of(kind) == t.BOOL:
            raise CompileError(
                "the results of a segmentwise function are summed", lowered.function.location,
                found=f"a result of type {kind}", wanted="numbers",
                hint="lw.i32(condition) counts the items for which it holds",
            )  # fmt: skip


def _array(owner: Owner) -> ir.ArrayArgument:
    name, record, layout = owner
    return record_array(name, record.leaves, layout, written=False)


def _row(row: str, item: ir.Local) -> ir.Block:
    """Where the row of an item begins, and how long it is."""
    first, last = (ir.Local(f"{row}.{end}", I64) for end in ("first", "last"))
    length = ir.Cast(ir.Binary("-", last, first, I64, bounded=True), I32)
    return (
        ir.LoadRecord(first_of(row), item, (("value", first.name),)),
        ir.LoadRecord(last_of(row), item, (("value", last.name),)),
        ir.Assign(f"{row}.length", length),
    )
