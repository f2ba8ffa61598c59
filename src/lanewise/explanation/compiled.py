"""The explanation of a compiled kernel: what it was compiled for is what is explained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lanewise.explanation.build import explain
from lanewise.explanation.report import Explanation
from lanewise.explanation.subject import Subject
from lanewise.ir.names import COUNT, count_of
from lanewise.kernels.compiled import Compiled
from lanewise.models.devices import device_model
from lanewise.work import describe_work


def explain_compiled(compiled: Compiled, *, measure: bool, measure_resources: bool) -> Explanation:
    """See `Compiled.explain`."""
    subject = subject_of(compiled)
    measured = None
    return explain(subject, resources=compiled.resources, measure_resources=measure_resources, measured=measured)


def subject_of(compiled: Compiled) -> Subject:
    """A compiled kernel and the call that it was compiled for."""
    device, naive = compiled.executable.device, compiled.executable.program.naive
    counts = counts_of(compiled.environment, tuple(compiled.layouts))
    model = None if device == "python" else device_model(device)
    work = describe_work(naive, next(iter(counts.values())))
    return Subject(
        compiled.name, naive, compiled.plan, device, model, compiled.environment, counts, compiled.layouts, work
    )


def counts_of(environment: Mapping[str, Any], records: tuple[str, ...]) -> dict[str, int]:
    """The numbers of elements by the names of people: of each record parameter, or of all elements."""
    counts = {n: int(environment[count_of(n)]) for n in records if count_of(n) in environment}
    return counts or {"elements": int(environment[COUNT])}
