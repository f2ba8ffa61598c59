"""The pairs of a task: a tile with itself, or two tiles, slice by slice."""

from __future__ import annotations

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import numbered, own
from lanewise.passes.reciprocity.giving import give_kept_reactions, give_reactions
from lanewise.passes.reciprocity.memory import SLICE
from lanewise.passes.reciprocity.shape import WARP, Shape, add, zeros

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
        *give_reactions(shape, piece, mine), ir.Barrier("warp"),
    )  # fmt: skip
    return (shape.count(shape.targets, body, piece, role="tiles"), *give_kept_reactions(shape))


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
