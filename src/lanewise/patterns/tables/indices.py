"""Arithmetic that makes an index stays within its type, so that passes and compilers may take sums
for sums.

    i = y * 2; load a[i + 1, x]: a_1   ->   the same, with `bounded` sums and products
A sum that wrapped could still be a place in the array. The interpreter reports one. What an index
is taken from by other operations (`a[h & 255]`, `a[h % n]`) may wrap as elsewhere.
"""

from __future__ import annotations

from dataclasses import replace

from lanewise.ir import nodes as ir
from lanewise.ir.traverse import rewrite_statement, statements


def with_bounded_indices(block: ir.Block) -> ir.Block:
    """Mark the sums and products that indices are made of, also those of variables on the way."""
    names: set[str] = set()
    while True:
        before = len(names)
        for s in statements(block):
            for e in _roots(s, names):
                _collect(e, names)
        if len(names) == before:
            return _marked(block, names)


def _roots(s: ir.Statement, names: set[str]) -> tuple[ir.Expression, ...]:
    """The expressions of a statement that make indices."""
    match s:
        case ir.LoadElement() | ir.StoreElement() | ir.ScatterElement():
            return s.indices
        case ir.Assign() if s.name in names:
            return (s.value,)
        case ir.For() if s.variable in names:
            return (s.start, s.stop, s.step)
        case _:
            return ()


def _parts(e: ir.Expression) -> tuple[ir.Expression, ...]:
    """What an expression adds up, multiplies or chooses from; nothing for other operations."""
    match e:
        case ir.Binary(operator="+" | "-" | "*", left=left, right=right) if e.type.kind == "i":
            return left, right
        case ir.Unary(operator="-", operand=operand) if e.type.kind == "i":
            return (operand,)
        case ir.Cast(operand=operand) if (
            e.type.is_integer and operand.type.is_integer and e.type.size >= operand.type.size
        ):
            return (operand,)
        case ir.Call(intrinsic="min" | "max" | "clamp", arguments=arguments):
            return arguments
        case ir.Select(if_true=one, if_false=other):
            return one, other
        case _:
            return ()


def _collect(e: ir.Expression, names: set[str]) -> None:
    if isinstance(e, ir.Local):
        names.add(e.name)
    for part in _parts(e):
        _collect(part, names)


def _bounded(e: ir.Expression) -> ir.Expression:
    match e:
        case ir.Binary(operator="+" | "-" | "*") if _parts(e):
            return replace(e, left=_bounded(e.left), right=_bounded(e.right), bounded=True)
        case ir.Unary() | ir.Cast() if _parts(e):
            return replace(e, operand=_bounded(e.operand))
        case ir.Call() if _parts(e):
            return replace(e, arguments=tuple(map(_bounded, e.arguments)))
        case ir.Select():
            return replace(e, if_true=_bounded(e.if_true), if_false=_bounded(e.if_false))
        case _:
            return e


def _marked(block: ir.Block, names: set[str]) -> ir.Block:
    done: list[ir.Statement] = []
    for s in block:
        s = rewrite_statement(s, lambda e: e, lambda b: _marked(b, names))
        match s:
            case ir.LoadElement() | ir.StoreElement() | ir.ScatterElement():
                s = replace(s, indices=tuple(map(_bounded, s.indices)))
            case ir.Assign() if s.name in names:
                s = replace(s, value=_bounded(s.value))
            case ir.For() if s.variable in names:
                s = replace(
                    s, start=_bounded(s.start), stop=_bounded(s.stop), step=_bounded(s.step)
                )
            case _:
                pass
        done.append(s)
    return tuple(done)
