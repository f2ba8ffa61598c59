"""Fields at the neighbours of a site: from where a site reads what stands at the other end of a
link, and what it reads of a wall.

The neighbour in direction q is where the population of the opposite direction comes from, so links,
edges and cut links are those of populations. Fields are complete before the kernel that reads them
begins, so no streaming form can tear them: an observer wrote them in a separate kernel, or they
are the other copy of what the kernel writes.

    periodic    the site at the other side slip        the mirror image: the link is not followed
    across the face a wall      what the wall has, if its kind names a value for the field; else the
    site's own, as if it were insulated outflow     the site's own
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import COUNT, own
from lanewise.language.types import I32, Scalar
from lanewise.patterns.sitewise.builder import SiteBuilder


@dataclass(frozen=True, slots=True)
class FieldRead:
    """A field that some function of the kernel reads in direction q: where it is stored, and the
    variable that it becomes.
    """

    name: str
    q: int
    array: str
    leaf: str
    stored: Scalar
    variable: ir.Local


def field_reads(b: SiteBuilder) -> Iterator[FieldRead]:
    """What the functions of the kernel read of fields."""
    used = {p.name: p.type for u in b.a.updates for p in u.lowered.function.parameters}
    state = dict(b.a.state)
    for name, kind in (*b.a.state, *b.a.fields):
        for q in range(b.a.lattice.size):
            variable = f"{name}.q{q}"
            if variable in used and name in state:
                yield FieldRead(
                    name,
                    q,
                    b.populations,
                    name,
                    b.a.storage,
                    ir.Local(own(variable), used[variable]),
                )
            elif variable in used:
                yield FieldRead(name, q, name, "value", kind, ir.Local(variable, used[variable]))


def load_bulk_fields(b: SiteBuilder) -> ir.Block:
    """Every neighbour where it is for a site of the bulk."""
    return tuple(s for r in field_reads(b) for s in _load(r, _bulk_place(b, r.q), "near"))


def correct_fields(b: SiteBuilder) -> ir.Block:
    """What a special site reads elsewhere."""
    return tuple(s for r in field_reads(b) for s in _load_anew(b, r, bulk=False))


def load_fields_by_flags(b: SiteBuilder) -> ir.Block:
    """Every neighbour once, from the place that the site's flags or the faces that it lies at
    say.
    """
    every = list(field_reads(b))
    zeros = (ir.Assign(r.variable.name, ir.Literal(0.0, r.variable.type)) for r in every)
    return (*zeros, *(s for r in every for s in _load_anew(b, r, bulk=True)))


def _bulk_place(b: SiteBuilder, q: int) -> ir.Expression:
    if b.placed:
        return b.links.neighbour(q, 1)
    return inside(b, b.links.offset(q, 1), b.links.order(q, 1))


def inside(b: SiteBuilder, place: ir.Expression, order: int) -> ir.Expression:
    """A place of the array, also for special sites at its ends; `order` tells at which end it could
    lie outside.
    """
    last = build.subtract(ir.Local(COUNT, b.site.type), 1)
    if order < 0 or (order and b.a.thin):
        place = build.maximum(place, 0)
    return build.minimum(place, last) if order > 0 or (order and b.a.thin) else place


def _load(r: FieldRead, place: ir.Expression, tag: str) -> ir.Block:
    stored = ir.Local(own(f"{r.name}.{tag}.{r.q}"), r.stored)
    return (
        ir.LoadRecord(r.array, place, ((r.leaf, stored.name),)),
        ir.Assign(r.variable.name, build.cast(stored, r.variable.type)),
    )


def _load_anew(b: SiteBuilder, r: FieldRead, *, bulk: bool) -> ir.Block:
    """With `bulk` also along links that are neither cut nor bent."""
    back, count = b.a.lattice.opposite[r.q], iter(range(64))
    bends = b.links.bends(back, -1)

    def load(place: ir.Expression, _: int) -> ir.Block:
        return _load(r, place, f"anew{next(count)}")

    free = load(_bulk_place(b, r.q), 0) if bulk else ()
    if bends is not None:
        free = (ir.If(bends, b.links.towards(back, -1, 0, load), free),)
    cut = b.links.is_cut(back) if r.q and b.links.can_be_cut else build.FALSE
    if cut == build.FALSE:
        return free
    return (ir.If(cut, (*load(b.site, 0), *_of_wall(b, r, back)), free),)


def _of_wall(b: SiteBuilder, r: FieldRead, back: int) -> ir.Block:
    """The value that the wall has which was met, where walls have one."""
    values = [(w.number, dict(w.fields)[r.name]) for w in b.a.walls if r.name in dict(w.fields)]
    if not values:
        return ()
    met = ir.Local(own(f"{r.name}.met.{r.q}"), I32)
    has = tuple(
        ir.If(
            build.equal(met, number),
            (ir.Assign(r.variable.name, ir.Local(value, r.variable.type)),),
        )
        for number, value in values
    )
    return (*b.links.wall_met(back, met.name, sites=True), *has)
