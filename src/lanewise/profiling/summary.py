"""What a profile found, as plain data and as a table for people: every stage's seconds and share of
the whole, and how it was sampled.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from lanewise.support.html_tables import html_table
from lanewise.support.numerals import time_text

if TYPE_CHECKING:
    from lanewise.profiling.profile import Profile


def summarise(profile: Profile) -> dict[str, Any]:
    """The shares of all stages add up to 1.

    seconds: of the outermost spans. stages, the longest first: seconds, share, calls, bytes (where
    some were moved), and the same by name in `parts`. steps: how many, their seconds, how many were
    sampled, and how long a sampled one took compared with the mean of those sequences; the seconds
    of stages of steps are those of all steps, divided as the samples are.
    devices: of a mesh, the share of the sampled steps in which each one, or each part, was at work.
    copies: between the two sides of arrays, "to host" and "to device": how many, their bytes, and
    both by field.
    """
    whole = max(1, profile.nanoseconds)
    stages: dict[str, dict[str, Any]] = {}
    for (stage, name), (calls, nanoseconds, nbytes) in _parts(profile).items():
        row = stages.setdefault(
            stage, {"seconds": 0.0, "share": 0.0, "calls": 0, "bytes": 0, "parts": {}}
        )
        part = {
            "seconds": nanoseconds * 1e-9,
            "share": nanoseconds / whole,
            "calls": calls,
            "bytes": nbytes,
        }
        row["parts"][name] = part
        for key, value in part.items():
            row[key] += value
    ordered = sorted(stages.items(), key=lambda s: -s[1]["seconds"])
    return {
        "seconds": profile.nanoseconds * 1e-9,
        "stages": dict(ordered),
        "steps": _steps(profile),
        "devices": _devices(profile),
        "copies": {direction: _copies(profile, direction) for direction in DIRECTIONS},
        "dropped_events": profile.dropped,
    }


def _parts(profile: Profile) -> dict[tuple[str, str], tuple[int, float, int]]:
    """Calls, nanoseconds and bytes by stage and name: of spans, and of the launches of steps."""
    parts = {key: (t.count, float(t.nanoseconds), t.nbytes) for key, t in profile.totals.items()}
    for sequence, taken in (part for loop in profile.loops for part in loop.divided()):
        for key, share in zip(sequence.names, sequence.shares(), strict=True):
            calls, nanoseconds, nbytes = parts.get(key, (0, 0.0, 0))
            parts[key] = (calls + sequence.repetitions, nanoseconds + share * taken, nbytes)
    return parts


def _copies(profile: Profile, direction: str) -> dict[str, Any]:
    rows = {
        f: {"count": count, "bytes": size}
        for (f, d), (count, size) in profile.copied.items()
        if d == direction
    }
    return {key: sum(row[key] for row in rows.values()) for key in ("count", "bytes")} | {
        "fields": rows
    }


def _devices(profile: Profile) -> dict[str, float]:
    """By device or part of a mesh: its share of the time of the sampled steps."""
    sampled = sum(sum(s.parts) for loop in profile.loops for s in loop.sequences)
    return {lane: taken / max(1, sampled) for lane, taken in profile.lanes.items()}


def _steps(profile: Profile) -> dict[str, Any]:
    taken = [s for loop in profile.loops for s in loop.sequences if s.repetitions]
    measured = sum(
        loop.nanoseconds for loop in profile.loops if any(s.sampled for s in loop.sequences)
    )
    return {
        "count": sum(s.repetitions * s.steps for s in taken),
        "seconds": sum(loop.nanoseconds for loop in profile.loops) * 1e-9,
        "sampled": sum(s.sampled * s.steps for s in taken),
        "sampled_over_mean": sum(s.estimate for s in taken) / measured if measured else None,
    }


WIDTH = 100
DIRECTIONS = ("to host", "to device")
COLUMNS = ("stage", "calls", "time", "per call", "share")


def headline(summary: dict[str, Any]) -> str:
    """How long, in how many stages, and in which of them the longest."""
    stages = summary["stages"]
    if not stages:
        return "nothing was measured yet"
    first, row = next(iter(stages.items()))
    return (
        f"{time_text(summary['seconds'])} in {len(stages)} stages, {100 * row['share']:.0f} % "
        f"of it in {first}"
    )


def as_html(summary: dict[str, Any]) -> str:
    """The table of stages for a notebook."""
    rows = [(stage, *_cells(row)) for stage, row in summary["stages"].items()]
    below = "<br>".join(_caption(summary))
    return f"<div>{html_table(COLUMNS, rows, title=headline(summary))}<p>{below}</p></div>"


def make_table(summary: dict[str, Any]) -> Table:
    """A row for every stage, the longest first; below it its parts, when there are several."""
    table = Table(
        title="where the time goes", caption="\n".join(_caption(summary)), caption_justify="left"
    )
    table.add_column(COLUMNS[0])
    for title in COLUMNS[1:]:
        table.add_column(title, justify="right", no_wrap=True)
    for stage, row in summary["stages"].items():
        table.add_row(stage, *_cells(row), style="bold")
        parts = row["parts"]
        if len(parts) > 1:
            for name, part in sorted(parts.items(), key=lambda p: -p[1]["seconds"]):
                table.add_row(f"  {name}", *_cells(part))
    table.add_section()
    table.add_row(
        "all",
        "",
        time_text(summary["seconds"]),
        "",
        f"{100 * _shares(summary):.1f} %",
        style="bold",
    )
    return table


def as_text(summary: dict[str, Any]) -> str:
    """The table as plain text."""
    console = Console(width=WIDTH, color_system=None, force_terminal=False)
    with console.capture() as capture:
        console.print(make_table(summary))
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    mean = row["seconds"] / row["calls"]
    rate = (
        f" ({row['bytes'] / row['seconds'] / 1e9:.3g} GB/s)"
        if row["bytes"] and row["seconds"]
        else ""
    )
    return (
        f"{row['calls']:,}",
        time_text(row["seconds"]),
        f"{time_text(mean)}{rate}",
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
    for device, share in summary["devices"].items():
        yield f"{device}: at work in {100 * share:.0f} % of the measured steps"
    copies = {d: c for d, c in summary["copies"].items() if c["count"]}
    if copies:
        each = (f"{c['count']:,} {d} ({c['bytes']:,} bytes)" for d, c in copies.items())
        yield f"copies between sides of arrays: {', '.join(each)}"
    if summary["dropped_events"]:
        yield f"the trace lacks {summary['dropped_events']:,} later events"
