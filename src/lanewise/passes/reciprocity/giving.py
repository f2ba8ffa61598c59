"""What a task gives to the elements of its tiles: into partial sums of its turn, or to the result when its turn comes."""

from __future__ import annotations

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import own, partial_of
from lanewise.passes.reciprocity.memory import REACTIONS, TURNS, total_of
from lanewise.passes.reciprocity.shape import WARP, Shape, narrow
from lanewise.passes.reciprocity.tasks import TURN_A, TURN_B, following
from lanewise.types import F64


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


def give_reactions(shape: Shape, piece: ir.Local, mine: ir.Local) -> ir.Block:
    """The sums of a slice of sources: aside until the turn comes, for waiting now would keep others waiting through the whole task."""
    if shape.mode == "scratch":
        return (ir.If(build.less(mine, shape.n), _partial(shape, shape.back, shape.local(TURN_B), mine)),)
    return (ir.StoreRecord(REACTIONS, _kept(shape, piece), tuple((f"s{n}", x) for n, x in enumerate(shape.back))),)


def give_kept_reactions(shape: Shape) -> ir.Block:
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
