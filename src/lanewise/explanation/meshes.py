"""What a call on a mesh does: its parts, what they exchange, and over what."""

from __future__ import annotations

from dataclasses import replace

from lanewise.explanation.report import Explanation, LaunchRow
from lanewise.launch.divided import Divided
from lanewise.launch.tasks import Exchange, Task


def row_of_task(task: Task) -> LaunchRow:
    """Of what is not generated."""
    return LaunchRow(task.name, nbytes=task.nbytes if isinstance(task, Exchange) else None)


def of_part(rows: tuple[LaunchRow, ...], number: int) -> tuple[LaunchRow, ...]:
    """The launches of a part."""
    return tuple(replace(row, name=f"{row.name}, part {number}") for row in rows)


def with_division(
    explanation: Explanation, divided: Divided, each: list[tuple[LaunchRow, ...]]
) -> Explanation:
    """An explanation of the first part's kernel, as one of the call. each: the launches of each."""
    rows = [row for n, some in enumerate(each) for row in of_part(some, n)]
    if divided.exchange is not None:
        rows.insert(0, row_of_task(divided.exchange))
    analysis = explanation.analysis
    return replace(
        explanation,
        launches=tuple(rows),
        analysis=replace(
            analysis,
            lines=(("mesh", divided.line), *analysis.lines),
            facts={"mesh": divided.facts, **analysis.facts},
        ),
    )
