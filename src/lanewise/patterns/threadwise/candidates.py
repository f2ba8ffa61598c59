"""What plans make of a kernel, to see whether they are legal and to price them: each built once.

The rounds of a tile are a loop here, which takes a model as long as when they are written out, and
is a tenth of the text.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from lanewise.analysis.length import length
from lanewise.compiler.pipeline import Program, finished, program_of, simplified
from lanewise.ir import nodes as ir
from lanewise.ir.shared import shared_bytes
from lanewise.language.target import CUDA
from lanewise.passes.points import unrolling
from lanewise.passes.thread_mapping import MAX_SHARED_BYTES
from lanewise.patterns.threadwise.merged import is_naive, staged
from lanewise.patterns.threadwise.shared import is_shared
from lanewise.planning.limits import MOST_LENGTH
from lanewise.planning.plan import CompletePlan
from lanewise.support.errors import PlanError


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """normal: a kernel in normal form; written: the same as its user wrote it."""

    normal: ir.Kernel
    written: ir.Kernel
    _programs: dict[CompletePlan, Program | None] = field(
        default_factory=dict[CompletePlan, "Program | None"]
    )
    _simplified: list[ir.Kernel] = field(default_factory=list[ir.Kernel])

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
            before = staged(self.normal, plan, lambda name, k: k)
            shaped = before.written_out(1, lambda name, k: k)
            if plan.unroll != 1 and unrolling.legal(shaped, plan.unroll) is not None:
                return False  # tiles without a loop that goes over them
            whole = shaped
            if length(shaped) * max(1, plan.tile) > MOST_LENGTH:  # it may be too long: look
                whole = before.written_out(plan.unroll, lambda name, k: k)
        except PlanError:
            return False
        if length(whole) > MOST_LENGTH:
            return False
        program = self._programs[plan] = self._finished(shaped, plan)
        return all(map(_fits, program.kernels))

    def _built(self, plan: CompletePlan) -> Program:
        if is_shared(plan):  # threads share the loops that are written
            if not self._simplified:
                self._simplified.append(simplified(self.written))
            return program_of(self._simplified[0], plan, CUDA.name)
        if is_naive(plan):
            return program_of(self.normal, plan, CUDA.name, normal=self.normal)
        shaped = staged(self.normal, plan, lambda name, k: k).written_out(1, lambda name, k: k)
        program = self._finished(shaped, plan)
        if not all(map(_fits, program.kernels)) or length(shaped) > MOST_LENGTH:
            raise PlanError(f"Plan({plan}): too much text or shared memory")
        return program

    def _finished(self, shaped: ir.Kernel, plan: CompletePlan) -> Program:
        plan = replace(plan, unroll=1)
        return Program(plan, self.normal, finished((shaped,), plan, CUDA))


def _fits(kernel: ir.Kernel) -> bool:
    return shared_bytes(kernel) <= MAX_SHARED_BYTES
