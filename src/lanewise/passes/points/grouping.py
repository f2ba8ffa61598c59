"""Neighbouring points as one: what they all read is loaded once, before threads share the rounds of
their loops.

    parallel for y: s = 0; for k: load a[y, k]: u; load x[k]: v; s += u * v; store c[y] = s
->  parallel for $y.group: y#0 = ...; y#1 = ...
      for k: load a[y#0, k]: u#0; load a[y#1, k]: u#1; load x[k]: v; s#0 += u#0 * v; s#1 += u#1 * v;
      ...
The result is a reference kernel again, with fewer points. Points beyond the end take the place of
the last one, and store what it stores a second time, which is why no array may be both read and
written.
"""

from __future__ import annotations

from dataclasses import replace

from lanewise.analysis.affine import nest
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import numbered, own
from lanewise.ir.spreading import control, spread
from lanewise.ir.traverse import statements
from lanewise.passes.base import refuse
from lanewise.passes.points.merging import Copies


def legal(kernel: ir.Kernel, points: int) -> str | None:
    """Why the pass does not apply, or None."""
    loops, body = nest(kernel)
    last = loops[-1]
    if points < 1:
        return f"{points} points were requested"
    if isinstance(last.extent, ir.Literal):
        return "it has one point"
    read = {s.array for s in statements(body) if isinstance(s, ir.LoadElement)}
    for s in statements(body):
        if isinstance(s, ir.ScatterElement):
            return "it scatters, and the last point would do so several times"
        if isinstance(s, ir.StoreElement) and s.array in read:
            return (
                f"{s.array} is read and written, and the last point may be computed several times"
            )
    varying = spread(body, {last.variable})
    if any(isinstance(s, ir.For | ir.While) and control(s) & varying for s in statements(body)):
        return (
            f"how often its loops run depends on {last.variable}, and points that are one run the "
            "same rounds"
        )
    return None


def apply(kernel: ir.Kernel, points: int) -> ir.Kernel:
    """The kernel with so many points of the last index in one; raises `PlanError` where they cannot
    be.
    """
    if reason := legal(kernel, points):
        raise refuse("grouping of points", kernel, reason)
    if points == 1:
        return kernel
    loops, body = nest(kernel)
    last = loops[-1]
    group = ir.Local(own(f"{last.variable}.group"), last.extent.type)
    first, end = build.multiply(group, points), build.subtract(last.extent, 1)
    places = tuple(
        ir.Assign(numbered(last.variable, p), build.minimum(build.add(first, p), end))
        for p in range(points)
    )
    copies = Copies(spread(body, {last.variable}), points).block(body)
    block: ir.Block = (
        ir.Parallel(group.name, build.ceil_divide(last.extent, points), (*places, *copies)),
    )
    for loop in reversed(loops[:-1]):
        block = (replace(loop, body=block),)
    return replace(kernel, body=block)
