"""The optimisations of lanewise as people know them: names, values worth trying, and whether a
kernel allows them.

The catalogue has those of the plan, which `Plan` declares field by field, and the layout of the
records. Its order is that of the
compiler: arithmetic, division into kernels, loops, memory, threads. `explain` makes a row of each
entry, `tune` makes an axis of its
values, the ladders climb them. Whether a kernel allows one is found by building the program with
it: the passes themselves give the reasons.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from lanewise.compiler.pipeline import Program, program_of, simplified
from lanewise.ir import nodes as ir
from lanewise.ir.verify import Sound, verify_kernel
from lanewise.language.target import WARP, target_of
from lanewise.passes import register_cap
from lanewise.planning.decision import Optimisation
from lanewise.planning.plan import NEUTRAL, CompletePlan
from lanewise.planning.plan import OPTIMISATIONS as DECIDED
from lanewise.support.errors import PlanError

LAYOUT = "layout"  # the field of the one optimisation that lies in the records and not in the plan
_LAYOUT = Optimisation(
    "memory layout",
    lambda v, blocks: f"records lie as {v}",
    literature="structure-of-arrays and relatives",
    place=17,
    field=LAYOUT,
)

OPTIMISATIONS: tuple[Optimisation, ...] = tuple(sorted((*DECIDED, _LAYOUT), key=lambda o: o.place))


def optimisation(field: str) -> Optimisation:
    """The entry of a field of the plan."""
    return next(o for o in OPTIMISATIONS if o.field == field)


# Decisions that the compiler carries out, not the IR, or not the IR alone.
BESIDE_THE_KERNELS = frozenset({"fast_math", "schedule", "vector_bits"})
UNCHANGED = "it changes nothing in this kernel"
_HEAD = re.compile(r"\A(?:[^:]+ cannot be applied to [^:]+|Plan\([^)]*\)): ")


def neutral(name: str, kind: str) -> Any:
    """The value of a plan's field with which its optimisation is off, on a "cuda" or "cpu"
    device.
    """
    blocks = target_of(kind).has_blocks
    if name == "block" and blocks:
        return WARP  # the least that a GPU gives to a block
    # arguments of a launch lie in constant memory unless they are moved
    if name == "uniforms" and blocks:
        return "global"
    return getattr(NEUTRAL, name)


@dataclass(frozen=True, slots=True)
class BuiltPrograms:
    """The programs of one reference kernel on one kind of device ("cuda" or "cpu"), each plan built
    once.

    They are many, and made to be compared: each is verified when it is done, and not between its
    passes. unfit: why a call, by its sizes, cannot have a plan, or None.
    """

    reference: ir.Kernel
    kind: str
    unfit: Callable[[CompletePlan], str | None] = field(
        default=lambda plan: None, repr=False, compare=False
    )
    _sound: Sound = field(default_factory=Sound, repr=False, compare=False)
    _simplified: list[ir.Kernel] = field(default_factory=list[ir.Kernel], repr=False, compare=False)
    _built: dict[CompletePlan, Program | str] = field(
        default_factory=dict[CompletePlan, "Program | str"], repr=False, compare=False
    )

    @property
    def _simple(self) -> ir.Kernel:
        """The kernel as every plan finds it."""
        if not self._simplified:
            self._simplified.append(simplified(self.reference))
        return self._simplified[0]

    def get(self, plan: CompletePlan) -> Program | str:
        """The program of a complete plan, or the text of the `PlanError` that refuses it."""
        if plan not in self._built:
            self._built[plan] = self.unfit(plan) or self._build(plan)
        return self._built[plan]

    def _build(self, plan: CompletePlan) -> Program | str:
        try:
            verify = partial(verify_kernel, sound=self._sound)
            return self._beside(plan) or program_of(self._simple, plan, self.kind, verify=verify)
        except PlanError as error:
            return str(error)

    def _beside(self, plan: CompletePlan) -> Program | None:
        """The program of a plan that differs from another one in what the compiler does besides the
        passes, if that one is legal.

        Caps of registers stand in the grids of kernels, and nothing else depends on them; what fast
        arithmetic may do is asked where kernels are divided.
        """
        if plan.fast_math and not plan.fission and plan.branches == "together":
            return self._of(plan, replace(plan, fast_math=False), lambda k: k)
        if not target_of(self.kind).has_blocks:
            return None
        if plan.registers:
            return self._of(
                plan, replace(plan, registers=0), lambda k: register_cap.apply(k, plan.registers)
            )
        if plan.min_blocks > 1:
            return self._of(
                plan, replace(plan, min_blocks=1), lambda k: _with_blocks(k, plan.min_blocks)
            )
        return None

    def _of(
        self, plan: CompletePlan, base: CompletePlan, change: Callable[[ir.Kernel], ir.Kernel]
    ) -> Program | None:
        program = self.get(base)
        if isinstance(program, str):
            return None
        return replace(program, plan=plan, kernels=tuple(map(change, program.kernels)))

    def refusal(self, plan: CompletePlan) -> str | None:
        """The text of the `PlanError` that refuses a plan, or None."""
        program = self.get(plan)
        return program if isinstance(program, str) else None

    def possible(self, plan: CompletePlan, name: str, value: Any) -> str | None:
        """See `possible`."""
        off = neutral(name, self.kind)
        program = self.get(replace(plan, **{name: value}))
        if isinstance(program, str):
            return program
        if value == off or name in BESIDE_THE_KERNELS:
            return None
        before = self.get(replace(plan, **{name: off}))
        return (
            UNCHANGED if not isinstance(before, str) and before.kernels == program.kernels else None
        )

    def without(self, plan: CompletePlan, name: str) -> tuple[CompletePlan, tuple[str, ...]] | str:
        """See `without`."""
        off = replace(plan, **{name: neutral(name, self.kind)})
        if self.refusal(off) is None:
            return off, ()
        others = [o.field for o in OPTIMISATIONS if o.field not in (name, LAYOUT)]
        others = [f for f in others if getattr(plan, f) != neutral(f, self.kind)]
        kept = replace(off, **{f: neutral(f, self.kind) for f in others})
        if refused := self.refusal(kept):
            return refused
        for f in others:
            more = replace(kept, **{f: getattr(plan, f)})
            if self.refusal(more) is None:
                kept = more
        return kept, tuple(f for f in others if getattr(kept, f) != getattr(plan, f))


def _with_blocks(kernel: ir.Kernel, blocks: int) -> ir.Kernel:
    """A kernel with that many blocks a multiprocessor, if it asks for any."""
    if kernel.grid is None or not kernel.grid.min_blocks:
        return kernel
    return replace(kernel, grid=replace(kernel.grid, min_blocks=blocks))


def possible(
    reference: ir.Kernel, plan: CompletePlan, kind: str, name: str, value: Any
) -> str | None:
    """Why `plan` cannot have its field `name` at `value` for this kernel, in the words of the pass;
    None when it can.

    A value that leaves every kernel of the program as it is without the optimisation counts as
    refused as well. `reason_of` takes the name of the pass and of the kernel off the text.
    """
    return BuiltPrograms(reference, kind).possible(plan, name, value)


def without(
    reference: ir.Kernel, plan: CompletePlan, kind: str, name: str
) -> tuple[CompletePlan, tuple[str, ...]] | str:
    """The plan with one optimisation off, and the fields that had to go off with it because they
    rest on it.

    If that plan is refused, everything is switched off with it and then back on, one after the
    other, as far as the passes allow. A text tells why there is no such plan.
    """
    return BuiltPrograms(reference, kind).without(plan, name)


def reason_of(message: str) -> str:
    """A refusal without its head: `unrolling cannot be applied to f: it has no loop` -> `it has no
    loop`.
    """
    return _HEAD.sub("", message, count=1)
