"""The populations that arrive at a site, and those that depart from it.

They arrive from the places of the bulk, corrected by the site's flags, or each from its own place.
They depart to the site's own record, along its links, or with the walls of its sector.
"""

from __future__ import annotations

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.language.types import BOOL, I32, U32, Scalar
from lanewise.patterns.sitewise.builder import (
    ALL,
    PUTS,
    WALL,
    SiteBuilder,
    default_flags,
    flag_word,
    learn,
    negated,
)
from lanewise.patterns.sitewise.flags import SHARES
from lanewise.patterns.sitewise.neighbours import (
    correct_fields,
    inside,
    load_bulk_fields,
    load_fields_by_flags,
)
from lanewise.patterns.sitewise.resting import mover_met


def loads(b: SiteBuilder) -> ir.Block:
    """All populations that arrive and the fields of neighbours, however this phase and kind of box
    find them.
    """
    phase = b.a.phase
    if b.framed and b.reads_fields:
        arriving = _load_by_flags(b) if phase.load_links else load_own(b, phase.load_opposite)
        return (*arriving, *load_fields_by_flags(b))
    if not phase.load_links:
        learns = b.kinds or (b.a.puts and phase.put_links) or b.reads_fields
        learnt = (ir.If(b.special, (*flag_word(b), *correct_fields(b))),) if learns else ()
        return (*load_own(b, phase.load_opposite), *load_bulk_fields(b), *default_flags(b), *learnt)
    if b.a.dense or b.framed:
        return (*_load_by_flags(b), *load_fields_by_flags(b))
    special = ir.If(b.special, (*flag_word(b), *corrections(b), *correct_fields(b)))
    return (*load_bulk(b), *load_bulk_fields(b), *default_flags(b), special)


def load_bulk(b: SiteBuilder) -> ir.Block:
    """Every population from the place where it is for a bulk site."""
    body: list[ir.Statement] = []
    for q in _directions(b):
        body += load(b, _bulk_place(b, q), b.leaf(q, b.a.phase.load_opposite), q, f"bulk.{q}")
    return tuple(body)


def _bulk_place(b: SiteBuilder, q: int) -> ir.Expression:
    if b.placed:
        return b.links.neighbour(q, -1)
    return inside(b, b.links.offset(q, -1), b.links.order(q, -1))


def _directions(b: SiteBuilder) -> range:
    """Those of the populations; a stencil has none."""
    return range(0 if b.a.state else b.a.lattice.size)


def _load_by_flags(b: SiteBuilder) -> ir.Block:
    """Every population once, from the place that the site's flags says, or the faces that it lies
    at.
    """
    size = _directions(b)
    stored = [ir.Local(own(f"anew.{q}"), b.a.storage) for q in size]
    zeros = (ir.Assign(v.name, ir.Literal(0.0, b.a.storage)) for v in stored)
    loaded = (s for q in size for s in load_anew(b, q, stored[q], bulk=True))
    taken = (ir.Assign(b.value(q).name, build.cast(stored[q], b.a.real)) for q in size)
    return (*learn(b), *zeros, *loaded, *taken, *add_at_moving_walls(b))


def add_at_moving_walls(b: SiteBuilder) -> ir.Block:
    """What walls that move add to what they send back; most sites skip it all at once."""
    added = tuple(s for q in _directions(b)[1:] for s in add_at_moving_wall(b, q))
    near = b.links.at_moving_face()
    return added if near is None or not added else (ir.If(near, added),)


def add_at_moving_wall(b: SiteBuilder, q: int) -> ir.Block:
    """What a moving wall that cuts the link of population q adds to it."""
    met, value = ir.Local(own(f"met.{q}"), I32), b.value(q)
    if not (q and b.links.can_be_cut) or (term := b.links.added(q, met)) is None:
        return ()
    total = ir.Assign(value.name, ir.Binary("+", value, term, b.a.real))
    return (ir.If(b.links.is_cut(q), (*mover_met(b.links, q, met.name), total)),)


def load_own(b: SiteBuilder, opposite: bool) -> ir.Block:
    """All populations of the site's own record, in one access: as wide as the layout allows."""
    size = range(b.a.lattice.size)
    stored = [ir.Local(own(f"own.{q}"), b.a.storage) for q in size]
    reads = tuple((f"q{b.leaf(q, opposite)}", stored[q].name) for q in size)
    values = tuple(ir.Assign(b.value(q).name, build.cast(stored[q], b.a.real)) for q in size)
    return (ir.LoadRecord(b.populations, b.site, reads), *values)


def load(b: SiteBuilder, place: ir.Expression, leaf: int, q: int, tag: str) -> ir.Block:
    """LoadRecord a leaf into population q."""
    stored = ir.Local(own(f"{tag}"), b.a.storage)
    return (
        ir.LoadRecord(b.populations, place, ((f"q{leaf}", stored.name),)),
        ir.Assign(b.value(q).name, build.cast(stored, b.a.real)),
    )


def corrections(b: SiteBuilder) -> ir.Block:
    """What a special site loads anew: populations from cut links, and from links that wrap or are
    mirrored.

    All loads come before all uses, so that they wait for memory together.
    """
    directions = _directions(b)[1:]
    stored = {q: ir.Local(own(f"anew.{q}"), b.a.storage) for q in directions}
    zero = ir.Literal(0.0, b.a.storage)
    loaded = [s for q in directions for s in load_anew(b, q, stored[q])]
    if not loaded:
        return ()
    used = (s for q in directions for s in _use_anew(b, q, stored[q]))
    return (*(ir.Assign(v.name, zero) for v in stored.values()), *loaded, *used)


def load_anew(b: SiteBuilder, q: int, stored: ir.Local, *, bulk: bool = False) -> ir.Block:
    """With `bulk` also from links that are neither cut nor bent."""
    leaf, bends = b.leaf(q, b.a.phase.load_opposite), b.links.bends(q, -1)
    count = iter(range(64))

    def load(place: ir.Expression, which: int) -> ir.Block:
        name = f"{stored.name}.{next(count)}"
        read = ir.LoadRecord(b.populations, place, ((f"q{which}", name),))
        return (read, ir.Assign(stored.name, ir.Local(name, b.a.storage)))

    free = load(_bulk_place(b, q), leaf) if bulk else ()
    if bends is not None:
        free = (ir.If(bends, b.links.towards(q, -1, leaf, load), free),)
    if not (q and b.links.can_be_cut):
        return free
    return (ir.If(b.links.is_cut(q), load(b.site, b.a.lattice.opposite[leaf]), free),)


def _use_anew(b: SiteBuilder, q: int, stored: ir.Local) -> ir.Block:
    value, bends = b.value(q), b.links.bends(q, -1)
    taken = ir.Assign(value.name, build.cast(stored, b.a.real))
    free: ir.Block = () if bends is None else (ir.If(bends, (taken,)),)
    if not (q and b.links.can_be_cut):
        return free
    met = ir.Local(own(f"met.{q}"), I32)
    cut: ir.Block = (taken,)
    if (term := b.links.added(q, met)) is not None:
        total = ir.Binary("+", build.cast(stored, b.a.real), term, b.a.real)
        cut = (*mover_met(b.links, q, met.name), ir.Assign(value.name, total))
    return (ir.If(b.links.is_cut(q), cut, free),)


def puts(b: SiteBuilder) -> ir.Block:
    """All populations that depart."""
    phase, size = b.a.phase, b.a.lattice.size
    if not phase.put_links:
        writes = ((f"q{b.leaf(q, phase.put_opposite)}", b.value(q)) for q in range(size))
        return (
            ir.StoreRecord(
                b.target, b.site, tuple((n, build.cast(v, b.a.storage)) for n, v in writes)
            ),
        )
    bulk = tuple(
        _put(b, b.links.offset(q, 1), b.leaf(q, phase.put_opposite), b.value(q))
        for q in range(size)
    )
    special = tuple(s for q in range(size) for s in _put_special(b, q))
    return (ir.If(b.special, special, bulk),)


def put_fields(b: SiteBuilder) -> ir.Block:
    """What the function of a stencil returned becomes the fields of the site, in the other copy."""
    values = [ir.Local(name, kind) for name, kind in _result_names(b)]
    pairs = zip((name for name, _ in b.a.state), values, strict=True)
    return (
        ir.StoreRecord(b.target, b.site, tuple((n, build.cast(v, b.a.storage)) for n, v in pairs)),
    )


def _result_names(b: SiteBuilder) -> list[tuple[str, Scalar]]:
    return [(own(r.name), r.type) for r in b.main.lowered.function.results]


def _put(b: SiteBuilder, place: ir.Expression, leaf: int, value: ir.Expression) -> ir.Statement:
    return ir.StoreRecord(b.target, place, ((f"q{leaf}", build.cast(value, b.a.storage)),))


def _put_special(b: SiteBuilder, q: int) -> ir.Block:
    leaf = b.leaf(q, b.a.phase.put_opposite)
    if q == 0:
        return (_put(b, b.site, leaf, b.value(0)),)
    back = b.a.lattice.opposite[q]  # the direction in which it comes back from a wall
    free = b.links.towards(
        q, 1, leaf, lambda place, mirrored: (_put(b, place, mirrored, b.value(q)),)
    )
    if not b.links.can_be_cut:
        return free
    value: ir.Expression = b.value(q)
    before: ir.Block = ()
    met = ir.Local(own(f"met.back.{q}"), I32)
    if (term := b.links.added(back, met)) is not None:
        before = mover_met(b.links, back, met.name)
        value = ir.Binary("+", value, term, b.a.real)
    cut = (*before, _put(b, b.site, b.a.lattice.opposite[leaf], value))
    return (ir.If(b.links.is_cut(back), cut, free),)


def put_whole_sectors(b: SiteBuilder, inner: ir.Block) -> ir.Block:
    """Walls among the sites of a sector are written along with them, as zeros."""
    shared = ir.Binary("&", ir.Local(ALL, U32), ir.Literal(int(SHARES), U32), U32)
    shares = ir.Compare("!=", shared, ir.Literal(0, U32))
    zeros = tuple(s for q in range(b.a.lattice.size) for s in b.declared(q))
    wall = ir.Local(WALL, BOOL)
    stored = ir.Assign(PUTS, ir.Logical("or", negated(wall), shares))
    return (*zeros, ir.If(negated(wall), inner), stored, ir.If(ir.Local(PUTS, BOOL), puts(b)))
