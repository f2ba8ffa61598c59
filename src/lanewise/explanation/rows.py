"""The rows of an explanation: for each optimisation legality from the passes, a prediction from the
models, measured times.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from lanewise.compiler.optimisations import (
    BESIDE_THE_KERNELS,
    LAYOUT,
    OPTIMISATIONS,
    UNCHANGED,
    BuiltPrograms,
    Optimisation,
    neutral,
    reason_of,
)
from lanewise.explanation.estimate import Estimates, formula
from lanewise.explanation.measure import Times
from lanewise.explanation.rendering import show
from lanewise.explanation.report import Change, Row
from lanewise.explanation.subject import Subject
from lanewise.ir.pattern import Pattern
from lanewise.language.target import target_of
from lanewise.layouts import Layout
from lanewise.layouts.named import COMPARED
from lanewise.planning import words
from lanewise.planning.plan import NEUTRAL, CompletePlan, Plan
from lanewise.support.articles import an
from lanewise.support.errors import PlanError

WORTH_IT = 1.02  # a factor within 2 % is none
SITES: dict[tuple[str, Any], str] = {  # what a decision is over the sites of a lattice
    (
        "branches",
        "together",
    ): "all sites in one kernel, where special ones correct what they loaded",
    ("branches", "apart"): "the bulk and the special sites of each kind in separate kernels",
    **{
        (
            "targets",
            n,
        ): f"{n} neighbouring sites of a row per thread, moved together where they are contiguous"
        for n in (2, 4)
    },
}

ELEMENTS: dict[tuple[str, Any], str] = {  # and over elements
    (
        "targets",
        n,
    ): f"{n} elements per thread, so that more loads are in flight at the same time"
    for n in (2, 4, 8)
}

POINTS = {"targets": words.targets_of_points, "tile": words.tile_of_points}  # and over points


@dataclass(frozen=True, slots=True)
class RowMaker:
    """Makes the rows. `compared` collects the plans that are compared with the subject's: what is
    worth measuring.
    """

    subject: Subject
    programs: BuiltPrograms
    estimates: Estimates
    compared: list[CompletePlan] = field(default_factory=list[CompletePlan])

    def make(self, times: Times) -> tuple[Row, ...]:
        """One row for each entry of the catalogue."""
        return tuple(
            self._layout(o) if o.field == LAYOUT else self._row(o, times) for o in OPTIMISATIONS
        )

    # ------------------------------------------------------------ fields of the plan

    def _row(self, o: Optimisation, times: Times) -> Row:
        plan, kind = self.subject.plan, self.subject.kind
        value = getattr(plan, o.field)
        if value == neutral(o.field, kind):
            return self._absent(o, value, times)
        without = self._without(o)
        if isinstance(without, str):
            # it is there by itself, and the kernel has no use for it
            if value == getattr(NEUTRAL, o.field):
                return Row(o.name, o.field, value, False, reason_of(without))
            return Row(
                o.name,
                o.field,
                value,
                True,
                f"{self._describe(o, value)}; not without it: {reason_of(without)}",
            )
        before, also = without
        if o.field not in BESIDE_THE_KERNELS and self._same(before, plan):
            return Row(o.name, o.field, value, False, UNCHANGED)
        self.compared.append(before)
        resting = f"{_listed(also)} {'require' if len(also) > 1 else 'requires'} it" if also else ""
        reason = _joined(
            self._describe(o, value), resting, formula(o.field, self.estimates, before, plan)
        )
        registers = Change(self.estimates.registers(before), self.estimates.registers(plan))
        share = Change(self.estimates.occupancy(before), self.estimates.occupancy(plan))
        return Row(
            o.name,
            o.field,
            value,
            True,
            reason,
            self.estimates.factor(before, plan),
            times.factor(before, plan),
            registers=_if_any(registers),
            occupancy=_if_any(share),
        )

    def _describe(self, o: Optimisation, value: Any) -> str:
        text = SITES.get((o.field, value)) if self.subject.traffic is not None else None
        if self.subject.reference.pattern.one_record:
            text = ELEMENTS.get((o.field, value))
        elif self.subject.reference.pattern.over_points and o.field in POINTS:
            text = POINTS[o.field](value, target_of(self.subject.kind).has_blocks)
        return text or o.describe(value, self.subject.kind)

    def _without(self, o: Optimisation) -> tuple[CompletePlan, tuple[str, ...]] | str:
        """The plan to compare with.

        Where an optimisation gives a kernel its shape, that is the default plan without it.
        """
        if o.shape:
            own = self._default(o.field, neutral(o.field, self.subject.kind))
            if own is not None and self.programs.refusal(own) is None:
                return own, ()
        return self.programs.without(self.subject.plan, o.field)

    def _same(self, one: CompletePlan, other: CompletePlan) -> bool:
        return self.estimates.program(one).kernels == self.estimates.program(other).kernels

    def _absent(self, o: Optimisation, value: Any, times: Times) -> Row:
        """Not applied: refused, only on request, or not worth it."""
        plan = self.subject.plan
        candidates, refused = self._candidates(o, value)
        if not candidates:
            place = o.place_of(self.subject.kind, self.subject.reference.pattern)
            return Row(o.name, o.field, value, False, refused, place=place)
        best = self.estimates.fastest(candidates)
        other = candidates[best]
        self.compared.append(other)
        predicted, measured = self.estimates.factor(plan, other), times.factor(plan, other)
        if o.on_request:
            reason = f"only on request: {self._describe(o, best)}"
        elif spilled := self.estimates.spilled(other):
            reason = f"with {show(best)} the compiler spills {spilled} bytes of registers to memory"
        else:
            what = show(best) + self._dropped(o, other)
            reason = _joined(
                verdict(predicted, measured, what), formula(o.field, self.estimates, plan, other)
            )
        return Row(o.name, o.field, value, False, reason, predicted, measured, best)

    def _candidates(self, o: Optimisation, value: Any) -> tuple[dict[Any, CompletePlan], str]:
        """Legal plans with this optimisation by its value, and the first refusal.

        A value that the plan as it is cannot have may have a plan of itself: the default one for
        it.
        """
        kind, pattern, plan = self.subject.kind, self.subject.reference.pattern, self.subject.plan
        worth = [v for v in o.values(kind, pattern) if v != value]
        candidates: dict[Any, CompletePlan] = {}
        refusals: list[str] = []
        for v in worth or [_any_value(o, value)]:
            there = replace(plan, **{o.field: v})
            refused = self.programs.possible(plan, o.field, v) or self.estimates.refused.get(there)
            if refused is None:
                candidates[v] = there
                continue
            refusals.append(reason_of(refused))
            own = replace(plan, **o.start(v)) if o.shape else self._default(o.field, v)
            if own is None or own in self.estimates.refused:
                continue
            if self.programs.possible(own, o.field, v) is None:
                candidates[v] = own
        # nothing refuses it, and nothing comes of it
        if not worth and (candidates or refusals == [UNCHANGED]):
            return {}, _unsuited(o, kind, pattern)
        return candidates, refusals[0] if refusals else ""

    def _default(self, name: str, value: Any) -> CompletePlan | None:
        if self.subject.model is None:
            return None
        try:
            return self.subject.default(Plan(**{name: value}))
        except PlanError:  # sites that cannot be apart
            return None

    def _dropped(self, o: Optimisation, other: CompletePlan) -> str:
        """The optimisations that a separate plan does not have."""
        kind, plan = self.subject.kind, self.subject.plan
        fields = [x.field for x in OPTIMISATIONS if x.field not in (LAYOUT, o.field)]
        gone = [f for f in fields if _is_off(other, f, kind) and not _is_off(plan, f, kind)]
        return f", without {_listed(gone)}" if gone else ""

    # ------------------------------------------------------------ the layout of the records

    def _layout(self, o: Optimisation) -> Row:
        s = self.subject
        if not s.layouts:
            return Row(o.name, o.field, "", False, "the kernel takes no records")
        value = ", ".join(dict.fromkeys(str(layout) for layout in s.layouts.values()))
        others = {str(x): self._against(x) for x in COMPARED if {str(x)} != {value}}
        speedups = {n: 1 / f for n, f in others.items() if f}  # how many times faster than now
        best = max(speedups, key=lambda n: speedups[n]) if speedups else None
        if s.is_plain:
            reason = "there is no prediction for another one"
            if best and speedups[best] > WORTH_IT:
                reason = (
                    f"predicted {speedups[best]:.2f} x with {best}, by the same plan: "
                    "array.with_layout(...) copies there"
                )
            elif best:
                reason = verdict(speedups[best], None, best)
            return Row(
                o.name, o.field, value, False, reason, speedups[best] if best else None, best=best
            )
        better = (
            f"{best} is predicted to be {speedups[best]:.2f} x as fast"
            if best and speedups[best] > WORTH_IT
            else ""
        )
        return Row(
            o.name,
            o.field,
            value,
            True,
            _joined(
                o.describe(value),
                "compared with AoS by the same plan" if others["AoS"] else "",
                better,
            ),
            others["AoS"],
        )

    def _against(self, layout: Layout) -> float | None:
        """How many times faster the records are as they lie than in another layout, with the same
        plan.
        """
        if self.subject.traffic is not None:
            return None  # what a step over sites moves is the same in every layout
        other = self.subject.with_layout(layout)
        programs = BuiltPrograms(other.reference, other.kind)
        if programs.refusal(other.plan) is not None:
            return None
        # Registers are taken to be those of the plan as it is: a layout changes loads, not what is
        # computed.
        before = Estimates(other, programs, self.estimates.resources).seconds(other.plan)
        now = self.estimates.seconds(self.subject.plan)
        return before / now if before and now else None


def verdict(predicted: float | None, measured: float | None, what: str) -> str:
    """Whether another value would be worth it, by measurement where there is one."""
    if measured is not None:
        worth = "faster here, so tune() would choose it" if measured > WORTH_IT else "not worth it"
        return f"measured {measured:.2f} x with {what}: {worth}"
    if predicted is not None:
        worth = "tune() would try it" if predicted > WORTH_IT else "not worth it"
        return f"predicted {predicted:.2f} x with {what}: {worth}"
    return f"possible with {what}; there is no prediction"


def _is_off(plan: CompletePlan, name: str, kind: str) -> bool:
    return getattr(plan, name) == neutral(name, kind)


def _any_value(o: Optimisation, value: Any) -> Any:
    """A value to be refused, where none is worth trying: the passes say why."""
    every = (*o.cuda, *o.cpu, *o.elementwise, *o.elementwise_cpu, *o.items, *o.items_cpu, *o.points)
    return next(v for v in every if v != value)


def _unsuited(o: Optimisation, kind: str, pattern: Pattern) -> str:
    """Why an optimisation has no values worth trying for a pattern on a kind of device."""
    blocks = target_of(kind).has_blocks
    if o.lanes and pattern.over_pairs and not blocks:
        return (
            "SIMD lanes hold sources if the compiler may regroup their sums; with "
            "Plan(across=256) they hold targets"
        )
    if o.points and not (o.cuda or o.cpu or o.elementwise or o.items) and not pattern.over_points:
        return "it belongs to points of an index space"
    if (
        not pattern.over_pairs
        and not (pattern.over_items and o.items)
        and (o.cuda if blocks else o.cpu)
    ):
        return f"it belongs to loops over sources, which {an(pattern.name)} kernel does not have"
    return "only a CPU has it" if blocks else "only a GPU has it"


def _if_any(change: Change) -> Change | None:
    return None if change.before is None and change.after is None else change


def _joined(*clauses: str) -> str:
    return "; ".join(c for c in clauses if c)


def _listed(names: Iterable[str]) -> str:
    every = list(names)
    return every[0] if len(every) == 1 else f"{', '.join(every[:-1])} and {every[-1]}"
