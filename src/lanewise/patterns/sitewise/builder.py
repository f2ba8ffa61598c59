"""What all parts of a kernel over sites share: what it is specialised to, its arguments, its
arrays, the names of a site's values.

What a site learns of itself belongs to it: where it lies, whether it is special or a wall, and what
its flags say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from lanewise.frontend.function import Lowered
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.ir.values import record_array, value_array
from lanewise.language import types as t
from lanewise.language.array_types import ArrayType
from lanewise.language.lattices.base import Lattice
from lanewise.language.record import Leaf
from lanewise.language.types import BOOL, I32, U32, Scalar
from lanewise.layouts import Layout, SoA
from lanewise.patterns.sitewise.kinds import Edges, Wall
from lanewise.patterns.sitewise.links import (
    EXTENTS,
    FLAG_WORD,
    FLAGS,
    KIND,
    LAYER,
    MAGIC,
    PLANE,
    ROW,
    SHIFT,
    Links,
    kind_of,
    walls_of,
)
from lanewise.patterns.sitewise.streaming import Phase
from lanewise.patterns.tables.arguments import table_arrays
from lanewise.support.articles import an
from lanewise.support.errors import ArgumentError


class SiteBuilder:
    """A site of a kernel: what it is called, where its links lead, what memory it has.

    The parts of kernels are functions of it.

    a: what the kernel is specialised to. site: the index. main: the function of kind 0, and
    `populations` what it calls them. placed,
    framed: as in the arguments, where this phase can be. follows: links are followed. kinds: sites
    of several kinds.
    """

    def __init__(self, arguments: SitewiseArguments, index: Scalar) -> None:
        a = self.a = arguments
        self.site = ir.Local(own("n"), index)
        self.reads_fields = bool(a.fields or a.state)
        self.placed = (
            a.placed and (a.phase.load_links or self.reads_fields) and not a.phase.put_links
        )
        self.framed = self.placed and a.framed
        row_block = a.row_block if self.placed else 0
        self.links = Links(
            a.lattice,
            a.edges,
            a.walls,
            a.solids,
            self.site,
            a.real,
            placed=self.placed,
            row_block=row_block,
            framed=self.framed,
            moving_sites=a.moving_sites,
        )
        self.main = a.updates[0]
        self.populations = FIELDS if a.state else self.main.populations
        self.follows = a.phase.load_links or (a.puts and a.phase.put_links) or self.reads_fields
        self.kinds = len(a.updates) > 1

    def value(self, q: int) -> ir.Local:
        return ir.Local(f"{self.populations}.q{q}", self.a.real)

    def leaf(self, q: int, opposite: bool) -> int:
        return self.a.lattice.opposite[q] if opposite else q

    def converted(self, value: ir.Expression) -> ir.Expression:
        """A value as populations are stored."""
        return build.cast(value, self.a.storage)

    @property
    def target(self) -> str:
        return NEXT if self.a.two else self.populations

    @property
    def special(self) -> ir.Local:
        return ir.Local(_SPECIAL, BOOL)

    @property
    def has_flags(self) -> bool:
        return self.follows or self.kinds

    def velocities(self) -> tuple[ir.Parameter, ...]:
        """Of walls that move: uniforms of kernels over lists of sites."""
        moving = {w.velocity for w in self.links.moving}
        return tuple(
            ir.Parameter(leaf, t.scalar_of(kind))
            for name, kind in self.a.uniforms
            if name in moving
            for leaf in t.leaves(name, kind)
        )

    def counts(self) -> tuple[ir.Parameter, ...]:
        """The extents of the box, and in three dimensions the sites of a layer."""
        dimension = self.a.lattice.dimension
        names = (*EXTENTS[:dimension], *((PLANE,) if dimension > 2 else ()))
        blocks = (ROW, LAYER)[: dimension - 1] if self.links.row_block else ()
        divisions = (
            (x for a in range(dimension - 1) for x in (MAGIC[a], SHIFT[a])) if self.placed else ()
        )
        return (
            *(ir.Parameter(name, self.site.type) for name in (*names, *blocks)),
            *(ir.Parameter(name, U32) for name in divisions),
        )

    def arrays(self) -> Iterator[ir.ArrayArgument]:
        a = self.a
        leaves = tuple(Leaf(n, a.storage) for n, _ in a.state) or _population_leaves(
            a.lattice, a.storage
        )
        yield record_array(self.populations, leaves, a.layout, written=a.puts and not a.two)
        if a.puts and a.two:
            yield record_array(NEXT, leaves, a.layout, written=True)
        yield value_array(MARKS, U32, written=False)
        yield value_array(SOLIDS, U32, written=False)
        yield value_array(FLAGS, U32, written=False)
        for name, kind in (*a.arrays, *a.fields):
            yield value_array(name, kind, written=False)
        yield from table_arrays(dict(a.tables))
        if a.collects:
            yield record_array(ARRIVED, _population_leaves(a.lattice, a.real), SoA(), written=True)
        for name, kind in () if a.state and a.puts else self.results():
            yield value_array(name, kind, written=True)

    def results(self) -> list[tuple[str, t.ValueType]]:
        kinds = self.main.lowered.results
        return [
            (own("result" if len(kinds) == 1 else f"result{n}"), kind)
            for n, kind in enumerate(kinds)
        ]

    def uniforms(self) -> Iterator[ir.Parameter]:
        """Uniform scalars that any function of the kernel uses, and the velocities of moving
        walls.
        """
        a = self.a
        used = {p.name for u in a.updates for p in u.lowered.function.parameters}
        moving = {w.velocity for w in self.links.moving}
        read = {
            n
            for n, _ in (*a.state, *a.fields)
            if any(f"{n}.q{q}" in used for q in range(a.lattice.size))
        }
        fixed = {value for w in a.walls for field, value in w.fields if field in read}
        for name, kind in a.uniforms:
            for leaf in t.leaves(name, kind):
                if leaf in used or name in moving or name in fixed:
                    yield ir.Parameter(leaf, t.scalar_of(kind))

    def declared(self, q: int) -> ir.Block:
        """A population that branches give its value."""
        return (ir.Assign(self.value(q).name, ir.Literal(0.0, self.a.real)),)


def zero_of(scalar: Scalar) -> ir.Literal:
    """Nothing, in this type."""
    return build.zero(scalar)


def negated(e: ir.Expression) -> ir.Expression:
    """Not `e`."""
    return ir.Unary("not", e, BOOL)


MARKS, _SPECIAL = own("marks"), own("special")
SOLIDS, WALL, ALL = own("solids"), own("wall"), own("all")
NEXT, ARRIVED = own("next"), own("arrived")
FIELDS = own("fields")  # the fields of a stencil's sites, a record as populations are
PUTS = own("puts")  # whether anything is stored where a site lies


@dataclass(frozen=True, slots=True)
class Update:
    """The function of the sites of a kind; `populations` is the name of its parameter."""

    number: int
    name: str
    lowered: Lowered
    populations: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SitewiseArguments:
    """What a kernel over sites is specialised to.

    updates: the functions of the kinds that occur, kind 0 first. walls: the kinds of walls that
    occur. solids: some of them are sites of the mask. two: load from one copy of the populations
    and put into another. arrays: parameters with one value a site. puts: populations depart; an
    observer only looks. collects: store the populations that arrive, and apply nothing.
    marked: bits say which sites are special and which are walls; without them every site reads its
    flags. dense: many sites are special. thin: the box is one site wide along some axis. placed:
    every site computes where it lies, so that faces that wrap are nothing special. framed: besides,
    all sites are of kind 0, so that what is special follows from that, and no mark or flags are
    read. row_block: rows along x are whole blocks of that many sites (0: not known), which makes
    places cheap. ranged: launches run over some layers of a part of a mesh.
    moving_sites: walls that move may be sites of the mask. fields: what sites read at their
    neighbours, and hold in their own arrays.
    state: what sites hold instead of populations, and read at their neighbours. tables: arrays
    that functions read by index.
    """

    lattice: Lattice
    edges: Edges
    phase: Phase
    storage: Scalar
    real: Scalar
    layout: Layout
    updates: tuple[Update, ...]
    walls: tuple[Wall, ...] = ()
    solids: bool = False
    two: bool = False
    arrays: tuple[tuple[str, t.ValueType], ...] = ()
    uniforms: tuple[tuple[str, t.ValueType], ...] = ()
    puts: bool = True
    collects: bool = False
    marked: bool = True
    dense: bool = False
    thin: bool = False
    placed: bool = False
    framed: bool = False
    row_block: int = 0
    ranged: bool = False
    moving_sites: bool = True
    fields: tuple[tuple[str, Scalar], ...] = ()
    state: tuple[tuple[str, Scalar], ...] = ()
    tables: tuple[tuple[str, ArrayType], ...] = ()


def _population_leaves(lattice: Lattice, storage: Scalar) -> tuple[Leaf, ...]:
    """The record of populations: one leaf a direction."""
    return tuple(Leaf(f"q{q}", storage) for q in range(lattice.size))


K = TypeVar("K", bound=t.ValueType | ArrayType)


def agreed(functions: Iterable[tuple[str, Mapping[str, K]]]) -> dict[str, K]:
    """The types of what all functions of a kernel take, by name: their parameters, or their tables.

    Raises `ArgumentError` where two disagree.
    """
    first: dict[str, tuple[str, K]] = {}
    for function, kinds in functions:
        for name, kind in kinds.items():
            other, before = first.setdefault(name, (function, kind))
            if before != kind:
                raise ArgumentError(
                    f"{name!r} is {an(before)} of {other} and {an(kind)} of {function}; wanted one "
                    "type"
                )
    return {name: kind for name, (_, kind) in first.items()}


def head(b: SiteBuilder) -> ir.Block:
    """Whether the site is special, and whether it is a wall: by its bits, or else by its flags."""
    body: list[ir.Statement] = []
    if b.placed:
        body += (*b.links.coordinates(), *b.links.distances())
    # places are chosen by where the site lies: no class of sites has its own branch
    if b.framed:
        return (*body, *((ir.Assign(KIND, ir.Literal(0, I32)),) if b.kinds else ()))
    if not b.a.marked and (b.has_flags or b.a.solids):
        flag_word = ir.Local(ALL, U32)
        body.append(ir.LoadRecord(FLAGS, b.site, (("value", flag_word.name),)))
        body.append(ir.Assign(_SPECIAL, ir.Compare("!=", flag_word, ir.Literal(0, U32))))
        if b.a.solids:
            body.append(ir.Assign(WALL, walls_of(b.a.walls, kind_of(flag_word))))
    elif b.a.marked:
        body += _bit(b, MARKS, "mark", _SPECIAL) if b.has_flags else ()
        body += _bit(b, SOLIDS, "solid", WALL) if b.a.solids else ()
    if b.kinds:
        body.append(ir.Assign(KIND, ir.Literal(0, I32)))
    return tuple(body)


def _bit(b: SiteBuilder, array: str, flag_word: str, name: str) -> ir.Block:
    """The site's bit of an array with 32 sites a flags."""
    read = ir.Local(own(flag_word), U32)
    place = ir.Cast(build.remainder(b.site, 32), U32)
    test = ir.Binary("&", build.shift_right(read, place), ir.Literal(1, U32), U32)
    return (
        ir.LoadRecord(array, build.divide(b.site, 32), (("value", read.name),)),
        ir.Assign(name, ir.Compare("!=", test, ir.Literal(0, U32))),
    )


def flag_word(b: SiteBuilder) -> ir.Block:
    """What a special site learns first."""
    body: ir.Block = (ir.LoadRecord(FLAGS, b.site, (("value", FLAG_WORD),)),)
    if b.kinds:
        body += (ir.Assign(KIND, kind_of(ir.Local(FLAG_WORD, U32))),)
    return body + (b.links.coordinates() if b.follows and not b.placed else ())


def learn(b: SiteBuilder) -> ir.Block:
    """What a site knows before it loads: its flags, its kind, and where it lies."""
    if b.framed:
        return ()
    flag_word = ir.Assign(FLAG_WORD, ir.Local(ALL, U32))
    kind = (ir.Assign(KIND, kind_of(ir.Local(FLAG_WORD, U32))),) if b.kinds else ()
    asks = b.links.asks_where and not b.placed
    where = (*nowhere(b), ir.If(b.special, b.links.coordinates())) if asks else ()
    return (flag_word, *kind, *where)


def default_flags(b: SiteBuilder) -> ir.Block:
    """Variables that puts need beyond the branch of special sites have a value everywhere."""
    if not (b.a.puts and b.a.phase.put_links):
        return ()
    return (ir.Assign(FLAG_WORD, ir.Literal(0, U32)), *nowhere(b))


def nowhere(b: SiteBuilder) -> ir.Block:
    """Coordinates of a site that does not need them."""
    index = b.site.type
    body: list[ir.Statement] = []
    for s in b.links.coordinates():
        assert isinstance(s, ir.Assign)
        zero = ir.Literal(False, BOOL) if s.value.type == BOOL else ir.Literal(0, index)
        body.append(ir.Assign(s.name, zero))
    return tuple(body)
