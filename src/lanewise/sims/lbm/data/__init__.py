"""Published tables that cases compare themselves with, each with its source in its first line."""

from __future__ import annotations

import csv
from importlib.resources import files


def read_table(name: str) -> dict[str, list[float]]:
    """The columns of `name`.csv, by their headings; lines that begin with # are comments."""
    text = files(__name__).joinpath(f"{name}.csv").read_text(encoding="utf-8")
    rows = [row for row in csv.reader(text.splitlines()) if row and not row[0].startswith("#")]
    return {heading: [float(row[i]) for row in rows[1:]] for i, heading in enumerate(rows[0])}
