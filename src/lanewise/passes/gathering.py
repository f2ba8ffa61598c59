"""Read the records of an array through an array of indices: element i of the kernel takes record
`$index[i]`.

    load body[$i]: position.x, mass
->  load $index[$i]: $place; load body[$place]: position.x, mass The language itself has no such
access yet. The ladder of memory accesses uses this one, and so can search structures.
"""

from __future__ import annotations

from dataclasses import replace

from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.ir.traverse import flat_map, statements
from lanewise.ir.values import value_array
from lanewise.language.types import I32
from lanewise.passes.base import refuse
from lanewise.support.articles import an

INDEX, PLACE = own("index"), own("place")


def legal(kernel: ir.Kernel, array: str) -> str | None:
    """Why the pass does not apply, or None."""
    if not kernel.pattern.one_record:
        return (
            f"it is {an(kernel.pattern.name)} kernel, and only an elementwise one reads a record "
            "an element"
        )
    gathered = next((a for a in kernel.arrays if a.name == array), None)
    if gathered is None:
        return f"it has no array {array}"
    if gathered.written:
        return f"it writes {array}: two elements might have the same index"
    if any(a.name == INDEX for a in kernel.arrays):
        return "it reads through an array of indices already"
    if not _loads(kernel, array):
        return f"it reads nothing of {array}"
    if kernel.grid is not None:
        return "its elements are already mapped to threads"
    return None


def apply(kernel: ir.Kernel, array: str) -> ir.Kernel:
    """LoadRecord `array` at the places that a new argument `$index` (one i32 an element, 0 to the
    array's length - 1) holds.
    """
    if reason := legal(kernel, array):
        raise refuse("gathering", kernel, reason)
    place = ir.Local(PLACE, I32)

    def visit(s: ir.Statement) -> ir.Block:
        if not (isinstance(s, ir.LoadRecord) and s.array == array):
            return (s,)
        return (ir.LoadRecord(INDEX, s.index, (("value", PLACE),)), replace(s, index=place))

    return replace(
        kernel,
        body=flat_map(kernel.body, visit),
        arrays=(*kernel.arrays, value_array(INDEX, I32, written=False)),
    )


def _loads(kernel: ir.Kernel, array: str) -> bool:
    return any(isinstance(s, ir.LoadRecord) and s.array == array for s in statements(kernel.body))
