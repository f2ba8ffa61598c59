"""What all parts of the kernel of tasks share: the reference kernel taken apart, sizes, variables,
states, fields that are read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from lanewise.analysis.both_ways import BothWays, both_ways, reaction_of
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import index_name, is_own, numbered, own
from lanewise.ir.reductions import Accumulator, Place, accumulators_of
from lanewise.language.record import Leaf
from lanewise.language.target import WARP
from lanewise.language.types import F64, I32, Scalar
from lanewise.passes.base import source_loops

Mode = Literal["scratch", "ordered", "grouped"]

# of partial sums, which are worth their memory; with more, tasks take turns
SCRATCH_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class PairShape:
    """The kernel that is built: `targets` of every lane, `size` = 32 x targets elements in a
    tile.
    """

    kernel: ir.Kernel
    reference: Reference
    targets: int
    warps: int  # of a block: each has its own task
    mode: Mode
    unroll: int
    wide: bool  # add the sums of tasks in float64
    fields: tuple[Leaf, ...]  # that the function reads of a target, of a source, or of both
    back: tuple[Accumulator, ...]  # what the source that a lane has at hand takes

    @property
    def size(self) -> int:
        return self.targets * WARP

    @property
    def type(self) -> Scalar:
        """The type of indices."""
        return self.reference.index.type

    @property
    def n(self) -> ir.Local:
        """The number of elements."""
        return ir.Local(self.kernel.counts[0].name, self.type)

    @property
    def tile_count(self) -> ir.Expression:
        return build.ceil_divide(self.n, self.size)

    def local(self, name: str) -> ir.Local:
        """An index variable of lanewise's own."""
        return ir.Local(own(name), self.type)

    @property
    def tiles(self) -> ir.Local:
        return self.local("tiles")

    @property
    def offset(self) -> ir.Local:
        """How many tiles lie between the two of a task."""
        return self.local("offset")

    @property
    def a(self) -> ir.Local:
        """The tile of the targets."""
        return self.local("a")

    @property
    def b(self) -> ir.Local:
        """The tile of the sources."""
        return self.local("b")

    @property
    def lane(self) -> ir.Local:
        return self.local("lane")

    @property
    def warp(self) -> ir.Local:
        """Which of the block's warps this is."""
        return self.local("warp")

    def mine(self, index: ir.Expression, length: int) -> ir.Expression:
        """A place in the warp's own part of a shared array."""
        return build.add(build.multiply(self.warp, length), index) if self.warps > 1 else index

    def at(self, r: int) -> ir.Local:
        """The index of target r of a lane."""
        return ir.Local(numbered(self.reference.index.name, r), self.type)

    def states(self, r: int) -> tuple[ir.Local, ...]:
        """The states of target r of a lane."""
        return tuple(
            ir.Local(numbered(x.name, r), x.type) for x in states(self.reference.accumulators)
        )

    def forth(self, r: int) -> tuple[Accumulator, ...]:
        """What target r of a lane takes."""
        return tuple(a.copy(r) for a in self.reference.accumulators)

    @property
    def indexed(self) -> bool:
        """Whether a reduction asks which elements meet."""
        return any(a.reduction.indexed for a in self.back)

    def place(self, index: ir.Local, *, in_order: bool = False) -> Place:
        """An element as the caller counts. Tasks meet elements in the order of neither."""
        return Place(build.cast(index, I32), in_order=in_order)

    def count(
        self, stop: int, body: ir.Block, variable: ir.Local, role: Literal["tiles", "slices"]
    ) -> ir.For:
        """A loop `for variable in range(stop)`."""
        zero, one = ir.Literal(0, self.type), ir.Literal(1, self.type)
        return ir.For(variable.name, zero, ir.Literal(stop, self.type), one, body, role=role)


def make_shape(
    kernel: ir.Kernel,
    reference: Reference,
    targets: int,
    warps: int,
    mode: Mode,
    unroll: int,
    *,
    wide: bool,
) -> PairShape:
    """Everything decided for one kernel."""
    functions = (reference.both.function, reference.apply.function)
    names = [p.name.partition(".") for f in functions for p in f.parameters]
    read = {leaf for who, _, leaf in names if who in (reference.target, reference.source)}
    fields = tuple(x for x in kernel.array(reference.target).leaves if x.name in read)
    results = reference.apply.function.results
    back = tuple(_turned(a, r) for a, r in zip(reference.accumulators, results, strict=True))
    wide = wide and any(map(narrow, back))
    return PairShape(kernel, reference, targets, warps, mode, unroll, wide, fields, back)


def _turned(a: Accumulator, result: ir.Parameter) -> Accumulator:
    """The same reduction for the other direction."""
    value = ir.Local(own(reaction_of(result.name)), result.type)
    base = own(f"back{result.name.removeprefix('result')}")
    names = [base] if len(a.state) == 1 else [f"{base}.s{n}" for n in range(len(a.state))]
    return replace(
        a,
        value=value,
        state=tuple(ir.Local(n, x.type) for n, x in zip(names, a.state, strict=True)),
    )


def states(accumulators: tuple[Accumulator, ...]) -> tuple[ir.Local, ...]:
    """The scalars of all states."""
    return tuple(x for a in accumulators for x in a.state)


def start(accumulators: tuple[Accumulator, ...]) -> ir.Block:
    """The states of no pair."""
    return tuple(s for a in accumulators for s in a.start())


def take(accumulators: tuple[Accumulator, ...], values: tuple[str, ...], place: Place) -> ir.Block:
    """Take the variables of these names, of a pair with the element at a place, into the states."""
    taken = (
        replace(a, value=ir.Local(v, a.value.type))
        for a, v in zip(accumulators, values, strict=True)
    )
    return tuple(s for a in taken for s in a.take(place))


def narrow(a: Accumulator) -> bool:
    """Whether it gains from float64."""
    return a.reduction.widens and any(x.type.is_float and x.type != F64 for x in a.state)


def number_of_tasks(tiles: ir.Expression) -> ir.Expression:
    """Pairs of tiles, each with itself included: n (n + 1) / 2, halved before it can grow beyond 32
    bits.
    """
    odd = ir.Binary("|", tiles, ir.Literal(1, tiles.type), tiles.type)
    return build.multiply(build.divide(build.add(tiles, 1), 2), odd)


@dataclass(frozen=True, slots=True)
class Reference:
    """What the new kernel is made of: indices, the function and its both-way form, reductions."""

    index: ir.Local
    source_index: ir.Local
    apply: ir.Apply
    target: str
    source: str
    accumulators: tuple[Accumulator, ...]  # in the order of the function's results
    both: BothWays


def take_apart(kernel: ir.Kernel) -> Reference | str:
    """The pieces of a reference kernel over pairs of one array, or why it has no reciprocity."""
    if not kernel.pattern.over_pairs:
        return "its elements are no pairs"
    loops = source_loops(kernel)
    if len(kernel.body) != 1 or not isinstance(kernel.body[0], ir.Parallel) or len(loops) != 1:
        return "its loops are shaped already"
    if not kernel.identical:
        return "its targets and its sources are two arrays"
    outer, (loop,) = kernel.body[0], loops
    applies = [s for s in loop.body if isinstance(s, ir.Apply)]
    if len(applies) != 1 or sum(isinstance(s, ir.Apply) for s in outer.body):
        return "it applies more than one function to a pair"
    (applied,) = applies
    if any(p.name.startswith(index_name("")) for p in applied.function.parameters):
        return (
            "its function asks for the indices of its elements, which no direction of a pair "
            "shares with the other"
        )
    if any(is_own(p.name) and p.name != own("same") for p in applied.function.parameters):
        return "its function takes values that were computed from one side"
    target, source = kernel.arrays[0].name, kernel.arrays[1].name
    both = both_ways(applied.function, target, source)
    if isinstance(both, str):
        return f"it is not known what the two directions of a pair share: {both}"
    taking = {a.value.name: a for a in accumulators_of(kernel)}
    return Reference(
        ir.Local(outer.variable, outer.extent.type),
        ir.Local(loop.variable, loop.start.type),
        applied,
        target,
        source,
        tuple(taking[r] for r in applied.results),
        both,
    )
