"""Reads of tables as the passes see them: one place in memory, row after row.

load t[y, x]: t_1   ->   $t.place1 = y * $t.shape1 + x; load t[$t.place1]: t_1
Before that a read has an index for each dimension, by which it is proved, tested and explained.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import length_of, own
from lanewise.ir.traverse import flat_map, statements, used_in
from lanewise.ir.values import pairs
from lanewise.language import types as t
from lanewise.language.array_types import ArrayType


def with_flat_tables(f: ir.Function, tables: Mapping[str, ArrayType]) -> ir.Function:
    """A function that reads tables at places.

    Lengths that this takes become parameters, in front of lanewise's own.
    """
    if not tables or not any(isinstance(s, ir.LoadElement) for s in statements(f.body)):
        return f
    numbers = count(1)

    def visit(s: ir.Statement) -> ir.Block:
        if not isinstance(s, ir.LoadElement):
            return (s,)
        place = build.index_of(s.indices[0], t.I32)
        for d, e in enumerate(s.indices[1:], 1):
            row = build.multiply(place, ir.Local(length_of(s.array, d), t.I32))
            place = build.add(row, build.index_of(e, t.I32))
        where = ir.Local(own(f"{s.array}.place{next(numbers)}"), t.I32)
        load = ir.LoadRecord(s.array, where, pairs(s.name, tables[s.array].element))
        return ir.Assign(where.name, place, s.location), load

    body = flat_map(f.body, visit)
    names = {p.name for p in f.parameters}
    used = used_in(body)
    lengths = (length_of(n, d) for n, kind in tables.items() for d in range(kind.rank))
    new = tuple(ir.Parameter(n, t.I32) for n in lengths if n in used and n not in names)
    return replace(f, body=body, parameters=(*new, *f.parameters))
