"""Divide the elements of a kernel that adds floats in order into parts with their own sums, which
are added in the order of the parts.

    kernel f: parallel for $i in range($count): scatter add sums[place], v
->  kernel f, 4 parts with their own sums: parallel for $i in range($count): ...
The kernel's code stays as it is. The launch divides its range, runs the parts on as many threads as
there are, and adds what they have (`primitives/sums_in_parts.py`): the sums depend on the number of
parts alone.
"""

from __future__ import annotations

from dataclasses import replace

from lanewise.ir import nodes as ir
from lanewise.ir.traverse import adds_in_order
from lanewise.passes.base import refuse

NAME = "splitting of sources"


def legal(kernel: ir.Kernel, parts: int) -> str | None:
    """Why the pass does not apply, or None."""
    if parts < 1:
        return f"{parts} parts were requested"
    if not adds_in_order(kernel.body):
        return "it adds no floats to elements in order"
    return None


def apply(kernel: ir.Kernel, parts: int) -> ir.Kernel:
    """The kernel in parts."""
    if reason := legal(kernel, parts):
        raise refuse(NAME, kernel, reason)
    return replace(kernel, parts=parts)
