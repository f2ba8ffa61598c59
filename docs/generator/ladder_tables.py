"""Tables of ladders in pages that are written by hand: their cells are those of the files of
results that the pages link. Rows and columns are chosen in the page; what a cell says in words
stays.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from docs.generator.measurements import RESULTS
from lanewise.ladders.rung import NOTHING, factor_text, seconds_text

Rung = Mapping[str, Any]
Row = list[str]
Cells = Callable[[list[Rung], Row, Row], Row]
"""The cells of a row from all rungs, the head of the table and the row before."""


def with_cells(page: str, text: str, rungs: list[Rung] | None = None) -> str:
    """A page of docs/ with the cells of its table; as it is if it has none. rungs: instead of those
    of its file.
    """
    if page not in TABLES:
        return text
    file, begin, cells = TABLES[page]
    every = rungs_of(file) if rungs is None else rungs
    before, found, rest = text.partition(f"\n| {begin} |")
    if not found:
        raise ValueError(f"docs/{page}: no table begins with | {begin} |")
    table, end, after = rest.partition("\n\n")
    head, line, *rows = table.split("\n")
    heads = _row(f"| {begin} |{head}")
    made = [_joined(cells(every, heads, _row(row))) for row in rows]
    return "".join([before, found, "\n".join([head, line, *made]), end, after])


def rungs_of(file: str) -> list[Rung]:
    """The rungs of a file of results."""
    return json.loads((RESULTS / "ladders" / f"{file}.json").read_text(encoding="utf-8"))["rungs"]


def _row(line: str) -> Row:
    return [cell.strip() for cell in line.split("|")[1:-1]]


def _joined(cells: Row) -> str:
    return "|" + "|".join(f" {c} " if c else " " for c in cells) + "|"


def _boids(every: list[Rung], heads: Row, row: Row) -> Row:
    name = row[0].partition(" (")[0]
    by = {(r["bodies"], r["name"]): r for r in every}
    cells = [row[0]]
    for head in heads[1:-1]:
        found = re.match(r"([\d,]+)(?: agents)?, (?:world )?(\d+)", head)
        assert found is not None, head
        cells.append(_step(by[int(found[1].replace(",", "")), f"W={found[2]}, {name}"]))
    idle = by[262_144, f"W=200, {name}"]["idle_share"]
    return [*cells, "" if idle is None else f"{100 * idle:.1f} %"]


def _step(rung: Rung) -> str:
    """The time of a step, or why there is none, in short."""
    if rung["seconds"] is not None:
        return seconds_text(rung["seconds"])
    same = re.search(r"on this device it is '(?:.*, )?(\w+)'", rung["skipped"])
    return "too long" if same is None else f"the same as {same[1]}"


def _lbm(every: list[Rung], heads: Row, row: Row) -> Row:
    name = row[0].partition(":")[0].partition(" (")[0].partition(";")[0]
    same = [r for r in every if r["name"].partition(", ")[2] == name][: len(heads) - 1]
    return [row[0], *(_flow(r, row[0]) for r in same)]


def _flow(rung: Rung, label: str) -> str:
    seconds = rung["seconds"]
    if " split" not in label:
        return seconds_text(seconds) if seconds < 1e-3 else f"{1e6 * seconds:,.0f} µs"
    value = factor_text(rung["speedup"])
    if "equation 1" in label:
        return f"{value} ({rung['equation_1']:.2f})"
    return "; ".join([value, *(f"{x:g}" for x in (rung["paper"] or {}).values())])


def _compiler(every: list[Rung], heads: Row, row: Row) -> Row:
    benchmark = row[0].strip("`")
    own = [r for r in every if r["benchmark"] == benchmark and r["seconds"] is not None]
    steps = {r["step"]: r for r in own}
    plan, library = steps["default plan"], steps["library"]
    passes = [r for r in own if r["step"] not in ("naive", "default plan", "library")]
    largest = max(passes, key=lambda r: r["speedup"], default=None)
    gains = largest is not None and largest["speedup"] >= GAIN
    newer = "global_accesses" in plan  # the bound of before is the bandwidth of a copy
    return [
        row[0],
        seconds_text(steps["naive"]["seconds"]),
        seconds_text(plan["seconds"]),
        factor_text(plan["over_naive"]),
        factor_text(plan["predicted"]),
        f"{largest['step']}, {factor_text(largest['speedup'])}" if largest and gains else NOTHING,
        f"{seconds_text(library['seconds'])} ({row[6].partition(' (')[2]}",
        _share(plan["share_of_bound"]) if newer else row[7],
    ]


GAIN = 1.05  # of a step that is named


def _share(share: float | None) -> str:
    return NOTHING if share is None else f"{100 * share:.0f}%"


TABLES: Mapping[str, tuple[str, str, Cells]] = {
    "ladder-boids.md": ("boids", "search | 16,384 agents, world 200", _boids),
    "ladder-lbm.md": ("lbm", "rung | D2Q9 128 × 128", _lbm),
    "ladder-compiler.md": ("compiler", "benchmark | naive", _compiler),
}
