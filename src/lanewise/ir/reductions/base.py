"""What a reduction is to a kernel and to the passes that shape its loops.

A reduction is a commutative monoid: a state, its identity, a rule that takes one pair's value into
a state, and a rule that merges two states. Passes that regroup pairs (slices, parts, both sides of
a pair) ask for the properties that they rest on and never for a name.

    start: state = identity      take: state = state + value of a pair      merge: state = state +
    other state      finish: result of state
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from lanewise.ir import nodes as ir
from lanewise.ir.names import numbered, original
from lanewise.ir.traverse import statements, writes
from lanewise.language import types as t
from lanewise.language.types import Scalar


@dataclass(frozen=True, slots=True)
class StatePart:
    """One scalar of a state: the end of its name (nothing for the value itself), its type, and its
    value when no pair was taken.
    """

    name: str
    type: Scalar
    identity: ir.Literal


@dataclass(frozen=True, slots=True)
class Place:
    """The source of a pair, as its caller counts. load: what has to run before `index` has it.

    in_order: the sources come with growing indices, so that the first of equals is the one with the
    smallest index.
    """

    index: ir.Expression
    load: ir.Block = ()
    in_order: bool = True


State = tuple[ir.Local, ...]


@dataclass(frozen=True, slots=True)
class Reduction(ABC):
    """How the values of all pairs become one result.

    Reductions are frozen dataclasses, compared by value.

    word: in names of variables and in texts. exact: states of the same pairs have the same bits, in
    whatever order and grouping the pairs came; else rounding depends on both, and a plan fixes
    them. zero_is_identity: a value of zero (or False) changes no state, so that pairs with it may
    be left out. reorders: compilers may regroup the arithmetic of its states. widens: a float state
    gains from float64. adds: take and merge are additions, so that a result in memory is a state to
    which others add theirs. indexed: it needs the indices of sources. of_truths: its function says
    whether something holds.
    """

    word: str
    exact: bool = False
    zero_is_identity: bool = False
    reorders: bool = False
    widens: bool = False
    adds: bool = False
    indexed: bool = False
    of_truths: bool = False

    @property
    def numbered(self) -> bool:
        """Whether sources are numbered with 32 bits."""
        return self.indexed

    @abstractmethod
    def parts(self, kind: Scalar) -> tuple[StatePart, ...]:
        """The state of values of this type."""

    @abstractmethod
    def take(self, state: State, value: ir.Local, place: Place) -> ir.Block:
        """Take one pair's value into the state."""

    @abstractmethod
    def merge(self, state: State, other: State) -> ir.Block:
        """Take another state, of other pairs, into the state."""

    def finish(self, state: State) -> tuple[ir.Expression, ...]:
        """The components of the result."""
        return state[:1]

    def gives(self, kind: t.ValueType) -> t.ValueType:
        """The type of a result for values of this type."""
        return kind

    def refuses(self, kind: t.ValueType) -> str | None:
        """Why it does not reduce values of this type, or None."""
        if t.scalar_of(kind) == t.BOOL and not self.of_truths:
            return "numbers"
        return "lw.bool_, or a comparison" if self.of_truths and kind != t.BOOL else None


@dataclass(frozen=True, slots=True)
class Accumulator:
    """One component of a result on its way through the loop: `value` of every pair goes into
    `state`.
    """

    reduction: Reduction
    value: ir.Local
    state: State
    identities: tuple[ir.Literal, ...] = field(repr=False)

    def start(self) -> ir.Block:
        """The state of no pair."""
        return tuple(ir.Assign(x.name, e) for x, e in zip(self.state, self.identities, strict=True))

    def take(self, place: Place) -> ir.Block:
        return self.reduction.take(self.state, self.value, place)

    def merge(self, other: State) -> ir.Block:
        return self.reduction.merge(self.state, other)

    def finish(self) -> tuple[ir.Expression, ...]:
        return self.reduction.finish(self.state)

    def copy(self, number: int) -> Accumulator:
        """The same for one of several targets of a thread."""
        return Accumulator(
            self.reduction,
            ir.Local(numbered(self.value.name, number), self.value.type),
            tuple(ir.Local(numbered(x.name, number), x.type) for x in self.state),
            self.identities,
        )


def accumulators_of(kernel: ir.Kernel) -> tuple[Accumulator, ...]:
    """Those whose states the kernel still computes: a kernel that was divided has some of them."""
    written = {original(n) for s in statements(kernel.body) for n in writes(s)}
    return tuple(a for a in kernel.reductions if any(x.name in written for x in a.state))


def reorders(kernel: ir.Kernel) -> bool:
    """Whether compilers may regroup the arithmetic of all states."""
    return all(a.reduction.reorders for a in kernel.reductions)
