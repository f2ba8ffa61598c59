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
from lanewise.ir.reductions import Accumulator
from lanewise.language.record import Leaf
from lanewise.language.target import WARP
from lanewise.language.types import F64, I32
from lanewise.layouts import SoA, SoAoAS
from lanewise.passes.reciprocity import groups
from lanewise.passes.reciprocity.shape import PairShape, narrow, number_of_tasks, states
from lanewise.passes.states import is_plain, of_array, state_array

TURN_A, TURN_B = "turn.a", "turn.b"


def find_task(shape: PairShape) -> ir.Block:
    """The number of the warp's task. Tasks that take turns are drawn in order; others are what the
    numbers of block and warp say.
    """
    task, tiles, thread = shape.local("task"), shape.tiles, ir.Builtin("thread", shape.type)
    number = build.add(build.multiply(ir.Builtin("block", shape.type), shape.warps), shape.warp)
    alone = shape.warps == 1
    find: ir.Statement = ir.Assign(task.name, ir.Builtin("block", shape.type) if alone else number)
    before: ir.Block = ()
    if shape.mode == "ordered":
        find = ir.Draw(task.name, TASKS, _whole_blocks(shape, number_of_tasks(tiles)))
    if shape.mode == "grouped":
        first, drawn = groups.first_task(shape), shape.local("drawn")
        count = build.subtract(groups.last_task(shape), first)
        before = (*groups.find_part(shape), ir.Draw(drawn.name, TASKS, _whole_blocks(shape, count)))
        find = ir.Assign(task.name, build.add(first, drawn))
    return (
        ir.Assign(tiles.name, shape.tile_count),
        ir.Assign(shape.lane.name, build.remainder(thread, WARP) if shape.warps > 1 else thread),
        *(() if alone else (ir.Assign(shape.warp.name, build.divide(thread, WARP)),)),
        *before,
        find,
    )


def _whole_blocks(shape: PairShape, tasks: ir.Expression) -> ir.Expression:
    """As many numbers as the warps of all blocks draw."""
    return build.multiply(build.ceil_divide(tasks, shape.warps), shape.warps)


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
    grouped = shape.mode == "grouped"
    end = groups.last_task(shape) if grouped else number_of_tasks(shape.tiles)
    return (ir.If(build.less(shape.local("task"), end), body),)


def _turns(shape: PairShape) -> ir.Block:
    d, zero, one = shape.offset, ir.Literal(0, shape.type), ir.Literal(1, shape.type)
    whole = ir.Compare("!=", build.multiply(d, 2), shape.tiles)
    first = build.subtract(build.multiply(d, 2), 1)

    def turn(second: ir.Expression) -> ir.Expression:
        return build.add(first, ir.Select(ir.Logical("and", second, whole), one, zero, shape.type))

    a = ir.Select(build.equal(d, 0), zero, turn(ir.Compare(">=", shape.a, d)), shape.type)
    b = turn(build.less(shape.b, d))
    if shape.mode != "grouped":
        return (ir.Assign(own(TURN_A), a), ir.Assign(own(TURN_B), b))
    return groups.set_numbers_aside(shape, a, b)


def following(shape: PairShape, turn: ir.Expression) -> ir.Expression:
    """The next turn of a tile; after the last one it is zero again, for the next launch."""
    after = build.add(turn, 1)
    turns = groups.own_turns(shape) if shape.mode == "grouped" else shape.tiles
    return ir.Select(build.less(after, turns), after, ir.Literal(0, shape.type), shape.type)


TASKS, TURNS, SLICE, REACTIONS = own("tasks"), own("turns"), own("slice"), own("reactions")


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
    float64 sums, have their own array.
    """
    return [_kept(shape, a) for a in results(shape)]


def _kept(shape: PairShape, result: ir.ArrayArgument) -> KeptStates:
    accumulators = of_array(shape.kernel, result.name)
    array = state_array(shape.kernel, result, result.name)
    if shape.mode == "scratch":  # components apart, so that the lanes of a warp write neighbours
        array = replace(
            array, name=partial_of(result.name), arrangement=SoA().arrange(array.leaves)
        )
    elif shape.mode == "grouped" or shape.wide or not is_plain(accumulators):
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
    """Arrays besides the kernel's own, and how long those in global memory are.

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
    length = groups.sums_of_part(shape) if shape.mode == "grouped" else shape.n
    lengths = tuple(ir.Scratch(t.name, length) for t in aside)
    shared = (slice_, reactions)
    shared = (*shared, groups.numbers_array(shape)) if shape.mode == "grouped" else shared
    return (*shared, tasks, replace(tasks, name=TURNS), *aside), (*counters, *lengths)


def total_of(array: str) -> str:
    """The array that holds the states of a result, all of them or the float64 totals."""
    return own(f"total.{array.removeprefix(MARK)}")
