"""The pairs of a task, a tile with itself or two tiles, slice by slice; and what the task gives to
the elements of its tiles.

It gives into partial states of its turn, or to the result when its turn comes.
"""

from __future__ import annotations

from dataclasses import replace

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import numbered, own
from lanewise.language.target import WARP
from lanewise.passes.reciprocity import groups
from lanewise.passes.reciprocity.shape import PairShape, start, states, take
from lanewise.passes.reciprocity.tasks import (
    REACTIONS,
    SLICE,
    TURN_A,
    TURN_B,
    TURNS,
    KeptStates,
    following,
    keeping,
)

ONE_SIDED_UNROLL = 4


def load_target(shape: PairShape, r: int) -> ir.Block:
    """Target r of a lane. Past the end the last element is read, and nothing written."""
    place = build.add(build.add(build.multiply(shape.a, shape.size), r * WARP), shape.lane)
    reads = tuple((x.name, numbered(f"{shape.reference.target}.{x.name}", r)) for x in shape.fields)
    safe = build.minimum(shape.at(r), build.subtract(shape.n, 1))
    return (
        ir.Assign(shape.at(r).name, place),
        ir.LoadRecord(shape.reference.target, safe, reads),
        *start(shape.forth(r)),
    )


def one_sided(shape: PairShape) -> ir.Block:
    """A tile with itself: all lanes walk through its elements."""
    first = build.multiply(shape.a, shape.size)
    stop = build.minimum(build.subtract(shape.n, first), shape.size)
    k, j = shape.local("k"), shape.reference.source_index
    body: list[ir.Statement] = [
        ir.Assign(j.name, build.add(first, k)),
        ir.LoadRecord(shape.reference.source, j, _source_reads(shape)),
    ]
    for r in range(shape.targets):
        results = tuple(numbered(name, r) for name in shape.reference.apply.results)
        call = _apply(
            shape, shape.reference.apply.function, r, results, build.equal(shape.at(r), j)
        )
        body += [call, *take(shape.forth(r), results, shape.place(j, in_order=True))]
    zero, one = ir.Literal(0, shape.type), ir.Literal(1, shape.type)
    return (ir.For(k.name, zero, stop, one, tuple(body), role="sources", unroll=ONE_SIDED_UNROLL),)


def both_sided(shape: PairShape) -> ir.Block:
    """Two tiles: one slice of 32 sources after the other meets all targets of the warp."""
    piece, step, first, mine = map(shape.local, ("piece", "step", "first", "mine"))
    meet = ir.LoadRecord(
        SLICE, shape.mine(build.add(shape.lane, step), 2 * WARP), _source_reads(shape)
    )
    rotate = ir.Rotate(states(shape.back))
    j = shape.reference.source_index
    place = ir.Assign(j.name, build.add(first, build.remainder(build.add(shape.lane, step), WARP)))
    zero, one, warp = (ir.Literal(x, shape.type) for x in (0, 1, WARP))
    full = (*((place,) if shape.indexed else ()), meet, *_pairs(shape), rotate)
    inner = ir.For(step.name, zero, warp, one, full, role="sources", unroll=shape.unroll)
    edge = ir.For(
        step.name,
        zero,
        warp,
        one,
        (place, meet, *_existing_pairs(shape, j), rotate),
        role="sources",
    )
    body: ir.Block = (
        ir.Assign(
            first.name, build.add(build.multiply(shape.b, shape.size), build.multiply(piece, WARP))
        ),
        ir.Assign(mine.name, build.add(first, shape.lane)),
        *_stage(shape, mine),
        ir.Barrier("warp"),
        *start(shape.back),
        ir.If(_is_full(shape, first), (inner,), (edge,)),
        *_give_reactions(shape, piece, mine),
        ir.Barrier("warp"),
    )
    return (shape.count(shape.targets, body, piece, role="tiles"), *_give_kept_reactions(shape))


def _source_reads(shape: PairShape) -> tuple[tuple[str, str], ...]:
    return tuple((x.name, f"{shape.reference.source}.{x.name}") for x in shape.fields)


def _stage(shape: PairShape, mine: ir.Local) -> ir.Block:
    """Every lane brings one source of the slice."""
    staged = tuple(ir.Local(own(f"staged.{x.name}"), x.type) for x in shape.fields)
    reads = tuple((x.name, s.name) for x, s in zip(shape.fields, staged, strict=True))
    writes = tuple((x.name, s) for x, s in zip(shape.fields, staged, strict=True))
    safe = build.minimum(mine, build.subtract(shape.n, 1))
    places = (shape.lane, build.add(shape.lane, WARP))
    twice = tuple(ir.StoreRecord(SLICE, shape.mine(place, 2 * WARP), writes) for place in places)
    return (ir.LoadRecord(shape.reference.source, safe, reads), *twice)


def _is_full(shape: PairShape, first: ir.Local) -> ir.Expression:
    """Whether all targets of the task and all sources of the slice exist."""
    sources = ir.Compare("<=", build.add(first, WARP), shape.n)
    targets = ir.Compare("<=", build.multiply(build.add(shape.a, 1), shape.size), shape.n)
    return ir.Logical("and", sources, targets)


def _pair(shape: PairShape, r: int) -> tuple[ir.Apply, ir.Block]:
    """Target r of a lane with the source at hand: the call, and what both take."""
    f = shape.reference.both.function
    results = tuple(numbered(own(x.name), r) for x in f.results)
    count = len(shape.back)
    there, back = shape.place(shape.reference.source_index), shape.place(shape.at(r))
    takes = (
        *take(shape.forth(r), results[:count], there),
        *take(shape.back, results[count:], back),
    )
    return _apply(shape, f, r, results), takes


def _pairs(shape: PairShape) -> ir.Block:
    return tuple(
        s for r in range(shape.targets) for call, takes in [_pair(shape, r)] for s in (call, *takes)
    )


def _existing_pairs(shape: PairShape, source: ir.Local) -> ir.Block:
    """In a tile that is not full, only pairs of elements that exist are taken."""
    out: list[ir.Statement] = []
    for r in range(shape.targets):
        call, takes = _pair(shape, r)
        exist = ir.Logical("and", build.less(shape.at(r), shape.n), build.less(source, shape.n))
        out += [call, ir.If(exist, takes)]
    return tuple(out)


def _apply(
    shape: PairShape,
    f: ir.Function,
    r: int,
    results: tuple[str, ...],
    same: ir.Expression | None = None,
) -> ir.Apply:
    """Apply a function to target r and the source at hand."""

    def argument(p: ir.Parameter) -> ir.Expression:
        if p.name == own("same"):
            assert same is not None
            return same
        of_target = p.name.startswith(f"{shape.reference.target}.")
        return ir.Local(numbered(p.name, r) if of_target else p.name, p.type)

    return ir.Apply(
        f, tuple(map(argument, f.parameters)), results, location=shape.reference.apply.location
    )


def give_states(shape: PairShape) -> ir.Block:
    """The states of the targets.

    The first contribution to a tile is the one that it computes with itself.
    """
    turn = shape.local(TURN_A)
    gives: list[ir.Statement] = []
    for r in range(shape.targets):
        there, given = shape.at(r), shape.states(r)
        match shape.mode:
            case "scratch":
                give = _partial(shape, given, turn, there)
            case "ordered":
                first = build.equal(turn, 0)
                give = (ir.If(first, _write(shape, given, there), _merge(shape, given, there)),)
            case "grouped":
                give = _into_group(shape, given, turn, there)
        gives.append(ir.If(build.less(there, shape.n), give))
    if shape.mode == "scratch":
        return tuple(gives)
    return (*_numbers(shape), *_in_turn(shape, shape.a, turn, tuple(gives)))


def _numbers(shape: PairShape) -> ir.Block:
    return (groups.take_numbers(shape),) if shape.mode == "grouped" else ()


def _give_reactions(shape: PairShape, piece: ir.Local, mine: ir.Local) -> ir.Block:
    """The states of a slice of sources: aside until the turn comes, for waiting now would keep
    others waiting through the whole task.
    """
    back = states(shape.back)
    if shape.mode == "scratch":
        return (ir.If(build.less(mine, shape.n), _partial(shape, back, shape.local(TURN_B), mine)),)
    return (
        ir.StoreRecord(
            REACTIONS, _aside(shape, piece), tuple((f"s{n}", x) for n, x in enumerate(back))
        ),
    )


def _give_kept_reactions(shape: PairShape) -> ir.Block:
    """The states of all sources of the tile."""
    if shape.mode == "scratch":
        return ()
    piece, mine, back = shape.local("piece"), shape.local("mine"), states(shape.back)
    load = ir.LoadRecord(
        REACTIONS, _aside(shape, piece), tuple((f"s{n}", x.name) for n, x in enumerate(back))
    )
    turn = shape.local(TURN_B)
    grouped = shape.mode == "grouped"
    merge = _into_group(shape, back, turn, mine) if grouped else _merge(shape, back, mine)
    give = ir.If(build.less(mine, shape.n), (load, *merge))
    first = build.add(build.multiply(shape.b, shape.size), build.multiply(piece, WARP))
    index = ir.Assign(mine.name, build.add(first, shape.lane))
    loop = shape.count(shape.targets, (index, give), piece, role="slices")
    return (*_numbers(shape), *_in_turn(shape, shape.b, turn, (loop,)))


def _aside(shape: PairShape, piece: ir.Local) -> ir.Expression:
    """The place of a state that waits for its turn."""
    return shape.mine(build.add(build.multiply(piece, WARP), shape.lane), shape.size)


def _in_turn(shape: PairShape, tile: ir.Local, turn: ir.Local, gives: ir.Block) -> ir.Block:
    return (
        ir.AwaitTurn(TURNS, tile, turn),
        *gives,
        ir.EndTurn(TURNS, tile, following(shape, turn)),
    )


def _partial(
    shape: PairShape, given: tuple[ir.Local, ...], turn: ir.Local, index: ir.Local
) -> ir.Block:
    """Write the states of one element into the memory of a turn."""
    return _write(shape, given, build.add(build.multiply(turn, shape.n), index))


def _into_group(
    shape: PairShape, given: tuple[ir.Local, ...], turn: ir.Local, index: ir.Local
) -> ir.Block:
    """Give states to the sums of the task's group."""
    place = shape.local("place")
    first = groups.is_first(shape, turn)
    return (
        ir.Assign(place.name, groups.place_in_group(shape, index)),
        ir.If(first, _write(shape, given, place), _merge(shape, given, place)),
    )


def _write(shape: PairShape, given: tuple[ir.Local, ...], place: ir.Expression) -> ir.Block:
    """Write states where there are none yet."""
    values = _by_name(shape, given)
    return tuple(_store(k, values, place) for k in keeping(shape))


def _merge(shape: PairShape, given: tuple[ir.Local, ...], index: ir.Local) -> ir.Block:
    """Read the states of one element, merge others into them, and write them back."""
    kept, values = keeping(shape), _by_name(shape, given)
    types = {
        name: leaf.type for k in kept for name, leaf in zip(k.states, k.array.leaves, strict=True)
    }
    before = {name: ir.Local(own(f"before{n}"), types[name]) for n, name in enumerate(values)}
    loads = tuple(
        ir.LoadRecord(
            k.array.name,
            index,
            tuple((x.name, before[s].name) for s, x in zip(k.states, k.array.leaves, strict=True)),
        )
        for k in kept
    )
    merges = list[ir.Statement]()
    for a in shape.reference.accumulators:
        there, here = tuple(before[x.name] for x in a.state), tuple(values[x.name] for x in a.state)
        if a.reduction.adds:  # maybe in float64
            ((total,), (value,)) = there, here
            merges.append(
                ir.Assign(
                    total.name, ir.Binary("+", total, build.cast(value, total.type), total.type)
                )
            )
        else:
            merges += replace(a, state=there).merge(here)
    return (*loads, *merges, *(_store(k, before, index) for k in kept))


def _store(kept: KeptStates, values: dict[str, ir.Local], index: ir.Expression) -> ir.StoreRecord:
    leaves = zip(kept.states, kept.array.leaves, strict=True)
    return ir.StoreRecord(
        kept.array.name,
        index,
        tuple((x.name, build.cast(values[name], x.type)) for name, x in leaves),
    )


def _by_name(shape: PairShape, given: tuple[ir.Local, ...]) -> dict[str, ir.Local]:
    """States under the names that they have in the reference kernel."""
    return {x.name: v for x, v in zip(states(shape.reference.accumulators), given, strict=True)}
