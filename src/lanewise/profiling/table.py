"""The summary of a profile as a table for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.table import Table

WIDTH = 100


def make_table(summary: dict[str, Any]) -> Table:
    """A row for every stage, the longest first; below it its parts, when there are several."""
    table = Table(title="where the time goes", caption="\n".join(_caption(summary)), caption_justify="left")
    table.add_column("stage")
    for title in ("calls", "time", "a call", "share"):
        table.add_column(title, justify="right", no_wrap=True)
    for stage, row in summary["stages"].items():
        table.add_row(stage, *_cells(row), style="bold")
        parts = row["parts"]
        if len(parts) > 1:
            for name, part in sorted(parts.items(), key=lambda p: -p[1]["seconds"]):
                table.add_row(f"  {name}", *_cells(part))
    table.add_section()
    table.add_row("all", "", seconds_text(summary["seconds"]), "", f"{100 * _shares(summary):.1f} %", style="bold")
    return table


def as_text(summary: dict[str, Any]) -> str:
    """The table as plain text."""
    console = Console(width=WIDTH, color_system=None, force_terminal=False)
    with console.capture() as capture:
        console.print(make_table(summary))
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def seconds_text(seconds: float) -> str:
    """Three figures with a unit that suits: 1.23 ms."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}" if seconds < 1000 * size else f"{seconds / size:,.0f} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    mean = row["seconds"] / row["calls"]
    rate = f" ({row['bytes'] / row['seconds'] / 1e9:.3g} GB/s)" if row["bytes"] and row["seconds"] else ""
    return (
        f"{row['calls']:,}",
        seconds_text(row["seconds"]),
        f"{seconds_text(mean)}{rate}",
        f"{100 * row['share']:.1f} %",
    )


def _shares(summary: dict[str, Any]) -> float:
    return sum(row["share"] for row in summary["stages"].values())


def _caption(summary: dict[str, Any]) -> Iterator[str]:
    steps = summary["steps"]
    if steps["count"]:
        factor = steps["sampled_over_mean"]
        yield f"{steps['sampled']:,} of {steps['count']:,} steps were measured launch by launch"
        if factor is not None:
            yield f"a measured step took {factor:.2f} times the mean of all"
    if summary["dropped_events"]:
        yield f"the trace lacks {summary['dropped_events']:,} later events"
