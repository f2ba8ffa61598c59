"""What plans make of a kernel, to see whether they are legal and to price them: each built once.

Legality is read off a kernel with its tiles, before anything is written out: what they take of
shared memory, and how long it becomes at most. It is written out only where that is too much.

The rounds of a tile are a loop in what is priced, which takes a model as long as when they are
written out, and is a tenth of the text.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from math import prod

from lanewise.analysis.affine import nest
from lanewise.analysis.length import length, own_statement
from lanewise.compiler.pipeline import Program, finished, program_of, simplified
from lanewise.ir import nodes as ir
from lanewise.ir.pattern import as_it_is
from lanewise.ir.spreading import control, spread
from lanewise.ir.traverse import statements, writes
from lanewise.language.target import CUDA
from lanewise.passes.points import unrolling
from lanewise.passes.points.shape import shape_of
from lanewise.passes.thread_mapping import MAX_SHARED_BYTES
from lanewise.patterns.threadwise.merged import StagedKernel, is_naive, staged
from lanewise.patterns.threadwise.shared import is_shared
from lanewise.planning.limits import MOST_LENGTH
from lanewise.planning.plan import CompletePlan
from lanewise.support.errors import PlanError

ACCESS = 40  # operations that take a model as long as an access to memory
ACCESSES = (ir.Load, ir.Store, ir.Scatter, ir.CopyLanes, ir.ElementAccess)
BODIES = 2  # of blocks in the inside, and of those at edges
LOOPS = 2  # over whole tiles, and over what is left


class Candidates:
    """Plans of a kernel, with the programs that were made of them. normal: the kernel in normal
    form; written: the same as its user wrote it.
    """

    def __init__(self, normal: ir.Kernel, written: ir.Kernel) -> None:
        self._normal, self._written = normal, written
        self._programs: dict[CompletePlan, Program | None] = {}
        self._expected: dict[CompletePlan, int] = {}
        self._work: dict[CompletePlan, int] = {}
        # of the last plan that was found to be legal, which is the one that is priced
        self._staged: tuple[CompletePlan, StagedKernel] | None = None

    def program(self, plan: CompletePlan) -> Program | None:
        """With the rounds of tiles in a loop; None for a plan that the kernel cannot have."""
        if plan not in self._programs:
            try:
                self._programs[plan] = self._built(plan)
            except PlanError:
                self._programs[plan] = None
        return self._programs[plan]

    def is_legal(self, plan: CompletePlan) -> bool:
        """Whether blocks of points can have a plan, whose text compilers can take."""
        try:
            before = self._with_tiles(plan)
            if plan.unroll != 1 and unrolling.legal(before.kernel, plan.unroll) is not None:
                return False  # tiles without a loop that goes over them
            if before.most_length(plan.unroll) > MOST_LENGTH and not _is_short(before, plan):
                return False
        except PlanError:
            return False
        self._staged = plan, before
        return True

    def work(self, plan: CompletePlan) -> int:
        """Of pricing a plan: of the text of its program, as a model goes through it."""
        if plan not in self._work:
            program = self.program(plan)
            kernels = () if program is None else program.kernels
            self._work[plan] = sum(_work(k.body) for k in kernels)
        return self._work[plan]

    def drop(self, plan: CompletePlan) -> None:
        """Of a program that is not priced the work alone is kept."""
        self._programs.pop(plan, None)

    def forget(self) -> None:
        """What a legal plan made of the kernel is kept until a call has its plan."""
        self._staged = None

    def expected(self, plan: CompletePlan) -> int:
        """The same, nearly, before its program is built: a statement has a copy for each point of a
        thread whose index it depends on, in the inside and at edges, and in whole tiles and others.
        """
        if plan not in self._expected:
            self._expected[plan] = self._copied(plan)
        return self._expected[plan]

    def _copied(self, plan: CompletePlan) -> int:
        if is_shared(plan):
            return _work(self._written.body) * max(1, plan.unroll)
        if is_naive(plan):
            return _work(self._normal.body)
        loops, body = nest(self._normal)
        try:
            shape = shape_of(plan, len(loops))
        except PlanError:
            return 0
        along = [
            (n, spread(body, {x.variable}))
            for n, x in zip(shape.points, loops, strict=True)
            if n > 1
        ]
        return (
            BODIES
            * (LOOPS if plan.tile else 1)
            * sum(
                _own_work(s) * prod(n for n, those in along if not those.isdisjoint(_about(s)))
                for s in statements(body)
            )
        )

    @cached_property
    def _simplified(self) -> ir.Kernel:
        return simplified(self._written)

    def _built(self, plan: CompletePlan) -> Program | None:
        if is_shared(plan):  # threads share the loops that are written
            return program_of(self._simplified, plan, CUDA.name)
        if is_naive(plan):
            return program_of(self._normal, plan, CUDA.name, normal=self._normal)
        shaped = self._with_tiles(plan).written_out(1, as_it_is)
        if length(shaped) > MOST_LENGTH:
            return None
        plan = replace(plan, unroll=1)
        return Program(plan, self._normal, finished((shaped,), plan, CUDA))

    def _with_tiles(self, plan: CompletePlan) -> StagedKernel:
        """Raises `PlanError` for a plan that does not fit, or whose tiles do not."""
        kept = self._staged  # read once: another thread may decide about another call meanwhile
        if kept is not None and kept[0] == plan:
            return kept[1]
        return staged(self._normal, plan, as_it_is, MAX_SHARED_BYTES)


def _work(body: ir.Block) -> int:
    return sum(map(_own_work, statements(body)))


def _own_work(s: ir.Statement) -> int:
    """Of a statement without those in it: it and its operations; an access is looked at for all
    warps of a sample.
    """
    return own_statement(s) + (ACCESS if isinstance(s, ACCESSES) else 0)


def _about(s: ir.Statement) -> set[str]:
    """What it depends on, and what it gives a value."""
    return control(s) | {*writes(s)}


def _is_short(before: StagedKernel, plan: CompletePlan) -> bool:
    """Whether a kernel that may be too long is not, which takes long to see."""
    shaped = before.written_out(1, as_it_is)
    found = length(shaped)
    if found <= MOST_LENGTH < found * plan.tile:
        found = length(before.written_out(plan.unroll, as_it_is))
    return found <= MOST_LENGTH
