"""Shared memory of a block, as a lowered kernel declares it."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from lanewise.ir import nodes as ir


def shared_groups(kernel: ir.Kernel) -> list[tuple[ir.BufferArgument, ...]]:
    """The buffers in shared memory, those that view the same memory together.

    A group of leaves of several types has a view for each; the one with the largest elements, which
    is aligned for all, comes first.
    """
    groups: dict[tuple[str, int], list[ir.BufferArgument]] = {}
    for b in kernel.buffers:
        if b.space == "shared":
            groups.setdefault((b.array, b.buffer), []).append(b)
    return [tuple(sorted(views, key=_unit, reverse=True)) for views in groups.values()]


def group_bytes(views: tuple[ir.BufferArgument, ...]) -> int:
    """How much memory the views of one group take."""
    return max(b.length * _unit(b) for b in views)


def shared_bytes(kernel: ir.Kernel) -> int:
    """Shared memory of a block in bytes."""
    return sum(map(group_bytes, shared_groups(kernel)))


def array_bytes(arrays: Iterable[ir.ArrayArgument]) -> int:
    """The same of arrays of numbers, before a kernel is lowered."""
    return sum(prod(map(int, a.shape)) * a.leaves[0].type.size for a in arrays)


def _unit(b: ir.BufferArgument) -> int:
    return b.type.size * b.lanes
