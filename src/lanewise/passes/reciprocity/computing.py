"""The pairs of a task, a tile with itself or two tiles, slice by slice; and what the task gives to the elements of its tiles.

It gives into partial sums of its turn, or to the result when its turn comes.
"""

from __future__ import annotations

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import numbered, own, partial_of
from lanewise.passes.reciprocity.shape import WARP, Shape, add, narrow, zeros
from lanewise.passes.reciprocity.tasks import REACTIONS, SLICE, TURN_A, TURN_B, TURNS, following, total_of
from lanewise.types import F64

ONE_SIDED_UNROLL = 4


def load_target(shape: Shape, r: int) -> ir.Block:
    """Target r of a lane. Past the end the last element is read, and nothing written."""
    place = build.add(build.add(build.multiply(shape.a, shape.size), r * WARP), shape.lane)
    reads = tuple((x.name, numbered(f"{shape.reference.target}.{x.name}", r)) for x in shape.fields)
    safe = build.minimum(shape.at(r), build.subtract(shape.n, 1))
    return (
        ir.Assign(shape.at(r).name, place),
        ir.LoadRecord(shape.reference.target, safe, reads),
        *zeros(shape.sums(r)),
    )


def one_sided(shape: Shape) -> ir.Block:
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
        call = _apply(shape, shape.reference.apply.function, r, results, build.equal(shape.at(r), j))
        body += [call, *add(shape.sums(r), results)]
    zero, one = ir.Literal(0, shape.type), ir.Literal(1, shape.type)
    return (ir.For(k.name, zero, stop, one, tuple(body), role="sources", unroll=ONE_SIDED_UNROLL),)


def both_sided(shape: Shape) -> ir.Block:
    """Two tiles: one slice of 32 sources after the other meets all targets of the warp."""
    piece, step, first, mine = map(shape.local, ("piece", "step", "first", "mine"))
    meet = ir.LoadRecord(SLICE, shape.mine(build.add(shape.lane, step), 2 * WARP), _source_reads(shape))
    rotate = ir.Rotate(shape.back)
    j = shape.reference.source_index
    place = ir.Assign(j.name, build.add(first, build.remainder(build.add(shape.lane, step), WARP)))
    zero, one, warp = (ir.Literal(x, shape.type) for x in (0, 1, WARP))
    inner = ir.For(step.name, zero, warp, one, (meet, *_pairs(shape), rotate), role="sources", unroll=shape.unroll)
    edge = ir.For(step.name, zero, warp, one, (place, meet, *_existing_pairs(shape, j), rotate), role="sources")
    body: ir.Block = (
        ir.Assign(first.name, build.add(build.multiply(shape.b, shape.size), build.multiply(piece, WARP))),
        ir.Assign(mine.name, build.add(first, shape.lane)),
        *_stage(shape, mine), ir.Barrier("warp"),
        *zeros(shape.back), ir.If(_is_full(shape, first), (inner,), (edge,)),
        *_give_reactions(shape, piece, mine), ir.Barrier("warp"),
    )  # fmt: skip
    return (shape.count(shape.targets, body, piece, role="tiles"), *_give_kept_reactions(shape))


def _source_reads(shape: Shape) -> tuple[tuple[str, str], ...]:
    return tuple((x.name, f"{shape.reference.source}.{x.name}") for x in shape.fields)


def _stage(shape: Shape, mine: ir.Local) -> ir.Block:
    """Every lane brings one source of the slice."""
    staged = tuple(ir.Local(own(f"staged.{x.name}"), x.type) for x in shape.fields)
    reads = tuple((x.name, s.name) for x, s in zip(shape.fields, staged, strict=True))
    writes = tuple((x.name, s) for x, s in zip(shape.fields, staged, strict=True))
    safe = build.minimum(mine, build.subtract(shape.n, 1))
    places = (shape.lane, build.add(shape.lane, WARP))
    twice = tuple(ir.StoreRecord(SLICE, shape.mine(place, 2 * WARP), writes) for place in places)
    return (ir.LoadRecord(shape.reference.source, safe, reads), *twice)


def _is_full(shape: Shape, first: ir.Local) -> ir.Expression:
    """Whether all targets of the task and all sources of the slice exist."""
    sources = ir.Compare("<=", build.add(first, WARP), shape.n)
    targets = ir.Compare("<=", build.multiply(build.add(shape.a, 1), shape.size), shape.n)
    return ir.Logical("and", sources, targets)


def _pair(shape: Shape, r: int) -> tuple[ir.Apply, ir.Block]:
    """Target r of a lane with the source at hand: the call, and what is added."""
    f = shape.reference.both.function
    results = tuple(numbered(own(x.name), r) for x in f.results)
    count = len(shape.back)
    return _apply(shape, f, r, results), (*add(shape.sums(r), results[:count]), *add(shape.back, results[count:]))


def _pairs(shape: Shape) -> ir.Block:
    return tuple(s for r in range(shape.targets) for call, adds in [_pair(shape, r)] for s in (call, *adds))


def _existing_pairs(shape: Shape, source: ir.Local) -> ir.Block:
    """In a tile that is not full, only pairs of elements that exist are added."""
    out: list[ir.Statement] = []
    for r in range(shape.targets):
        call, adds = _pair(shape, r)
        exist = ir.Logical("and", build.less(shape.at(r), shape.n), build.less(source, shape.n))
        out += [call, ir.If(exist, adds)]
    return tuple(out)


def _apply(
    shape: Shape, f: ir.Function, r: int, results: tuple[str, ...], same: ir.Expression | None = None
) -> ir.Apply:
    """Apply a function to target r and the source at hand."""

    def argument(p: ir.Parameter) -> ir.Expression:
        if p.name == own("same"):
            assert same is not None
            return same
        of_target = p.name.startswith(f"{shape.reference.target}.")
        return ir.Local(numbered(p.name, r) if of_target else p.name, p.type)

    return ir.Apply(f, tuple(map(argument, f.parameters)), results, location=shape.reference.apply.location)


def give_sums(shape: Shape) -> ir.Block:
    """The sums of the targets. The first contribution to a tile is the one that it computes with itself."""
    turn = shape.local(TURN_A)
    gives: list[ir.Statement] = []
    for r in range(shape.targets):
        there, sums = shape.at(r), shape.sums(r)
        give = _partial(shape, sums, turn, there)
        if shape.mode == "ordered":
            first = _stores(shape, tuple(_total(shape, s) for s in sums), there)
            give = (ir.If(build.equal(turn, 0), first, _add_to_result(shape, sums, there)),)
        gives.append(ir.If(build.less(there, shape.n), give))
    return tuple(gives) if shape.mode == "scratch" else _in_turn(shape, shape.a, turn, tuple(gives))


def _give_reactions(shape: Shape, piece: ir.Local, mine: ir.Local) -> ir.Block:
    """The sums of a slice of sources: aside until the turn comes, for waiting now would keep others waiting through the whole task."""
    if shape.mode == "scratch":
        return (ir.If(build.less(mine, shape.n), _partial(shape, shape.back, shape.local(TURN_B), mine)),)
    return (ir.StoreRecord(REACTIONS, _kept(shape, piece), tuple((f"s{n}", x) for n, x in enumerate(shape.back))),)


def _give_kept_reactions(shape: Shape) -> ir.Block:
    """The sums of all sources of the tile."""
    if shape.mode == "scratch":
        return ()
    piece, mine = shape.local("piece"), shape.local("mine")
    take = ir.LoadRecord(REACTIONS, _kept(shape, piece), tuple((f"s{n}", x.name) for n, x in enumerate(shape.back)))
    give = ir.If(build.less(mine, shape.n), (take, *_add_to_result(shape, shape.back, mine)))
    first = build.add(build.multiply(shape.b, shape.size), build.multiply(piece, WARP))
    index = ir.Assign(mine.name, build.add(first, shape.lane))
    loop = shape.count(shape.targets, (index, give), piece, role="slices")
    return _in_turn(shape, shape.b, shape.local(TURN_B), (loop,))


def _kept(shape: Shape, piece: ir.Local) -> ir.Expression:
    """The place of a sum that waits for its turn."""
    return shape.mine(build.add(build.multiply(piece, WARP), shape.lane), shape.size)


def _in_turn(shape: Shape, tile: ir.Local, turn: ir.Local, gives: ir.Block) -> ir.Block:
    return (ir.AwaitTurn(TURNS, tile, turn), *gives, ir.EndTurn(TURNS, tile, following(shape, turn)))


def _partial(shape: Shape, values: tuple[ir.Local, ...], turn: ir.Local, index: ir.Local) -> ir.Block:
    """Write the sums of one element into the memory of a turn."""
    place = build.add(build.multiply(turn, shape.n), index)
    stores = _stores(shape, values, index)
    reference = shape.reference.stores
    return tuple(ir.StoreRecord(partial_of(n.array), place, c.writes) for c, n in zip(stores, reference, strict=True))


def _stores(shape: Shape, values: tuple[ir.Expression, ...], index: ir.Expression) -> tuple[ir.StoreRecord, ...]:
    """Write the sums of one element into the results, or into their float64 totals."""
    by_sum = {s.name: v for s, v in zip(shape.reference.sums, values, strict=True)}
    name = total_of if shape.wide else str
    return tuple(
        ir.StoreRecord(
            name(c.array), index, tuple((leaf, by_sum[v.name]) for leaf, v in c.writes if isinstance(v, ir.Local))
        )
        for c in shape.reference.stores
    )


def _total(shape: Shape, value: ir.Local) -> ir.Expression:
    """A sum of the task as it is added to others."""
    return ir.Cast(value, F64) if shape.wide and narrow(value.type) else value


def _add_to_result(shape: Shape, values: tuple[ir.Local, ...], index: ir.Expression) -> ir.Block:
    """Read the results of one element, add, and write them back."""
    before = tuple(ir.Local(own(f"before{n}"), _total(shape, v).type) for n, v in enumerate(values))
    stores = _stores(shape, before, index)
    loads = tuple(
        ir.LoadRecord(c.array, index, tuple((leaf, v.name) for leaf, v in c.writes if isinstance(v, ir.Local)))
        for c in stores
    )
    adds = tuple(
        ir.Assign(b.name, ir.Binary("+", b, _total(shape, v), b.type)) for b, v in zip(before, values, strict=True)
    )
    return (*loads, *adds, *stores)
