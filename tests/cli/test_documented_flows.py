"""The flows whose results docs/lbm.md shows beside published ones: its own commands give them, to the digits shown."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import Command

PAGE = Path(__file__).parents[2] / "docs" / "lbm.md"
COLUMNS = ("drag", "lift", "strouhal", "pressure_difference")


def rows() -> dict[str, list[str]]:
    """Cells of the table of measured flows, by the options in its first column."""
    found = re.findall(r"^\| `(--re [^`]*)` \|(.*)\|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return {options: [c.strip() for c in cells.split("|")] for options, cells in found}


def test_the_table_is_found() -> None:
    assert list(rows()) == ["--re 20 --size 20 --speed 0.03", "--re 100 --size 20 --speed 0.04"]
    assert all(len(cells) == len(COLUMNS) for cells in rows().values())


def shown(results: dict[str, Any], column: str, cell: str) -> list[float]:
    """What the cell shows: a value, its largest, or its range."""
    if cell.startswith("at most"):
        return [results[f"{column}_max"]]
    return [results[f"{column}_min"], results[f"{column}_max"]] if " to " in cell else [results[column]]


@pytest.mark.slow
@pytest.mark.parametrize("options", rows())
def test_the_commands_give_what_the_table_shows(lanewise: Command, options: str) -> None:
    outcome = lanewise("lbm", "run", "cylinder", "--json", *shlex.split(options))
    assert outcome.code == 0, outcome.err
    results = outcome.last_json["results"]
    for column, cell in zip(COLUMNS, rows()[options], strict=True):
        if not cell:
            continue
        written = re.findall(r"-?[\d.]+", cell)
        for value, text in zip(shown(results, column, cell), written, strict=True):
            unit = 10.0 ** -len(text.partition(".")[2])
            assert abs(value - float(text)) <= 0.51 * unit, (column, value, text)
