"""The populations that depart from a site: to its own record, along its links, or with the walls of its sector."""

from __future__ import annotations

from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.patterns.sitewise.build_arguments import ALL, PUTS, WALL
from lanewise.patterns.sitewise.builder import SiteBuilder, converted, negated
from lanewise.patterns.sitewise.flags import SHARES
from lanewise.types import BOOL, I32, U32


def puts(b: SiteBuilder) -> ir.Block:
    """All populations that depart."""
    phase, size = b.a.phase, b.a.lattice.size
    if not phase.put_links:
        writes = ((f"q{b.leaf(q, phase.put_opposite)}", b.value(q)) for q in range(size))
        return (ir.StoreRecord(b.target, b.site, tuple((n, converted(v, b.a.storage)) for n, v in writes)),)
    bulk = tuple(_put(b, b.links.offset(q, 1), b.leaf(q, phase.put_opposite), b.value(q)) for q in range(size))
    special = tuple(s for q in range(size) for s in _put_special(b, q))
    return (ir.If(b.special, special, bulk),)


def _put(b: SiteBuilder, place: ir.Expression, leaf: int, value: ir.Expression) -> ir.Statement:
    return ir.StoreRecord(b.target, place, ((f"q{leaf}", converted(value, b.a.storage)),))


def _put_special(b: SiteBuilder, q: int) -> ir.Block:
    leaf = b.leaf(q, b.a.phase.put_opposite)
    if q == 0:
        return (_put(b, b.site, leaf, b.value(0)),)
    back = b.a.lattice.opposite[q]  # the direction in which it comes back from a wall
    free = b.links.towards(q, 1, leaf, lambda place, mirrored: (_put(b, place, mirrored, b.value(q)),))
    if not b.links.can_be_cut:
        return free
    value: ir.Expression = b.value(q)
    before: ir.Block = ()
    met = ir.Local(own(f"met.back.{q}"), I32)
    if (term := b.links.added(back, met)) is not None:
        before = b.links.wall_met(back, met.name)
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
