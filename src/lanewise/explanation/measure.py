"""Measured times of plans: those that tune() left in the store, and those of this machine, now."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lanewise.explanation.samples import random_values
from lanewise.ir import nodes as ir
from lanewise.ir.names import COUNT, WORK, count_of
from lanewise.ir.pattern import Work
from lanewise.language import types as t
from lanewise.language.record import Record
from lanewise.language.target import is_compiled
from lanewise.language.values import to_python_value
from lanewise.launch.compiled import Compiled
from lanewise.launch.trial import plan_from
from lanewise.launch.tuned_plans import Key, has_entries, make_key, read_entry, store_enabled
from lanewise.layouts import Layout
from lanewise.patterns.tables.names import POINTS
from lanewise.planning.plan import CompletePlan, Plan
from lanewise.records.arrays import RecordArray
from lanewise.records.field_values import brought
from lanewise.support.errors import LanewiseError
from lanewise.tuning.job import Job
from lanewise.tuning.measure import KernelMeasurer
from lanewise.tuning.tune import time_limit

ROUNDS = 7  # interleaved: the median of 7 times of each plan


def stored_times(compiled: Compiled) -> Times:
    """What tune() measured of calls like the one that a kernel was compiled for, on this device."""
    if compiled.search:  # a whole call was timed, with its structure: no time of this kernel
        return Times(tuned=compiled.plan if compiled.search_tuned else None)
    device, environment = compiled.executable.device, compiled.environment
    return stored_of_call(compiled.reference, compiled.layouts, device, environment)


def stored_of_call(
    reference: ir.Kernel,
    layouts: Mapping[str, Layout],
    device: str,
    environment: Mapping[str, Any],
) -> Times:
    """The same for calls of a kernel that need not be compiled. device: of this machine.

    environment: the numbers of a call, by their names in the IR.
    """
    if not is_compiled(device) or not has_entries(reference.name):
        return Times()
    pattern, names = reference.pattern, [p.name for p in reference.counts]
    counts = [int(environment[n]) for n in ((POINTS, WORK) if pattern.inlined else names)]
    work, identical = Work(pattern, counts[0]), reference.identical
    return stored_under(make_key(reference, layouts, device, work, counts[-1], Plan(), identical))


def stored_under(key: Key) -> Times:
    """The same by the key of the store."""
    entry = read_entry(key) if store_enabled() else None
    if entry is None:
        return Times()
    times = {
        plan_from(x["plan"]): float(x["seconds"])
        for x in entry.log.get("trials", [])
        if x.get("seconds")
    }
    return Times(
        {**times, entry.default: entry.default_seconds, entry.plan: entry.seconds},
        "tune()",
        entry.plan,
    )


def measure_plans(job: Job, plans: Sequence[CompletePlan]) -> Times:
    """Time plans in turns on this machine; those that fail or compute something else are left out.

    The first plan is the one that the others are held against.
    """
    limit = time_limit(job.kind, None)
    try:
        measurer = KernelMeasurer(job, limit)
        failures = measurer.prepare(list(dict.fromkeys(plans)), limit)
    except LanewiseError as error:
        if type(error) is not LanewiseError:
            raise
        raise LanewiseError(
            f"explain(measure=True) measures as tune() does, in {limit:.3g} s: {error}"
        ) from None
    ready = [p for p, failure in failures.items() if failure is None]
    measured = measurer.measure(ready, ROUNDS, limit)
    return Times({p: statistics.median(times) for p, times in measured.items() if times}, "now")


def made_up_arguments(compiled: Compiled) -> dict[str, Any]:
    """Arguments by name for a call like the one that a kernel was compiled for: random arrays, its
    own uniform arguments.
    """
    rng, signature = np.random.default_rng(0), compiled.kernel.signature
    classes, device = signature.source.annotations(), compiled.executable.device
    taken = {a.name for a in compiled.reference.arrays}
    arguments: dict[str, Any] = {}
    records: list[RecordArray] = []
    for name, kind in signature.parameters.items():
        count = int(compiled.environment.get(count_of(name), compiled.environment.get(COUNT, 0)))
        if isinstance(kind, Record):
            if not (records and compiled.reference.identical):
                fields = {f.name: random_values(rng, count, f.type) for f in kind}
                records.append(
                    classes[name].array(**fields, layout=compiled.layouts[name], device=device)
                )
            arguments[name] = records[-1]
        elif name in taken:
            arguments[name] = brought(name, random_values(rng, count, kind), device)
        else:
            parts = [compiled.environment[leaf] for leaf in t.leaves(name, kind)]
            arguments[name] = to_python_value(
                parts if isinstance(kind, t.Vector) else parts[0], kind
            )
    return arguments


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of one call by plan; where they come from ("tune()", "now" or nothing); the plan that
    tune() chose.
    """

    seconds: Mapping[CompletePlan, float] = field(default_factory=dict[CompletePlan, float])
    source: str = ""
    tuned: CompletePlan | None = None

    def factor(self, slow: CompletePlan, fast: CompletePlan) -> float | None:
        """How many times faster the second plan was; None unless both were measured."""
        before, after = self.seconds.get(slow), self.seconds.get(fast)
        return before / after if before and after else None
