"""How a ladder is shown: as JSON for programs, as a table for people."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

from lanewise.ladders.rung import Column, Ladder, Rung

NOTHING = "–"


def as_json(machine: Mapping[str, Any], ladder: Ladder, rungs: Iterable[Rung]) -> dict[str, Any]:
    """{"machine": {...}, "ladder": name, "rungs": [...]}: one list, each rung carries its number of bodies."""
    return {"machine": dict(machine), "ladder": ladder.name, "rungs": [r.as_dict() for r in rungs]}


def show(console: Console, ladder: Ladder, rungs: list[Rung]) -> None:
    """For each number of bodies print a table of its rungs, and why some have no time.

    A table is as wide as its numbers need: a narrow terminal breaks its lines rather than lose digits.
    """
    for bodies, table in zip(_by_bodies(rungs), tables(ladder, rungs), strict=True):
        width = console.width
        console.width = max(width, console.measure(table, options=console.options.update(max_width=10_000)).maximum)
        console.print(table)
        console.width = width
        for line in _reasons(_by_bodies(rungs)[bodies]):
            console.print(line)


def tables(ladder: Ladder, rungs: list[Rung]) -> list[Table]:
    """One table for each number of bodies, rungs in their order."""
    return [_table(ladder, bodies, same) for bodies, same in _by_bodies(rungs).items()]


def _by_bodies(rungs: list[Rung]) -> dict[int, list[Rung]]:
    return {n: [r for r in rungs if r.bodies == n] for n in dict.fromkeys(r.bodies for r in rungs)}


def _table(ladder: Ladder, bodies: int, rungs: list[Rung]) -> Table:
    table = Table(title=f"{ladder.title}: {bodies:,} {ladder.elements}", title_justify="left", title_style="bold")
    table.add_column("rung", no_wrap=True)
    columns = (*COLUMNS, *ladder.columns)
    shown = [c for c in columns if any(c.text(r) not in ("", NOTHING) for r in rungs)]
    for column in shown:
        table.add_column(column.heading, justify="right", no_wrap=True)
    for r in rungs:
        table.add_row(r.name, *(c.text(r) for c in shown), style="dim" if r.skipped else None)
    return table


def _reasons(rungs: list[Rung]) -> list[str]:
    """One line for each reason, with all rungs that have it."""
    skipped: dict[str, list[str]] = {}
    for r in rungs:
        if r.skipped is not None:
            skipped.setdefault(r.skipped, []).append(r.name)
    return [f"skipped {', '.join(repr(n) for n in names)}: {reason}" for reason, names in skipped.items()]


def seconds_text(seconds: float | None) -> str:
    """A time with three digits in a unit that suits it."""
    if seconds is None:
        return NOTHING
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{digits(seconds / size)} {unit}"
    return f"{digits(seconds / 1e-9)} ns"


def factor_text(factor: float | None) -> str:
    """A factor with three digits, or a dash."""
    return NOTHING if factor is None or not math.isfinite(factor) else digits(factor)


def digits(value: float) -> str:
    """Three significant digits; whole numbers with their thousands marked, very small ones as powers of ten."""
    if value == 0 or 1e-3 <= abs(value) < 999.5:
        return f"{value:#.3g}".rstrip(".")
    return f"{value:,.0f}" if abs(value) >= 1 else f"{value:.1e}"


def paper_text(paper: Mapping[str, float] | None) -> str:
    """The paper's figures, its machines in order."""
    return NOTHING if not paper else " / ".join(f"{v:,g}" for v in paper.values())


COLUMNS = (
    Column("time", lambda r: "skipped" if r.skipped else seconds_text(r.seconds)),
    Column("factor", lambda r: factor_text(r.speedup)),
    Column("model", lambda r: factor_text(r.predicted)),
    Column("paper", lambda r: paper_text(r.paper)),
    Column("rel. error", lambda r: NOTHING if r.relative_error is None else f"{r.relative_error:.1e}"),
)


def number(rung: Rung, key: str) -> float | None:
    """An extra number of a rung, where it has one."""
    value = rung.extra.get(key)
    return float(value) if isinstance(value, (int, float)) else None


def number_text(key: str, form: Callable[[float], str]) -> Callable[[Rung], str]:
    """The cell of a column that shows an extra number."""

    def text(rung: Rung) -> str:
        value = number(rung, key)
        return NOTHING if value is None else form(value)

    return text
