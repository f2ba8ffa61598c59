"""What calls on a mesh do: their parts, what these copy to each other and launch, and over what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from lanewise.explanation.launches import rows_predicted
from lanewise.explanation.mesh_kernels import CallTime
from lanewise.explanation.mesh_scaling import Cost, DividedStep, PartWork, RowsDivided, UnknownTime
from lanewise.explanation.mesh_steps import MeshStep, explain_mesh
from lanewise.explanation.report import Explanation, LaunchRow
from lanewise.explanation.rows_of_calls import rows_beside, rows_of_compiled, subject_of
from lanewise.ir.names import COUNT, count_of
from lanewise.launch.divided import Divided, DividedRound
from lanewise.launch.sent import Sent
from lanewise.launch.tasks import Exchange, Task


def row_of_task(task: Task) -> LaunchRow:
    """Of what is not generated."""
    return LaunchRow(task.name, nbytes=task.nbytes if isinstance(task, Exchange) else None)


def of_part(rows: tuple[LaunchRow, ...], number: int) -> tuple[LaunchRow, ...]:
    """The launches of a part."""
    return tuple(replace(row, name=f"{row.name}, part {number}") for row in rows)


@dataclass(frozen=True, slots=True)
class SearchTime:
    """The kernels of a search, whose structure each part has of all rows. own: seconds of the
    kernel of the first part; beside: of what builds the structure. each: of a launch, of which
    there are so many.
    """

    name: str
    own: float
    beside: float
    each: float
    launches: int
    now: tuple[int, ...]
    nbytes: int | None
    times: float
    unknown: tuple[str, ...] = ()

    def cost(self, step: DividedStep, part: int) -> Cost:
        """See `PartWork`."""
        of_rows = self.own * step.rows[part] / max(1, self.now[0])
        of_all = self.beside * sum(step.rows) / max(1, sum(self.now))
        return Cost.of(of_rows + of_all, self.each * self.launches)


def works_of(divided: Divided, times: float = 1) -> list[PartWork]:
    """What each part launches in a call, round by round."""
    return [_work(divided, r, times) for r in divided.rounds]


def _work(divided: Divided, r: DividedRound, times: float) -> PartWork:
    compiled, name = r.parts[0], r.title
    subject = subject_of(compiled)
    rows = rows_of_compiled(compiled)
    nbytes = _bytes([rows_of_compiled(part) for part in r.parts])
    own = rows_predicted(compiled.executable.program, subject.environment, subject.model)
    unknown = tuple(dict.fromkeys(x.name for x in rows if x.predicted is None))
    if subject.model is None or any(x.predicted is None for x in own):
        return UnknownTime(name, nbytes, times)
    first = next((count_of(n) for n in compiled.layouts), COUNT)
    if not compiled.search and first in subject.environment:
        others = r.exchange is not None
        program = compiled.executable.program
        return CallTime(name, subject, program, others, divided.lengths, nbytes, times, unknown)
    return SearchTime(
        name,
        sum(x.predicted for x in own if x.predicted is not None),
        sum(x.predicted for x in rows_beside(compiled) if x.predicted is not None),
        subject.model.loop_launch_seconds,
        sum(x.times for x in rows if x.predicted is not None),
        divided.lengths,
        nbytes,
        times,
        unknown,
    )


def _bytes(each: Iterable[tuple[LaunchRow, ...]]) -> int | None:
    """That launches of all parts touch; None where that is unknown of one of them."""
    sizes = [row.nbytes for rows in each for row in rows]
    return None if None in sizes or not sizes else sum(n for n in sizes if n is not None)


def mesh_of_call(divided: Divided) -> MeshStep:
    """A call by itself as a step."""
    divides = RowsDivided(divided.lengths, divided.sent)
    return explain_mesh(
        divided.mesh,
        divided.devices,
        "rows",
        divides.divide,
        works_of(divided),
        divides.grow,
        order_of(divided),
        "call",
    )


def order_of(divided: Divided) -> list[str]:
    """The names of a call's rows in a table, in the order in which they run."""
    names: list[str] = []
    for r in divided.rounds:
        names += [] if r.exchange is None else [f"bring {s}" for s in _names(divided, r.exchange)]
        names.append(r.title)
    return names


def _names(divided: Divided, exchange: Exchange) -> list[str]:
    found: list[Sent] = [law(divided.lengths) for law in exchange.laws]
    return [s.name for s in found]


def with_division(
    explanation: Explanation, divided: Divided, each: list[list[tuple[LaunchRow, ...]]]
) -> Explanation:
    """An explanation of the first part's kernel, as one of the call. each: the launches of each
    part, round by round.
    """
    rows: list[LaunchRow] = []
    for r, parts in zip(divided.rounds, each, strict=True):
        rows += [] if r.exchange is None else [row_of_task(r.exchange)]
        rows += [row for n, some in enumerate(parts) for row in of_part(some, n)]
    analysis, step = explanation.analysis, mesh_of_call(divided)
    lines = [("mesh", line.removeprefix("mesh: ")) for line in step.lines()]
    facts: Mapping[str, Any] = {"mesh": step.json(), **analysis.facts}
    return replace(
        explanation,
        launches=tuple(rows),
        analysis=replace(analysis, lines=(*lines, *analysis.lines), facts=dict(facts)),
    )
