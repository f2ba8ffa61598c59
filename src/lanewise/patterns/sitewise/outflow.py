"""Convective outflow at a face: what arrives from outside follows what arrives one site further in.

    d f_q / dt + U d f_q / dn = 0,   implicit in time and upwind:   f_q(x, t+1) = (f_q(x, t) + U
    f_q(x - n, t+1)) / (1 + U)
for the directions q that come in through the face (Z. Yang, Lattice Boltzmann outflow treatments:
convective conditions and others, Computers and Mathematics with Applications 65 (2013), 160-171).
The links of the face are cut, as by a wall, and what would be the reflected population lies in a
place that nothing else reads: this kernel overwrites it between two steps. `$before` keeps f_q(x,
t).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.ir.values import record_array
from lanewise.language import types as t
from lanewise.language.lattices.base import Lattice
from lanewise.language.record import Leaf
from lanewise.language.types import BOOL, Scalar
from lanewise.layouts import AoS
from lanewise.patterns.sitewise.builder import SiteBuilder, SitewiseArguments
from lanewise.patterns.sitewise.links import FLAG_WORD, FLAGS, at_face
from lanewise.patterns.sitewise.listed import over_list, place_of
from lanewise.patterns.sitewise.populations import add_at_moving_wall, load, load_anew

OUTLET, OUTLET_COUNT, BEFORE = own("outlet"), own("outlet.count"), own("before")
WEIGHT = "outflow_weight"  # U / (1 + U)


@dataclass(frozen=True, slots=True)
class Outlet:
    """A face through which the flow leaves: its axis, and the step of -1 or 1 that leads out."""

    axis: int
    step: int

    def unknown(self, lattice: Lattice) -> tuple[int, ...]:
        """The directions that arrive through the face."""
        return tuple(q for q, e in enumerate(lattice.velocities) if e[self.axis] == -self.step)


def before_leaves(lattice: Lattice, outlet: Outlet, real: Scalar) -> tuple[Leaf, ...]:
    """What is kept of a site: its unknown populations."""
    return tuple(Leaf(f"q{q}", real) for q in outlet.unknown(lattice))


def build_outflow(arguments: SitewiseArguments, index: t.Scalar, outlet: Outlet) -> ir.Kernel:
    """The kernel over the sites of a face (`$outlet`), for the phase that comes next."""
    builder = SiteBuilder(replace(arguments, puts=False, collects=True), index)
    links, phase = builder.links, arguments.phase
    place, edge = place_of(index), ir.Local(own("edge"), index)
    stride = links.stride(outlet.axis)
    inner = build.subtract(edge, stride) if outlet.step > 0 else build.add(edge, stride)
    body: list[ir.Statement] = [
        ir.LoadRecord(OUTLET, place, (("value", edge.name),)),
        ir.Assign(builder.site.name, inner),
        ir.LoadRecord(FLAGS, builder.site, (("value", FLAG_WORD),)),
        *links.coordinates(),
    ]
    for q in outlet.unknown(arguments.lattice):
        leaf = builder.leaf(q, phase.load_opposite)
        slot = arguments.lattice.opposite[leaf] if phase.load_links else leaf
        update = _update(builder, q, slot, place, edge)
        beside = _cut_beside(builder, outlet, q)
        body += update if beside is None else (ir.If(ir.Unary("not", beside, BOOL), update),)
    leaves = before_leaves(arguments.lattice, outlet, arguments.real)
    return over_list(
        "outflow",
        builder,
        place,
        (OUTLET, OUTLET_COUNT),
        tuple(body),
        (record_array(BEFORE, leaves, AoS(), written=True),),
        (ir.Parameter(WEIGHT, arguments.real),),
        corrects=True,
    )


def _update(builder: SiteBuilder, q: int, slot: int, place: ir.Local, edge: ir.Local) -> ir.Block:
    """Move what arrived along q at the face towards what arrives further in."""
    real = builder.a.real
    old, new = ir.Local(own(f"old.{q}"), real), ir.Local(own(f"new.{q}"), real)
    further = ir.Binary("-", builder.value(q), old, real)
    moved = ir.Binary("+", old, ir.Binary("*", ir.Local(WEIGHT, real), further, real), real)
    return (
        *_arriving(builder, q),
        ir.LoadRecord(BEFORE, place, ((f"q{q}", old.name),)),
        ir.Assign(new.name, moved),
        ir.StoreRecord(BEFORE, place, ((f"q{q}", new),)),
        ir.StoreRecord(builder.populations, edge, ((f"q{slot}", builder.converted(new)),)),
    )


def _arriving(builder: SiteBuilder, q: int) -> ir.Block:
    """What arrives along q at the site further in."""
    phase, storage = builder.a.phase, builder.a.storage
    if not phase.load_links:
        return load(builder, builder.site, builder.leaf(q, phase.load_opposite), q, f"own.{q}")
    stored = ir.Local(own(f"anew.{q}"), storage)
    return (
        ir.Assign(stored.name, ir.Literal(0.0, storage)),
        *load_anew(builder, q, stored, bulk=True),
        ir.Assign(
            builder.value(q).name,
            stored if storage == builder.a.real else ir.Cast(stored, builder.a.real),
        ),
        *add_at_moving_wall(builder, q),
    )


def _cut_beside(builder: SiteBuilder, outlet: Outlet, q: int) -> ir.Expression | None:
    """Whether a wall next to the face cuts the link as well: then it stays one of the wall."""
    condition: ir.Expression | None = None
    for axis, component in enumerate(builder.a.lattice.velocities[q]):
        if (
            axis == outlet.axis
            or not component
            or not isinstance(builder.a.edges.face(axis, -component), int)
        ):
            continue
        at = at_face(axis, -component)
        condition = at if condition is None else ir.Logical("or", condition, at)
    return condition
