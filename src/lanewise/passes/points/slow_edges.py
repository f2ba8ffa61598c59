"""Blocks at an edge that take long, which is a reason for small ones."""

from __future__ import annotations

from lanewise.analysis.affine import nest
from lanewise.ir import nodes as ir
from lanewise.passes.points import bringing_back, early_loads, guards, one_by_one
from lanewise.passes.points.shape import Shape


def has_slow_edges(kernel: ir.Kernel, shape: Shape) -> bool:
    """Whether tests that a user writes, or indices that are brought back, make blocks at the edges
    compute the points of a thread one after the other.
    """
    loops, body = nest(kernel)
    around, inner, point = bringing_back.divided(kernel, shape)
    names = ({p.name for p in kernel.counts}, {p.name for p in kernel.uniforms})
    conditions, _ = guards.decided(inner, loops, shape, *names)
    return (
        bool(conditions or around)
        and one_by_one.legal(point, shape)
        and early_loads.apply(kernel, body, loops, shape) is None
    )
