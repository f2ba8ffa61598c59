"""Walls that cut links elsewhere than half-way: what they send back is corrected between two steps.

    put at a += k (loaded along o - departed along a + 6 w (e_a . u)) + s (departed along a -
    half-way at a)
for the links of a list of sites with their weights k and s (`fractions.py`); a arrives from the
wall, o is opposite to it, and half-way is what was put there, with the moving wall's 6 w (e_a . u).
As with
outflow, the reflected population lies in a place that nothing else reads, and the other two are
populations of the site as well: the one arrives at it, the other leaves it, both on the link on its
other side, which no wall cuts.
"""

from __future__ import annotations

from dataclasses import replace

from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.ir.values import record_array
from lanewise.language import types as t
from lanewise.language.types import I32
from lanewise.layouts import SoA
from lanewise.patterns.sitewise import fractions
from lanewise.patterns.sitewise.builder import SiteBuilder, SitewiseArguments
from lanewise.patterns.sitewise.links import FLAG_WORD, FLAGS
from lanewise.patterns.sitewise.listed import over_list, place_of
from lanewise.patterns.sitewise.resting import mover_met

CURVED, CURVED_COUNT, WEIGHTS = own("curved"), own("curved.count"), own("weights")


def build_interpolated_walls(arguments: SitewiseArguments, index: t.Scalar) -> ir.Kernel:
    """The kernel over the sites with such links (`$curved`), for the phase that comes next."""
    builder = SiteBuilder(replace(arguments, puts=False, collects=True), index)
    links, lattice, real = builder.links, arguments.lattice, arguments.real
    place = place_of(index)
    body: ir.Block = (
        ir.LoadRecord(CURVED, place, (("value", builder.site.name),)),
        ir.LoadRecord(FLAGS, builder.site, (("value", FLAG_WORD),)),
        *links.coordinates(),
        load_weights(builder, place),
        *(s for q in range(1, lattice.size) for s in _corrected(builder, q)),
    )
    weights = record_array(WEIGHTS, fractions.weight_leaves(lattice, real), SoA(), written=False)
    listed = CURVED, CURVED_COUNT
    return over_list("interpolated_walls", builder, place, listed, body, (weights,), corrects=True)


def load_weights(builder: SiteBuilder, place: ir.Expression) -> ir.Statement:
    """The weights k and s of all directions."""
    size = builder.a.lattice.size
    kept, damped = (
        tuple((f"{name}{q}", local(builder, q).name) for q in range(1, size))
        for name, local in zip(fractions.WEIGHTS, (weight, damping), strict=True)
    )
    return ir.LoadRecord(WEIGHTS, place, kept + damped)


def weight(builder: SiteBuilder, q: int) -> ir.Local:
    """The weight k of the link that arrives along q."""
    return ir.Local(own(f"weight.{q}"), builder.a.real)


def damping(builder: SiteBuilder, q: int) -> ir.Local:
    """The weight s of the link that arrives along q: it is above 0 where the wall is near."""
    return ir.Local(own(f"damping.{q}"), builder.a.real)


def interpolated(builder: SiteBuilder, q: int) -> ir.Expression:
    """Whether the link that arrives along q has weights: s is 0 where k is."""
    return ir.Compare("!=", weight(builder, q), ir.Literal(0.0, builder.a.real))


def change(
    builder: SiteBuilder, q: int, arriving: ir.Expression, met: ir.Local, reflected: ir.Expression
) -> tuple[ir.Block, ir.Expression]:
    """What is added to the population from the wall, as an expression behind some statements.

    arriving: the population that arrives at the site along the opposite of q. met: the kind of the
    wall (i32).
    reflected: what half-way bounce-back put there.
    """
    real = builder.a.real
    before = _departed(builder, q)
    departed = (
        ir.Cast(_departed_name(builder, q), real)
        if builder.a.storage != real
        else _departed_name(builder, q)
    )
    total: ir.Expression = ir.Binary("-", arriving, departed, real)
    if (term := builder.links.added(q, met)) is not None:
        total = ir.Binary("+", total, term, real)
    damped = ir.Binary("*", damping(builder, q), ir.Binary("-", departed, reflected, real), real)
    return before, ir.Binary("+", ir.Binary("*", weight(builder, q), total, real), damped, real)


def unadded(
    builder: SiteBuilder, q: int, arriving: ir.Expression, met: ir.Local, total: ir.Expression
) -> tuple[ir.Block, ir.Expression]:
    """What `change` has added, from the `total` that it was added to: s is at most 2/3."""
    real = builder.a.real
    before, added = change(builder, q, arriving, met, total)
    kept = ir.Binary("-", ir.Literal(1.0, real), damping(builder, q), real)
    return before, ir.Binary("/", added, kept, real)


def _corrected(builder: SiteBuilder, q: int) -> ir.Block:
    phase, real, links = builder.a.phase, builder.a.real, builder.links
    leaf = builder.leaf(q, phase.load_opposite)
    slot = builder.a.lattice.opposite[leaf] if phase.load_links else leaf
    stored = ir.Local(own(f"slot.{q}"), builder.a.storage)
    old = ir.Local(own(f"old.{q}"), real)
    new = ir.Local(own(f"new.{q}"), real)
    met = ir.Local(own(f"met.{q}"), I32)
    arrived, arriving = _arriving(builder, builder.a.lattice.opposite[q], q)
    # What a moving wall adds lies in the place only if it is not added later, by the step that
    # loads over links.
    term = links.added(q, met) if phase.load_links else None
    reflected = old if term is None else ir.Binary("+", old, term, real)
    before, added = change(builder, q, arriving, met, reflected)
    wall = mover_met(links, q, met.name) if links.moving and links.added(q, met) is not None else ()
    body: ir.Block = (
        *wall,
        *arrived,
        *before,
        ir.LoadRecord(builder.populations, builder.site, ((f"q{slot}", stored.name),)),
        ir.Assign(old.name, ir.Cast(stored, real) if stored.type != real else stored),
        ir.Assign(new.name, ir.Binary("+", old, added, real)),
        ir.StoreRecord(builder.populations, builder.site, ((f"q{slot}", builder.converted(new)),)),
    )
    return (ir.If(interpolated(builder, q), body),)


def _arriving(builder: SiteBuilder, o: int, q: int) -> tuple[ir.Block, ir.Expression]:
    """What arrives at the site along o, on a link that is not cut."""
    phase, storage, real = builder.a.phase, builder.a.storage, builder.a.real
    value = ir.Local(own(f"arriving.{q}"), storage)
    leaf = builder.leaf(o, phase.load_opposite)
    body = (
        _loaded(builder, value, o, -1, leaf)
        if phase.load_links
        else (ir.LoadRecord(builder.populations, builder.site, ((f"q{leaf}", value.name),)),)
    )
    return body, ir.Cast(value, real) if storage != real else value


def _departed_name(builder: SiteBuilder, q: int) -> ir.Local:
    return ir.Local(own(f"departed.{q}"), builder.a.storage)


def _departed(builder: SiteBuilder, q: int) -> ir.Block:
    """What has left the site along q: it is on its way to the neighbour there, or has been put
    there.
    """
    phase, value = builder.a.phase, _departed_name(builder, q)
    leaf = builder.leaf(q, phase.load_opposite)
    if phase.load_links:
        return (ir.LoadRecord(builder.populations, builder.site, ((f"q{leaf}", value.name),)),)
    return _loaded(builder, value, q, 1, leaf)


def _loaded(builder: SiteBuilder, value: ir.Local, q: int, sign: int, leaf: int) -> ir.Block:
    """A population from the other end of a link that is not cut, wherever the faces of the box send
    it.
    """
    count = iter(range(64))

    def load(place: ir.Expression, which: int) -> ir.Block:
        name = f"{value.name}.{next(count)}"
        read = ir.LoadRecord(builder.populations, place, ((f"q{which}", name),))
        return (read, ir.Assign(value.name, ir.Local(name, value.type)))

    zero = ir.Assign(value.name, ir.Literal(0.0, value.type))
    return (zero, *builder.links.towards(q, sign, leaf, load))
