"""Which two tiles a task has, whose turn it is, and the memory of the tasks.

Task (d, a) has the tiles a and b = a + d, modulo their number: every two tiles meet once. It gives
one contribution to a and, for d > 0, one to b, so each tile takes two for each d, of which the
smaller task's comes first. When the number of tiles is even, the last d has half of the tasks, and
each tile takes one. In this order a task waits for smaller tasks only.

In memory are a slice of sources, counters, and what is kept until it is added.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import MARK, own, partial_of
from lanewise.ir.pattern import COMBINE
from lanewise.ir.reductions import Accumulator
from lanewise.language.record import Leaf
from lanewise.language.types import F64, I32
from lanewise.layouts import SoA, SoAoAS
from lanewise.passes.reciprocity.shape import WARP, PairShape, narrow, states
from lanewise.passes.splitting import add_parts, merge_parts
from lanewise.passes.states import is_plain, of_array, state_array

TURN_A, TURN_B = "turn.a", "turn.b"


def number_of_tasks(tiles: ir.Expression) -> ir.Expression:
    """Pairs of tiles, each with itself included: n (n + 1) / 2, halved before it can grow beyond 32
    bits.
    """
    odd = ir.Binary("|", tiles, ir.Literal(1, tiles.type), tiles.type)
    return build.multiply(build.divide(build.add(tiles, 1), 2), odd)


def find_task(shape: PairShape) -> ir.Block:
    """The number of the warp's task. Tasks that take turns are drawn in order; others are what the
    numbers of block and warp say.
    """
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


def task_tiles(shape: PairShape) -> ir.Block:
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


def in_task(shape: PairShape, body: ir.Block) -> ir.Block:
    """The work of a warp that has a task: the last block may have more warps than there are
    tasks.
    """
    if shape.warps == 1:
        return body
    return (ir.If(build.less(shape.local("task"), number_of_tasks(shape.tiles)), body),)


def _turns(shape: PairShape) -> ir.Block:
    d, zero, one = shape.offset, ir.Literal(0, shape.type), ir.Literal(1, shape.type)
    whole = ir.Compare("!=", build.multiply(d, 2), shape.tiles)
    first = build.subtract(build.multiply(d, 2), 1)

    def turn(second: ir.Expression) -> ir.Expression:
        return build.add(first, ir.Select(ir.Logical("and", second, whole), one, zero, shape.type))

    a = ir.Select(build.equal(d, 0), zero, turn(ir.Compare(">=", shape.a, d)), shape.type)
    return (ir.Assign(own(TURN_A), a), ir.Assign(own(TURN_B), turn(build.less(shape.b, d))))


def following(shape: PairShape, turn: ir.Expression) -> ir.Expression:
    """The next turn of a tile; after the last one it is zero again, for the next launch."""
    after = build.add(turn, 1)
    return ir.Select(build.less(after, shape.tiles), after, ir.Literal(0, shape.type), shape.type)


TASKS, TURNS, SLICE, REACTIONS = own("tasks"), own("turns"), own("slice"), own("reactions")
COMBINE_UNROLL = 16  # partial sums in flight


def results(shape: PairShape) -> list[ir.ArrayArgument]:
    """The arrays that the kernel writes."""
    return [a for a in shape.kernel.arrays if a.written and a.space == "global"]


@dataclass(frozen=True, slots=True)
class KeptStates:
    """Where the tasks leave the states of one result: by the names that states have in the
    reference kernel, one for each leaf.
    """

    result: ir.ArrayArgument
    array: ir.ArrayArgument
    states: tuple[str, ...]
    accumulators: tuple[Accumulator, ...]

    @property
    def aside(self) -> bool:
        """Whether the result has to be made of them afterwards."""
        return self.array.name != self.result.name


def keeping(shape: PairShape) -> list[KeptStates]:
    """For each result: itself, where sums are added to it in turn; states that it is not, and
    float64 sums, have an array of their own.
    """
    return [_kept(shape, a) for a in results(shape)]


def _kept(shape: PairShape, result: ir.ArrayArgument) -> KeptStates:
    accumulators = of_array(shape.kernel, result.name)
    array = state_array(shape.kernel, result, result.name)
    if shape.mode == "scratch":  # components apart, so that the lanes of a warp write neighbours
        array = replace(
            array, name=partial_of(result.name), arrangement=SoA().arrange(array.leaves)
        )
    elif shape.wide or not is_plain(accumulators):
        leaves = tuple(
            replace(x, type=F64 if shape.wide and narrow(a) else x.type)
            for (a, x) in zip((a for a in accumulators for _ in a.state), array.leaves, strict=True)
        )
        array = replace(
            array, name=total_of(result.name), leaves=leaves, arrangement=SoA().arrange(leaves)
        )
    return KeptStates(
        result, array, tuple(x.name for a in accumulators for x in a.state), accumulators
    )


def memory(shape: PairShape) -> tuple[tuple[ir.ArrayArgument, ...], tuple[ir.Scratch, ...]]:
    """Arrays beside the kernel's own, and how long those in global memory are.

    A slice lies in shared memory twice, so that lane l finds source (l + step) % 32 at l + step.
    """
    fields = shape.fields
    slice_ = ir.ArrayArgument(
        SLICE,
        fields,
        SoAoAS().arrange(fields),
        written=True,
        space="shared",
        length=2 * WARP * shape.warps,
    )
    aside = tuple(k.array for k in keeping(shape) if k.aside)
    if shape.mode == "scratch":
        scratch = tuple(
            ir.Scratch(p.name, build.multiply(shape.tile_count, shape.n)) for p in aside
        )
        return (slice_, *aside), scratch
    number = (Leaf("number", I32),)
    leaves = tuple(Leaf(f"s{n}", x.type) for n, x in enumerate(states(shape.back)))
    tasks = ir.ArrayArgument(TASKS, number, SoA().arrange(number), written=True)
    reactions = ir.ArrayArgument(
        REACTIONS,
        leaves,
        SoA().arrange(leaves),
        written=True,
        space="shared",
        length=shape.size * shape.warps,
    )
    counters = (
        ir.Scratch(TASKS, ir.Literal(1, shape.type), zeroed=True),
        ir.Scratch(TURNS, shape.tile_count, zeroed=True),
    )
    lengths = tuple(ir.Scratch(t.name, shape.n) for t in aside)
    return (slice_, reactions, tasks, replace(tasks, name=TURNS), *aside), (*counters, *lengths)


def total_of(array: str) -> str:
    """The array that holds the states of a result, all of them or the float64 totals."""
    return own(f"total.{array.removeprefix(MARK)}")


def final_kernel(shape: PairShape) -> ir.Kernel | None:
    """What is left to do when all tasks are done, if anything."""
    aside = [k for k in keeping(shape) if k.aside]
    if not aside:
        return None
    return _combine(shape, aside) if shape.mode == "scratch" else _finish(shape, aside)


def _finish(shape: PairShape, aside: list[KeptStates]) -> ir.Kernel:
    """Make results of the states, in their types."""
    i = shape.local("i")
    body: list[ir.Statement] = []
    for k in aside:
        bare, leaves = k.result.name.removeprefix(MARK), k.array.leaves
        held = tuple(ir.Local(own(f"total.{bare}.{x.name}"), x.type) for x in leaves)
        body.append(
            ir.LoadRecord(
                k.array.name, i, tuple((x.name, v.name) for x, v in zip(leaves, held, strict=True))
            )
        )
        values, first = list[ir.Expression](), 0
        for a in k.accumulators:
            mine = held[first : first + len(a.state)]
            first += len(a.state)
            values += a.reduction.finish(mine)
        writes = tuple(
            (x.name, build.cast(v, x.type)) for x, v in zip(k.result.leaves, values, strict=True)
        )
        body.append(ir.StoreRecord(k.result.name, i, writes))
    return _last(
        shape, "round" if shape.wide else "finish", aside, ir.Parallel(i.name, shape.n, tuple(body))
    )


def _last(shape: PairShape, name: str, aside: list[KeptStates], loop: ir.Parallel) -> ir.Kernel:
    kernel = shape.kernel
    name = f"{kernel.name}_{name}"
    arrays = (*(replace(k.array, written=False) for k in aside), *(k.result for k in aside))
    return ir.Kernel(
        name, COMBINE, arrays, (), kernel.counts[:1], (loop,), location=kernel.location
    )


def _combine(shape: PairShape, aside: list[KeptStates]) -> ir.Kernel:
    """Merge the contributions to every element in the order of their turns."""
    i, turn, tiles = shape.local("i"), shape.local("turn"), shape.tile_count
    place = build.add(build.multiply(turn, shape.n), i)
    body: list[ir.Statement] = []
    for k in aside:
        if all(a.reduction.adds for a in k.accumulators):
            body += add_parts(
                k.result,
                k.array.name,
                place,
                turn,
                i,
                tiles,
                unroll=COMBINE_UNROLL,
                wide=shape.wide,
            )
        else:
            body += merge_parts(
                k.result, k.array, k.accumulators, place, turn, i, tiles, unroll=COMBINE_UNROLL
            )
    return _last(shape, "combine", aside, ir.Parallel(i.name, shape.n, tuple(body)))
