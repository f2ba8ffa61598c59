"""How a loop runs: each of its calls, what launches it, and what that costs."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from lanewise.launch.steps.loop import bound_in
from lanewise.launch.steps.rhythm import Rhythm
from lanewise.launch.steps.task import Task, has_graphs
from lanewise.support.html_tables import html_table

SINGLE = (
    "The steps with it are launched call by call, some microseconds each, and wait for the host: "
)


@dataclass(frozen=True, slots=True)
class CallRow:
    """A call of a loop. steps: those that have it; runs: what launches it; note: what that
    costs.
    """

    name: str
    kind: str
    steps: str
    runs: str
    note: str


@dataclass(frozen=True, slots=True)
class LoopExplanation:
    """Print it, show it in a notebook, or take `.json()`.

    launches: of the next step, each with what it runs over, its bytes and its predicted seconds
    where a model knows them, as `Explanation.launches` has them. text: the same as lines. mesh:
    what the parts of a mesh copy and launch, as a table with predictions; None on one device.
    """

    device: str
    cycle: int
    calls: tuple[CallRow, ...]
    launches: tuple[Any, ...] = ()
    text: tuple[str, ...] = ()
    mesh: Any = None

    def json(self) -> dict[str, Any]:
        """Plain data."""
        found = asdict(replace(self, mesh=None))
        return {**found, "mesh": None if self.mesh is None else self.mesh.json()}

    def __str__(self) -> str:
        titles = ("call", "pattern", "steps", "runs")
        rows = [titles, *((r.name, r.kind, r.steps, r.runs) for r in self.calls)]
        widths = [max(len(row[n]) for row in rows) for n in range(len(titles))]
        lines = ["  ".join(x.ljust(w) for x, w in zip(row, widths, strict=True)) for row in rows]
        notes = dict.fromkeys(f"{r.name}: {r.note}" for r in self.calls if r.note)
        head = f"a loop on {self.device}; the same launches come again after {self._cycle()}"
        launches = ("", "launches of a step", *self.text) if self.text else ()
        mesh = () if self.mesh is None else ("", *self.mesh.lines())
        return "\n".join(line.rstrip() for line in (head, *lines, *notes, *mesh, *launches))

    def _cycle(self) -> str:
        return "1 step" if self.cycle == 1 else f"{self.cycle:,} steps"

    def _repr_html_(self) -> str:
        titles = ("call", "pattern", "steps", "runs", "note")
        rows = [(r.name, r.kind, r.steps, r.runs, r.note) for r in self.calls]
        return html_table(titles, rows, title=f"a loop on {self.device}, cycle {self.cycle:,}")


def explain_steps(rhythm: Rhythm, step: int, device: str) -> LoopExplanation:
    """See `Steps.explain`. step: how many were taken."""
    from lanewise.facade import launches_of, mesh_of_loop

    rows, text = launches_of(bound_in(rhythm, step, 1), device)
    said, mesh = _explain(rhythm, device), mesh_of_loop(rhythm)
    return replace(said, launches=rows, text=tuple(text), mesh=mesh)


def _explain(rhythm: Rhythm, device: str) -> LoopExplanation:
    """What a loop does with its calls."""
    rows: list[CallRow] = []
    for place, timed in enumerate(rhythm.lists):
        for one in timed:
            runs, note = _how(rhythm, one.task, device)
            if one.task.divided is not None:
                note = ". ".join(x for x in (one.task.divided.line, note) if x)
            when = "all" if one.every == 1 else f"n % {one.every} == {one.at}"
            if len(rhythm.lists) > 1:
                within = f"n % {len(rhythm.lists)} == {place}"
                when = within if one.every == 1 else f"{within}, {when}"
            rows.append(CallRow(one.task.name, one.task.kind, when, runs, note))
    return LoopExplanation(device, rhythm.period, tuple(rows))


def _how(rhythm: Rhythm, task: Task, device: str) -> tuple[str, str]:
    if task.device is None and not has_graphs(device):
        return "Python", ""
    if not has_graphs(device):
        return "compiled", task.alone if task.costs else ""
    if task.alone:
        return "Python" if task.device is None else "single launches", SINGLE + task.alone
    kinds = [k for k in dict.fromkeys(rhythm.kinds) if task in rhythm.tasks_of(k)]
    alone = [k for k in kinds if rhythm.alone((k,))]
    if not alone:
        return "graphs", ""
    return ("single launches" if len(alone) == len(kinds) else "graphs, single launches"), ""
