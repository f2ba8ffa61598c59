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
    where no model says it. seconds: of the kernels of a part, of so many.
    """
    if not divided.exchanges or not sum(divided.lengths) or (alone := seconds(1)) is None:
        return {}
    devices = len(set(divided.devices))
    rate = min(RATES.get(link, RATES[NVLINK]) for link in divided.links)
    found: dict[int, float] = {}
    for parts in PREDICTED:
        own = seconds(parts)
        if own is None:
            return {}
        nbytes = sum(_to_each(e, parts, devices) for e in divided.exchanges)
        found[parts] = alone / (parts * (own + nbytes / rate))
    return found


def _to_each(exchange: Exchange, parts: int, devices: int) -> float:
    """Bytes that come to each of so many parts from others."""
    whole = exchange.nbytes / parts if exchange.shared else exchange.nbytes / devices
    return whole * (1 - 1 / parts)


def efficiency_line(divided: Divided, found: Mapping[int, float]) -> str:
    """The same in words."""
    links = [link for link in divided.links if link in RATES] or [NVLINK]
    shares = ", ".join(f"{share:.0%} on {parts}" for parts, share in found.items())
    return f"predicted {shares} GPUs, of one with this plan ({' and '.join(links)})"


def with_division(
    explanation: Explanation,
    divided: Divided,
    each: list[list[tuple[LaunchRow, ...]]],
    efficiency: Mapping[int, float],
) -> Explanation:
    """An explanation of the first part's kernel, as one of the call. each: the launches of each
    part, round by round. efficiency: see `predicted_efficiency`.
    """
    rows: list[LaunchRow] = []
    for r, parts in zip(divided.rounds, each, strict=True):
        rows += [] if r.exchange is None else [row_of_task(r.exchange)]
        rows += [row for n, some in enumerate(parts) for row in of_part(some, n)]
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
