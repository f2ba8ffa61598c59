"""Cut the loop over sources into tiles.

    for j in range(m): f(j)
->  for tile in range(0, m // T): for k in range(T): j = tile * T + k; f(j)
    for tile in range(m // T, ceil(m / T)): for k in range(m - tile * T): ...
The second loop runs at most once; it keeps the trip count of the first one constant.
"""

from __future__ import annotations

from dataclasses import replace

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import flat_map
from lanewise.passes.base import refuse, source_loops


def legal(kernel: ir.Kernel, tile: int) -> str | None:
    """Why the pass does not apply, or None."""
    loops = source_loops(kernel)
    if not loops:
        return "it has no loop over sources"
    if tile < 1:
        return f"a tile of {tile} sources is empty"
    return None


def apply(kernel: ir.Kernel, tile: int) -> ir.Kernel:
    if reason := legal(kernel, tile):
        raise refuse("tiling", kernel, reason)

    def visit(s: ir.Statement) -> ir.Block:
        return _cut(s, tile) if isinstance(s, ir.For) and s.role == "sources" else (s,)

    return replace(kernel, body=flat_map(kernel.body, visit))


def _cut(s: ir.For, size: int) -> ir.Block:
    index = s.start.type
    zero, one = ir.Literal(0, index), ir.Literal(1, index)
    tile, k = ir.Local("tile", index), ir.Local("k", index)
    first = build.multiply(tile, size)
    body = (ir.Assign(s.variable, build.add(first, k)), *s.body)
    whole, all_tiles = build.divide(s.stop, size), build.ceil_divide(s.stop, size)
    inner = ir.For("k", zero, ir.Literal(size, index), one, body, role="sources")
    rest = replace(inner, stop=build.subtract(s.stop, first))
    return (
        ir.For("tile", zero, whole, one, (inner,), role="tiles"),
        ir.For("tile", whole, all_tiles, one, (rest,), role="tiles"),
    )
