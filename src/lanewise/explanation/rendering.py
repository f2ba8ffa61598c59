"""An explanation as plain text of a width, as a table of a rich console, and as HTML for a
notebook.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from lanewise.analysis.families import Family
from lanewise.explanation.report import Bottleneck, Change, Explanation, LaunchRow, Row, shares_of
from lanewise.models.deviations import Deviation
from lanewise.planning.decision import Place
from lanewise.support.html_tables import html_table
from lanewise.support.numerals import time_text

SHOWN = 12  # lines of the drawing of a layout
# columns that go when no row fills them
OPTIONAL = ("predicted", "measured", "registers", "occupancy")


def _columns(rows: Iterable[Row]) -> tuple[list[str], list[list[str]]]:
    """The titles, and the cells of the rows; the last column is the reason."""
    every = [_cells(r) for r in in_order(rows)]
    empty = {n for n in OPTIONAL if not any(row[n] for row in every)}
    titles = [n for n in every[0] if n not in empty] if every else []
    return titles, [[row[n] for n in titles] for row in every]


def in_order(rows: Iterable[Row]) -> list[Row]:
    """What is applied first, then what would gain something, then the rest, each in the order of
    the stages.
    """
    return sorted(rows, key=lambda r: (not r.applied, r.predicted is None or r.predicted <= 1))


def _here(e: Explanation) -> list[Row]:
    """The rows of what such a kernel can have on this kind of device."""
    return [r for r in e.rows if r.place == "here"]


def _folded(e: Explanation) -> list[tuple[str, list[Row]]]:
    """The other rows, by what they have in common."""
    titles: dict[Place, str] = {
        "gpu": "only on a GPU", "cpu": "only on a CPU", "nowhere": f"not for {e.pattern} kernels",
    }  # fmt: skip
    groups = [(title, [r for r in e.rows if r.place == place]) for place, title in titles.items()]
    return [(title, rows) for title, rows in groups if rows]


def _folded_lines(e: Explanation) -> list[str]:
    """A line for each group of rows that are not shown."""
    return [f"{title}: {'; '.join(r.name for r in rows)}" for title, rows in _folded(e)]


def _cells(r: Row) -> dict[str, str]:
    return {
        "optimisation": r.name,
        "value": show(r.value),
        "applied": "yes" if r.applied else "no",
        "predicted": factor(r.predicted),
        "measured": factor(r.measured),
        "registers": _change(r.registers, ".0f"),
        "occupancy": _change(r.occupancy, ".0%"),
        "why": r.reason,
    }


def show(value: object) -> str:
    """A plan's value as people write it."""
    match value:
        case True:
            return "on"
        case False:
            return "off"
        case _:
            return str(value)


def factor(number: float | None) -> str:
    """How many times faster."""
    return "" if number is None else f"{number:.2f} x" if number < 100 else f"{number:.0f} x"


def _change(change: Change | None, form: str) -> str:
    if change is None:
        return ""
    before, after = ("?" if x is None else format(x, form) for x in (change.before, change.after))
    return after if before == after else f"{before} > {after}"


def _headline(e: Explanation) -> str:
    """The kernel, its size and where it runs, in one line."""
    sizes = ", ".join(f"{count:,} {name}" for name, count in e.counts.items())
    return f"{e.kernel} ({e.pattern}{', ' if sizes else ''}{sizes}) on {e.machine}"


def _sections(e: Explanation) -> list[tuple[str, list[str]]]:
    """What stands below the table: titles and lines."""
    chosen = {"default": "by default", "tune()": "by tune()", "given": "by hand"}[e.origin]
    sections = [("plan", [f"chosen {chosen}", f"lw.Plan({e.plan})"]), ("layouts", _layouts(e))]
    width = max((len(title) for title, _ in e.analysis.lines), default=0)
    sections.append(("function", [f"{title:{width}}  {text}" for title, text in e.analysis.lines]))
    sections.append(("launches", _launches(e)))
    sections.append(("bound", _bound(e)))
    width = max((len(n) for n in e.resources), default=0)
    sections.append(
        ("resources", [f"{n:{width}}  {_resource(n, v)}" for n, v in e.resources.items()])
    )
    sections.append(("made up", made_up(e.invented, e.shapes)))
    sections.append(("warnings", list(e.warnings)))
    return [(title, lines) for title, lines in sections if lines]


def made_up(values: dict[str, Any], sizes: dict[str, tuple[int, ...]]) -> list[str]:
    """Values and sizes that were not given, and how to choose them."""
    said = ", ".join(f"{n} = {_short(v)}" for n, v in values.items())
    listed = ", ".join(f"{n} {' x '.join(map(str, shape))}" for n, shape in sizes.items())
    lines = [
        (said, "values that were not given; choose them with --set NAME=VALUE"),
        (listed, "sizes that were not given; choose them with --shape NAME=SIZES"),
    ]
    return [f"{what}: {how}" for what, how in lines if what]


def _short(value: Any) -> str:
    """A number or a list of numbers, without the digits that float32 has not."""
    if isinstance(value, list):
        return f"[{', '.join(map(_short, value))}]"  # pyright: ignore[reportUnknownArgumentType]
    return str(float(f"{value:.7g}") if isinstance(value, float) else value)


def _layouts(e: Explanation) -> list[str]:
    """Every array once; arrays that lie alike share a drawing."""
    alike: dict[tuple[str, str], list[str]] = {}
    for name, layout in e.layouts.items():
        alike.setdefault((layout, e.drawings[name]), []).append(name)
    lines: list[str] = []
    for (layout, drawing), names in alike.items():
        lines.append(f"{', '.join(names)}: {layout}")
        drawn = drawing.splitlines()
        more = len(drawn) - SHOWN
        lines += [
            f"  {line}"
            for line in (
                drawn if more <= 2 else [*drawn[:SHOWN], f"... and {more} lines like these"]
            )
        ]
    whys: dict[str, list[str]] = {}
    for name, why in e.layout_reasons.items():
        whys.setdefault(why, []).append(name)
    return [*lines, *(f"{', '.join(names)} by layout='auto': {why}" for why, names in whys.items())]


def _launches(e: Explanation) -> list[str]:
    """A line for each launch of a call that has several, and how sure their predictions are where
    the bound does not say it.
    """
    if len(e.launches) < 2:
        return []
    said = e.bound is not None and how_sure(e.bound)
    return [*launch_lines(e.launches, "call"), *([] if said else unsure_of(e.launches))]


def launch_lines(launches: tuple[LaunchRow, ...], of: str) -> list[str]:
    """A line for each launch of a call, or of a step."""
    cells: list[tuple[str, str, str]] = []
    shares = shares_of(launches)
    whole = f"of the {of}" if None not in shares else "of what is known"
    for row, share in zip(launches, shares, strict=True):
        time = row.predicted if row.measured is None else row.measured
        how = "predicted" if row.measured is None else "measured"
        part = "" if share is None else f", {share:.0%} {whole}"
        over = (f"{row.times:,} x " if row.times > 1 else "") + row.grid
        moved = "" if row.nbytes is None else f"{row.nbytes:,} bytes"
        cells.append(
            (
                row.name,
                ", ".join(x for x in (over, moved) if x),
                "" if time is None else f"{time_text(time)} {how}{part}",
            )
        )
    widths = [max((len(c[n]) for c in cells), default=0) for n in range(3)]
    return [f"{a:{widths[0]}}  {b:{widths[1]}}  {c}".rstrip() for a, b, c in cells]


def unsure_of(launches: tuple[LaunchRow, ...]) -> list[str]:
    """That predictions of single launches were not measured, where a line has one."""
    shown = any(row.predicted is not None and row.measured is None for row in launches)
    return [_unmeasured("single launches")] if shown else []


def _unmeasured(what: str) -> str:
    return f"how far predictions for {what} are off has not been measured"


def _bound(e: Explanation) -> list[str]:
    if e.bound is None:
        return []
    b = e.bound
    busy = ", ".join(
        f"{n} {time_text(s)}"
        for n, s in sorted(b.units.items(), key=lambda x: -x[1])
        if s > 0.005 * max(b.units.values())
    )
    lines: list[str] = []
    if b.seconds is not None and b.predicted_seconds is not None:
        least, expected = time_text(b.seconds), time_text(b.predicted_seconds)
        by = "" if b.least_unit in ("", b.unit) else f" by {b.least_unit}"
        lines.append(
            f"{b.unit}: {least} at least{by}, {expected} predicted, {b.share:.0%} of the bound"
        )
    elif b.predicted_seconds is not None:
        lines.append(f"{b.unit}: {time_text(b.predicted_seconds)} predicted")
    if sure := how_sure(b):
        lines.append(sure)
    if b.because:
        lines.append(b.because)
    if e.measured_seconds is not None:
        by = "by tune()" if e.measured_by == "tune()" else "just now"
        share = (
            f", {b.seconds / e.measured_seconds:.0%} of the bound" if b.seconds is not None else ""
        )
        lines.append(f"measured {by}: {time_text(e.measured_seconds)}{share}")
    return [*lines, f"busy: {busy}"] if busy else lines


_FAMILIES: Mapping[Family, str] = {
    "product": "products of large arrays",
    "row": "rows of large arrays",
    "stencil": "stencils of large arrays",
    "window": "windows of large arrays",
    "elements": "elements of large record arrays",
    "pairs": "all pairs of many records",
    "searches": "searches of many records through a static grid",
}


def how_sure(b: Bottleneck) -> str:
    """How far such predictions have been off, or that this is not known; nothing without one."""
    if b.deviation is not None:
        return _off(b.deviation)
    if b.unmeasured:
        return _unmeasured(b.unmeasured)
    return ""


def _off(d: Deviation) -> str:
    share = f"all {d.kernels}" if d.of_all else f"nine of ten of {d.kernels}"
    return (
        f"{share} such kernels ({_FAMILIES[d.family]}) took "
        f"{d.shortest:.2f} to {d.longest:.2f} times the predicted time on an {d.device}"
    )


def _resource(name: str, value: object) -> str:
    return f"{value:.0%}" if name == "occupancy" and isinstance(value, float) else str(value)


# columns: of a text, at least, of a reason next to its row at least
WIDTH, NARROWEST, REASON = 120, 60, 36
INDENT = "    "


def as_text(e: Explanation, width: int = WIDTH, *, every: bool = False) -> str:
    """The headline, the table of optimisations, then plan, layouts, function, bound and resources,
    in so many columns.

    `every`: with a row for each optimisation, and not names alone of what such a kernel cannot have
    on this kind of device.
    """
    width = max(width, NARROWEST)
    parts = [
        *textwrap.wrap(_headline(e), width),
        "",
        *_table(*_columns(e.rows if every else _here(e)), width),
    ]
    if not every and (lines := _folded_lines(e)):
        parts += ["", *(piece for line in lines for piece in _hanging(line, width))]
    for title, lines in _sections(e):
        parts += ["", title, *(piece for line in lines for piece in _wrapped(line, width))]
    return "\n".join(parts)


def _table(titles: list[str], rows: list[list[str]], width: int) -> list[str]:
    """The reasons in a separate column, or below each row where that would be too narrow."""
    widths = [max(len(row[k]) for row in [titles, *rows]) for k in range(len(titles) - 1)]
    room, beside = width - sum(widths) - 2 * len(widths), "  "
    if below := room < REASON:
        room = width - len(INDENT)
    lines: list[str] = []
    for n, row in enumerate([titles, ["-" * w for w in widths] + ["-" * room], *rows]):
        head = beside.join(f"{cell:{w}}" for cell, w in zip(row, widths, strict=False))
        pieces = textwrap.wrap(row[-1], room, break_on_hyphens=False) or [""]
        if below:
            lines += [head.rstrip(), *(f"{INDENT}{piece}" for piece in pieces if n > 1)]
        else:
            blank = " " * len(head)
            lines += [
                f"{head if k == 0 else blank}{beside}{piece}".rstrip()
                for k, piece in enumerate(pieces)
            ]
    return lines


def _hanging(line: str, width: int) -> list[str]:
    return textwrap.wrap(line, width, subsequent_indent=INDENT, break_on_hyphens=False)


def _wrapped(line: str, width: int) -> list[str]:
    indent = len(line) - len(line.lstrip())
    return textwrap.wrap(
        line,
        width,
        initial_indent="  ",
        subsequent_indent=" " * (indent + 6),
        break_on_hyphens=False,
        drop_whitespace=True,
        replace_whitespace=False,
    ) or [""]


def as_rich(e: Explanation) -> Any:
    """A group of a table and the sections below it."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    titles, rows = _columns(_here(e))
    table = Table(title=_headline(e), title_justify="left")
    for title in titles:
        table.add_column(title, no_wrap=title != "why", overflow="fold")
    for row, source in zip(rows, in_order(_here(e)), strict=True):
        table.add_row(*(Text(cell) for cell in row), style=None if source.applied else "dim")
    others = [Text(line) for line in _folded_lines(e)]
    below = [
        Text(f"\n{title}\n" + "\n".join(f"  {line}" for line in lines))
        for title, lines in _sections(e)
    ]
    return Group(table, *others, *below)


def as_html(e: Explanation) -> str:
    """A table element, one that opens for each group of rows of no use here, and one preformatted
    element for each section.
    """
    folded = "".join(
        f"<details><summary>{escape(title)}</summary>{html_table(*_columns(rows))}</details>"
        for title, rows in _folded(e)
    )
    below = "".join(
        f"<h4>{escape(title)}</h4><pre>{escape(chr(10).join(lines))}</pre>"
        for title, lines in _sections(e)
    )
    return f"<div>{html_table(*_columns(_here(e)), title=_headline(e))}{folded}{below}</div>"
