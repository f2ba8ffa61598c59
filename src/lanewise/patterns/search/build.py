"""search: for every target, the sum of a function over the sources that a walk through a structure
finds.

    parallel for i: load target; walk: load the source's position; if d2 < radius2: load the rest;
    apply; add;  store
With k the walk fills a list of the nearest, and the function is applied to those in it. Targets
that are their own sources run in sorted places, where neighbouring threads have neighbouring
places, and their results go to their places in the caller's order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from lanewise.frontend.function import Lowered
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.itself import find_itself, itself_uniforms
from lanewise.ir.names import count_of, identifier, own
from lanewise.ir.pattern import HostCode, Pattern, Work
from lanewise.ir.reductions import Place
from lanewise.ir.values import record_array, uniform_leaves, value_array
from lanewise.language import types as t
from lanewise.language.array_types import ArrayType
from lanewise.language.record import Leaf
from lanewise.language.target import WARP, Machine
from lanewise.language.types import I32, I64, LocalArray, Scalar
from lanewise.layouts import Arrangement, Layout
from lanewise.patterns.results import accumulators, check_results, result_arrays, stores
from lanewise.patterns.search.all_pairs import AllWalk
from lanewise.patterns.search.base import ORDER, RADIUS2, Visit, Walk
from lanewise.patterns.search.candidates import Candidates, Nearest, inverse_period, period
from lanewise.patterns.search.sight import COSINE2, NEAR2, heading, seen
from lanewise.patterns.tables.arguments import numbers, table_arrays, table_lengths
from lanewise.planning.plan import NEUTRAL, CompletePlan, Plan

__all__ = ["SearchArguments", "Side", "build_search", "inverse_period", "period"]

VECTOR_BYTES = 16
NEAR, NEAR_COUNT = own("near"), own("near.count")
NEAR_LENGTH = 32  # sources that a CPU sets aside before it applies the function to them


@dataclass(frozen=True, slots=True)
class Side:
    """The array of targets or of sources: the parameter's name, the leaves that are there, their
    layout.
    """

    name: str
    leaves: tuple[Leaf, ...]
    layout: Layout


@dataclass(frozen=True, slots=True)
class SearchArguments:
    """What a kernel over a walk is specialised to.

    position: the leaves of the position's field, one an axis. k: of the nearest. limited: there is
    a radius. periodic: the sizes of the world stand in uniforms (`period(axis)`). ordered: sources
    lie in sorted places, and so do targets that are the same array; `$order` has the caller's
    indices. identical: targets and sources are one array; parts: they are different parts of one.
    tables: what the function reads by index. sight: the heading of the targets, one leaf an axis,
    where those behind a target are not met.
    """

    target: Side
    source: Side
    uniforms: tuple[tuple[str, t.ValueType], ...]
    position: tuple[Leaf, ...]
    walk: Walk
    identical: bool
    ordered: bool
    limited: bool
    periodic: bool
    k: int | None
    tables: tuple[tuple[str, ArrayType], ...] = ()
    parts: bool = False
    sight: tuple[Leaf, ...] = ()


def build_search(lowered: Lowered, arguments: SearchArguments, index: Scalar) -> ir.Kernel:
    """The reference kernel. Raises `CompileError` for results that cannot be summed."""
    check_results(lowered)
    return _SearchBuilder(lowered, arguments, index).kernel()


class _SearchBuilder:
    def __init__(self, lowered: Lowered, arguments: SearchArguments, index: Scalar) -> None:
        self.lowered, self.f, self.a, self.index = lowered, lowered.function, arguments, index
        self.i = ir.Local(own("i"), index)
        self.precision = arguments.position[0].type
        self.used = {p.name for p in self.f.parameters}
        self.arrays = [
            record_array(s.name, s.leaves, s.layout, written=False)
            for s in (arguments.target, arguments.source)
        ]
        places = tuple(x.name for x in arguments.position)
        self.place = tuple(ir.Local(f"{arguments.target.name}.{x}", self.precision) for x in places)
        self.candidates = Candidates(
            arguments.source.name, places, self.place, self.precision, arguments.periodic
        )
        self.d2 = self.candidates.d2
        self.limit = ir.Local(RADIUS2, self.precision)
        # A CPU guesses what a branch does, and most candidates lie too far away, but no one knows
        # which. So it writes every candidate into a list and counts on only behind those that are
        # near: no branch depends on a distance. A GPU (its indices have 32 bits) has no such list
        # in registers. Without a radius the bound has to shrink from candidate to candidate.
        self.collects = index == I64 and arguments.limited
        self.reduced = [a for group in accumulators(lowered) for a in group]
        ranked = arguments.ordered
        self.best = (
            None if arguments.k is None else Nearest(arguments.k, self.precision, index, ranked)
        )
        # Whether anything depends on which source the target is: of parts of one array that has to
        # be found.
        # what finds out whether a target sees a source, and the answer
        self.looks: ir.Block = ()
        self.seen: ir.Expression | None = None
        if arguments.sight:
            self.looks, self.seen = seen(len(places), self.precision, self.d2)
        self.parts = arguments.parts and (lowered.uses_same or self.best is not None)
        self.find, self.itself = find_itself(
            self.i, ir.Local(count_of(arguments.source.name), index)
        )

    # ------------------------------------------------------------ the kernel

    def kernel(self) -> ir.Kernel:
        a, f = self.a, self.f
        counts = tuple(ir.Parameter(count_of(s.name), self.index) for s in (a.target, a.source))
        outputs = [
            value_array(name, kind, written=True) for name, kind in result_arrays(self.lowered)
        ]
        indexed = any(x.reduction.indexed for x in self.reduced)
        asked = a.ordered and a.source.name in self.lowered.numbered
        ranks = a.ordered and (a.identical or self.best or indexed or asked or self.parts)
        order = [value_array(ORDER, I32, written=False)] if ranks else []
        outputs += table_arrays(dict(a.tables))
        body = (
            *self.load_target(),
            *(self.find if self.parts else ()),
            *self.sums(),
            *self.search(),
            *self.stores(),
        )
        loop = ir.Parallel(self.i.name, ir.Local(counts[0].name, self.index), body)
        return ir.Kernel(
            identifier(f.name),
            SEARCH,
            (*self.arrays, *outputs, *order, *a.walk.arguments()),
            tuple(self.uniforms()),
            counts,
            (loop,),
            identical=a.identical,
            reductions=tuple(self.reduced),
            location=f.location,
        )

    def uniforms(self) -> Iterator[ir.Parameter]:
        yield from uniform_leaves(
            self.f, {**dict(self.a.uniforms), **table_lengths(dict(self.a.tables))}
        )
        yield ir.Parameter(RADIUS2, self.precision)
        yield from self.candidates.uniforms()
        yield from self.a.walk.uniforms()
        if self.seen is not None:
            yield from (ir.Parameter(n, self.precision) for n in (COSINE2, NEAR2))
        if self.parts:
            yield from itself_uniforms()

    # ------------------------------------------------------------ targets and results

    def load_target(self) -> ir.Block:
        name = self.a.target.name
        places = {leaf.name for leaf in (*self.a.position, *self.a.sight)}
        reads = [
            x for x in self.a.target.leaves if x.name in places or f"{name}.{x.name}" in self.used
        ]
        load = ir.LoadRecord(name, self.i, tuple((x.name, f"{name}.{x.name}") for x in reads))
        looking = (
            ir.Assign(heading(n, self.precision).name, ir.Local(f"{name}.{x.name}", x.type))
            for n, x in enumerate(self.a.sight)
        )
        return (load, *looking)

    def sums(self) -> ir.Block:
        return tuple(s for x in self.reduced for s in x.start())

    def stores(self) -> ir.Block:
        body: list[ir.Statement] = []
        place: ir.Expression = self.i
        if self.a.ordered and self.a.identical:
            target = ir.Local(own("target"), I32)
            body.append(ir.LoadRecord(ORDER, self.i, (("value", target.name),)))
            place = build.cast(target, self.index)
        return (*body, *stores(self.lowered, place))

    # ------------------------------------------------------------ sources

    def search(self) -> ir.Block:
        if self.best is None:
            return self.met(self.limit, lambda j: (*self.load_position(j), *self.apply(j)))
        return (
            *self.best.start(self.limit),
            *self.met(self.best.bound2, self.consider),
            *self.best.each(lambda j: (*self.load_position(j), *self.apply(j))),
        )

    def met(self, bound2: ir.Local, visit: Visit) -> ir.Block:
        """Visit the sources that are near enough; each one's position is loaded by `visit`."""
        if not self.collects:
            return self.a.walk.around(
                self.place, bound2, visit if self.best else lambda j: self.check(j, visit)
            )
        names, length = LocalArray(I64, NEAR_LENGTH), ir.Literal(NEAR_LENGTH, I64)
        count = ir.Local(NEAR_COUNT, I64)
        empty, drain = ir.Assign(count.name, ir.Literal(0, I64)), self.drain(count, visit)

        def collect(j: ir.Local) -> ir.Block:
            near: ir.Expression = ir.Compare("<" if self.best is None else "<=", self.d2, bound2)
            number, other = self.other(j) if self.best else ((), None)
            near = near if other is None else ir.Logical("and", near, other)
            near = near if self.seen is None else ir.Logical("and", near, self.seen)
            more = ir.Select(near, ir.Literal(1, I64), ir.Literal(0, I64), I64)
            return (
                ir.If(build.equal(count, length), (*drain, empty)),
                ir.SetElement(NEAR, count, j),
                *number,
                *self.load_position(j),
                *self.candidates.distance(),
                *self.looks,
                ir.Assign(count.name, build.add(count, more)),
            )

        return (
            ir.DeclareArray(NEAR, names),
            empty,
            *self.a.walk.around(self.place, bound2, collect),
            *drain,
        )

    def drain(self, count: ir.Local, visit: Visit) -> ir.Block:
        """Visit what was set aside."""
        m, j = ir.Local(own("near.m"), I64), ir.Local(own("near.j"), I64)
        taken = ir.Assign(j.name, ir.Element(NEAR, m, I64))
        return (ir.For(m.name, ir.Literal(0, I64), count, ir.Literal(1, I64), (taken, *visit(j))),)

    def check(self, j: ir.Local, visit: Visit) -> ir.Block:
        """A source that may be near: its position, and if it is near all else."""
        if not self.a.limited:
            return visit(j)
        near: ir.Expression = ir.Compare("<", self.d2, self.limit)
        near = near if self.seen is None else ir.Logical("and", near, self.seen)
        found = ir.If(near, self.apply(j))
        return (*self.load_position(j), *self.candidates.distance(), *self.looks, found)

    def consider(self, j: ir.Local) -> ir.Block:
        """A source that may be among the nearest, if it is not the target itself."""
        assert self.best is not None
        enters = self.best.enters(self.d2)
        number, other = ((), None) if self.collects else self.other(j)
        enters = enters if other is None else ir.Logical("and", enters, other)
        looks: ir.Block = ()
        if self.seen is not None and not self.collects:
            looks, enters = self.looks, ir.Logical("and", enters, self.seen)
        insert = ir.If(enters, self.best.insert(self.d2, j))
        return (*number, *self.load_position(j), *self.candidates.distance(), *looks, insert)

    def same(self, j: ir.Local) -> tuple[ir.Block, ir.Expression]:
        """Whether a source is the target itself, behind statements that find the source's
        number.
        """
        if self.a.identical:
            return (), build.equal(self.i, j)
        if not self.parts:
            return (), build.FALSE
        if not self.a.ordered:
            return (), build.equal(self.itself, j)
        number = ir.Local(own("source.number"), I32)
        return (ir.LoadRecord(ORDER, j, (("value", number.name),)),), build.equal(
            self.itself, build.cast(number, self.index)
        )

    def other(self, j: ir.Local) -> tuple[ir.Block, ir.Expression | None]:
        """The opposite: None where no source is a target."""
        number, same = self.same(j)
        return number, ir.Compare("!=", same.left, same.right) if isinstance(
            same, ir.Compare
        ) else None

    def load_position(self, j: ir.Local) -> ir.Block:
        """The position, moved to the nearest image; what one load brings besides comes with it."""
        name = self.a.source.name
        places = [x.name for x in self.a.position]
        reads = [*places, *(x for x in self.rest() if x in self.beside(self.arrays[1].arrangement))]
        load = ir.LoadRecord(name, j, tuple((x, f"{name}.{x}") for x in reads))
        return (load, *self.candidates.images())

    def rest(self) -> list[str]:
        """What the function reads of a source besides its position."""
        places = {x.name for x in self.a.position}
        name = self.a.source.name
        return [
            x.name
            for x in self.a.source.leaves
            if x.name not in places and f"{name}.{x.name}" in self.used
        ]

    def beside(self, arrangement: Arrangement) -> set[str]:
        """The leaves that the widest load brings together with the position."""
        slots = [arrangement.slot(x.name) for x in self.a.position]
        loads = {
            (s.buffer, s.offset // VECTOR_BYTES)
            for s in slots
            if arrangement.lanes(s) * s.type.size == VECTOR_BYTES
        }
        return {s.leaf for s in arrangement.slots if (s.buffer, s.offset // VECTOR_BYTES) in loads}

    def apply(self, j: ir.Local) -> ir.Block:
        """LoadRecord what is missing of the source, apply the function, add its results."""
        name, brought = self.a.source.name, self.beside(self.arrays[1].arrangement)
        reads = tuple((x, f"{name}.{x}") for x in self.rest() if x not in brought)
        load = (ir.LoadRecord(name, j, reads),) if reads else ()
        ordered, index_of = self.indices(j)
        parameters: list[ir.Expression] = [
            index_of.get(p.name, ir.Local(p.name, p.type)) for p in self.f.parameters
        ]
        number: ir.Block = ()
        if self.lowered.uses_same:  # the last parameter
            number, parameters[-1] = self.same(j)
        results = [ir.Local(own(r.name), r.type) for r in self.f.results]
        takes = tuple(s for x in self.reduced for s in x.take(self.taken_from(j)))
        return (
            *load,
            *ordered,
            *number,
            ir.Apply(self.f, tuple(parameters), tuple(r.name for r in results)),
            *takes,
        )

    def taken_from(self, j: ir.Local) -> Place:
        """The source as the caller counts. A walk meets sources in its own order."""
        if not self.a.ordered:
            in_order = isinstance(self.a.walk, AllWalk) and self.best is None
            return Place(j if self.index == I32 else ir.Cast(j, I32), in_order=in_order)
        index = ir.Local(own("source.index"), I32)
        return Place(index, (ir.LoadRecord(ORDER, j, (("value", index.name),)),), in_order=False)

    def indices(self, j: ir.Local) -> tuple[ir.Block, dict[str, ir.Expression]]:
        """What the function asks for: the caller's indices of a target and a source, and the loads
        of those that are sorted.
        """
        a, loads = self.a, list[ir.Statement]()
        places: dict[str, ir.Expression] = {a.target.name: self.i, a.source.name: j}
        for name in self.lowered.numbered:
            if a.ordered and (a.identical or name == a.source.name):
                number = ir.Local(own(f"{name}.number"), I32)
                loads.append(ir.LoadRecord(ORDER, places[name], (("value", number.name),)))
                places[name] = number
        return tuple(loads), numbers(self.lowered, places)


BLOCK = 128  # threads that walk: few enough that a slow warp holds back few others
# Targets that are not sorted: each thread goes through other cells. A multiprocessor takes 32
# blocks, so with one warp each it has half as many warps, and its cache holds their lines. Eleven
# kernels of the zoo take 0.76 to 1.09 of the time of blocks of 128, in the median 0.95 (NVIDIA
# H200: design/0064).
APART = WARP
GRAIN_TARGETS = 512  # some hundred nanoseconds each


def default_plan(machine: Machine, work: Work, requested: Plan) -> CompletePlan:
    """Every field decided."""
    del requested
    block = APART if work.alike == 1 else BLOCK
    return Plan(block=block).filled(NEUTRAL) if machine.target.has_blocks else NEUTRAL


def together(*, identical: bool) -> int:
    """How many neighbouring targets go through the same cells, for `Work.alike`: those that are
    their own sources run in the order of the structure.
    """
    return WARP if identical else 1


# How far a source is, no one can guess. What a search finds is met one after the other: no SIMD
# loop that might gather.
SEARCH = Pattern(
    "search",
    host=HostCode(branchless=True, widest_stride=None),
    default_plan=default_plan,
    describe=lambda reference, work: replace(work, alike=together(identical=reference.identical)),
    grain=lambda last_count: GRAIN_TARGETS,
)
