"""Map the index space to the threads of a GPU or to the loops of a CPU.

parallel for y: parallel for x: ...   ->  $block, $thread; y = block.y * 16 + thread / 16; x =
block.x * 16 + thread % 16
                                          if y < $y.extent and x < $x.extent: ...
                                      ->  parallel for y: for x in range($x.extent): ...
Blocks are numbered along one dimension of the grid, the fastest index first: neighbouring blocks
read neighbouring memory.
"""

from __future__ import annotations

from dataclasses import replace

from lanewise.analysis.affine import nest
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.language.types import I64
from lanewise.passes import thread_mapping
from lanewise.passes.base import refuse

BLOCK, THREAD = own("block"), own("thread")
WIDE = 256  # threads of a block, from which on its rows are those of whole warps


def rows(kernel: ir.Kernel) -> ir.Kernel:
    """The slowest index in parallel, loops over the others."""
    (first, *others), body = nest(kernel)
    for loop in reversed(others):
        zero, one = ir.Literal(0, loop.extent.type), ir.Literal(1, loop.extent.type)
        body = (ir.For(loop.variable, zero, loop.extent, one, body),)
    return replace(kernel, body=(replace(first, body=body),))


def block_shape(threads: int, rank: int) -> tuple[int, ...]:
    """Threads of a block along each index: 16 x 16, 4 x 8 x 8. `threads` is a multiple of 32."""
    match rank:
        case 1:
            return (threads,)
        case 2:
            width = 16 if threads <= WIDE else 32
            return threads // width, width
        case _:
            return (threads // 64, 8, 8) if threads % 64 == 0 else (threads // 32, 4, 8)


def blocks(
    kernel: ir.Kernel, threads: int, min_blocks: int, shape: tuple[int, ...] = ()
) -> ir.Kernel:
    """A thread for each point; raises `PlanError` for blocks that a GPU does not have.

    shape: threads of a block along each index, the slowest first; without it near to squares and
    cubes.
    """
    if reason := thread_mapping.legal(kernel, threads):
        raise refuse("mapping to threads", kernel, reason)
    loops, body = nest(kernel)
    index, sides = loops[0].extent.type, shape or block_shape(threads, len(loops))
    block, thread = ir.Local(BLOCK, index), ir.Local(THREAD, index)
    head: list[ir.Statement] = [
        ir.Assign(BLOCK, ir.Builtin("block", index)),
        ir.Assign(THREAD, ir.Builtin("thread", index)),
    ]
    inside: ir.Expression | None = None
    total: ir.Expression = ir.Literal(1, I64)  # of all blocks, which a launch may refuse
    remaining, within = block, thread
    for n in reversed(range(len(loops))):  # the fastest index first
        loop, side = loops[n], sides[n]
        count = build.ceil_divide(loop.extent, side)
        total = build.multiply(build.index_of(count, I64), total)
        if n:
            tiles, rest, row = (
                ir.Local(own(f"{loop.variable}.{x}"), index) for x in ("blocks", "behind", "row")
            )
            head += [
                ir.Assign(tiles.name, count),
                ir.Assign(rest.name, build.divide(remaining, tiles)),
            ]
            number = build.subtract(remaining, build.multiply(rest, tiles))
            place, following = build.remainder(within, side), build.divide(within, side)
            head.append(ir.Assign(row.name, following))
            remaining, within_next = rest, row
        else:
            number, place, within_next = remaining, within, within
        head.append(ir.Assign(loop.variable, build.add(build.multiply(number, side), place)))
        within = within_next
        test = build.less(ir.Local(loop.variable, index), loop.extent)
        inside = test if inside is None else ir.Logical("and", test, inside)
    assert inside is not None
    return replace(
        kernel,
        body=(*head, ir.If(inside, body)),
        grid=ir.Grid(total, 1, threads, min_blocks=min_blocks),
    )
