"""Make an explanation of a subject."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lanewise.explanation.analysis import analyse
from lanewise.explanation.estimate import Estimates
from lanewise.explanation.report import Analysis, Explanation
from lanewise.explanation.rows import Rows
from lanewise.explanation.subject import Subject
from lanewise.explanation.times import Times
from lanewise.layouts import draw
from lanewise.optimisations import Programs
from lanewise.plan import Decisions, Plan
from lanewise.target import is_gpu


def explain(
    subject: Subject,
    *,
    resources: dict[str, Any],
    measure_resources: bool = True,
    times: Callable[[Sequence[Decisions]], Times] = lambda plans: Times(),
) -> Explanation:
    """Explain a kernel. `resources` are those of its compiled form.

    `measure_resources` compiles the plans that rows compare with, to know their registers (CUDA only); without it they
    are estimated. `times` is asked for measured times once: of the subject's own plan, which comes first, and of those
    that rows compare it with.
    """
    from lanewise.explanation.sites import analyse_step

    programs = Programs(subject.reference, subject.kind)
    draft = Rows(
        subject, programs, Estimates(subject, programs, {subject.plan: subject.taken} if subject.taken else {})
    )
    draft.make(Times())
    plans = list(dict.fromkeys([subject.plan, *draft.compared]))
    estimates = draft.estimates.compiled(plans) if measure_resources else draft.estimates
    measured = times(plans)
    return Explanation(
        kernel=subject.name,
        pattern=subject.reference.pattern.name,
        device=subject.device,
        machine=_machine(subject),
        counts=dict(subject.counts),
        layouts={n: str(layout) for n, layout in subject.layouts.items()},
        drawings={a.name: draw(a.arrangement) for a in subject.reference.arrays if a.name in subject.layouts},
        plan=subject.plan,
        origin=_origin(subject, measured),
        rows=Rows(subject, programs, estimates).make(measured),
        analysis=_with_search(subject, analyse(subject, estimates.program(subject.plan)))
        if subject.traffic is None
        else analyse_step(subject),
        bound=estimates.bound(subject.plan),
        measured_seconds=measured.seconds.get(subject.plan),
        measured_by=measured.source if subject.plan in measured.seconds else "",
        resources=dict(resources),
        invented=dict(subject.invented),
        warnings=tuple(_warnings(subject, estimates)),
    )


def _with_search(s: Subject, analysis: Analysis) -> Analysis:
    """First of all the structure that sources are found by, where there is one."""
    if not s.search:
        return analysis
    return Analysis((("search", s.search), *analysis.lines), {"search": s.search, **analysis.facts})


def _machine(s: Subject) -> str:
    if s.model is None:
        return f"{s.device} (interpreted)"
    if is_gpu(s.kind):
        return f"{s.device} ({s.model.name}, {s.model.arch}, {s.model.multiprocessors} multiprocessors)"
    return f"{s.device} ({s.model.multiprocessors} threads)"


def _origin(s: Subject, measured: Times) -> str:
    """Who chose the plan."""
    if measured.tuned == s.plan:
        return "tune()"
    return "default" if s.model is None or s.plan == s.default(Plan()) else "given"


def _warnings(s: Subject, estimates: Estimates) -> list[str]:
    warnings: list[str] = []
    for kernel, r in zip(estimates.program(s.plan).kernels, estimates.resources.get(s.plan, ()), strict=False):
        if spilled := r.spill_stores + r.spill_loads:
            warnings.append(f"{kernel.name} spills {spilled} bytes of registers to memory")
    return warnings
