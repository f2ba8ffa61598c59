"""What a call on a mesh does: its parts, what they exchange, and over what."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from lanewise.explanation.report import Explanation, LaunchRow
from lanewise.launch.divided import Divided
from lanewise.launch.tasks import Exchange, Task
from lanewise.runtime.links import NVLINK, RATES

PREDICTED = (2, 4, 8)  # GPUs


def row_of_task(task: Task) -> LaunchRow:
    """Of what is not generated."""
    return LaunchRow(task.name, nbytes=task.nbytes if isinstance(task, Exchange) else None)


def of_part(rows: tuple[LaunchRow, ...], number: int) -> tuple[LaunchRow, ...]:
    """The launches of a part."""
    return tuple(replace(row, name=f"{row.name}, part {number}") for row in rows)


def predicted_efficiency(
    divided: Divided, seconds: Callable[[int], float | None]
) -> dict[int, float]:
    """The speed of so many GPUs, of that of one with the same plan times their number; nothing
    where no model says it. seconds: of the kernel, for so many rows.
    """
    exchange, rows = divided.exchange, sum(divided.lengths)
    if exchange is None or not rows or (alone := seconds(rows)) is None:
        return {}
    nbytes = exchange.nbytes / len(set(divided.devices))
    rate = min(RATES.get(link, RATES[NVLINK]) for link in divided.links)
    found: dict[int, float] = {}
    for parts in PREDICTED:
        own = seconds(-(-rows // parts))
        if own is None:
            return {}
        found[parts] = alone / (parts * (own + nbytes * (1 - 1 / parts) / rate))
    return found


def efficiency_line(divided: Divided, found: Mapping[int, float]) -> str:
    """The same in words."""
    links = [link for link in divided.links if link in RATES] or [NVLINK]
    shares = ", ".join(f"{share:.0%} on {parts}" for parts, share in found.items())
    return f"predicted {shares} GPUs, of one with this plan ({' and '.join(links)})"


def with_division(
    explanation: Explanation,
    divided: Divided,
    each: list[tuple[LaunchRow, ...]],
    efficiency: Mapping[int, float],
) -> Explanation:
    """An explanation of the first part's kernel, as one of the call. each: the launches of each.
    efficiency: see `predicted_efficiency`.
    """
    rows = [row for n, some in enumerate(each) for row in of_part(some, n)]
    if divided.exchange is not None:
        rows.insert(0, row_of_task(divided.exchange))
    analysis = explanation.analysis
    scaling = (("mesh", efficiency_line(divided, efficiency)),) if efficiency else ()
    return replace(
        explanation,
        launches=tuple(rows),
        analysis=replace(
            analysis,
            lines=(("mesh", divided.line), *scaling, *analysis.lines),
            facts={"mesh": {**divided.facts, "efficiency": dict(efficiency)}, **analysis.facts},
        ),
    )
