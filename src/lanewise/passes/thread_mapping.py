"""Map the parallel loops to the blocks and threads of a grid.

parallel for i in range(n): ...              ->  i = @block * B + @thread; if i < n: ...
parallel for block: parallel for lane: ...   ->  block = @block; lane = @thread; ...
A block of one thread is a special case: that thread computes all elements, one after the other.
parallel for i in range(n): ...              ->  for i in range(n): ...
"""

from __future__ import annotations

from dataclasses import replace

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.ir.traverse import flat_map
from lanewise.language.target import WARP
from lanewise.passes.base import find_parallel, refuse

MAX_THREADS = 1024
MAX_SHARED_BYTES = 49_152  # of a block, without asking the driver for more


def legal(kernel: ir.Kernel, threads: int) -> str | None:
    """Why the pass does not apply, or None."""
    if threads < WARP or threads > MAX_THREADS or threads % WARP:
        return (
            f"a block has {WARP} to {MAX_THREADS} threads, in whole warps of {WARP}; {threads} "
            "were requested"
        )
    if kernel.grid is not None:
        return "its elements are already mapped to threads"
    shared = sum(a.arrangement.nbytes(a.length) for a in kernel.arrays if a.space == "shared")
    if shared > MAX_SHARED_BYTES:
        return (
            f"its tiles and sums take {shared:,} bytes of shared memory per block, and there are "
            f"{MAX_SHARED_BYTES:,}"
        )
    return None


def apply(
    kernel: ir.Kernel,
    threads: int,
    *,
    targets: int = 1,
    lanes: int | None = None,
    min_blocks: int = 0,
) -> ir.Kernel:
    """`lanes` x `targets` elements belong to a block; without `lanes` each thread has one element,
    or `targets` neighbours.
    """
    if reason := legal(kernel, threads):
        raise refuse("mapping to threads", kernel, reason)
    count = kernel.counts[0]
    n = ir.Local(count.name, count.type)
    if lanes is None:
        (outer,) = kernel.body
        assert isinstance(outer, ir.Parallel)
        # merged neighbours are fewer than the elements that the grid counts
        extent = outer.extent if targets == 1 else n
        return replace(
            kernel, body=_one_each(outer, threads),
            grid=ir.Grid(extent, threads * targets, threads, min_blocks=min_blocks),
        )  # fmt: skip
    split = find_parallel(kernel, own("part"))
    parts = (
        int(split.extent.value) if split is not None and isinstance(split.extent, ir.Literal) else 1
    )
    coordinates = {own(name): ir.Builtin(name, count.type) for name in ("part", "block", "thread")}
    coordinates[own("lane")] = coordinates[own("thread")]

    def visit(s: ir.Statement) -> ir.Block:
        return (
            (ir.Assign(s.variable, coordinates[s.variable]), *s.body)
            if isinstance(s, ir.Parallel)
            else (s,)
        )

    return replace(
        kernel,
        body=flat_map(kernel.body, visit),
        grid=ir.Grid(n, lanes * targets, threads, parts, min_blocks),
    )


def apply_serial(kernel: ir.Kernel, **others: int) -> ir.Kernel:
    """One thread of the whole GPU computes every element in a loop: what a port to a GPU starts
    from, never a fast plan.

    `others` are decisions that divide work among threads; each must be at its neutral value.
    """
    (outer,) = kernel.body
    reason = None
    if not isinstance(outer, ir.Parallel) or kernel.grid is not None:
        reason = "its elements are already mapped to threads"
    elif shared := [f"{name}={value}" for name, value in others.items() if value != _ALONE[name]]:
        reason = (
            "block=1 runs the whole kernel on one thread, which has no other to share "
            f"{' and '.join(shared)} with"
        )
    if reason:
        raise refuse("mapping to one thread", kernel, reason)
    assert isinstance(outer, ir.Parallel)
    zero, one = ir.Literal(0, outer.extent.type), ir.Literal(1, outer.extent.type)
    loop = ir.For(outer.variable, zero, outer.extent, one, outer.body)
    return replace(kernel, body=(loop,), grid=ir.Grid(one, 1, 1))


_ALONE = {"targets": 1, "slices": 1, "parts": 1, "tile": 0, "min_blocks": 0}


def _one_each(outer: ir.Parallel, threads: int) -> ir.Block:
    index = outer.extent.type
    place = build.add(
        build.multiply(ir.Builtin("block", index), threads), ir.Builtin("thread", index)
    )
    inside = build.less(ir.Local(outer.variable, index), outer.extent)
    return (ir.Assign(outer.variable, place), ir.If(inside, outer.body))
