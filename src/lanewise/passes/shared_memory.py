"""Stage every tile of sources in shared memory: each thread of the block loads some, all threads
read them all.

    for tile: for k: s = load source[tile * T + k]; ...
->  for tile: tile_source[thread] = load source[tile * T + thread]; barrier; for k: s = load
tile_source[k]; ...; barrier The tile is a separate record array, grouped into 16-byte pieces, so
that one shared load brings a whole group.
"""

from __future__ import annotations

from dataclasses import replace

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import count_of, own
from lanewise.ir.traverse import flat_map
from lanewise.language.record import Leaf
from lanewise.layouts import Arrangement, Slot, SoAoAS
from lanewise.passes.base import find_parallel, has_tiles, refuse, source_loops


def legal(kernel: ir.Kernel, tile: int, threads: int) -> str | None:
    """Why the pass does not apply, or None."""
    if not has_tiles(kernel):
        return "its sources are not cut into tiles"
    if threads < 1 or tile % threads:
        return f"a tile of {tile} sources is no multiple of the {threads} threads that stage it"
    if source_load(kernel) is None:
        return "its function reads nothing of a source"
    if find_parallel(kernel, own("lane")) is None and find_parallel(kernel, own("thread")) is None:
        return "its targets are not mapped to the threads of a block"
    return None


def source_load(kernel: ir.Kernel) -> ir.LoadRecord | None:
    """The load of a source, if the function reads anything of it."""
    return next(
        (s for loop in source_loops(kernel) for s in loop.body if isinstance(s, ir.LoadRecord)),
        None,
    )


def apply(kernel: ir.Kernel, tile: int, threads: int) -> ir.Kernel:
    """Stage tiles of `tile` sources by `threads` threads; raises `PlanError` when that is not
    possible.
    """
    reason, load = legal(kernel, tile, threads), source_load(kernel)
    if reason or load is None:
        raise refuse("shared-memory tiles", kernel, reason or "")
    known = {leaf.name: leaf for leaf in kernel.array(load.array).leaves}
    leaves = tuple(known[leaf] for leaf, _ in load.reads)
    name = own(f"tile.{load.array}")
    shared = ir.ArrayArgument(
        name, leaves, _arrange(leaves), written=True, space="shared", length=tile
    )
    worker = own("thread") if find_parallel(kernel, own("thread")) is not None else own("lane")

    def visit(s: ir.Statement) -> ir.Block:
        if not (isinstance(s, ir.For) and s.role == "tiles"):
            return (s,)
        thread = ir.Local(worker, s.start.type)
        whole = all(_is_whole(x) for x in s.body if isinstance(x, ir.For))
        limit = None if whole else ir.Local(count_of(load.array), s.start.type)
        places = [build.add(thread, u * threads) for u in range(tile // threads)]
        staging = tuple(
            x for place in places for x in _stage(load, name, leaves, s, tile, place, limit)
        )
        body = tuple(_read_tile(x, name) if isinstance(x, ir.For) else x for x in s.body)
        return (replace(s, body=(*staging, ir.Barrier(), *body, ir.Barrier())),)

    return replace(kernel, body=flat_map(kernel.body, visit), arrays=(*kernel.arrays, shared))


def bytes_of_source(leaves: tuple[Leaf, ...]) -> int:
    """What one source takes in a tile, with the gaps between its groups."""
    return -(-_arrange(leaves).nbytes(1024) // 1024)


def _arrange(leaves: tuple[Leaf, ...]) -> Arrangement:
    """Groups of at most 16 bytes: whole fields, unless a vector of float64 would leave gaps that
    its components fill.
    """
    by_field = SoAoAS().arrange(leaves)
    apart = SoAoAS().arrange([replace(x, name=x.name.replace(".", "_")) for x in leaves])
    if apart.nbytes(1024) >= by_field.nbytes(1024):
        return by_field
    return replace(
        apart,
        slots=tuple(
            replace(s, leaf=x.name) for s, x in zip(_in_order(apart, leaves), leaves, strict=True)
        ),
    )


def _in_order(arrangement: Arrangement, leaves: tuple[Leaf, ...]) -> list[Slot]:
    return [arrangement.slot(x.name.replace(".", "_")) for x in leaves]


def _is_whole(loop: ir.For) -> bool:
    """Whether the loop runs over a whole tile, or over a slice of known width."""
    match loop.stop:
        case ir.Literal() | ir.Binary(operator="+", right=ir.Literal()):
            return True
        case _:
            return False


def _stage(
    load: ir.LoadRecord,
    name: str,
    leaves: tuple[Leaf, ...],
    s: ir.For,
    tile: int,
    place: ir.Expression,
    limit: ir.Expression | None,
) -> ir.Block:
    """LoadRecord one source into its place in the tile; in the last, partial tile only if there is
    one.
    """
    index = build.add(build.multiply(ir.Local(s.variable, s.start.type), tile), place)
    staged = [ir.Local(own(f"staged.{leaf.name}"), leaf.type) for leaf in leaves]
    move: ir.Block = (
        replace(
            load,
            index=index,
            reads=tuple((x.name, v.name) for x, v in zip(leaves, staged, strict=True)),
        ),
        ir.StoreRecord(
            name, place, tuple((x.name, v) for x, v in zip(leaves, staged, strict=True))
        ),
    )
    return move if limit is None else (ir.If(build.less(index, limit), move),)


def _read_tile(loop: ir.For, name: str) -> ir.For:
    k = ir.Local(loop.variable, loop.start.type)
    return replace(
        loop,
        body=tuple(
            replace(x, array=name, index=k) if isinstance(x, ir.LoadRecord) else x
            for x in loop.body
        ),
    )
