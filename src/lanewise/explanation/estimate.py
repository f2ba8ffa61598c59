"""What the models, the compiler and the papers' own formulas say of the plans of one kernel.

The one place that asks them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from lanewise.analysis.families import Family, family_of, family_of_records
from lanewise.analysis.regions import KernelWork, Region, analyse
from lanewise.compiler.optimisations import BuiltPrograms
from lanewise.compiler.pipeline import Program
from lanewise.explanation.report import Bottleneck
from lanewise.explanation.site_facts import predicted_step
from lanewise.explanation.subject import OPEN, Subject
from lanewise.ir.names import own, turns_of
from lanewise.language.target import CUDA
from lanewise.launch.executable import build_executable
from lanewise.models.deviations import DEVIATIONS, SHORTEST
from lanewise.models.formulas import Branch, LoopCosts, branch_splitting_speedup, unrolling_speedup
from lanewise.models.least import LOOPS_OF_SITES, NOT_NOMINAL, least_time, why_no_bound
from lanewise.models.predict import Analyses, predict
from lanewise.passes import normal_form
from lanewise.patterns.search.build import SEARCH
from lanewise.patterns.search.sight import COSINE2
from lanewise.patterns.search.turns import FOUND
from lanewise.planning.plan import CompletePlan
from lanewise.runtime.devices import cpu_threads
from lanewise.runtime.nvrtc import Resources
from lanewise.runtime.occupancy import resident
from lanewise.support.errors import PlanError
from lanewise.support.numerals import time_text


@dataclass(frozen=True, slots=True)
class Estimates:
    """Estimates of the plans of one subject, each made once.

    `resources` are the compiler's figures of the plans that were compiled (CUDA); for others
    registers are estimated. `refused` are the plans that the compiler could not build for this
    device, with the reason.
    """

    subject: Subject
    programs: BuiltPrograms
    resources: Mapping[CompletePlan, tuple[Resources, ...]] = field(
        default_factory=dict[CompletePlan, "tuple[Resources, ...]"]
    )
    refused: Mapping[CompletePlan, str] = field(default_factory=dict[CompletePlan, str])
    _drafts: dict[CompletePlan, Bottleneck | None] = field(
        default_factory=dict[CompletePlan, "Bottleneck | None"], repr=False
    )
    _bounds: dict[CompletePlan, Bottleneck | None] = field(
        default_factory=dict[CompletePlan, "Bottleneck | None"], repr=False
    )
    analyses: Analyses = field(default_factory=Analyses, repr=False)

    def compiled(self, plans: Sequence[CompletePlan]) -> Estimates:
        """The same with these plans compiled, as many at a time as there are cores: some tenths of
        a second each.
        """
        model = self.subject.model
        if model is None or model.compiled_for is None:
            return self

        def compile_one(plan: CompletePlan) -> tuple[Resources, ...] | str:
            try:
                return tuple(
                    c.resources
                    for c in build_executable(self.program(plan), "cuda", model.arch).cubins
                )
            except PlanError as error:  # what an older architecture does not have
                return str(error)

        with ThreadPoolExecutor(cpu_threads()) as pool:
            made = dict(zip(plans, pool.map(compile_one, plans), strict=True))
        resources = {p: r for p, r in made.items() if not isinstance(r, str)}
        refused = {p: r for p, r in made.items() if isinstance(r, str)}
        return replace(self, resources=resources, refused=refused, _bounds={})

    def program(self, plan: CompletePlan) -> Program:
        """The program of a legal plan."""
        program = self.programs.get(plan)
        assert not isinstance(program, str), program
        return program

    def seconds(self, plan: CompletePlan) -> float | None:
        """The time that the model predicts; None when it cannot."""
        bound = self.bound(plan)
        return None if bound is None else bound.predicted_seconds

    def factor(self, slow: CompletePlan, fast: CompletePlan) -> float | None:
        """How many times faster the second plan is than the first."""
        before, after = self.seconds(slow), self.seconds(fast)
        return before / after if before and after else None

    def fastest(self, plans: Mapping[Any, CompletePlan]) -> Any:
        """The key of the plan that should be fastest, as far as that is known without compiling;
        else the first.
        """
        predicted: dict[Any, float] = {}
        for key, plan in plans.items():
            if plan not in self._drafts:
                self._drafts[plan] = self._predicted(plan, None)
            if (bound := self._drafts[plan]) is not None and bound.predicted_seconds is not None:
                predicted[key] = bound.predicted_seconds
        return min(predicted, key=lambda k: predicted[k]) if predicted else next(iter(plans))

    def own_bound(self) -> Bottleneck | None:
        """The bound and the prediction of the subject's own plan, with the least time where there
        is one.
        """
        found, s = self.bound(self.subject.plan), self.subject
        if found is None or s.model is None or s.traffic is not None or found.because:
            return found
        least = least_time(self.program(s.plan), s.environment, s.model)
        return replace(found, seconds=least.seconds, least_unit=least.limiter)

    def own_estimate(self) -> Bottleneck | None:
        """The same with how far such predictions have been off, or with what was not measured."""
        found, s = self.own_bound(), self.subject
        if found is None or s.model is None or found.predicted_seconds is None:
            return found
        kind, family = s.model.kind, self._family
        deviation = None if family is None else DEVIATIONS.get((kind, family))
        if s.traffic is not None:
            unmeasured = "steps over sites"
        elif deviation is None:
            unmeasured = "such searches" if s.search else "such kernels"
        elif s.chosen != s.default(OPEN):
            unmeasured = "plans that are not the default"
        elif found.predicted_seconds < SHORTEST[kind]:
            unmeasured = "such short calls"
        else:
            return replace(found, deviation=deviation)
        return replace(found, unmeasured=unmeasured)

    @property
    def _family(self) -> Family | None:
        """Of which the subject is, by which deviations were measured."""
        s = self.subject
        # running values have other programs since the families were measured
        if s.model is None or s.traffic is not None or (s.work.rounds and s.work.rounds.running):
            return None
        reference = self.program(s.plan).reference
        family = family_of_records(reference, gridded=self._is_gridded())
        # of a GPU, whatever the device: there constant loops are written out
        return family or family_of(normal_form.apply(reference, CUDA))

    def _is_gridded(self) -> bool:
        """Whether it looks for all within a radius, in all directions, through a static grid that
        does not repeat itself: only of such a walk the turns of rows are known.
        """
        s, piece = self.subject, turns_of(own("walk.piece"))
        return (
            s.reference.pattern is SEARCH
            and turns_of(own("walk.y")) in s.environment
            and s.environment.get(piece) == 1
            and turns_of(FOUND) not in s.environment
            and all(u.name != COSINE2 for u in s.reference.uniforms)
        )

    def bound(self, plan: CompletePlan) -> Bottleneck | None:
        """The prediction of a legal plan; of a step over sites with its least time, which others
        have from `own_bound`.
        """
        if plan not in self._bounds:
            self._bounds[plan] = self._predicted(plan, self.resources.get(plan))
        return self._bounds[plan]

    def _predicted(
        self, plan: CompletePlan, resources: tuple[Resources, ...] | None
    ) -> Bottleneck | None:
        return _predict(self.subject, self.program(plan), resources, self.analyses)

    def each(self, plan: CompletePlan) -> tuple[float, ...] | None:
        """The predicted seconds of each kernel of a legal plan; None where the turns of loops are
        not known.
        """
        s = self.subject
        if s.model is None or s.traffic is not None:
            return None
        in_graph = s.model.target.has_blocks
        resources = self.resources.get(plan)
        found = predict(
            self.program(plan),
            s.environment,
            s.model,
            resources,
            in_graph=in_graph,
            analyses=self.analyses,
        )
        return None if found.unknown.guessed else found.each

    def registers(self, plan: CompletePlan) -> int | None:
        """Registers of a thread of the main kernel."""
        resources = self.resources.get(plan)
        return resources[0].registers if resources else None

    def spilled(self, plan: CompletePlan) -> int:
        """Bytes of registers that the kernels of a plan spill to memory, as far as it was
        compiled.
        """
        return sum(r.spill_stores + r.spill_loads for r in self.resources.get(plan, ()))

    def occupancy(self, plan: CompletePlan) -> float | None:
        """The share of the warps of a multiprocessor that the main kernel can have resident."""
        resources, model = self.resources.get(plan), self.subject.model
        grid = self.program(plan).kernels[0].grid
        if not resources or grid is None or model is None or model.limits is None:
            return None
        return resident(
            model.limits, grid.threads, resources[0].registers, resources[0].shared_bytes
        ).share


def _predict(
    subject: Subject, program: Program, resources: tuple[Resources, ...] | None, analyses: Analyses
) -> Bottleneck | None:
    """Launches on a GPU count as those of a graph, which is how time loops launch and how plans are
    measured.
    """
    if subject.model is None:
        return None
    # of steps over sites only the plan itself is foreseen: others move the same bytes
    if subject.traffic is not None:
        return _step_bound(subject) if program.plan == subject.plan else None
    prediction = predict(
        program,
        subject.environment,
        subject.model,
        resources,
        in_graph=subject.model.target.has_blocks,
        analyses=analyses,
    )
    because = why_no_bound(prediction.unknown, subject.model)
    if prediction.unknown.guessed:
        return Bottleneck("", None, None, {}, because)
    return Bottleneck(
        prediction.busy.limiter, None, prediction.seconds, dict(prediction.busy.details), because
    )


def _step_bound(subject: Subject) -> Bottleneck:
    assert subject.traffic is not None
    assert subject.model is not None
    step = predicted_step(
        subject.reference, subject.plan, subject.traffic, subject.device, subject.model
    )
    if step is None:
        return Bottleneck("", None, None, {}, LOOPS_OF_SITES)
    bound, busy, seconds = step
    if not subject.model.is_nominal:
        return Bottleneck(busy.limiter, None, seconds, dict(busy.details), NOT_NOMINAL)
    return Bottleneck(
        busy.limiter, bound.seconds, seconds, dict(busy.details), least_unit=bound.limiter
    )


def formula(field: str, estimates: Estimates, before: CompletePlan, after: CompletePlan) -> str:
    """What going from one plan to the other costs, or a paper's formula says of it; nothing where
    there is none.
    """
    if field == "parts" and (sums := estimates.subject.work.sums) is not None and after.parts > 1:
        return f"copies of {sums.nbytes:,} bytes, about one per thread, at most {after.parts - 1}"
    if estimates.subject.model is None:
        return ""
    if field == "unroll" and estimates.subject.reference.pattern.over_pairs:
        return _unrolling(estimates, before, after)
    if field == "branches":
        return _branch_splitting(estimates, before, after)
    return ""


def _unrolling(estimates: Estimates, before: CompletePlan, after: CompletePlan) -> str:
    sources = list(estimates.subject.counts.values())[1]
    environment = estimates.subject.environment
    rolled, unrolled = (
        analyse(estimates.program(p).kernels[0], environment) for p in (before, after)
    )
    if not all(any(r.role == "loop over sources" for r in w.regions) for w in (rolled, unrolled)):
        return ""
    tile = max(after.tile or 0, 1) if after.tile else sources
    before_it, with_it = (loop_costs(work, sources, tile) for work in (rolled, unrolled))
    factor = unrolling_speedup(before_it, with_it, sources, tile)
    parts = " and ".join(
        f"S {c.setup:.3g}, B {c.block:.3g}, P {c.inner:.3g} {how}"
        for c, how in ((before_it, "rolled"), (with_it, "unrolled"))
    )
    return (
        f"{factor:.2f} x by eq. 3 of the Gravit paper, by which a thread has S + N/K B + N P "
        f"instructions: {parts}; N/K {sources / tile:,.0f}"
    )


def loop_costs(work: KernelWork, sources: int, tile: int) -> LoopCosts:
    """Instructions of a thread by how often they run: once, once a tile, once a source of all
    `sources`.
    """
    inner = sum(_slots(r) for r in work.regions if _within(r, "loop over sources"))
    block = sum(_slots(r) for r in work.regions if _within(r, "loop over tiles")) - (
        inner if any(r.role == "loop over tiles" for r in work.regions) else 0.0
    )
    setup = sum(_slots(r) for r in work.regions) - inner - block
    return LoopCosts(setup, block / (sources / tile), inner / sources)


def _slots(region: Region) -> float:
    return region.executions * region.instructions.slots


def _within(region: Region | None, role: str) -> bool:
    return region is not None and (region.role == role or _within(region.parent, role))


def _branch_splitting(estimates: Estimates, before: CompletePlan, after: CompletePlan) -> str:
    subject, model = estimates.subject, estimates.subject.model
    assert model is not None
    split = estimates.program(after)
    together = predict(
        estimates.program(before), subject.environment, model, estimates.resources.get(before)
    )
    sides = [
        predict(Program(after, split.reference, (k,)), subject.environment, model)
        for k in split.kernels
    ]
    if together.occupancy is None or len(sides) < 2 or any(s.occupancy is None for s in sides):
        return ""
    branches = [Branch(s.seconds, s.occupancy.share) for s in sides if s.occupancy is not None]
    factor = branch_splitting_speedup(
        branches, together.occupancy.share, model.graph_launch_seconds, together.seconds
    )
    registers = [r.registers for r in estimates.resources.get(after, ())]
    conditions = "; ".join(_conditions(branches, together.occupancy.share, registers))
    return f"{factor:.2f} x by eq. 1 of the LBM paper; its conditions: {conditions}"


MAJOR = 0.1  # of the time of the other side, from which on a side of a branch is a major one


def _conditions(branches: list[Branch], together: float, registers: Sequence[int]) -> Iterator[str]:
    """The conditions of the LBM paper, section 2.3, for branches to be split, with what they
    find.
    """
    yield f"occupancy below 100 %: {_holds(together < 1)}, {together:.0%} together"
    times = sorted(b.seconds for b in branches)
    shown = " and ".join(map(time_text, times))
    yield f"two major branches: {_holds(times[0] >= MAJOR * times[-1])}, {shown}"
    apart = " and ".join(f"{b.occupancy:.0%}" for b in branches)
    if len(set(registers)) > 1:
        apart = f"{' and '.join(map(str, registers))} registers, {apart}"
    unequal = len(set(registers)) > 1 or len({b.occupancy for b in branches}) > 1
    yield f"unequal resources: {_holds(unequal)}, {apart} apart"


def _holds(condition: bool) -> str:
    return "yes" if condition else "no"
