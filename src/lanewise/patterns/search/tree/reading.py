"""Integers of 32 bits in memory, as indices of a kernel."""

from __future__ import annotations

from lanewise.ir import nodes as ir
from lanewise.language.types import I32

Fields = tuple[tuple[str, ir.Local], ...]


def read_whole(array: str, place: ir.Expression, fields: Fields) -> ir.Block:
    """Statements that read fields of a record, each into its variable, whose type is that of
    indices.
    """
    if all(x.type == I32 for _, x in fields):
        return (ir.LoadRecord(array, place, tuple((n, x.name) for n, x in fields)),)
    short = [ir.Local(f"{x.name}.short", I32) for _, x in fields]
    reads = tuple((n, s.name) for (n, _), s in zip(fields, short, strict=True))
    wide = [ir.Assign(x.name, ir.Cast(s, x.type)) for (_, x), s in zip(fields, short, strict=True)]
    return (ir.LoadRecord(array, place, reads), *wide)
