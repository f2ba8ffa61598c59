"""What `python -m bench.start_up` prints fits a terminal of 80 columns; the file has the whole table."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from bench.start_up import turned

RESULTS = Path(__file__).parents[1] / "bench" / "results" / "start_up_cpu.md"


@pytest.mark.parametrize("state", ["cold", "warm"])
def test_printed_starts_fit_80_columns(state: str) -> None:
    lines = [x for x in RESULTS.read_text(encoding="utf-8").splitlines() if x.startswith("|")]
    head, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    cells = [row for row in rows if row[1] == state]
    console = Console(file=io.StringIO(), width=200)
    console.print(turned(head, cells, "First results"))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert max(map(len, text.splitlines())) <= 80
    shown = {line[:25].strip(): line[25:].split() for line in text.splitlines()}
    for k, part in enumerate(head[2:], start=2):
        values = [row[k] for row in cells]
        assert shown.get(part) == (values if any(map(float, values)) else None), part
