"""What the kernels of a step on a mesh cost, whose devices need not be there."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from lanewise.compiler.pipeline import Program
from lanewise.explanation.launches import rows_predicted
from lanewise.explanation.mesh_scaling import Cost, DividedStep, PartWork, RowsTime, UnknownTime
from lanewise.explanation.report import LaunchRow
from lanewise.explanation.site_facts import predicted_step
from lanewise.explanation.subject import Subject
from lanewise.ir.names import COUNT, count_of
from lanewise.passes.reciprocity.groups import PARTS, part_values


@dataclass(frozen=True, slots=True)
class CallTime:
    """The kernels of a call, predicted anew for what each part has. all_others: what counts after
    the first count is all rows of the step, and not those of the part. now: rows of the parts that
    the call is of. found: what was predicted; most parts have as many rows as others.
    """

    name: str
    subject: Subject
    program: Program
    all_others: bool
    now: tuple[int, ...]
    nbytes: int | None
    times: float
    unknown: tuple[str, ...] = ()
    found: dict[Hashable, Cost | None] = field(
        default_factory=dict[Hashable, "Cost | None"], repr=False, compare=False
    )

    def cost(self, step: DividedStep, part: int) -> Cost | None:
        """See `PartWork`."""
        changed = self._changed(step, part)
        key = tuple(changed.items())
        if key not in self.found:
            self.found[key] = self._predicted(changed)
        return self.found[key]

    def _predicted(self, changed: dict[str, Any]) -> Cost | None:
        model = self.subject.model
        environment = {**self.subject.environment, **changed}
        found = rows_predicted(self.program, environment, model)
        times = [r.predicted for r in found if r.predicted is not None]
        if model is None or len(times) < len(found):
            return None
        return Cost.of(sum(times), model.loop_launch_seconds * sum(r.times for r in found))

    def _changed(self, step: DividedStep, part: int) -> dict[str, Any]:
        """The counts that are others in such a part."""
        known = self.subject.environment
        names = dict.fromkeys([*map(count_of, self.subject.layouts), COUNT])
        names = [n for n in names if n in known]
        rows, count = step.rows[part], sum(step.rows)
        if PARTS in known:  # all rows, and a share of the pairs
            return {n: type(known[n])(count) for n in names} | part_values(part, len(step.rows))
        if not self.all_others:
            return {n: type(known[n])(rows) for n in names}
        first, *others = names
        follow = [n for n in others if known[n] == sum(self.now)]
        return {first: type(known[first])(rows), **{n: type(known[n])(count) for n in follow}}


def kernel_time(
    subject: Subject,
    program: Program,
    launches: Callable[[tuple[LaunchRow, ...]], tuple[LaunchRow, ...]],
    *,
    near: bool,
    pairs: bool = False,
    times: float = 1,
) -> PartWork:
    """Of the launches of a call over all rows, but for what is not generated. near: whether parts
    also run it over near rows of others. pairs: whether each meets all rows.
    """
    model, name = subject.model, subject.name
    if subject.traffic is not None and model is not None:
        traffic, nbytes = subject.traffic, round(subject.traffic.nbytes)
        step = predicted_step(program.reference, program.plan, traffic, subject.device, model)
        if step is None:
            return UnknownTime(name, nbytes, times)
        return RowsTime(
            name, traffic.sites, step[2], model.loop_launch_seconds, near, nbytes, times
        )
    rows = next(iter(subject.counts.values()))
    found = rows_predicted(program, subject.environment, model)
    launched = launches(found)
    sizes = [r.nbytes for r in launched]
    nbytes = None if None in sizes else sum(n for n in sizes if n is not None)
    if model is None or any(r.predicted is None for r in found):
        return UnknownTime(name, nbytes, times)
    known = [(r.predicted, r.times) for r in launched if r.predicted is not None]
    unknown = tuple(dict.fromkeys(r.name for r in launched if r.predicted is None))
    if not near and len(launched) == len(found):
        return CallTime(name, subject, program, pairs, (rows,), nbytes, times, unknown)
    least = model.loop_launch_seconds * sum(n for _, n in known)
    whole = sum(t for t, _ in known)
    return RowsTime(name, rows, whole, least, near, nbytes, times, unknown=unknown)
