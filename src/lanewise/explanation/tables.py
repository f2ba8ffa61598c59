"""An explanation as a table of a rich console, and as HTML for a notebook."""

from __future__ import annotations

from html import escape
from typing import Any

from lanewise.explanation.cells import columns, headline, sections
from lanewise.explanation.report import Explanation


def as_rich(e: Explanation) -> Any:
    """A group of a table and the sections below it."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    titles, rows = columns(e)
    table = Table(title=headline(e), title_justify="left")
    for title in titles:
        table.add_column(title, no_wrap=title != "why", overflow="fold")
    for row, source in zip(rows, e.rows, strict=True):
        table.add_row(*(Text(cell) for cell in row), style=None if source.applied else "dim")
    below = [Text(f"\n{title}\n" + "\n".join(f"  {line}" for line in lines)) for title, lines in sections(e)]
    return Group(table, *below)


def as_html(e: Explanation) -> str:
    """One table element, and one preformatted element for each section."""
    titles, rows = columns(e)
    head = "".join(f'<th style="text-align:left">{escape(t)}</th>' for t in titles)
    body = "".join(
        "<tr>" + "".join(f'<td style="text-align:left">{escape(cell)}</td>' for cell in row) + "</tr>" for row in rows
    )
    below = "".join(f"<h4>{escape(title)}</h4><pre>{escape(chr(10).join(lines))}</pre>" for title, lines in sections(e))
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div><h3>{escape(headline(e))}</h3>{table}{below}</div>"
