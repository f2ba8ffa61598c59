"""Make variables of the elements of a local array whose every index is a literal: registers instead
of addressed memory.

    a: f32[3]; a[0] = x; y = a[0] + a[2]   ->   a.0 = 0.0; a.2 = 0.0; a.0 = x; y = a.0 + a.2
An array with an index known only at run time stays as it is, and so does one with an index outside
of it.
"""

from __future__ import annotations

from lanewise.ir import nodes as ir
from lanewise.ir.functions import map_functions
from lanewise.ir.traverse import (
    expressions,
    flat_map,
    rewrite,
    rewrite_statement,
    statements,
    subexpressions,
)
from lanewise.language.types import LocalArray, Scalar

Uses = dict[str, set[int]]  # the elements of each replaced array that occur


def apply(kernel: ir.Kernel) -> ir.Kernel:
    """Replace the arrays of every function of the kernel."""
    return map_functions(kernel, replace_arrays)


def replace_arrays(f: ir.Function) -> ir.Function:
    """Replace the arrays of one function where all their indices are literals."""
    uses = _replaceable(f.body)
    body = flat_map(f.body, lambda s: _statement(s, uses)) if uses else f.body
    return ir.Function(f.name, f.parameters, f.results, body, f.location)


def _replaceable(block: ir.Block) -> Uses:
    lengths = {s.name: s.type.length for s in statements(block) if isinstance(s, ir.DeclareArray)}
    uses: Uses = {name: set() for name in lengths}
    for name, index in _accesses(block):
        if not isinstance(index, ir.Literal) or not 0 <= index.value < lengths[name]:
            uses.pop(name, None)
        elif name in uses:
            uses[name].add(int(index.value))
    return uses


def _accesses(block: ir.Block) -> list[tuple[str, ir.Expression]]:
    """(array, index) of every element that is read or written."""
    elements = [(s.array, s.index) for s in statements(block) if isinstance(s, ir.SetElement)]
    for s in statements(block):
        elements += [
            (x.array, x.index)
            for e in expressions(s)
            for x in subexpressions(e)
            if isinstance(x, ir.Element)
        ]
    return elements


def _statement(s: ir.Statement, uses: Uses) -> ir.Block:
    s = rewrite_statement(s, lambda e: rewrite(e, lambda x: _expression(x, uses)), lambda b: b)
    match s:
        case ir.DeclareArray(name=name, type=LocalArray(element=element)) if name in uses:
            return tuple(
                ir.Assign(variable(name, i), _zero(element), s.location) for i in sorted(uses[name])
            )
        case ir.SetElement(array=array, index=ir.Literal(value=index)) if array in uses:
            return (ir.Assign(variable(array, int(index)), s.value, s.location),)
        case _:
            return (s,)


def _expression(e: ir.Expression, uses: Uses) -> ir.Expression:
    match e:
        case ir.Element(array=array, index=ir.Literal(value=index)) if array in uses:
            return ir.Local(variable(array, int(index)), e.type, e.location)
        case _:
            return e


def variable(array: str, index: int) -> str:
    """The variable of one element; no component of a vector has such a name."""
    return f"{array}.{index}"


def _zero(element: Scalar) -> ir.Literal:
    return ir.Literal(0.0 if element.is_float else 0 if element.is_integer else False, element)
