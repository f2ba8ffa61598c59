"""sitewise: every site of a lattice by itself. Fetch the populations that arrive, apply the function of its kind, put what departs.

    parallel for n: fetch from the bulk neighbours; if special(n): correct by the site's word; apply; put
A special site corrects what it fetched as if it were one of the bulk (at places clamped to the array): so mark and populations are on
their way at the same time, where a test first would wait for memory twice. Where many sites are special (`dense`), each reads its word
first, and fetches every population once. Which places those are says the phase of the streaming form (`sites/streaming.py`); what is
special, the word (`sites/words.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lanewise import types as t
from lanewise.errors import ArgumentError
from lanewise.frontend.function import Lowered
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import COUNT, identifier, own, owner
from lanewise.ir.traverse import statements
from lanewise.lattices.base import Lattice
from lanewise.layouts import Layout, SoA
from lanewise.patterns.links import (
    EXTENTS,
    KIND,
    LAYER,
    MAGIC,
    PLANE,
    ROW,
    SHIFT,
    WORD,
    WORDS,
    Links,
    kind_of,
    walls_of,
)
from lanewise.patterns.values import pairs, record_array, value_array
from lanewise.record import Leaf
from lanewise.sites.edges import Edges
from lanewise.sites.kinds import Wall
from lanewise.sites.streaming import Phase
from lanewise.sites.words import SHARES
from lanewise.types import BOOL, I32, U32, Scalar

MARKS, SPECIAL = own("marks"), own("special")
SOLIDS, WALL, ALL = own("solids"), own("wall"), own("all")
NEXT, ARRIVED = own("next"), own("arrived")
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

    updates: the functions of the kinds that occur, kind 0 first. walls: the kinds of walls that occur. solids: some of them
    are sites of the mask. two: fetch from one copy of the populations and put into another. arrays: parameters with one value
    a site. puts: populations depart; an observer only looks. collects: store the populations that arrive, and apply nothing.
    marked: bits say which sites are special and which are walls; without them every site reads its word. dense: many sites
    are special. thin: the box is one site wide along some axis. placed: every site computes where it lies, so that faces that
    wrap are nothing special. framed: besides, all sites are of kind 0, so that what is special follows from that, and no mark or
    word is read. row_block: rows along x are whole blocks of so many sites (0: not known), which makes places cheap.
    moving_sites: walls that move may be sites of the mask.
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
    moving_sites: bool = True


def population_leaves(lattice: Lattice, storage: Scalar) -> tuple[Leaf, ...]:
    """The record of populations: one leaf a direction."""
    return tuple(Leaf(f"q{q}", storage) for q in range(lattice.size))


def build_sitewise(arguments: SitewiseArguments, index: Scalar) -> ir.Kernel:
    """The naive kernel of one phase."""
    return SiteBuilder(arguments, index).kernel()


class SiteBuilder:
    """The parts of a kernel over sites; patterns that look at sites take some of them."""

    def __init__(self, arguments: SitewiseArguments, index: Scalar) -> None:
        a = self.a = arguments
        self.site = ir.Local(own("n"), index)
        self.placed = a.placed and a.phase.fetch_links and not a.phase.put_links
        self.framed = self.placed and a.framed
        row_block = a.row_block if self.placed else 0
        self.links = Links(
            a.lattice, a.edges, a.walls, a.solids, self.site, a.real,
            placed=self.placed, row_block=row_block, framed=self.framed, moving_sites=a.moving_sites,
        )  # fmt: skip
        self.main = a.updates[0]
        self.populations = self.main.populations
        self.follows = a.phase.fetch_links or (a.puts and a.phase.put_links)
        self.kinds = len(a.updates) > 1

    # ------------------------------------------------------------ names

    def value(self, q: int) -> ir.Local:
        return ir.Local(f"{self.populations}.q{q}", self.a.real)

    def leaf(self, q: int, opposite: bool) -> int:
        return self.a.lattice.opposite[q] if opposite else q

    def converted(self, value: ir.Expression) -> ir.Expression:
        """A value as populations are stored."""
        return _converted(value, self.a.storage)

    @property
    def target(self) -> str:
        return NEXT if self.a.two else self.populations

    @property
    def special(self) -> ir.Local:
        return ir.Local(SPECIAL, BOOL)

    @property
    def has_words(self) -> bool:
        return self.follows or self.kinds

    # ------------------------------------------------------------ the kernel

    def kernel(self) -> ir.Kernel:
        f = self.main.lowered.function
        index = self.site.type
        count = ir.Parameter(COUNT, index)
        body = (*self.head(), *self.work())
        loop = ir.Parallel(self.site.name, ir.Local(count.name, index), body)
        used = {s.array for s in statements(body) if isinstance(s, ir.Fetch | ir.Commit)}
        arrays = tuple(x for x in self.arrays() if x.name in used)
        uniforms = tuple(self.uniforms())
        return ir.Kernel(
            identifier(f.name), "sitewise", arrays, uniforms, (count, *self.counts()), (loop,), location=f.location
        )

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
        yield value_array(WORDS, U32, written=False)
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

    # ------------------------------------------------------------ what is special

    def head(self) -> ir.Block:
        """Whether the site is special, and whether it is a wall: by its bits, or else by its word."""
        body: list[ir.Statement] = []
        if self.placed:
            body += (*self.links.coordinates(), *self.links.distances())
        if self.framed:  # places are chosen by where the site lies: no class of sites has a branch of its own
            return (*body, *((ir.Assign(KIND, ir.Literal(0, I32)),) if self.kinds else ()))
        if not self.a.marked and (self.has_words or self.a.solids):
            word = ir.Local(ALL, U32)
            body.append(ir.Fetch(WORDS, self.site, (("value", word.name),)))
            body.append(ir.Assign(SPECIAL, ir.Compare("!=", word, ir.Literal(0, U32))))
            if self.a.solids:
                body.append(ir.Assign(WALL, walls_of(self.a.walls, kind_of(word))))
        elif self.a.marked:
            body += self.bit(MARKS, "mark", SPECIAL) if self.has_words else ()
            body += self.bit(SOLIDS, "solid", WALL) if self.a.solids else ()
        if self.kinds:
            body.append(ir.Assign(KIND, ir.Literal(0, I32)))
        return tuple(body)

    def bit(self, array: str, word: str, name: str) -> ir.Block:
        """The site's bit of an array with 32 sites a word."""
        read = ir.Local(own(word), U32)
        place = ir.Cast(build.remainder(self.site, 32), U32)
        test = ir.Binary("&", ir.Binary(">>", read, place, U32), ir.Literal(1, U32), U32)
        return (
            ir.Fetch(array, build.divide(self.site, 32), (("value", read.name),)),
            ir.Assign(name, ir.Compare("!=", test, ir.Literal(0, U32))),
        )

    def word(self) -> ir.Block:
        """What a special site learns first."""
        body: ir.Block = (ir.Fetch(WORDS, self.site, (("value", WORD),)),)
        if self.kinds:
            body += (ir.Assign(KIND, kind_of(ir.Local(WORD, U32))),)
        return body + (self.links.coordinates() if self.follows and not self.placed else ())

    # ------------------------------------------------------------ fetching

    def fetches(self) -> ir.Block:
        phase = self.a.phase
        if not phase.fetch_links:
            learns = self.kinds or (self.a.puts and phase.put_links)
            learnt = (ir.If(self.special, self.word()),) if learns else ()
            return (*self.fetch_own(phase.fetch_opposite), *self.default_word(), *learnt)
        if self.a.dense or self.framed:
            return self.fetch_by_word()
        return (*self.fetch_bulk(), *self.default_word(), ir.If(self.special, (*self.word(), *self.corrections())))

    def fetch_bulk(self) -> ir.Block:
        """Every population from the place where it is for a bulk site."""
        body: list[ir.Statement] = []
        for q in range(self.a.lattice.size):
            body += self.fetch(self.bulk_place(q), self.leaf(q, self.a.phase.fetch_opposite), q, f"bulk.{q}")
        return tuple(body)

    def bulk_place(self, q: int) -> ir.Expression:
        if self.placed:
            return self.links.neighbour(q, -1)
        return self.inside(self.links.offset(q, -1), self.links.order(q, -1))

    def fetch_by_word(self) -> ir.Block:
        """Every population once, from the place that the site's word says, or the faces that it lies at."""
        size = range(self.a.lattice.size)
        stored = [ir.Local(own(f"anew.{q}"), self.a.storage) for q in size]
        zeros = (ir.Assign(v.name, ir.Literal(0.0, self.a.storage)) for v in stored)
        fetched = (s for q in size for s in self.fetch_anew(q, stored[q], bulk=True))
        taken = (ir.Assign(self.value(q).name, _converted(stored[q], self.a.real)) for q in size)
        return (*self.learn(), *zeros, *fetched, *taken, *self.add_at_moving_walls())

    def learn(self) -> ir.Block:
        """What a site knows before it fetches: its word, its kind, and where it lies."""
        if self.framed:
            return ()
        word = ir.Assign(WORD, ir.Local(ALL, U32))
        kind = (ir.Assign(KIND, kind_of(ir.Local(WORD, U32))),) if self.kinds else ()
        asks = self.links.asks_where and not self.placed
        where = (*self.nowhere(), ir.If(self.special, self.links.coordinates())) if asks else ()
        return (word, *kind, *where)

    def add_at_moving_walls(self) -> ir.Block:
        """What walls that move add to what they send back; most sites skip it all at once."""
        added = tuple(s for q in range(1, self.a.lattice.size) for s in self.add_at_moving_wall(q))
        near = self.links.at_moving_face()
        return added if near is None or not added else (ir.If(near, added),)

    def add_at_moving_wall(self, q: int) -> ir.Block:
        met, value = ir.Local(own(f"met.{q}"), I32), self.value(q)
        if not (q and self.links.can_be_cut) or (term := self.links.added(q, met)) is None:
            return ()
        total = ir.Assign(value.name, ir.Binary("+", value, term, self.a.real))
        return (ir.If(self.links.is_cut(q), (*self.links.wall_met(q, met.name), total)),)

    def inside(self, place: ir.Expression, order: int) -> ir.Expression:
        """A place of the array, also for special sites at its ends; `order` tells at which end it could lie outside."""
        last = build.subtract(ir.Local(COUNT, self.site.type), 1)
        if order < 0 or (order and self.a.thin):
            place = build.maximum(place, 0)
        return build.minimum(place, last) if order > 0 or (order and self.a.thin) else place

    def declared(self, q: int) -> ir.Block:
        """A population that branches give its value."""
        return (ir.Assign(self.value(q).name, ir.Literal(0.0, self.a.real)),)

    def default_word(self) -> ir.Block:
        """Variables that puts need beyond the branch of special sites have a value everywhere."""
        if not (self.a.puts and self.a.phase.put_links):
            return ()
        return (ir.Assign(WORD, ir.Literal(0, U32)), *self.nowhere())

    def nowhere(self) -> ir.Block:
        """Coordinates of a site that does not need them."""
        index = self.site.type
        body: list[ir.Statement] = []
        for s in self.links.coordinates():
            assert isinstance(s, ir.Assign)
            zero = ir.Literal(False, BOOL) if s.value.type == BOOL else ir.Literal(0, index)
            body.append(ir.Assign(s.name, zero))
        return tuple(body)

    def fetch_own(self, opposite: bool) -> ir.Block:
        """All populations of the site's own record, in one access: as wide as the layout allows."""
        size = range(self.a.lattice.size)
        stored = [ir.Local(own(f"own.{q}"), self.a.storage) for q in size]
        reads = tuple((f"q{self.leaf(q, opposite)}", stored[q].name) for q in size)
        values = tuple(ir.Assign(self.value(q).name, _converted(stored[q], self.a.real)) for q in size)
        return (ir.Fetch(self.populations, self.site, reads), *values)

    def fetch(self, place: ir.Expression, leaf: int, q: int, tag: str) -> ir.Block:
        """Fetch a leaf into population q."""
        stored = ir.Local(own(f"{tag}"), self.a.storage)
        return (
            ir.Fetch(self.populations, place, ((f"q{leaf}", stored.name),)),
            ir.Assign(self.value(q).name, _converted(stored, self.a.real)),
        )

    def corrections(self) -> ir.Block:
        """What a special site fetches anew: populations from cut links, and from links that wrap or are mirrored.

        All fetches come before all uses, so that they wait for memory together.
        """
        directions = range(1, self.a.lattice.size)
        stored = {q: ir.Local(own(f"anew.{q}"), self.a.storage) for q in directions}
        zero = ir.Literal(0.0, self.a.storage)
        fetched = [s for q in directions for s in self.fetch_anew(q, stored[q])]
        if not fetched:
            return ()
        used = (s for q in directions for s in self.use_anew(q, stored[q]))
        return (*(ir.Assign(v.name, zero) for v in stored.values()), *fetched, *used)

    def fetch_anew(self, q: int, stored: ir.Local, *, bulk: bool = False) -> ir.Block:
        """With `bulk` also from links that are neither cut nor bent."""
        leaf, bends = self.leaf(q, self.a.phase.fetch_opposite), self.links.bends(q, -1)
        count = iter(range(64))

        def fetch(place: ir.Expression, which: int) -> ir.Block:
            name = f"{stored.name}.{next(count)}"
            read = ir.Fetch(self.populations, place, ((f"q{which}", name),))
            return (read, ir.Assign(stored.name, ir.Local(name, self.a.storage)))

        free = fetch(self.bulk_place(q), leaf) if bulk else ()
        if bends is not None:
            free = (ir.If(bends, self.links.towards(q, -1, leaf, fetch), free),)
        if not (q and self.links.can_be_cut):
            return free
        return (ir.If(self.links.is_cut(q), fetch(self.site, self.a.lattice.opposite[leaf]), free),)

    def use_anew(self, q: int, stored: ir.Local) -> ir.Block:
        value, bends = self.value(q), self.links.bends(q, -1)
        taken = ir.Assign(value.name, _converted(stored, self.a.real))
        free: ir.Block = () if bends is None else (ir.If(bends, (taken,)),)
        if not (q and self.links.can_be_cut):
            return free
        met = ir.Local(own(f"met.{q}"), I32)
        cut: ir.Block = (taken,)
        if (term := self.links.added(q, met)) is not None:
            total = ir.Binary("+", _converted(stored, self.a.real), term, self.a.real)
            cut = (*self.links.wall_met(q, met.name), ir.Assign(value.name, total))
        return (ir.If(self.links.is_cut(q), cut, free),)

    # ------------------------------------------------------------ the functions

    def fields(self) -> ir.Block:
        used = {p.name for u in self.a.updates for p in u.lowered.function.parameters}
        return tuple(
            ir.Fetch(name, self.site, tuple((leaf, v) for leaf, v in pairs(name, kind) if v in used))
            for name, kind in self.a.arrays
            if any(v in used for _, v in pairs(name, kind))
        )

    def work(self) -> ir.Block:
        """Everything behind the bits of a site: nothing but zeros for a wall."""
        a = self.a
        if a.collects:
            values = tuple((f"q{q}", self.value(q)) for q in range(a.lattice.size))
            zeros = tuple(s for q in range(a.lattice.size) for s in self.declared(q))
            commits: ir.Block = (ir.Commit(ARRIVED, self.site, values),)
            inner = self.fetches()
        else:
            kinds = [(v, t.scalar_of(k)) for n, k in self.results() for _, v in pairs(n, k)]
            zeros = tuple(ir.Assign(v, _zero(k)) for v, k in kinds)
            commits = tuple(
                ir.Commit(n, self.site, tuple((leaf, ir.Local(v, t.scalar_of(k))) for leaf, v in pairs(n, k)))
                for n, k in self.results()
            )
            inner = (*self.fetches(), *self.fields(), *self.applications())
            if a.puts and a.solids and a.dense and not a.phase.put_links:
                return self.put_whole_sectors(inner)
            inner += self.puts() if a.puts else ()
        if not a.solids:
            return (*inner, *commits)
        return (*zeros, ir.If(_not(ir.Local(WALL, BOOL)), inner), *commits)

    def put_whole_sectors(self, inner: ir.Block) -> ir.Block:
        """Walls among the sites of a sector are written along with them, as zeros."""
        shared = ir.Binary("&", ir.Local(ALL, U32), ir.Literal(int(SHARES), U32), U32)
        shares = ir.Compare("!=", shared, ir.Literal(0, U32))
        zeros = tuple(s for q in range(self.a.lattice.size) for s in self.declared(q))
        wall = ir.Local(WALL, BOOL)
        stored = ir.Assign(PUTS, ir.Logical("or", _not(wall), shares))
        return (*zeros, ir.If(_not(wall), inner), stored, ir.If(ir.Local(PUTS, BOOL), self.puts()))

    def applications(self) -> ir.Block:
        """The function of kind 0, or a chain of tests when there are others."""
        chain: ir.Block = ()
        for update in reversed(self.a.updates[1:]):
            chain = (ir.If(build.equal(ir.Local(KIND, I32), update.number), (self.apply(update),), chain),)
        if not chain:
            return (self.apply(self.main),)
        return (ir.If(build.equal(ir.Local(KIND, I32), 0), (self.apply(self.main),), chain),)

    def apply(self, update: Update) -> ir.Apply:
        f = update.lowered.function
        arguments = tuple(
            ir.Local(p.name.replace(f"{update.populations}.", f"{self.populations}.", 1), p.type)
            if owner(p.name) == update.populations
            else ir.Local(p.name, p.type)
            for p in f.parameters
        )
        return ir.Apply(f, arguments, tuple(own(r.name) for r in f.results))

    # ------------------------------------------------------------ putting

    def puts(self) -> ir.Block:
        phase, size = self.a.phase, self.a.lattice.size
        if not phase.put_links:
            writes = ((f"q{self.leaf(q, phase.put_opposite)}", self.value(q)) for q in range(size))
            return (ir.Commit(self.target, self.site, tuple((n, _converted(v, self.a.storage)) for n, v in writes)),)
        bulk = tuple(
            self.put(self.links.offset(q, 1), self.leaf(q, phase.put_opposite), self.value(q)) for q in range(size)
        )
        special = tuple(s for q in range(size) for s in self.put_special(q))
        return (ir.If(self.special, special, bulk),)

    def put(self, place: ir.Expression, leaf: int, value: ir.Expression) -> ir.Statement:
        return ir.Commit(self.target, place, ((f"q{leaf}", _converted(value, self.a.storage)),))

    def put_special(self, q: int) -> ir.Block:
        leaf = self.leaf(q, self.a.phase.put_opposite)
        if q == 0:
            return (self.put(self.site, leaf, self.value(0)),)
        back = self.a.lattice.opposite[q]  # the direction in which it comes back from a wall
        free = self.links.towards(q, 1, leaf, lambda place, mirrored: (self.put(place, mirrored, self.value(q)),))
        if not self.links.can_be_cut:
            return free
        value: ir.Expression = self.value(q)
        before: ir.Block = ()
        met = ir.Local(own(f"met.back.{q}"), I32)
        if (term := self.links.added(back, met)) is not None:
            before = self.links.wall_met(back, met.name)
            value = ir.Binary("+", value, term, self.a.real)
        cut = (*before, self.put(self.site, self.a.lattice.opposite[leaf], value))
        return (ir.If(self.links.is_cut(back), cut, free),)


def check_uniforms(functions: list[tuple[str, dict[str, t.ValueType]]]) -> dict[str, t.ValueType]:
    """The parameters of all functions of a kernel by name; raises `ArgumentError` where two disagree about a type."""
    found: dict[str, tuple[str, t.ValueType]] = {}
    for function, parameters in functions:
        for name, kind in parameters.items():
            other, known = found.setdefault(name, (function, kind))
            if known != kind:
                raise ArgumentError(f"{name!r} is a {known} of {other} and a {kind} of {function}; wanted one type")
    return {name: kind for name, (_, kind) in found.items()}


def _zero(scalar: Scalar) -> ir.Literal:
    return ir.Literal(False if scalar == BOOL else 0.0 if scalar.is_float else 0, scalar)


def _converted(value: ir.Expression, to: Scalar) -> ir.Expression:
    return value if value.type == to else ir.Cast(value, to)


def _not(e: ir.Expression) -> ir.Expression:
    return ir.Unary("not", e, BOOL)
