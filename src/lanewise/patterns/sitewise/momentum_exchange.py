"""The momentum that walls take from the fluid in a step: a sum over the links that they cut, for
every special fluid site.

    force(n) = sum over cut links q of (e_out - u_w) f_out - (e_in - u_w) f_in,   e_in = e_q =
    -e_out
f_in is what arrives along q, f_out what left towards the wall: f_in without what the moving wall
added, and without what interpolation added where the wall is not half-way
(`patterns/sitewise/interpolated_walls.py`). A link that is at rest between two different walls
belongs to neither.
"""

from __future__ import annotations

from dataclasses import replace

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.ir.values import pairs, record_array, value_array
from lanewise.language import types as t
from lanewise.language.types import F64, I32
from lanewise.layouts import SoA
from lanewise.patterns.sitewise.builder import SiteBuilder, SitewiseArguments
from lanewise.patterns.sitewise.fractions import weight_leaves
from lanewise.patterns.sitewise.interpolated_walls import (
    WEIGHTS,
    interpolated,
    load_weights,
    unadded,
)
from lanewise.patterns.sitewise.kinds import AXES
from lanewise.patterns.sitewise.links import FLAG_WORD, FLAGS, Links
from lanewise.patterns.sitewise.listed import over_list, place_of
from lanewise.patterns.sitewise.populations import corrections, load_bulk, load_own
from lanewise.patterns.sitewise.resting import mover_met

WALLED, WALLED_COUNT, RESULT = own("walled"), own("walled.count"), own("result")


def build_momentum_exchange(
    arguments: SitewiseArguments,
    index: t.Scalar,
    measured: tuple[int, ...],
    weights: bool,
    *,
    curved: bool = False,
) -> ir.Kernel:
    """The kernel over the sites whose links walls cut (`$walled`); element i of the result is the
    force at the i-th of them.

    `measured` are the kinds of walls whose force is wanted; `weights` adds the lattice's to the
    populations. curved: some walls are interpolated, and `$weights` has a record for each of the
    sites.
    """
    # Whose force it is asks for the kind of a wall of the mask, whether that moves or not.
    builder = SiteBuilder(replace(arguments, puts=False, collects=True, moving_sites=True), index)
    links, phase, size = builder.links, arguments.phase, arguments.lattice.size
    place = place_of(index)
    vector = t.Vector(F64, arguments.lattice.dimension)
    linked = phase.load_links
    loads = (
        (*load_bulk(builder), *corrections(builder))
        if linked
        else load_own(builder, phase.load_opposite)
    )
    sums = [ir.Local(variable, F64) for _, variable in pairs(RESULT, vector)]
    body: ir.Block = (
        ir.LoadRecord(WALLED, place, (("value", builder.site.name),)),
        ir.LoadRecord(FLAGS, builder.site, (("value", FLAG_WORD),)),
        *links.coordinates(),
        *loads,
        *((load_weights(builder, place),) if curved else ()),
        *(ir.Assign(x.name, ir.Literal(0.0, F64)) for x in sums),
        *(
            s
            for q in range(1, size)
            if links.can_be_cut
            for s in _link(builder, q, sums, measured, weights=weights, curved=curved)
        ),
        ir.StoreRecord(
            RESULT, place, tuple((leaf, ir.Local(v, F64)) for leaf, v in pairs(RESULT, vector))
        ),
    )
    leaves = weight_leaves(arguments.lattice, arguments.real)
    beside = (
        record_array(WEIGHTS, leaves, SoA(), written=False),
        value_array(RESULT, vector, written=True),
    )
    return over_list("momentum_exchange", builder, place, (WALLED, WALLED_COUNT), body, beside)


def _link(
    builder: SiteBuilder,
    q: int,
    sums: list[ir.Local],
    measured: tuple[int, ...],
    *,
    weights: bool,
    curved: bool,
) -> ir.Block:
    """Add what goes through one link, if a wall that is measured cuts it."""
    links, value = builder.links, builder.value(q)
    hit = ir.Local(own(f"hit.{q}"), I32)
    tests = [build.equal(hit, number) for number in measured]
    is_measured = tests[0]
    for test in tests[1:]:
        is_measured = ir.Logical("or", is_measured, test)
    arrived: ir.Expression = build.cast(value, F64)
    if weights:
        arrived = ir.Binary("+", arrived, ir.Literal(float(links.lattice.weights[q]), F64), F64)
    into = ir.Local(own(f"in.{q}"), F64)
    out = ir.Local(own(f"out.{q}"), F64)
    term = links.added(q, hit)
    left: ir.Expression = into if term is None else ir.Binary("-", into, build.cast(term, F64), F64)
    body: list[ir.Statement] = [ir.Assign(into.name, arrived), ir.Assign(out.name, left)]
    if curved:
        before, added = unadded(builder, q, builder.value(links.lattice.opposite[q]), hit, value)
        less = ir.Assign(out.name, ir.Binary("-", out, build.cast(added, F64), F64))
        body.append(ir.If(interpolated(builder, q), (*before, less)))
    for axis, total in enumerate(sums):
        if change_of_sum := _component(links, q, axis, hit, into, out):
            body.append(ir.Assign(total.name, ir.Binary("+", total, change_of_sum, F64)))
    return (
        ir.If(links.is_cut(q), (*mover_met(links, q, hit.name), ir.If(is_measured, tuple(body)))),
    )


def _component(
    links: Links, q: int, axis: int, hit: ir.Local, into: ir.Local, out: ir.Local
) -> ir.Expression | None:
    """-e (f_out + f_in) + u_w (f_in - f_out) along an axis."""
    step = links.lattice.velocities[q][axis]
    total: ir.Expression | None = None
    if step:
        total = ir.Binary("+", out, into, F64)
        total = ir.Unary("-", total, F64) if step > 0 else total
    difference = ir.Binary("-", into, out, F64)
    for wall in links.moving:
        speed: ir.Expression = ir.Local(f"{wall.velocity}.{AXES[axis]}", links.real)
        speed = speed if links.real == F64 else ir.Cast(speed, F64)
        moved = ir.Binary("*", speed, difference, F64)
        one = ir.Select(build.equal(hit, wall.number), moved, ir.Literal(0.0, F64), F64)
        total = one if total is None else ir.Binary("+", total, one, F64)
    return total
