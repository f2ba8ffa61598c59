"""What all parts of a kernel over sites share: its arguments, its arrays, and the names of a site's values."""

from __future__ import annotations

from collections.abc import Iterator

from lanewise import types as t
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.ir.values import record_array, value_array
from lanewise.layouts import SoA
from lanewise.patterns.sitewise.build_arguments import (
    ARRIVED,
    MARKS,
    NEXT,
    SOLIDS,
    SPECIAL,
    SitewiseArguments,
    population_leaves,
)
from lanewise.patterns.sitewise.links import EXTENTS, FLAGS, LAYER, MAGIC, PLANE, ROW, SHIFT, Links
from lanewise.types import BOOL, U32, Scalar


class SiteBuilder:
    """A site of a kernel: what it is called, where its links lead, what memory it has. The parts of kernels are functions of it.

    a: what the kernel is specialised to. site: the index. main: the function of kind 0, and `populations` what it calls them. placed,
    framed: as in the arguments, where this phase can be. follows: links are followed. kinds: sites of several kinds.
    """

    def __init__(self, arguments: SitewiseArguments, index: Scalar) -> None:
        a = self.a = arguments
        self.site = ir.Local(own("n"), index)
        self.placed = a.placed and a.phase.load_links and not a.phase.put_links
        self.framed = self.placed and a.framed
        row_block = a.row_block if self.placed else 0
        self.links = Links(
            a.lattice, a.edges, a.walls, a.solids, self.site, a.real,
            placed=self.placed, row_block=row_block, framed=self.framed, moving_sites=a.moving_sites,
        )  # fmt: skip
        self.main = a.updates[0]
        self.populations = self.main.populations
        self.follows = a.phase.load_links or (a.puts and a.phase.put_links)
        self.kinds = len(a.updates) > 1

    def value(self, q: int) -> ir.Local:
        return ir.Local(f"{self.populations}.q{q}", self.a.real)

    def leaf(self, q: int, opposite: bool) -> int:
        return self.a.lattice.opposite[q] if opposite else q

    def converted(self, value: ir.Expression) -> ir.Expression:
        """A value as populations are stored."""
        return converted(value, self.a.storage)

    @property
    def target(self) -> str:
        return NEXT if self.a.two else self.populations

    @property
    def special(self) -> ir.Local:
        return ir.Local(SPECIAL, BOOL)

    @property
    def has_flags(self) -> bool:
        return self.follows or self.kinds

    def counts(self) -> tuple[ir.Parameter, ...]:
        """The extents of the box, and in three dimensions the sites of a layer."""
        dimension = self.a.lattice.dimension
        names = (*EXTENTS[:dimension], *((PLANE,) if dimension > 2 else ()))
        blocks = (ROW, LAYER)[: dimension - 1] if self.links.row_block else ()
        divisions = (x for a in range(dimension - 1) for x in (MAGIC[a], SHIFT[a])) if self.placed else ()
        return (
            *(ir.Parameter(name, self.site.type) for name in (*names, *blocks)),
            *(ir.Parameter(name, U32) for name in divisions),
        )

    def arrays(self) -> Iterator[ir.ArrayArgument]:
        a = self.a
        leaves = population_leaves(a.lattice, a.storage)
        yield record_array(self.populations, leaves, a.layout, written=a.puts and not a.two)
        if a.puts and a.two:
            yield record_array(NEXT, leaves, a.layout, written=True)
        yield value_array(MARKS, U32, written=False)
        yield value_array(SOLIDS, U32, written=False)
        yield value_array(FLAGS, U32, written=False)
        for name, kind in a.arrays:
            yield value_array(name, kind, written=False)
        if a.collects:
            yield record_array(ARRIVED, population_leaves(a.lattice, a.real), SoA(), written=True)
        for name, kind in self.results():
            yield value_array(name, kind, written=True)

    def results(self) -> list[tuple[str, t.ValueType]]:
        kinds = self.main.lowered.results
        return [(own("result" if len(kinds) == 1 else f"result{n}"), kind) for n, kind in enumerate(kinds)]

    def uniforms(self) -> Iterator[ir.Parameter]:
        """Uniform scalars that any function of the kernel uses, and the velocities of moving walls."""
        a = self.a
        used = {p.name for u in a.updates for p in u.lowered.function.parameters}
        moving = {w.velocity for w in self.links.moving}
        for name, kind in a.uniforms:
            for leaf in t.leaves(name, kind):
                if leaf in used or name in moving:
                    yield ir.Parameter(leaf, t.scalar_of(kind))

    def declared(self, q: int) -> ir.Block:
        """A population that branches give its value."""
        return (ir.Assign(self.value(q).name, ir.Literal(0.0, self.a.real)),)


def zero_of(scalar: Scalar) -> ir.Literal:
    """Nothing, in this type."""
    return ir.Literal(False if scalar == BOOL else 0.0 if scalar.is_float else 0, scalar)


def converted(value: ir.Expression, to: Scalar) -> ir.Expression:
    """A value in another type, if it is not of that type."""
    return value if value.type == to else ir.Cast(value, to)


def negated(e: ir.Expression) -> ir.Expression:
    """Not `e`."""
    return ir.Unary("not", e, BOOL)
