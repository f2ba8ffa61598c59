"""Tables of ladders in the documents take other results as they come."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from docs.generator.ladder_tables import TABLES, rungs_of, with_cells
from lanewise.ladders.rung import seconds_text

DOCS = Path(__file__).parents[1] / "docs"


def table_of(page: str, text: str) -> list[list[str]]:
    begin = TABLES[page][1]
    rows = text.partition(f"\n| {begin} |")[2].partition("\n\n")[0].splitlines()[2:]
    return [[c.strip() for c in row.split("|")[1:-1]] for row in rows]


@pytest.mark.parametrize("page", TABLES)
def test_pages_have_the_cells_of_their_files(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    assert with_cells(page, text) == text


def slower(page: str) -> list[dict[str, Any]]:
    """Rungs that take three times as long, of a file as it is written now."""
    rungs: Any = copy.deepcopy(rungs_of(TABLES[page][0]))
    for r in rungs:
        if r["seconds"] is not None:
            r["seconds"] *= 3
        r |= {"global_accesses": 1} if "step" in r else {}
    return rungs


@pytest.mark.parametrize(
    ("page", "row", "column"), [("ladder-boids.md", 3, 2), ("ladder-lbm.md", 1, 1), ("ladder-compiler.md", 1, 2)]
)
def test_other_results_change_times_and_no_words(page: str, row: int, column: int) -> None:
    text, rungs = (DOCS / page).read_text(encoding="utf-8"), slower(page)
    changed = with_cells(page, text, rungs)
    before, after = table_of(page, text), table_of(page, changed)
    assert [r[0] for r in after] == [r[0] for r in before]
    assert [len(r) for r in after] == [len(r) for r in before]
    names = {
        "ladder-boids.md": lambda r: (r["bodies"], r["name"]) == (16384, "W=50, static grid, device"),
        "ladder-lbm.md": lambda r: r["name"] == "D2Q9, pull, SoA",
        "ladder-compiler.md": lambda r: (r["benchmark"], r["step"]) == ("mm", "default plan"),
    }
    rung = next(r for r in rungs if names[page](r))
    assert after[row][column] == seconds_text(rung["seconds"]) != before[row][column]
    for words in ("(cuBLAS)", "too long", "the same as device", "; 1.301"):
        assert changed.count(words) == text.count(words)


def test_a_share_of_the_bound_is_that_of_a_file_with_accesses() -> None:
    page = "ladder-compiler.md"
    rungs = slower(page)
    rows = {r[0]: r[-1] for r in table_of(page, with_cells(page, (DOCS / page).read_text(encoding="utf-8"), rungs))}
    share = next(r["share_of_bound"] for r in rungs if (r["benchmark"], r["step"]) == ("strsm", "default plan"))
    assert rows["`strsm`"] == f"{100 * share:.0f}%"


def test_a_page_without_its_table_is_refused() -> None:
    with pytest.raises(ValueError, match=r"docs/ladder-lbm\.md: no table begins with \| rung"):
        with_cells("ladder-lbm.md", "nothing")
    assert with_cells("gravity.md", "anything") == "anything"
