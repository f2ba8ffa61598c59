"""What a step of a loop launches, call by call."""

from __future__ import annotations

from collections.abc import Iterable

from lanewise.explanation.launches import rows_of_tasks
from lanewise.explanation.meshes import of_part, row_of_task
from lanewise.explanation.rendering import launch_lines, unsure_of
from lanewise.explanation.report import LaunchRow
from lanewise.explanation.rows_of_calls import rows_of_compiled
from lanewise.explanation.sites import rates_of, rows_of_call
from lanewise.language.target import is_compiled
from lanewise.launch.compiled import Call
from lanewise.launch.joined import Bound, OfPart
from lanewise.launch.task_list import TaskList
from lanewise.models.devices import device_model
from lanewise.patterns.sitewise.calls import SiteCall


def launches_of(calls: Iterable[Bound], device: str) -> tuple[tuple[LaunchRow, ...], list[str]]:
    """A row for each launch of these calls; the rows as lines of text, and how sure they are."""
    model, calls = device_model(device) if is_compiled(device) else None, list(calls)
    over_sites = [b.call for b in calls if isinstance(b.call, SiteCall)]
    rates = {} if model is None else rates_of(over_sites, model)
    rows: list[LaunchRow] = []
    for bound in calls:
        match bound.call:
            case SiteCall() if model is not None:
                rows += rows_of_call(bound.call, rates[id(bound.call)], model)
            case OfPart(number, Call() as call):
                rows += of_part(rows_of_compiled(call.compiled), number)
            case Call():
                rows += rows_of_compiled(bound.call.compiled)
            case (TaskList() as tasks, environment):
                rows += rows_of_tasks(tasks, None, (), environment, model)
            case _:
                rows += map(row_of_task, bound.sequence.tasks)
    found = tuple(rows)
    return found, [*launch_lines(found, "step"), *unsure_of(found)]
