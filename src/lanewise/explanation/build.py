"""Make an explanation of a subject; of a compiled kernel, what it was compiled for is what is
explained.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lanewise.compiler.optimisations import BuiltPrograms
from lanewise.explanation.analysis import analyse
from lanewise.explanation.estimate import Estimates
from lanewise.explanation.launches import measured as measured_rows
from lanewise.explanation.launches import rows_of_program, rows_of_tasks
from lanewise.explanation.measure import Times, made_up_arguments, measure_plans, stored_times
from lanewise.explanation.meshes import with_division
from lanewise.explanation.report import Analysis, Explanation, LaunchRow
from lanewise.explanation.rows import RowMaker
from lanewise.explanation.rows_of_calls import rows_of_compiled, subject_of
from lanewise.explanation.site_facts import analyse_step
from lanewise.explanation.subject import OPEN, Subject
from lanewise.launch.compiled import Compiled
from lanewise.layouts import draw
from lanewise.planning.decisions import ASKED, LIFTED, Decisions
from lanewise.planning.plan import FIELDS, CompletePlan
from lanewise.support.articles import an
from lanewise.support.errors import ArgumentError
from lanewise.support.numerals import counted
from lanewise.tuning.job import Workload


def explain(
    subject: Subject,
    *,
    resources: dict[str, Any],
    measure_resources: bool = True,
    times: Callable[[Sequence[CompletePlan]], Times] = lambda plans: Times(),
    launches: Callable[[tuple[LaunchRow, ...]], tuple[LaunchRow, ...]] = lambda rows: rows,
) -> Explanation:
    """Explain a kernel. `resources` are those of its compiled form.

    `launches` makes those of a call of the rows of its kernels.

    `measure_resources` compiles the plans that rows compare with, to know their registers (CUDA
    only); without it they are estimated. `times` is requested measured times once: of the subject's
    own plan, which comes first, and of those that rows compare it with.
    """
    programs = BuiltPrograms(subject.reference, subject.kind, subject.unfit)
    draft = RowMaker(
        subject,
        programs,
        Estimates(subject, programs, {subject.plan: subject.taken} if subject.taken else {}),
    )
    draft.make(Times())
    plans = list(dict.fromkeys([subject.plan, *draft.compared]))
    estimates = draft.estimates.compiled(plans) if measure_resources else draft.estimates
    measured = times(plans)
    origin = _origin(subject, measured)
    return Explanation(
        kernel=subject.name,
        pattern=subject.reference.pattern.name,
        device=subject.device,
        machine=_machine(subject),
        counts=dict(subject.counts),
        layouts={n: str(layout) for n, layout in subject.layouts.items()},
        drawings={
            a.name: draw(a.arrangement)
            for a in subject.reference.arrays
            if a.name in subject.layouts
        },
        decisions=_decisions(subject, measured),
        origin=origin,
        rows=RowMaker(subject, programs, estimates).make(measured),
        analysis=_with_search(
            subject, analyse(subject, estimates.program(subject.plan), estimates.analyses)
        )
        if subject.traffic is None
        else analyse_step(subject),
        bound=estimates.own_estimate(),
        measured_seconds=measured.seconds.get(subject.plan),
        measured_by=measured.source if subject.plan in measured.seconds else "",
        resources=dict(resources),
        invented=dict(subject.invented),
        shapes=dict(subject.shapes),
        warnings=tuple(_warnings(subject, estimates)),
        launches=launches(_launches(subject, estimates)),
        layout_reasons=dict(subject.layout_reasons),
    )


def _launches(s: Subject, estimates: Estimates) -> tuple[LaunchRow, ...]:
    """Of the kernels of the plan; of steps over sites a separate line says what they move."""
    if s.model is None or s.traffic is not None:
        return ()
    return rows_of_program(estimates.program(s.plan), s.environment, estimates.each(s.plan))


def _with_search(s: Subject, analysis: Analysis) -> Analysis:
    """First of all the structure that sources are found by, where there is one."""
    if not s.search:
        return analysis
    return Analysis((("search", s.search), *analysis.lines), {"search": s.search, **analysis.facts})


def _machine(s: Subject) -> str:
    if s.model is None:
        return f"{s.device} (interpreted)"
    if s.model.target.has_blocks:
        return (
            f"{s.device} ({s.model.name}, {s.model.arch}, {s.model.multiprocessors} "
            "multiprocessors)"
        )
    return f"{s.device} ({counted(s.model.multiprocessors, 'thread', 'threads')})"


def _decisions(s: Subject, measured: Times) -> Decisions:
    """The plan, and why fields of it are as they are."""
    if s.model is None:
        return Decisions(s.plan)
    # who hands a complete plan back requested what is not as it is by default
    whole = None not in s.requested.as_dict().values()
    decided = s.decided(OPEN if whole else s.requested)
    why = "measured by tune()" if _is_tuned(s, measured) else ASKED
    decided = decided.but(why, **_changed(decided.plan, s.chosen))
    return decided.but(LIFTED, **_changed(s.chosen, s.plan))


def _changed(plan: CompletePlan, other: CompletePlan) -> dict[str, Any]:
    """The fields in which another plan differs, as they are there."""
    return {n: v for n in FIELDS if (v := getattr(other, n)) != getattr(plan, n)}


def _is_tuned(s: Subject, measured: Times) -> bool:
    return measured.tuned is not None and measured.tuned in (s.plan, s.chosen)


def _origin(s: Subject, measured: Times) -> str:
    """Who chose the plan."""
    if _is_tuned(s, measured):
        return "tune()"
    return "default" if s.model is None or s.chosen == s.default(OPEN) else "given"


def _warnings(s: Subject, estimates: Estimates) -> list[str]:
    found = estimates.own_bound()
    warnings = [found.because] if found is not None and found.because else []
    for kernel, r in zip(
        estimates.program(s.plan).kernels, estimates.resources.get(s.plan, ()), strict=False
    ):
        if spilled := r.spill_stores + r.spill_loads:
            warnings.append(f"{kernel.name} spills {spilled} bytes of registers to memory")
    return warnings


def explain_compiled(
    compiled: Compiled,
    arguments: tuple[Any, ...],
    named: Mapping[str, Any],
    *,
    measure: bool,
    measure_resources: bool,
) -> Explanation:
    """See `Compiled.explain`."""
    if (arguments or named) and not measure:
        raise ArgumentError(
            f"{compiled.name}: arguments are measured; write explain(..., measure=True)"
        )
    if measure and compiled.divided is not None:
        raise ArgumentError(
            f"{compiled.name}: explain(measure=True) is for arrays on one device, and these lie on "
            f"a mesh ({compiled.divided.mesh})"
        )
    stored, measured = stored_times(compiled), list[Workload]()

    def times(plans: Sequence[CompletePlan]) -> Times:
        if not measure:
            return stored
        if not (arguments or named):
            _check_made_up(compiled)
        values = named if arguments or named else made_up_arguments(compiled)
        job = compiled.kernel.tuning_job(*arguments, plan=compiled.plan, **values)
        found = measure_plans(job, plans)  # which refuses what it has no time for
        measured.append(job.workload())
        return replace(found, tuned=stored.tuned)

    def launches(rows: tuple[LaunchRow, ...]) -> tuple[LaunchRow, ...]:
        subject = subject_of(compiled)
        if subject.model is None:
            return rows
        if measured and rows:
            (work,) = measured
            prepared = compiled.executable.tasks.bound(work.bound, work.environment)
            rows = measured_rows(
                rows, compiled.executable.program, prepared, work.environment, subject.device
            )
        return rows_of_tasks(
            compiled.tasks, compiled.executable, rows, compiled.environment, subject.model
        )

    explained = explain(
        subject_of(compiled),
        resources=compiled.resources,
        measure_resources=measure_resources,
        times=times,
        launches=launches,
    )
    if (divided := compiled.divided) is None:
        return explained
    each = [[rows_of_compiled(part) for part in r.parts] for r in divided.rounds]
    return with_division(explained, divided, each)


def _check_made_up(compiled: Compiled) -> None:
    """Refuse to measure a kernel with arguments that were not given, where none can be made up."""
    pattern = compiled.reference.pattern
    if pattern.over_items or pattern.inlined:
        kind, why = (
            ("segmentwise", "lists cannot be made up")
            if pattern.over_items
            else ("threadwise", "arrays that hold indices cannot be made up")
        )
        raise ArgumentError(
            f"{compiled.name}: explain(measure=True) of {an(kind)} kernel takes the arguments of a "
            f"call, because {why}"
        )
