"""Stage every tile of sources in shared memory: each thread of the block fetches some, all threads read them all.

    for tile: for k: s = fetch source[tile * T + k]; ...
->  for tile: tile_source[thread] = fetch source[tile * T + thread]; barrier; for k: s = fetch tile_source[k]; ...; barrier
The tile is a record array of its own, grouped into 16-byte pieces, so that one shared load brings a whole group.
"""

from __future__ import annotations

from dataclasses import replace

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import flat_map, statements
from lanewise.layouts import SoAoAS
from lanewise.passes.base import refuse, source_loops
from lanewise.record import Leaf


def legal(kernel: ir.Kernel, tile: int, threads: int) -> str | None:
    """Why the pass does not apply, or None."""
    if not any(isinstance(s, ir.For) and s.role == "tiles" for s in statements(kernel.body)):
        return "its sources are not cut into tiles"
    if tile % threads:
        return f"a tile of {tile} sources is no multiple of the {threads} threads that stage it"
    if not any(isinstance(s, ir.Fetch) for loop in source_loops(kernel) for s in loop.body):
        return "its function reads nothing of a source"
    return None


def apply(kernel: ir.Kernel, tile: int, threads: int) -> ir.Kernel:
    if reason := legal(kernel, tile, threads):
        raise refuse("shared-memory tiles", kernel, reason)
    fetch = next(s for loop in source_loops(kernel) for s in loop.body if isinstance(s, ir.Fetch))
    types = {leaf.name: leaf.type for leaf in kernel.array(fetch.array).leaves}
    leaves = tuple(Leaf(leaf, types[leaf]) for leaf, _ in fetch.reads)
    name = f"tile.{fetch.array}"
    shared = ir.ArrayArgument(name, leaves, SoAoAS().arrange(leaves), written=True, space="shared", length=tile)
    lane = "thread" if any(isinstance(s, ir.Parallel) and s.variable == "thread" for s in statements(kernel.body)) else "lane"

    def visit(s: ir.Statement) -> ir.Block:
        if not (isinstance(s, ir.For) and s.role == "tiles"):
            return (s,)
        thread = ir.Local(lane, s.start.type)
        inner = next(x for x in s.body if isinstance(x, ir.For))
        limit = _limit(kernel, fetch) if not isinstance(_tile_stop(inner), ir.Literal) else None
        staging = tuple(x for u in range(tile // threads) for x in _stage(fetch, name, leaves, s, tile, build.add(thread, u * threads), limit))
        body = tuple(_read_tile(x, name) if isinstance(x, ir.For) else x for x in s.body)
        return (replace(s, body=(*staging, ir.Barrier(), *body, ir.Barrier())),)

    return replace(kernel, body=flat_map(kernel.body, visit), arrays=(*kernel.arrays, shared))


def _limit(kernel: ir.Kernel, fetch: ir.Fetch) -> ir.Expression:
    count = next(c for c in kernel.counts if c.name == f"{fetch.array}.count")
    return ir.Local(count.name, count.type)


def _tile_stop(loop: ir.For) -> ir.Expression:
    """The end of a loop over a tile; a literal (or a slice of known width) for whole tiles."""
    match loop.stop:
        case ir.Binary(operator="+", right=ir.Literal() as width):
            return width
        case _:
            return loop.stop


def _stage(
    fetch: ir.Fetch, name: str, leaves: tuple[Leaf, ...], s: ir.For, tile: int, place: ir.Expression, limit: ir.Expression | None
) -> ir.Block:
    """Fetch one source into its place in the tile; in the last, partial tile only if there is one."""
    index = build.add(build.multiply(ir.Local(s.variable, s.start.type), tile), place)
    values = tuple((leaf.name, ir.Local(v, leaf.type)) for leaf, (_, v) in zip(leaves, fetch.reads, strict=True))
    move: ir.Block = (replace(fetch, index=index), ir.Commit(name, place, values))
    return move if limit is None else (ir.If(build.less(index, limit), move),)


def _read_tile(loop: ir.For, name: str) -> ir.For:
    k = ir.Local(loop.variable, loop.start.type)
    return replace(loop, body=tuple(replace(x, array=name, index=k) if isinstance(x, ir.Fetch) else x for x in loop.body))
