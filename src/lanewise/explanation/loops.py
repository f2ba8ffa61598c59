"""What a step of a loop launches, call by call."""

from __future__ import annotations

from collections.abc import Iterable

from lanewise.explanation.build import rows_of_compiled
from lanewise.explanation.launches import rows_of_tasks
from lanewise.explanation.rendering import launch_lines
from lanewise.explanation.report import LaunchRow
from lanewise.explanation.sites import rows_of_call
from lanewise.language.target import is_compiled
from lanewise.launch.compiled import Call
from lanewise.launch.joined import Bound
from lanewise.launch.task_list import TaskList
from lanewise.models.devices import device_model
from lanewise.patterns.sitewise.calls import SiteCall


def launches_of(calls: Iterable[Bound], device: str) -> tuple[tuple[LaunchRow, ...], list[str]]:
    """A row for each launch of these calls, and the rows as lines of text. Over sites a launch
    takes the time of its bytes at the bandwidth of the memory.
    """
    model = device_model(device) if is_compiled(device) else None
    rows: list[LaunchRow] = []
    for bound in calls:
        match bound.call:
            case SiteCall() if model is not None:
                rows += rows_of_call(bound.call, 1 / model.memory_bandwidth, model)
            case Call():
                rows += rows_of_compiled(bound.call.compiled)
            case (TaskList() as tasks, environment):
                rows += rows_of_tasks(tasks, None, (), environment, model)
            case _:
                rows += [LaunchRow(task.name) for task in bound.sequence.tasks]
    return tuple(rows), launch_lines(tuple(rows), "step")
