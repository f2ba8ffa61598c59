"""Make an explanation: one row for each entry of the catalogue, from legality, prediction and measurement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from lanewise.explanation.analysis import analyse
from lanewise.explanation.cells import show
from lanewise.explanation.estimate import Estimates
from lanewise.explanation.report import Change, Explanation, Row
from lanewise.explanation.subject import Subject
from lanewise.layouts import AoAS, AoS, Layout, SoA, SoAoAS, draw
from lanewise.optimisations import LAYOUT, OPTIMISATIONS, Optimisation, Programs, neutral, reason_of
from lanewise.optimisations.legality import BESIDE_THE_KERNELS, UNCHANGED
from lanewise.plan import Plan

Measured = Callable[[Plan, Plan], float | None]  # seconds of the first plan over seconds of the second, where known
WORTH_IT = 1.02  # a prediction within 2 % is none


def explain(
    subject: Subject, *, resources: dict[str, Any], measure_resources: bool = True, measured: Measured | None = None
) -> Explanation:
    """Explain a kernel. `resources` are those of its compiled form.

    `measure_resources` compiles the plans that rows compare with, to know their registers (CUDA only).
    """
    programs = Programs(subject.naive, subject.kind)
    rows = _Rows(
        subject, programs, Estimates(subject, programs, measure_resources), measured or (lambda slow, fast: None)
    )
    return Explanation(
        kernel=subject.name,
        pattern=subject.naive.pattern,
        device=subject.device,
        machine=_machine(subject),
        counts=dict(subject.counts),
        layouts={n: str(layout) for n, layout in subject.layouts.items()},
        drawings={a.name: draw(a.arrangement) for a in subject.naive.arrays if a.name in subject.layouts},
        plan=subject.plan,
        rows=tuple(rows.layout(o) if o.field == LAYOUT else rows.field(o) for o in OPTIMISATIONS),
        analysis=analyse(subject),
        bound=rows.estimates.bound(subject.plan),
        resources=resources,
        invented=dict(subject.invented),
        warnings=tuple(_warnings(subject, rows.estimates)),
    )


def _machine(s: Subject) -> str:
    if s.model is None:
        return f"{s.device} (interpreted)"
    if s.kind == "cuda":
        return f"{s.device} ({s.model.name}, {s.model.arch}, {s.model.multiprocessors} multiprocessors)"
    return f"{s.device} ({s.model.multiprocessors} threads)"


@dataclass(frozen=True, slots=True)
class _Rows:
    subject: Subject
    programs: Programs
    estimates: Estimates
    measured: Measured

    # ------------------------------------------------------------ fields of the plan

    def field(self, o: Optimisation) -> Row:
        plan, kind = self.subject.plan, self.subject.kind
        value = getattr(plan, o.field)
        if value == neutral(o.field, kind):
            return self._absent(o, value)
        found = self.programs.without(plan, o.field)
        if isinstance(found, str):
            return Row(o.name, o.field, value, True, f"{o.describe(value, kind)}; not without it: {reason_of(found)}")
        before, also = found
        if o.field not in BESIDE_THE_KERNELS and self._same(before, plan):
            return Row(o.name, o.field, value, False, UNCHANGED)
        reason = o.describe(value, kind) + (
            f"; {_listed(also)} {'rest' if len(also) > 1 else 'rests'} on it" if also else ""
        )
        registers = Change(self.estimates.registers(before), self.estimates.registers(plan))
        share = Change(self.estimates.occupancy(before), self.estimates.occupancy(plan))
        return Row(
            o.name, o.field, value, True, reason, self.estimates.factor(before, plan), self.measured(before, plan),
            registers=_known(registers), occupancy=_known(share),
        )  # fmt: skip

    def _same(self, one: Plan, other: Plan) -> bool:
        return self.estimates.program(one).kernels == self.estimates.program(other).kernels

    def _absent(self, o: Optimisation, value: Any) -> Row:
        """Not applied: refused, only on request, or not worth it."""
        kind = self.subject.kind
        candidates, refused = self._candidates(o, value)
        if not candidates:
            return Row(o.name, o.field, value, False, refused)
        best = self.estimates.fastest(candidates)
        predicted = self.estimates.factor(self.subject.plan, candidates[best])
        measured = self.measured(self.subject.plan, candidates[best])
        asked = f"only on request: {o.describe(best, kind)}"
        reason = asked if o.on_request else _verdict(predicted, measured, show(best), refused)
        return Row(o.name, o.field, value, False, reason, predicted, measured, best)

    def _candidates(self, o: Optimisation, value: Any) -> tuple[dict[Any, Plan], str]:
        """Legal plans with this optimisation by its value, and the first refusal.

        A value that the plan as it is cannot have may have a plan of its own: the default one for it.
        """
        kind, plan = self.subject.kind, self.subject.plan
        worth = [v for v in o.values(kind, self.subject.naive.pattern) if v != value]
        values = worth or [_any_value(o, value)]
        found: dict[Any, Plan] = {}
        refusals: list[str] = []
        for v in values:
            refused = self.programs.possible(plan, o.field, v)
            if refused is None:
                found[v] = replace(plan, **{o.field: v})
                continue
            refusals.append(reason_of(refused))
            own = self.subject.default(Plan(**{o.field: v}))
            if self.programs.possible(own, o.field, v) is None:
                found[v] = own
        if not worth and (found or refusals == [UNCHANGED]):  # nothing refuses it, and nothing comes of it
            return {}, _unsuited(o, kind, self.subject.naive.pattern)
        return found, refusals[0] if refusals else ""

    # ------------------------------------------------------------ the layout of the records

    def layout(self, o: Optimisation) -> Row:
        s = self.subject
        if not s.layouts:
            return Row(o.name, o.field, "", False, "the kernel takes no records")
        value = ", ".join(dict.fromkeys(str(layout) for layout in s.layouts.values()))
        if not s.is_plain:
            factor = self._against(AoS())
            return Row(o.name, o.field, value, True, f"{o.describe(value)}; compared with AoS", factor)
        factors = {str(x): self._against(x) for x in (SoA(), SoAoAS(), AoAS())}
        known = {n: 1 / f for n, f in factors.items() if f}
        best = max(known, key=lambda n: known[n]) if known else None
        return Row(
            o.name, o.field, value, False, _verdict(known.get(best) if best else None, None, best or "another", ""),
            known.get(best) if best else None, best=best,
        )  # fmt: skip

    def _against(self, layout: Layout) -> float | None:
        """How many times faster the records are as they lie than in another layout, with the same plan."""
        other = self.subject.with_layout(layout)
        programs = Programs(other.naive, other.kind)
        if programs.refusal(other.plan) is not None:
            return None
        before = Estimates(other, programs, self.estimates.compiles).seconds(other.plan)
        now = self.estimates.seconds(self.subject.plan)
        return before / now if before and now else None


def _verdict(predicted: float | None, measured: float | None, best: str, refused: str) -> str:
    if measured is not None:
        worth = "faster: tune() would choose it" if measured > WORTH_IT else "not worth it"
        return f"measured {measured:.2f} x with {best}: {worth}"
    if predicted is not None:
        worth = "tune() would try it" if predicted > WORTH_IT else "not worth it"
        return f"predicted {predicted:.2f} x with {best}: {worth}"
    return f"possible ({best}), without a prediction" + (f"; otherwise {refused}" if refused else "")


def _any_value(o: Optimisation, value: Any) -> Any:
    """A value to be refused, where none is worth trying: the passes say why."""
    every = (*o.cuda, *o.cpu, *o.elementwise, *o.elementwise_cpu)
    return next(v for v in every if v != value)


def _unsuited(o: Optimisation, kind: str, pattern: str) -> str:
    """Why an optimisation has no values worth trying for a pattern on a kind of device."""
    if pattern != "pairwise" and o.values(kind, "pairwise"):
        return f"it belongs to loops over sources, which an {pattern} kernel does not have"
    return "only a GPU has it" if kind == "cpu" else "only a CPU has it"


def _known(change: Change) -> Change | None:
    return None if change.before is None and change.after is None else change


def _listed(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _warnings(s: Subject, estimates: Estimates) -> list[str]:
    warnings: list[str] = []
    for kernel, r in zip(estimates.program(s.plan).kernels, estimates.resources(s.plan) or (), strict=False):
        if r.spill_stores or r.spill_loads:
            warnings.append(f"{kernel.name}: {r.spill_stores + r.spill_loads} bytes of registers are spilled to memory")
    return warnings
