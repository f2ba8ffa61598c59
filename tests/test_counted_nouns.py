"""One of a thing is not called by its plural: `1 body`, not `1 bodies`.

What commands, ladders and products print with a number goes through `counted`; other numbers before a plural are never one.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import lanewise
from lanewise.ladders import LADDERS, boids, find_ladder, layouts, tutorial
from lanewise.ladders.rung import Rung
from lanewise.support.numerals import counted

ROOT = Path(lanewise.__file__).parent
ROOMS = ("ladders", "cli", "sims", "explanation")
NOUNS = "bodies|agents|threads|units|templates|stacks|detectors|files|processes|rungs|kernels|workers|steps"
PLURAL = re.compile(rf"\A ({NOUNS})\b(?!/)")
# said of numbers that were refused: none, negative ones, or too large
REFUSED = re.compile(r"requested|wanted|there are only|have the id|does not name|died of it|damaged|not \{agents\}")
# never one, and no numbers
EXEMPT = {
    "boids_run.py": "HOST_MOST:,", "lbm_solid.py": "steady_steps", "semantics.py": "lost:,", "trees.py": "least:,",
    "remote.py": "len(known)", "launches.py": "grid.threads", "offline.py": "{kernels}", "rendering.py": "e.pattern",
}  # fmt: skip


def plurals(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Numbers that stand before a plural in a text, by line."""
    for text in (n for n in ast.walk(tree) if isinstance(n, ast.JoinedStr)):
        if REFUSED.search(ast.unparse(text)):
            continue
        for value, after in zip(text.values, text.values[1:], strict=False):
            if isinstance(value, ast.FormattedValue) and isinstance(after, ast.Constant):
                if PLURAL.match(str(after.value)):
                    yield text.lineno, ast.unparse(text)


def test_numbers_before_plurals_are_counted() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for room in ROOMS
        for path in sorted((ROOT / room).rglob("*.py"))
        for line, text in plurals(ast.parse(path.read_text("utf-8")))
        if EXEMPT.get(path.name, "\0") not in text
    ]
    assert found == []


def test_the_scan_finds_what_it_is_for() -> None:
    text = (
        "f\"{n:,} bodies: {m} agents/s, {k} threads, {counted(n, 'body', 'bodies')} of {n} steps; {bodies:,} bodies\""
    )
    assert len(list(plurals(ast.parse(text)))) == 4
    assert list(plurals(ast.parse('f"{n} bodies requested; wanted at least 1"'))) == []


@pytest.mark.parametrize("ladder", [boids, layouts, tutorial], ids=lambda m: m.__name__.rpartition(".")[2])
@pytest.mark.parametrize("count", [1, 2, 1_000])
def test_summaries_of_one(ladder: ModuleType, count: int) -> None:
    rung = Rung(name="W=9, own cells", bodies=count, seconds=1e-3, extra={"world": 9.0})
    one, many = ("agent", "agents") if ladder is boids else ("body", "bodies")
    assert ladder.summary([rung])[0].startswith(f"{counted(count, one, many)}{',' if ladder is boids else ':'} ")


def test_titles_of_one() -> None:
    """What every ladder counts has a word for one, as tables and pictures have it."""
    said = {find_ladder(n, axis).so_many(1) for n, axes in LADDERS.items() for axis in (None, *axes)}
    assert said == {"1 body", "1 agent", "1 site", "1 amplitude", "1 element of a matrix"}
    assert boids.LADDER.so_many(1_000) == "1,000 agents"
