"""Figures that are inserted from bench/results: pages of templates/, whose `{{...}}` are replaced.

    {{file; row; column}}            a cell of the only table with this row and this column
    {{file # heading; row; column}}  the same, below a heading
    {{file; /pattern/}}              the group of a pattern that is found once, outside of tables
    {{file; date}}                   also machine and command

`; %` at the end makes a per cent of a share. A row begins with the words given. What is not found,
or found twice, raises ValueError: a page has no number that no result has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from docs.generator.measurements import RESULTS, ROOT, measurement

TEMPLATES = Path(__file__).resolve().parent / "templates"
FIGURE = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"


def inserted() -> Iterator[tuple[Path, str]]:
    """The pages with inserted figures, as they should be."""
    yield RESULTS / "summary.md", filled("summary.md")
    readme = ROOT / "README.md"
    before, rest = readme.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1]
    yield readme, f"{before}{BEGIN}\n{filled('readme.md')}{END}{after}"


def filled(template: str) -> str:
    """A template with its figures."""
    text = (TEMPLATES / template).read_text(encoding="utf-8")
    return FIGURE.sub(lambda match: figure(" ".join(match[1].split())), text)


def figure(place: str) -> str:
    """The figure of one place."""
    file, *where = [word.strip() for word in place.split("; ")]
    share = where[-1] == "%"
    if share:
        del where[-1]
    name, _, heading = (word.strip() for word in file.partition("#"))
    text = (RESULTS / f"{name}.md").read_text(encoding="utf-8")
    if where[0] in ("date", "machine", "command"):
        return str(getattr(measurement(f"{name}.md"), where[0]))
    if len(where) == 1:
        return _short(_only(re.findall(where[0].strip("/"), text, re.MULTILINE), place))
    row, column = where
    rows = [
        cells
        for above, cells in _rows(text)
        if (not heading or above == heading) and cells.get(column)
    ]
    exact = [cells[column] for cells in rows if _first(cells) == row]
    begun = [cells[column] for cells in rows if " | ".join(cells.values()).startswith(row)]
    value = _short(_only(exact or begun, place))
    return f"{100 * float(value):.1f} %" if share else value


def _short(value: str) -> str:
    """3.120e+12 as 3.120e12."""
    return re.sub(r"(?<=\d)e\+0?", "e", value)


def _only(found: list[str], place: str) -> str:
    if len(found) != 1:
        raise ValueError(f"{{{{{place}}}}}: found {found}; wanted: one figure")
    return found[0]


def _first(cells: dict[str, str]) -> str:
    return next(iter(cells.values()), "")


@cache
def _rows(text: str) -> tuple[tuple[str, dict[str, str]], ...]:
    """The heading above each row of the tables, and its cells by the heads of their columns."""
    heading, heads, rows = "", list[str](), list[tuple[str, dict[str, str]]]()
    for line in text.splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ")
        cells = [c.strip() for c in line.strip("|").split("|")] if line.startswith("|") else []
        if not cells:
            heads = []
        elif not heads:
            heads = cells
        elif not set(line) <= set("|-: "):
            rows.append((heading, dict(zip(heads, cells, strict=False))))
    return tuple(rows)
