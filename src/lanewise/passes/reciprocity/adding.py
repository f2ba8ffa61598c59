"""The kernel that makes results of what tasks have left, if anything is left to do."""

from __future__ import annotations

from dataclasses import replace

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import MARK, own
from lanewise.ir.pattern import COMBINE
from lanewise.passes.reciprocity.groups import number_of_groups
from lanewise.passes.reciprocity.shape import PairShape
from lanewise.passes.reciprocity.tasks import KeptStates, keeping
from lanewise.passes.splitting import add_parts, merge_parts

COMBINE_UNROLL = 16  # partial sums in flight
GROUPS_UNROLL = 8


def final_kernel(shape: PairShape) -> ir.Kernel | None:
    """What is left to do when all tasks are done, if anything."""
    aside = [k for k in keeping(shape) if k.aside]
    if not aside:
        return None
    match shape.mode:
        case "scratch":
            return _combine(shape, aside)
        case "ordered":
            return _finish(shape, aside)
        case "grouped":
            return _add_all_groups(shape, aside)


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


def _add_all_groups(shape: PairShape, aside: list[KeptStates]) -> ir.Kernel:
    """Merge the sums of all groups of tasks."""
    rows = ir.Local(shape.kernel.counts[0].name, shape.type)
    body = tuple(s for k in aside for s in _add_groups(shape, k))
    loop = ir.Parallel(shape.local("i").name, rows, body)
    return replace(_last(shape, "combine", aside, loop), counts=shape.kernel.counts[:2])


def _add_groups(shape: PairShape, kept: KeptStates) -> ir.Block:
    """Merge the sums of all groups of one element in their order, and make a result of them.

    Results are as many as there are targets; sums lie group by group, for as many. The number of
    groups follows from the sources, which are all elements.
    """
    rows, all_ = (ir.Local(c.name, shape.type) for c in shape.kernel.counts[:2])
    i, group = shape.local("i"), shape.local("group")
    bare, leaves = kept.result.name.removeprefix(MARK), kept.array.leaves
    held, more = (
        tuple(ir.Local(own(f"{word}.{bare}.{x.name}"), x.type) for x in leaves)
        for word in ("total", "piece")
    )
    place = build.add(build.multiply(group, rows), i)
    merges, values, first = list[ir.Statement](), list[ir.Expression](), 0
    for a in kept.accumulators:
        mine, theirs = (x[first : first + len(a.state)] for x in (held, more))
        first += len(a.state)
        if a.reduction.adds:  # maybe in float64
            merges.append(ir.Assign(mine[0].name, ir.Binary("+", mine[0], theirs[0], mine[0].type)))
        else:
            merges += replace(a, state=mine).merge(theirs)
        values += a.reduction.finish(mine)
    load = ir.LoadRecord(kept.array.name, place, _reads(kept, more))
    one, groups = ir.Literal(1, shape.type), number_of_groups(build.ceil_divide(all_, shape.size))
    results = zip(kept.result.leaves, values, strict=True)
    writes = tuple((x.name, build.cast(v, x.type)) for x, v in results)
    return (
        ir.LoadRecord(kept.array.name, i, _reads(kept, held)),
        ir.For(group.name, one, groups, one, (load, *merges), role="slices", unroll=GROUPS_UNROLL),
        ir.StoreRecord(kept.result.name, i, writes),
    )


def _reads(kept: KeptStates, into: tuple[ir.Local, ...]) -> tuple[tuple[str, str], ...]:
    return tuple((x.name, v.name) for x, v in zip(kept.array.leaves, into, strict=True))
