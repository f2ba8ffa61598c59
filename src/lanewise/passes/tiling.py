"""Cut the loop over sources into tiles.

    for j in range(m): f(j)
->  for tile in range(0, m // T): for k in range(T): j = tile * T + k; f(j)
    for tile in range(m // T, ceil(m / T)): for k in range(m - tile * T): j = tile * T + k; f(j)
The second loop runs at most once; it keeps the trip count of the first one constant.
"""

from __future__ import annotations

from dataclasses import replace

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.ir.traverse import flat_map
from lanewise.passes.base import chosen, has_tiles, is_source_loop, refuse, source_loops


def legal(kernel: ir.Kernel, tile: int) -> str | None:
    """Why the pass does not apply, or None."""
    if not source_loops(kernel):
        return "it has no loop over sources"
    if has_tiles(kernel):
        return "its sources are cut into tiles already"
    if tile < 1:
        return f"a tile of {tile} sources is empty"
    return None


def apply(kernel: ir.Kernel, tile: int) -> ir.Kernel:
    """Cut the loops over sources into tiles; raises `PlanError` when there are none."""
    if reason := legal(kernel, tile):
        raise refuse("tiling", kernel, reason)
    return replace(
        kernel, body=flat_map(kernel.body, chosen(is_source_loop, lambda s: _cut(s, tile)))
    )


def _cut(s: ir.Statement, size: int) -> ir.Block:
    assert isinstance(s, ir.For)
    index = s.start.type
    zero, one = ir.Literal(0, index), ir.Literal(1, index)
    tile, k = ir.Local(own("tile"), index), ir.Local(own("k"), index)
    first = build.multiply(tile, size)
    body = (ir.Assign(s.variable, build.add(first, k)), *s.body)
    whole, all_tiles = build.divide(s.stop, size), build.ceil_divide(s.stop, size)
    inner = ir.For(k.name, zero, ir.Literal(size, index), one, body, role="sources")
    rest = replace(inner, stop=build.subtract(s.stop, first))
    return (
        ir.For(tile.name, zero, whole, one, (inner,), role="tiles"),
        ir.For(tile.name, whole, all_tiles, one, (rest,), role="tiles"),
    )
