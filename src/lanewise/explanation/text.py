"""An explanation as plain text of at most 120 columns."""

from __future__ import annotations

import textwrap

from lanewise.explanation.cells import columns, headline, sections
from lanewise.explanation.report import Explanation

WIDTH = 120


def as_text(e: Explanation) -> str:
    """The headline, the table of optimisations, then plan, layouts, function, bound and resources."""
    parts = [headline(e), "", *_table(*columns(e))]
    for title, lines in sections(e):
        parts += ["", title, *(piece for line in lines for piece in _wrapped(line))]
    return "\n".join(parts)


def _table(titles: list[str], rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[k]) for row in [titles, *rows]) for k in range(len(titles) - 1)]
    room = max(WIDTH - sum(widths) - 2 * len(widths), 30)
    lines: list[str] = []
    for row in [titles, ["-" * w for w in widths] + ["-" * room], *rows]:
        head = "  ".join(f"{cell:{w}}" for cell, w in zip(row, widths, strict=False))
        blank = " " * len(head)
        pieces = textwrap.wrap(row[-1], room, break_on_hyphens=False) or [""]
        lines += [f"{head if k == 0 else blank}  {piece}".rstrip() for k, piece in enumerate(pieces)]
    return lines


def _wrapped(line: str) -> list[str]:
    indent = len(line) - len(line.lstrip())
    return textwrap.wrap(
        line, WIDTH, initial_indent="  ", subsequent_indent=" " * (indent + 6), break_on_hyphens=False,
        drop_whitespace=True, replace_whitespace=False,
    ) or [""]  # fmt: skip
