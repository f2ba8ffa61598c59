"""Let several groups of threads of a block (slices) share the targets and divide the sources.

    parallel for lane: for tile: for k in range(T): sum += ...
->  parallel for thread: lane, slice = ...; for tile: for k in [slice * T / W, (slice + 1) * T / W): sum += ...
    then slice 0 adds the sums of all slices, in their order, through shared memory.
This keeps a GPU busy when there are few targets, without scratch memory and without atomics.
"""

from __future__ import annotations

from dataclasses import replace

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import expressions, flat_map, reads, statements, writes
from lanewise.layouts import SoA
from lanewise.passes.base import refuse, source_loops
from lanewise.record import Leaf
from lanewise.types import Scalar


def legal(kernel: ir.Kernel, slices: int, tile: int) -> str | None:
    """Why the pass does not apply, or None."""
    if _lane_loop(kernel) is None:
        return "its targets are not mapped to the lanes of a block"
    if not source_loops(kernel) or tile < 1:
        return "its sources are not cut into tiles"
    if tile % slices:
        return f"{slices} slices do not divide a tile of {tile} sources"
    return None


def _lane_loop(kernel: ir.Kernel) -> ir.Parallel | None:
    return next((s for s in statements(kernel.body) if isinstance(s, ir.Parallel) and s.variable == "lane"), None)


def apply(kernel: ir.Kernel, slices: int, tile: int) -> ir.Kernel:
    if reason := legal(kernel, slices, tile):
        raise refuse("slicing", kernel, reason)
    loop = _lane_loop(kernel)
    assert loop is not None and isinstance(loop.extent, ir.Literal)
    lanes, index = int(loop.extent.value), loop.extent.type
    thread, piece = ir.Local("thread", index), ir.Local("slice", index)
    head = (ir.Assign("lane", build.remainder(thread, lanes)), ir.Assign("slice", build.divide(thread, lanes)))
    sums = _sums(loop.body)
    leaves = tuple(Leaf(f"s{n}", kind) for n, kind in enumerate(_first_target(sums).values()))
    shared = ir.ArrayArgument("sums", leaves, SoA().arrange(leaves), written=True, space="shared", length=lanes * slices)
    body = flat_map(loop.body, lambda s: _share(s, piece, tile // slices, slices))
    last = max(n for n, s in enumerate(body) if isinstance(s, ir.For) and s.role == "tiles")
    meet = _meet(sums, leaves, thread, piece, lanes, slices)
    tail = tuple(ir.If(build.equal(piece, 0), (s,)) for s in body[last + 1 :])
    threads = ir.Parallel("thread", ir.Literal(lanes * slices, index), (*head, *body[: last + 1], *meet, *tail))
    new_body = flat_map(kernel.body, lambda s: (threads,) if isinstance(s, ir.Parallel) and s.variable == "lane" else (s,))
    return replace(kernel, body=new_body, arrays=(*kernel.arrays, shared))


def _share(s: ir.Statement, piece: ir.Expression, width: int, slices: int) -> ir.Block:
    """Give each slice its own part of every loop over the sources of a tile."""
    del slices
    if not (isinstance(s, ir.For) and s.role == "sources"):
        return (s,)
    start = build.multiply(piece, width)
    stop = build.add(start, width)
    return (replace(s, start=start, stop=stop if isinstance(s.stop, ir.Literal) else build.minimum(stop, s.stop)),)


def _sums(block: ir.Block) -> dict[str, Scalar]:
    """The variables that the tile loops change and the statements after them read."""
    last = max(n for n, s in enumerate(block) if isinstance(s, ir.For) and s.role == "tiles")
    changed = {n for s in statements(block[: last + 1]) if isinstance(s, ir.For) for x in statements(s.body) for n in writes(x)}
    after = {n for s in statements(block[last + 1 :]) for e in expressions(s) for n in reads(e)}
    kinds = {s.name: s.value.type for s in statements(block) if isinstance(s, ir.Assign)}
    return {n: kinds[n] for n in kinds if n in changed & after}


def _targets(sums: dict[str, Scalar]) -> dict[str, dict[str, Scalar]]:
    """The sums by the number of their target (the last part of a merged name)."""
    groups: dict[str, dict[str, Scalar]] = {}
    for name, kind in sums.items():
        suffix = name.rsplit(".", 1)[-1]
        groups.setdefault(suffix if suffix.isdigit() else "", {})[name] = kind
    return groups


def _first_target(sums: dict[str, Scalar]) -> dict[str, Scalar]:
    return next(iter(_targets(sums).values()))


def _meet(
    sums: dict[str, Scalar], leaves: tuple[Leaf, ...], thread: ir.Local, piece: ir.Local, lanes: int, slices: int
) -> ir.Block:
    """Slice 0 adds the sums of the other slices; one target of the thread after the other, through one shared array."""
    result: list[ir.Statement] = []
    for group in _targets(sums).values():
        writes_ = tuple((leaf.name, ir.Local(n, kind)) for leaf, (n, kind) in zip(leaves, group.items(), strict=True))
        names = [f"other.{leaf.name}" for leaf in leaves]
        fetch = ir.Fetch("sums", ir.Local("from", thread.type), tuple((leaf.name, n) for leaf, n in zip(leaves, names, strict=True)))
        adds = tuple(
            ir.Assign(n, ir.Binary("+", ir.Local(n, kind), ir.Local(o, kind), kind)) for (n, kind), o in zip(group.items(), names, strict=True)
        )
        other = ir.For(
            "from", build.add(thread, lanes), ir.Literal(lanes * slices, thread.type), ir.Literal(lanes, thread.type), (fetch, *adds), role="slices"
        )
        result += [ir.Commit("sums", thread, writes_), ir.Barrier(), ir.If(build.equal(piece, 0), (other,)), ir.Barrier()]
    return tuple(result)
