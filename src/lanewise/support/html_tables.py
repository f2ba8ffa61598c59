"""Tables for notebooks: what `_repr_html_` of arrays, reports and simulations is made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

LEFT = ' style="text-align:left"'


def html_table(titles: Sequence[str], rows: Iterable[Sequence[object]], *, title: str = "") -> str:
    """A table element below a line with its title."""
    head = "".join(f"<th{LEFT}>{escape(t)}</th>" for t in titles)
    body = "".join(
        "<tr>" + "".join(f"<td{LEFT}>{escape(str(cell))}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    above = f"<h3>{escape(title)}</h3>" if title else ""
    return f"{above}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
