"""Let one loop serve the bulk and every other class of sites whose links lead alike: places come
from a table.

    parallel for span: for n in first..last: <load q from n - e, leaf q>; apply; put
->  parallel for run:  for n in first..last: <load q from n + places[class, q] of all populations>;
apply; put What differs between a site of the bulk, one at a wall and one at a face is where its
populations lie: another distance, another leaf. In an array for each leaf both are a distance in
one memory, which a run of equal sites has in common (`patterns/sitewise/runs.py`). Each population
has a view of that memory for itself: no byte is reached through two of them by the sites of a step,
which the compiler needs to know to use SIMD registers.
"""

from __future__ import annotations

from dataclasses import replace

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import own, owner, view_of
from lanewise.ir.traverse import flat_map, rename, statements, writes
from lanewise.ir.values import value_array
from lanewise.language.types import Scalar, Vector
from lanewise.passes import dead_code
from lanewise.passes.base import refuse
from lanewise.patterns.sitewise.builder import FIELDS
from lanewise.patterns.sitewise.passes.splitting import BULK

RUNS, PLACES, RUN, CLASS = own("runs"), own("places"), own("run"), own("class")
RUN_COUNT = own("runs.count")


def legal(kernel: ir.Kernel) -> str | None:
    """Why the pass does not apply, or None."""
    if not any(a.name == BULK.array for a in kernel.arrays):
        return "it has no spans of sites"
    array = _populations(kernel)
    if array is None:
        return "its sites load no population along a link"
    if _reads_neighbours(kernel, array):
        return "its sites read fields of their neighbours, whose places no table has"
    if any(
        b.width != 1 or b.block != s.type.size
        for b, s in zip(array.arrangement.buffers, array.arrangement.slots, strict=False)
    ):
        return "its populations do not lie in an array for each"
    return None


def apply(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel over runs instead of spans."""
    if reason := legal(kernel):
        raise refuse("runs of sites", kernel, reason)
    populations = _populations(kernel)
    assert populations is not None
    (outer,) = kernel.body
    assert isinstance(outer, ir.Parallel)
    inner = outer.body[-1]
    assert isinstance(inner, ir.For)
    views = _views(inner.body, populations)
    index = outer.extent.type
    head = _head(inner, index, len(views))
    loop = ir.Parallel(
        RUN,
        ir.Local(RUN_COUNT, index),
        (*head, replace(inner, body=_moved(inner, populations, views))),
    )
    leaf = populations.leaves[0].type
    arrays = (
        *(
            value_array(view_of(populations.name, q), leaf, written=populations.written)
            for q in range(len(views))
        ),
        *(a for a in kernel.arrays if a.name not in (populations.name, BULK.array)),
        value_array(PLACES, index, written=False),
        value_array(RUNS, Vector(index, 3), written=False),
    )
    counts = tuple(replace(c, name=RUN_COUNT) if c.name == BULK.count else c for c in kernel.counts)
    return dead_code.clean_loops(replace(kernel, arrays=arrays, counts=counts, body=(loop,)))


def _populations(kernel: ir.Kernel) -> ir.ArrayArgument | None:
    """The array that the sites load from leaf by leaf."""
    loaded = {s.array for s in _loads(kernel.body) if len(s.reads) == 1}
    candidates = [a for a in kernel.arrays if a.name in loaded and len(a.leaves) > 1]
    single = [
        a
        for a in candidates
        if all(len(s.reads) == 1 for s in _loads(kernel.body) if s.array == a.name)
    ]
    return single[0] if single else None


def _reads_neighbours(kernel: ir.Kernel, populations: ir.ArrayArgument) -> bool:
    """Whether anything but populations is loaded from another site, or `populations` are fields
    themselves.
    """
    (outer,) = kernel.body
    assert isinstance(outer, ir.Parallel)
    inner = outer.body[-1]
    assert isinstance(inner, ir.For)
    site = ir.Local(inner.variable, inner.start.type)
    others = (s for s in _loads(inner.body) if s.array != populations.name)
    return populations.name == FIELDS or any(s.index != site for s in others)


def _loads(block: ir.Block) -> list[ir.LoadRecord]:
    return [
        s
        for s in statements(block)
        if isinstance(s, ir.LoadRecord) and s.array not in (BULK.array,)
    ]


def _views(body: ir.Block, populations: ir.ArrayArgument) -> dict[tuple[ir.Expression, str], int]:
    """The number of the population that is loaded from each place and leaf."""
    loaded = [(s.index, s.reads[0][0]) for s in _loads(body) if s.array == populations.name]
    return {place: q for q, place in enumerate(loaded)}


def _head(inner: ir.For, index: Scalar, size: int) -> ir.Block:
    run, number = ir.Local(RUN, index), ir.Local(CLASS, index)
    assert isinstance(inner.start, ir.Local)
    assert isinstance(inner.stop, ir.Local)
    row = build.multiply(number, size)
    return (
        ir.LoadRecord(
            RUNS, run, (("x", inner.start.name), ("y", inner.stop.name), ("z", number.name))
        ),
        *(
            ir.LoadRecord(PLACES, build.add(row, q), (("value", _place(q, index).name),))
            for q in range(size)
        ),
    )


def _place(q: int, index: Scalar) -> ir.Local:
    return ir.Local(own(f"place.{q}"), index)


def _moved(
    inner: ir.For, populations: ir.ArrayArgument, views: dict[tuple[ir.Expression, str], int]
) -> ir.Block:
    """The work of a site with the table's places.

    In place a site puts to the places that it loaded from.
    """
    site = ir.Local(inner.variable, inner.start.type)

    def visit(s: ir.Statement) -> ir.Block:
        match s:
            case ir.LoadRecord(array=name) if name == populations.name:
                ((leaf, variable),) = s.reads
                q = views[s.index, leaf]
                return (
                    ir.LoadRecord(
                        view_of(name, q),
                        build.add(site, _place(q, site.type)),
                        (("value", variable),),
                    ),
                )
            case ir.StoreRecord(array=name) if name == populations.name:
                ((leaf, value),) = s.writes
                q = views[s.index, leaf]
                return (
                    ir.StoreRecord(
                        view_of(name, q), build.add(site, _place(q, site.type)), (("value", value),)
                    ),
                )
            case _:
                return (s,)

    body = flat_map(inner.body, visit)
    # The variables lose their array, and with it the right to the user's name.
    return rename(
        body,
        {n: own(n) for s in statements(body) for n in writes(s) if owner(n) == populations.name},
    )
