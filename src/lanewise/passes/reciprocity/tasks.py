"""Which two tiles a task has, whose turn it is, and the memory of the tasks.

Task (d, a) has the tiles a and b = a + d, modulo their number: every two tiles meet once. It gives one contribution to a and, for d > 0,
one to b, so each tile takes two for each d, of which the smaller task's comes first. When the number of tiles is even, the last
d has half of the tasks, and each tile takes one. In this order a task waits for smaller tasks only.

In memory are a slice of sources, counters, and what is kept until it is added.
"""

from __future__ import annotations

from dataclasses import replace

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import MARK, own, partial_of
from lanewise.ir.pattern import COMBINE
from lanewise.layouts import SoA, SoAoAS
from lanewise.passes.reciprocity.shape import WARP, Shape, narrow
from lanewise.passes.splitting import add_parts, cast
from lanewise.record import Leaf
from lanewise.types import F64, I32

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


TASKS, TURNS, SLICE, REACTIONS = own("tasks"), own("turns"), own("slice"), own("reactions")
COMBINE_UNROLL = 16  # partial sums in flight


def results(shape: Shape) -> list[ir.ArrayArgument]:
    """The arrays that the kernel writes."""
    return [a for a in shape.kernel.arrays if a.written and a.space == "global"]


def memory(shape: Shape) -> tuple[tuple[ir.ArrayArgument, ...], tuple[ir.Scratch, ...]]:
    """Arrays beside the kernel's own, and how long those in global memory are.

    A slice lies in shared memory twice, so that lane l finds source (l + step) % 32 at l + step.
    """
    fields = shape.fields
    slice_ = ir.ArrayArgument(
        SLICE, fields, SoAoAS().arrange(fields), written=True, space="shared", length=2 * WARP * shape.warps
    )
    if shape.mode == "scratch":
        partial = _partial(shape)
        scratch = tuple(ir.Scratch(p.name, build.multiply(shape.tile_count, shape.n)) for p in partial)
        return (slice_, *partial), scratch
    number = (Leaf("number", I32),)
    leaves = tuple(Leaf(f"s{n}", x.type) for n, x in enumerate(shape.back))
    tasks = ir.ArrayArgument(TASKS, number, SoA().arrange(number), written=True)
    aside = ir.ArrayArgument(
        REACTIONS, leaves, SoA().arrange(leaves), written=True, space="shared", length=shape.size * shape.warps
    )
    counters = (
        ir.Scratch(TASKS, ir.Literal(1, shape.type), zeroed=True),
        ir.Scratch(TURNS, shape.tile_count, zeroed=True),
    )
    totals = _totals(shape)
    lengths = tuple(ir.Scratch(t.name, shape.n) for t in totals)
    return (slice_, aside, tasks, replace(tasks, name=TURNS), *totals), (*counters, *lengths)


def _partial(shape: Shape) -> list[ir.ArrayArgument]:
    """One result for every turn and element; components apart, so that the lanes of a warp write neighbours."""
    return [replace(a, name=partial_of(a.name), arrangement=SoA().arrange(a.leaves)) for a in results(shape)]


def total_of(array: str) -> str:
    """The array that holds the float64 totals of a result."""
    return own(f"total.{array.removeprefix(MARK)}")


def _totals(shape: Shape) -> list[ir.ArrayArgument]:
    """The results in float64, if that is how they are added."""
    if not shape.wide:
        return []
    leaves = {
        a.name: tuple(replace(x, type=F64 if narrow(x.type) else x.type) for x in a.leaves) for a in results(shape)
    }
    return [
        replace(a, name=total_of(a.name), leaves=leaves[a.name], arrangement=SoA().arrange(leaves[a.name]))
        for a in results(shape)
    ]


def final_kernel(shape: Shape) -> ir.Kernel:
    """What is left to do when all tasks are done."""
    return _combine(shape) if shape.mode == "scratch" else _round(shape)


def _round(shape: Shape) -> ir.Kernel:
    """Bring the float64 totals into the type of the results."""
    i = shape.local("i")
    body: list[ir.Statement] = []
    for a, t in zip(results(shape), _totals(shape), strict=True):
        values = [ir.Local(own(f"total.{a.name.removeprefix(MARK)}.{x.name}"), x.type) for x in t.leaves]
        body.append(ir.LoadRecord(t.name, i, tuple((x.name, v.name) for x, v in zip(t.leaves, values, strict=True))))
        writes = tuple((x.name, cast(v, x.type)) for x, v in zip(a.leaves, values, strict=True))
        body.append(ir.StoreRecord(a.name, i, writes))
    arrays = (*(replace(t, written=False) for t in _totals(shape)), *results(shape))
    return _last(shape, "round", arrays, ir.Parallel(i.name, shape.n, tuple(body)))


def _last(shape: Shape, name: str, arrays: tuple[ir.ArrayArgument, ...], loop: ir.Parallel) -> ir.Kernel:
    kernel = shape.kernel
    name = f"{kernel.name}_{name}"
    return ir.Kernel(name, COMBINE, arrays, (), kernel.counts[:1], (loop,), location=kernel.location)


def _combine(shape: Shape) -> ir.Kernel:
    """Add the contributions to every element in the order of their turns."""
    i, turn = shape.local("i"), shape.local("turn")
    place = build.add(build.multiply(turn, shape.n), i)
    partial = _partial(shape)
    body = tuple(
        s
        for a, p in zip(results(shape), partial, strict=True)
        for s in add_parts(a, p.name, place, turn, i, shape.tile_count, unroll=COMBINE_UNROLL, wide=shape.wide)
    )
    arrays = (*(replace(p, written=False) for p in partial), *results(shape))
    return _last(shape, "combine", arrays, ir.Parallel(i.name, shape.n, body))
