"""What a compiled kernel and the call that it was compiled for are to explanations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lanewise.compiler.work import describe_work
from lanewise.explanation.launches import rows_of_tasks, rows_predicted
from lanewise.explanation.report import LaunchRow
from lanewise.explanation.subject import OPEN, Subject
from lanewise.ir import nodes as ir
from lanewise.ir.names import COUNT, GATHER_STEP, count_of, turns_of
from lanewise.language.target import is_compiled, target_of
from lanewise.launch.compiled import Compiled
from lanewise.models.devices import device_model
from lanewise.patterns.search.build import SEARCH
from lanewise.patterns.segmentwise.names import DENSE, ITEMS
from lanewise.patterns.tables.names import POINTS


def rows_of_compiled(compiled: Compiled) -> tuple[LaunchRow, ...]:
    """Of everything that a call of a compiled kernel launches, as the models predict it."""
    subject, kernel = subject_of(compiled), compiled.executable
    rows = rows_predicted(kernel.program, subject.environment, subject.model)
    return rows_of_tasks(compiled.tasks, kernel, rows, compiled.environment, subject.model)


def rows_beside(compiled: Compiled) -> tuple[LaunchRow, ...]:
    """The same without its own kernel."""
    subject = subject_of(compiled)
    tasks, kernel = compiled.tasks, compiled.executable
    return rows_of_tasks(tasks, kernel, (), compiled.environment, subject.model)


def subject_of(compiled: Compiled) -> Subject:
    """A compiled kernel and the call that it was compiled for."""
    device, reference = compiled.executable.device, compiled.reference
    counts = counts_of(compiled.environment, tuple(compiled.layouts), reference)
    model = None if not is_compiled(device) else device_model(device)
    count = next(iter(counts.values()))
    work = describe_work(reference, count, target_of(device)).at(compiled.environment, count)
    if reference.pattern.over_items:  # as a call of such a kernel describes its work
        found = compiled.environment
        work = replace(work, alike=int(found.get(DENSE, 1)), items=int(found[ITEMS]))
    environment = {
        **compiled.environment,
        **{turns_of(n): turns for n, turns in compiled.turns().items()},
    }
    if (
        reference.pattern is SEARCH and reference.identical
    ):  # in the order of the structure: neighbours look at neighbours
        environment[GATHER_STEP] = 1.0
    return Subject(
        compiled.name,
        reference,
        compiled.plan,
        device,
        model,
        environment,
        counts,
        compiled.layouts,
        work,
        tuple(c.resources for c in compiled.executable.cubins),
        search=compiled.search,
        requested=compiled.requested or OPEN,
        capped=compiled.executable.capped,
        layout_reasons=compiled.layout_reasons,
    )


def counts_of(
    environment: Mapping[str, Any], records: tuple[str, ...], reference: ir.Kernel
) -> dict[str, int]:
    """The numbers of elements by the names of people: of each record parameter, of cells, or of all
    elements.
    """
    if reference.pattern.over_items:
        return {"cells": int(environment[reference.counts[0].name])}
    if reference.pattern.inlined:
        return {"points": int(environment[POINTS])}
    counts = {n: int(environment[count_of(n)]) for n in records if count_of(n) in environment}
    return counts or {"elements": int(environment[COUNT])}
