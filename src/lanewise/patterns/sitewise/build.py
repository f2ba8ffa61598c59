"""sitewise: every site of a lattice by itself.

LoadRecord the populations that arrive, apply the function of its kind, put what departs.

    parallel for n: load from the bulk neighbours; if special(n): correct by the site's flags;
    apply; put
A special site corrects what it loaded as if it were one of the bulk (at places clamped to the
array): so mark and populations are on their way at the same time, where a test first would wait for
memory twice. Where many sites are special (`dense`), each reads its flags first, and loads every
population once. Which places those are says the phase of the streaming form (`streaming.py`); what
is special, the flags (`flags.py`).
"""

from __future__ import annotations

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.functions import arrays_touched
from lanewise.ir.names import COUNT, identifier, own, owner
from lanewise.ir.values import pairs
from lanewise.language import types as t
from lanewise.language.types import BOOL, I32, Scalar
from lanewise.patterns.sitewise.builder import (
    ARRIVED,
    WALL,
    SiteBuilder,
    SitewiseArguments,
    Update,
    head,
    negated,
    zero_of,
)
from lanewise.patterns.sitewise.links import KIND
from lanewise.patterns.sitewise.passes import ranges
from lanewise.patterns.sitewise.pattern import SITEWISE
from lanewise.patterns.sitewise.populations import loads, put_fields, put_whole_sectors, puts
from lanewise.patterns.tables.arguments import numbers


def build_sitewise(arguments: SitewiseArguments, index: Scalar) -> ir.Kernel:
    """The reference kernel of one phase."""
    return _kernel(SiteBuilder(arguments, index))


def _kernel(b: SiteBuilder) -> ir.Kernel:
    f = b.main.lowered.function
    index = b.site.type
    count = ir.Parameter(COUNT, index)
    body = (*head(b), *_work(b))
    loop = ir.Parallel(b.site.name, ir.Local(count.name, index), body)
    used = arrays_touched(body)
    arrays = tuple(x for x in b.arrays() if x.name in used)
    uniforms = tuple(b.uniforms())
    return ir.Kernel(
        identifier(f.name),
        SITEWISE,
        arrays,
        uniforms,
        (count, *b.counts(), *(ranges.parameters(index) if b.a.ranged else ())),
        (loop,),
        location=f.location,
    )


def _work(b: SiteBuilder) -> ir.Block:
    """Everything after the bits of a site: nothing but zeros for a wall."""
    a = b.a
    if a.collects:
        values = tuple((f"q{q}", b.value(q)) for q in range(a.lattice.size))
        zeros = tuple(s for q in range(a.lattice.size) for s in b.declared(q))
        stores: ir.Block = (ir.StoreRecord(ARRIVED, b.site, values),)
        inner = loads(b)
    elif a.state and a.puts:
        zeros, stores = (), ()
        # the function of one kind gives them
        either = b.main.lowered.function.results if b.kinds else ()
        first = tuple(ir.Assign(own(r.name), zero_of(r.type)) for r in either)
        inner = (*loads(b), *_fields(b), *first, *_applications(b), *put_fields(b))
    else:
        kinds = [(v, t.scalar_of(k)) for n, k in b.results() for _, v in pairs(n, k)]
        zeros = tuple(ir.Assign(v, zero_of(k)) for v, k in kinds)
        stores = tuple(
            ir.StoreRecord(
                n, b.site, tuple((leaf, ir.Local(v, t.scalar_of(k))) for leaf, v in pairs(n, k))
            )
            for n, k in b.results()
        )
        inner = (*loads(b), *_fields(b), *_applications(b))
        if a.puts and a.solids and a.dense and not a.phase.put_links:
            return put_whole_sectors(b, inner)
        inner += puts(b) if a.puts else ()
    if not a.solids:
        return (*inner, *stores)
    return (*zeros, ir.If(negated(ir.Local(WALL, BOOL)), inner), *stores)


def _fields(b: SiteBuilder) -> ir.Block:
    used = {p.name for u in b.a.updates for p in u.lowered.function.parameters}
    return tuple(
        ir.LoadRecord(name, b.site, tuple((leaf, v) for leaf, v in pairs(name, kind) if v in used))
        for name, kind in b.a.arrays
        if any(v in used for _, v in pairs(name, kind))
    )


def _applications(b: SiteBuilder) -> ir.Block:
    """The function of kind 0, or a chain of tests when there are others."""
    chain: ir.Block = ()
    for update in reversed(b.a.updates[1:]):
        chain = (
            ir.If(build.equal(ir.Local(KIND, I32), update.number), (_apply(b, update),), chain),
        )
    if not chain:
        return (_apply(b, b.main),)
    return (ir.If(build.equal(ir.Local(KIND, I32), 0), (_apply(b, b.main),), chain),)


def _apply(b: SiteBuilder, update: Update) -> ir.Apply:
    f, state = update.lowered.function, dict(b.a.state)
    index_of = numbers(update.lowered, dict.fromkeys(update.lowered.numbered, b.site))
    arguments = tuple(
        index_of[p.name] if p.name in index_of
        else ir.Local(p.name.replace(f"{update.populations}.", f"{b.populations}.", 1), p.type)
        if owner(p.name) == update.populations
        else ir.Local(own(p.name) if owner(p.name) in state else p.name, p.type)
        for p in f.parameters
    )  # fmt: skip
    return ir.Apply(f, arguments, tuple(own(r.name) for r in f.results))
