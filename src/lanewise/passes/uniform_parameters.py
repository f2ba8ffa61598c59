"""Where the values lie that all elements share: arguments of the launch, or an array in global
memory.

"constant"   kernel f(..., softening2: f32): ...          arguments of a launch lie in constant
memory: nothing changes "global" ->  kernel f(..., $uniforms): load $uniforms[0]:
$uniform.softening2 = .softening2; ... The array has one record with a leaf for each value; every
thread loads it at its start. Counts of elements stay arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.ir.traverse import rename
from lanewise.language.record import Leaf
from lanewise.layouts import AoS
from lanewise.passes.base import refuse

Choice = Literal["constant", "global"]
UNIFORMS = own("uniforms")


def legal(kernel: ir.Kernel, choice: Choice) -> str | None:
    """Why the pass does not apply, or None."""
    if choice == "constant":
        return None
    if choice != "global":
        return f"'constant' or 'global' was wanted, found {choice!r}"
    if kernel.grid is None:
        return (
            "uniform arguments are passed in registers on a CPU; only the threads of a GPU load "
            "them"
        )
    return None if kernel.uniforms else "it has no values that all elements share"


def apply(kernel: ir.Kernel, choice: Choice) -> ir.Kernel:
    """Move the uniforms of a kernel that is mapped to threads; raises `PlanError` when it has none.

    Layouts are not lowered yet.
    """
    if reason := legal(kernel, choice):
        raise refuse("uniforms in global memory", kernel, reason)
    if choice == "constant":
        return kernel
    leaves = tuple(Leaf(u.name, u.type) for u in kernel.uniforms)
    names = {u.name: own(f"uniform.{u.name}") for u in kernel.uniforms}
    load = ir.LoadRecord(UNIFORMS, ir.Literal(0, kernel.counts[0].type), tuple(names.items()))
    array = ir.ArrayArgument(UNIFORMS, leaves, AoS().arrange(leaves))
    return replace(
        kernel,
        arrays=(*kernel.arrays, array),
        uniforms=(),
        body=(load, *rename(kernel.body, names)),
    )


def packed(
    kernel: ir.Kernel, values: Mapping[str, Any]
) -> tuple[ir.ArrayArgument, np.ndarray[Any, Any]] | None:
    """The array of uniforms of a kernel, and its bytes for these values (by name); None when it has
    no such array.
    """
    array = next((a for a in kernel.arrays if a.name == UNIFORMS), None)
    if array is None:
        return None
    data = np.zeros(array.arrangement.nbytes(1), np.uint8)
    for leaf in array.leaves:
        start = array.arrangement.address(leaf.name, 0, 1)
        data[start : start + leaf.type.size].view(leaf.type.dtype)[0] = values[leaf.name]
    return array, data
