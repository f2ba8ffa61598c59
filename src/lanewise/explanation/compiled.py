"""The explanation of a compiled kernel: what it was compiled for is what is explained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lanewise.errors import ArgumentError
from lanewise.explanation.build import explain
from lanewise.explanation.measure import made_up_arguments, measure_plans, stored_times
from lanewise.explanation.report import Explanation
from lanewise.explanation.subject import Subject
from lanewise.explanation.times import Times
from lanewise.ir import nodes as ir
from lanewise.ir.names import COUNT, count_of
from lanewise.launch.compiled import Compiled
from lanewise.models.devices import device_model
from lanewise.patterns.threadwise.names import POINTS
from lanewise.plan import Decisions
from lanewise.target import is_compiled
from lanewise.work import describe_work


def explain_compiled(
    compiled: Compiled, arguments: tuple[Any, ...], named: Mapping[str, Any], *, measure: bool, measure_resources: bool
) -> Explanation:
    """See `Compiled.explain`."""
    if (arguments or named) and not measure:
        raise ArgumentError(f"{compiled.name}: arguments are measured; write explain(..., measure=True)")
    stored = stored_times(compiled)

    def times(plans: Sequence[Decisions]) -> Times:
        if not measure:
            return stored
        if compiled.reference.pattern.over_items and not (arguments or named):
            raise ArgumentError(
                f"{compiled.name}: explain(measure=True) of a segmentwise kernel takes the arguments of a call, "
                "because lists cannot be made up"
            )
        if compiled.reference.pattern.inlined and not (arguments or named):
            raise ArgumentError(
                f"{compiled.name}: explain(measure=True) of a threadwise kernel takes the arguments of a call, "
                "because arrays that hold indices cannot be made up"
            )
        given = named if arguments or named else made_up_arguments(compiled)
        job = compiled.kernel.tuning_job(*arguments, plan=compiled.plan, **given)
        return replace(measure_plans(job, plans), tuned=stored.tuned)

    return explain(subject_of(compiled), resources=compiled.resources, measure_resources=measure_resources, times=times)


def subject_of(compiled: Compiled) -> Subject:
    """A compiled kernel and the call that it was compiled for."""
    device, reference = compiled.executable.device, compiled.reference
    counts = counts_of(compiled.environment, tuple(compiled.layouts), reference)
    model = None if not is_compiled(device) else device_model(device)
    work = describe_work(reference, next(iter(counts.values())))
    return Subject(
        compiled.name, reference, compiled.plan, device, model, compiled.environment, counts, compiled.layouts, work,
        tuple(c.resources for c in compiled.executable.cubins), search=compiled.search,
    )  # fmt: skip


def counts_of(environment: Mapping[str, Any], records: tuple[str, ...], reference: ir.Kernel) -> dict[str, int]:
    """The numbers of elements by the names of people: of each record parameter, of cells, or of all elements."""
    if reference.pattern.over_items:
        return {"cells": int(environment[reference.counts[0].name])}
    if reference.pattern.inlined:
        return {"points": int(environment[POINTS])}
    counts = {n: int(environment[count_of(n)]) for n in records if count_of(n) in environment}
    return counts or {"elements": int(environment[COUNT])}
