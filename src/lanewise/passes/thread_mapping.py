"""Map the parallel loops to the blocks and threads of a grid.

    parallel for i in range(n): ...              ->  i = block * B + thread; if i < n: ...
    parallel for block: parallel for lane: ...   ->  the same statements, with the coordinates of the running thread
"""

from __future__ import annotations

from dataclasses import replace

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import flat_map
from lanewise.passes.base import refuse

MAX_THREADS = 1024


def legal(kernel: ir.Kernel, threads: int) -> str | None:
    """Why the pass does not apply, or None."""
    if threads < 32 or threads > MAX_THREADS or threads % 32:
        return f"a block has 32 to {MAX_THREADS} threads, in whole warps of 32; {threads} were asked for"
    return None if kernel.grid is None else "its elements are already mapped to threads"


def apply(kernel: ir.Kernel, threads: int, *, targets: int = 1, lanes: int | None = None, min_blocks: int = 0) -> ir.Kernel:
    """`lanes` x `targets` elements belong to a block; without `lanes` each thread has one element."""
    if reason := legal(kernel, threads):
        raise refuse("mapping to threads", kernel, reason)
    (outer,) = kernel.body
    assert isinstance(outer, ir.Parallel)
    count = kernel.counts[0]
    n = ir.Local(count.name, count.type)
    if lanes is None:
        place = build.add(build.multiply(ir.Builtin("block", count.type), threads), ir.Builtin("thread", count.type))
        body: ir.Block = (ir.Assign(outer.variable, place), ir.If(build.less(ir.Local(outer.variable, count.type), n), outer.body))
        return replace(kernel, body=body, grid=ir.Grid(n, threads, threads, min_blocks=min_blocks))
    parts = 1
    if outer.variable == "part":
        assert isinstance(outer.extent, ir.Literal)
        parts = int(outer.extent.value)

    def visit(s: ir.Statement) -> ir.Block:
        if not isinstance(s, ir.Parallel):
            return (s,)
        coordinate = {"part": "part", "block": "block", "lane": "thread", "thread": "thread"}[s.variable]
        return (ir.Assign(s.variable, ir.Builtin(coordinate, count.type)), *s.body)  # type: ignore[arg-type]

    return replace(kernel, body=flat_map(kernel.body, visit), grid=ir.Grid(n, lanes * targets, threads, parts, min_blocks))
