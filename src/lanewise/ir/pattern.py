"""What the compiler asks of a pattern, which is how a function of one element becomes a kernel over
many.

A kernel carries its pattern. Passes, emission, models, tuning and explanation ask it for what they
need and never look at its name, so that a new pattern is one folder of `patterns/` (or one file)
and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol

from lanewise.language.target import Machine, Target
from lanewise.planning.plan import NEUTRAL, CompletePlan, Plan

if TYPE_CHECKING:
    from lanewise.ir.nodes import Kernel

GRAIN_ELEMENTS = 16_384  # elements worth handing to another thread of a CPU
BLOCK = 256  # threads of a block, where nothing else is known
MANY = 1 << 22  # elements that fill a GPU when a thread computes several of them

Checked = Callable[[str, "Kernel"], "Kernel"]
"""Verifies a kernel under the name of the pass that made it."""


def as_it_is(name: str, kernel: Kernel) -> Kernel:
    """Verifies nothing."""
    del name
    return kernel


@dataclass(frozen=True, slots=True)
class HostCode:
    """How the code for a CPU is written.

    inline: put the function into the loop, however long it is: a call is not vectorised, and LLVM
    finds a collision, or all that an agent does in a step, to be long. branchless: write
    conditions without jumps, where no one can guess them. widest_stride: up to which distance
    between neighbouring elements a loop may gather; None for any. separate: its arrays never share
    memory.
    reassociate: sums may be added in any order.
    """

    inline: bool = False
    branchless: bool = False
    widest_stride: float | None = 1
    separate: bool = False
    reassociate: bool = False


@dataclass(frozen=True, slots=True)
class Rounds:
    """The loops of a thread whose rounds several threads could share.

    of: how many there are, by the counts and uniforms of a call. columns: their loads are coalesced
    when neighbouring threads are neighbouring points. kept: bytes of the elements that a round
    reads in several loops. wide: whether these begin at multiples of 16 bytes. divided: parts of
    them can run in their own blocks. alone: there is one point, which sums over an index space.
    reused: several points read the same elements in them. panels: they are those of a recurrence,
    which panels of them shorten. running: they read what was gathered so far. nested: each of them
    writes, behind a loop. count: `of` a call.
    """

    of: Callable[[Mapping[str, Any]], int]
    columns: bool = False
    kept: int = 0
    wide: bool = False
    divided: bool = False
    alone: bool = False
    reused: bool = False
    panels: bool = False
    running: bool = False
    nested: bool = False
    count: int = 0

    def at(self, environment: Mapping[str, Any]) -> Rounds:
        """Of a call."""
        return replace(self, count=self.of(environment))


@dataclass(frozen=True, slots=True)
class SumsInOrder:
    """The arrays to whose elements a kernel of a CPU adds floats one after the other.

    additions: statements that add, for each element of the kernel. of: how many elements these
    arrays have, and how many bytes, by the counts of a call. elements, nbytes: `of` a call.
    """

    additions: int
    of: Callable[[Mapping[str, Any]], tuple[int, int]]
    elements: int = 0
    nbytes: int = 0

    def at(self, environment: Mapping[str, Any]) -> SumsInOrder:
        """Of a call."""
        elements, nbytes = self.of(environment)
        return replace(self, elements=elements, nbytes=nbytes)


Call = Literal["fits", "short", "small", "shared"]
Choice = Callable[[CompletePlan, Mapping[str, Any], tuple[Plan, ...]], CompletePlan]


@dataclass(frozen=True, slots=True, eq=False)
class Suggestions:
    """Plans that suit the accesses of a kernel, those with the largest blocks first, and whether
    one is legal, which takes a while.

    suited: those that suit the counts of a call, where that matters. choose: one of several other
    plans instead of the one that accesses suggest, where it is surely better for the call. others:
    which ones, where one of `plans` fits the call, where it does but all loops are shorter than its
    tile (short), where the call is too small for them all (small), and where threads share loops
    (shared). rounds: of the longest loop of a point, in a call. environment: the counts and
    uniforms of the call, once they are known. forget: what was made to say so, once a call has its
    plan.
    """

    plans: tuple[Plan, ...]
    is_legal: Callable[[Plan], bool]
    suited: Callable[[tuple[Plan, ...], Mapping[str, Any]], tuple[Plan, ...]] | None = None
    choose: Choice | None = None
    others: Mapping[Call, tuple[Plan, ...]] = field(default_factory=dict[Call, tuple[Plan, ...]])
    rounds: Callable[[Mapping[str, Any]], float] | None = None
    environment: Mapping[str, Any] | None = None
    tried: dict[Plan, bool] = field(default_factory=dict[Plan, bool])  # what is_legal said
    forget: Callable[[], None] = lambda: None

    def at(self, environment: Mapping[str, Any]) -> Suggestions:
        """For a call."""
        plans = self.plans if self.suited is None else self.suited(self.plans, environment)
        return replace(self, plans=plans, environment=environment)

    def chosen(self, plan: CompletePlan, call: Call) -> CompletePlan:
        """The plan, or a better one for such a call."""
        others = self.others.get(call, ())
        if self.choose is None or self.environment is None or not others:
            return plan
        return self.choose(plan, self.environment, others)

    def is_short(self, plan: CompletePlan) -> bool:
        """Whether all loops of the call are shorter than a plan's tile."""
        if self.rounds is None or self.environment is None:
            return False
        return plan.tile > self.rounds(self.environment)

    def first(self, fits: Callable[[Plan], bool]) -> Plan | None:
        """The first legal one that fits."""
        return next((p for p in self.plans if fits(p) and self._legal(p)), None)

    def _legal(self, plan: Plan) -> bool:
        if plan not in self.tried:
            self.tried[plan] = self.is_legal(plan)
        return self.tried[plan]


@dataclass(frozen=True, slots=True)
class Work:
    """A pattern over a number of elements, and the traits of its function that decide plans.

    wide: the results are float64; strided: neighbouring sources do not lie side by side in memory;
    rearranged: a sum of products can be reordered for fused multiply-adds; both_ways: operations
    for both directions of a pair when reciprocity applies, else 0; exchanges: reciprocity keeps the
    bits of exact results, and its states are light enough to travel; converts: the function
    converts between types;
    sequences: it has operations that take a sequence of instructions, such as divisions and
    exponentials; chooses: some of what it gives is compared or counted, not added; lengthy: the
    code of some operations is so long that few copies fit the instruction cache of a GPU;
    regrouped: compilers may add what the sources give in any order, in lanes of SIMD
    registers; result_bytes: of the results of one element; state_bytes: of the states that its
    reductions have on the way; source_bytes: what one source takes in a tile; alike: how many
    neighbouring elements go over the same list, and items: how long lists are, on average;
    rounds: of loops that threads could share, where there are such;
    suggested: plans that suit the accesses of a kernel; together: how many elements each GPU thread
    had better compute if there are very many; length: operations and statements of the
    kernel before anything is copied, 0 where they were not counted; points: how many points of the
    index space of its normal form there are for each element, where not one; sums: those that are
    added in order, where there are such; estimates: it has `rsqrt` of float32.
    """

    pattern: Pattern
    targets: int
    wide: bool = False
    strided: bool = False
    rearranged: bool = False
    both_ways: int = 0
    exchanges: bool = False
    converts: bool = False
    sequences: bool = False
    chooses: bool = False
    lengthy: bool = False
    regrouped: bool = True
    result_bytes: int = 0
    state_bytes: int = 0
    source_bytes: int = 0
    alike: int = 1
    items: int = 0
    rounds: Rounds | None = None
    suggested: Suggestions | None = None
    together: int = 1
    length: int = 0
    points: Callable[[Mapping[str, Any]], int] | None = None
    sums: SumsInOrder | None = None
    estimates: bool = False

    def at(self, environment: Mapping[str, Any], targets: int) -> Work:
        """Of a call over that many elements, by its counts and uniforms."""
        return replace(
            self,
            targets=targets if self.points is None else targets * self.points(environment),
            rounds=None if self.rounds is None else self.rounds.at(environment),
            suggested=None if self.suggested is None else self.suggested.at(environment),
            sums=None if self.sums is None else self.sums.at(environment),
        )


def elementary_plan(machine: Machine, work: Work, requested: Plan) -> CompletePlan:
    """The default plan of elements that have nothing to do with each other."""
    del requested
    if not machine.target.has_blocks:
        return Plan(vector_bits=bits_of_rows(machine, work.estimates)).filled(NEUTRAL)
    return Plan(block=BLOCK, targets=work.together if work.targets >= MANY else 1).filled(NEUTRAL)


def bits_of_rows(machine: Machine, estimates: bool, otherwise: int = 0) -> int:
    """The width of registers whose lanes are elements, where nothing is requested.

    The estimate behind `lw.rsqrt` of float32 is the same one in registers of 256 bits and for a
    single element, and another one in wider registers: there the bits of an element would depend on
    where the range of a call ends, and so on the parts of a mesh. estimates: there is one.
    """
    return 256 if estimates and machine.vector_bits == 512 else otherwise


def elementary_class(machine: Machine, work: Work, targets: int) -> Hashable:
    """What of a number of elements decides about that plan."""
    return machine.target.has_blocks and work.together > 1 and targets >= MANY


def elementary_grain(last_count: int) -> int:
    """Elements worth handing to another thread, where each is little work."""
    del last_count
    return GRAIN_ELEMENTS


class Merging(Protocol):
    """How a thread of a GPU computes several elements of a pattern without pairs: a pass."""

    def legal(self, kernel: Kernel, targets: int, /) -> str | None:
        """Why it does not apply, or None."""
        ...

    def apply(self, kernel: Kernel, targets: int, /) -> Kernel:
        """The kernel whose threads compute that many elements each."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Pattern:
    """One way to run a function over many elements. Patterns are compared by identity.

    name: in texts for people, and in keys. over_pairs: each element sums a function of itself and
    each of the sources. over_items: each element sums a function over its own list.
    over_points: each element is a point of an index space, and reads arrays where it likes.
    in_boxes: elements lie in a box, and a thread of a GPU may have several of them along each axis.
    in_order: on a CPU it adds floats to elements of arrays one after the other.
    one_record: each element has its own record, which is used once.
    inlined: the user's function is not called but is the body of the loops, with its variables and
    its accesses to arrays.
    default_plan: of a machine, the work and the caller's requests. plan_class: of a machine, the
    work and a number of targets: equal classes have equal default plans, where nothing is
    requested; None where more than that number decides. unfit: why work of this size cannot have
    a complete plan, or None.
    grain: elements of a CPU's pieces of work, given the kernel's last count. slabs: on a CPU the
    kernels of a program run one slab of elements after the other. divide: the kernels instead of
    one whose branches stand apart, told whether arithmetic is fast_math; None for a kernel for each
    side of the function's branch.
    merging: how a thread of a GPU computes several elements, where no sources are shared.
    no_sums: why float64 accumulation does not apply, for patterns that sum nothing. whole: why the
    results of a kernel are one whole, which loop splitting cannot divide, or None. shape: how a
    plan shapes the loops of a kernel, for patterns with their own loops.
    suggest: plans for a kind of device that are read off a kernel's accesses, those with the
    largest blocks first. describe: what default plans ask of a reference kernel besides.
    """

    name: str
    over_pairs: bool = False
    over_items: bool = False
    over_points: bool = False
    in_boxes: bool = False
    in_order: bool = False
    one_record: bool = False
    inlined: bool = False
    host: HostCode = HostCode()
    default_plan: Callable[[Machine, Work, Plan], CompletePlan] = elementary_plan
    plan_class: Callable[[Machine, Work, int], Hashable] | None = None
    unfit: Callable[[Machine, Work, CompletePlan], str | None] = lambda machine, work, plan: None
    grain: Callable[[int], int] = elementary_grain
    slabs: bool = False
    divide: Callable[[Kernel, Target, Checked, bool], tuple[Kernel, ...]] | None = None
    merging: Merging | None = None
    no_sums: str = ""
    whole: Callable[[Kernel], str | None] = lambda kernel: None
    shape: Callable[[Kernel, CompletePlan, Target, Checked], Iterable[Kernel]] | None = None
    suggest: Callable[[Kernel, Target, Kernel], Suggestions] | None = None
    describe: Callable[[Kernel, Work], Work] | None = None

    def __repr__(self) -> str:
        return repr(self.name)


COMBINE = Pattern("combine")
"""Partial results become results: the kernels that passes add."""
