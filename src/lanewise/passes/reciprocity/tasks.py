"""Which two tiles a task has, and whose turn it is.

Task (d, a) has the tiles a and b = a + d, modulo their number: every two tiles meet once. It gives one contribution to a and, for d > 0,
one to b, so each tile takes two for each d, of which the smaller task's comes first. When the number of tiles is even, the last
d has half of the tasks, and each tile takes one. In this order a task waits for smaller tasks only.
"""

from __future__ import annotations

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.passes.reciprocity.memory import TASKS
from lanewise.passes.reciprocity.shape import WARP, Shape

TURN_A, TURN_B = "turn.a", "turn.b"


def number_of_tasks(tiles: ir.Expression) -> ir.Expression:
    """Pairs of tiles, each with itself included: n (n + 1) / 2, halved before it can grow beyond 32 bits."""
    odd = ir.Binary("|", tiles, ir.Literal(1, tiles.type), tiles.type)
    return build.multiply(build.divide(build.add(tiles, 1), 2), odd)


def find_task(shape: Shape) -> ir.Block:
    """The number of the warp's task. Tasks that take turns are drawn in order; others are what the numbers of block and warp say."""
    task, tiles, thread = shape.local("task"), shape.tiles, ir.Builtin("thread", shape.type)
    number = build.add(build.multiply(ir.Builtin("block", shape.type), shape.warps), shape.warp)
    alone = shape.warps == 1
    find: ir.Statement = ir.Assign(task.name, ir.Builtin("block", shape.type) if alone else number)
    if shape.mode == "ordered":
        drawn = build.multiply(build.ceil_divide(number_of_tasks(tiles), shape.warps), shape.warps)
        find = ir.Draw(task.name, TASKS, drawn)
    return (
        ir.Assign(tiles.name, shape.tile_count),
        ir.Assign(shape.lane.name, build.remainder(thread, WARP) if shape.warps > 1 else thread),
        *(() if alone else (ir.Assign(shape.warp.name, build.divide(thread, WARP)),)),
        find,
    )


def task_tiles(shape: Shape) -> ir.Block:
    """The two tiles of the task, and its turns."""
    task, tiles = shape.local("task"), shape.tiles
    ahead = build.add(shape.a, shape.offset)
    b = ir.Select(ir.Compare(">=", ahead, tiles), build.subtract(ahead, tiles), ahead, shape.type)
    return (
        ir.Assign(shape.offset.name, build.divide(task, tiles)),
        ir.Assign(shape.a.name, build.subtract(task, build.multiply(shape.offset, tiles))),
        ir.Assign(shape.b.name, b),
        *_turns(shape),
    )


def in_task(shape: Shape, body: ir.Block) -> ir.Block:
    """The work of a warp that has a task: the last block may have more warps than there are tasks."""
    if shape.warps == 1:
        return body
    return (ir.If(build.less(shape.local("task"), number_of_tasks(shape.tiles)), body),)


def _turns(shape: Shape) -> ir.Block:
    d, zero, one = shape.offset, ir.Literal(0, shape.type), ir.Literal(1, shape.type)
    whole = ir.Compare("!=", build.multiply(d, 2), shape.tiles)
    first = build.subtract(build.multiply(d, 2), 1)

    def turn(second: ir.Expression) -> ir.Expression:
        return build.add(first, ir.Select(ir.Logical("and", second, whole), one, zero, shape.type))

    a = ir.Select(build.equal(d, 0), zero, turn(ir.Compare(">=", shape.a, d)), shape.type)
    return (ir.Assign(own(TURN_A), a), ir.Assign(own(TURN_B), turn(build.less(shape.b, d))))


def following(shape: Shape, turn: ir.Expression) -> ir.Expression:
    """The next turn of a tile; after the last one it is zero again, for the next launch."""
    after = build.add(turn, 1)
    return ir.Select(build.less(after, shape.tiles), after, ir.Literal(0, shape.type), shape.type)
