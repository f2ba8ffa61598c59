"""The table pass by pass: made of the explanations of kernels, and as committed for those that are quick to explain."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench import passes
from lanewise.compiler.optimisations import OPTIMISATIONS
from lanewise.ladders.compiler_problems import BENCHMARKS

PAGE = Path(passes.__file__).parent / "results" / "passes.md"
QUICK = ("tp", "vv")


@pytest.fixture(scope="module")
def found():
    return {b.name: passes.rows_of(b) for b in BENCHMARKS if b.name in QUICK}


def committed() -> dict[str, list[str]]:
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    return {re.findall(r"`(\w+)`", row)[0]: [c.strip() for c in row.strip("|").split(" | ")] for row in rows[2:]}


def test_the_committed_page_says_what_explanations_say(found):
    """Which of the quick kernels have an optimisation by default."""
    page = committed()
    for row in passes.table(found):
        names = page[row.field][1].partition(": ")[2].split(", ")
        assert {n for n in QUICK if n in names} == set(row.used), f"{row.field}: python -m bench.passes > {PAGE}"


def test_every_kernel_is_used_or_refused_or_foreseen(found):
    for row in passes.table(found):
        assert len(row.used) + sum(row.refused.values()) <= len(found)
        assert all(gain > 0 for gain in row.gains)
        assert not set(row.used) & set(row.missed)


def test_rows_are_optimisations_in_their_order(found):
    fields = [o.field for o in OPTIMISATIONS]
    made = [r.field for r in passes.table(found)]
    assert made == sorted(made, key=fields.index)
    assert set(passes.MODULES) <= set(fields)
    assert all((passes.SOURCE / m).is_file() for modules in passes.MODULES.values() for m in modules)


def test_lines_are_those_of_code(tmp_path):
    (tmp_path / "a.py").write_text('"""About\nit."""\n\n# why\nx = 1\n\n\ndef f():\n    return x  # this\n')
    assert passes._lines(tmp_path / "a.py") == 3
