"""Plain arrays as arrays of records: an array of scalars has one leaf `value`, an array of vectors
the leaves x, y, z, w.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from math import prod

from lanewise.ir import nodes as ir
from lanewise.language import types as t
from lanewise.language.record import Leaf, Record
from lanewise.layouts import AoS, Layout


def value_leaves(value_type: t.ValueType) -> tuple[Leaf, ...]:
    """The leaves of one element of an array of values."""
    match value_type:
        case t.Scalar():
            return (Leaf("value", value_type),)
        case t.Vector():
            return tuple(Leaf(t.component(i), value_type.element) for i in range(value_type.length))


@cache
def value_array(name: str, value_type: t.ValueType, *, written: bool) -> ir.ArrayArgument:
    """The argument for a contiguous array of shape (n,) or (n, components)."""
    leaves = value_leaves(value_type)
    return ir.ArrayArgument(name, leaves, AoS().arrange(leaves), written)


def shared_values(name: str, kind: t.Scalar, *shape: int) -> ir.ArrayArgument:
    """An array of scalars in the memory that the threads of a block share."""
    plain = value_array(name, kind, written=True)
    return replace(plain, space="shared", length=prod(shape), shape=shape)


def record_array(
    name: str, leaves: tuple[Leaf, ...], layout: Layout, *, written: bool
) -> ir.ArrayArgument:
    """The argument for an array of records in a layout."""
    return ir.ArrayArgument(name, leaves, layout.arrange(leaves), written)


def load_used(f: ir.Function, name: str, record: Record, index: ir.Local) -> ir.Block:
    """The load of what a function uses of its record parameter `name`, if anything."""
    used = {p.name for p in f.parameters}
    reads = tuple((x.name, f"{name}.{x.name}") for x in record.leaves if f"{name}.{x.name}" in used)
    return (ir.LoadRecord(name, index, reads),) if reads else ()


def pairs(name: str, value_type: t.ValueType) -> tuple[tuple[str, str], ...]:
    """(leaf, variable) for a plain array whose element is called `name` in the kernel."""
    variables = t.leaves(name, value_type)
    return tuple(
        (leaf.name, variable)
        for leaf, variable in zip(value_leaves(value_type), variables, strict=True)
    )


def uniform_leaves(f: ir.Function, uniforms: dict[str, t.ValueType]) -> tuple[ir.Parameter, ...]:
    """The scalars that are the same for all elements, those that the function uses."""
    used = {p.name for p in f.parameters}
    return tuple(
        ir.Parameter(leaf, t.scalar_of(kind))
        for name, kind in uniforms.items()
        for leaf in t.leaves(name, kind)
        if leaf in used
    )
