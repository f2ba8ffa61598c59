"""The README is true: two commands come first, its Python prints what it shows, its figures were measured."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.markdown import Block, blocks, differences, run_blocks

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_two_commands_come_first() -> None:
    first: Block = blocks(README)[0]
    assert [line.split("#")[0].strip() for line in first.text.splitlines()] == ["make run", "make test"]


def test_python_blocks_print_what_is_shown(tmp_path: Path) -> None:
    wrong = [differences(block, printed) for block, printed in run_blocks(README, tmp_path / "physics.py")]
    assert not any(wrong), "\n".join(filter(None, wrong))


def test_measured_figures_are_those_of_the_benchmark() -> None:
    results = (ROOT / "bench/results/cpu_gravity.md").read_text(encoding="utf-8")
    measured = {float(x) for x in re.findall(r"\d\.\d+e\+\d+", results)}
    table = README.partition("## Measured")[2].partition("##")[0]
    shown = [float(x) for x in re.findall(r"\d\.\d+e\d+", table)]
    assert shown
    assert set(shown) <= measured
    for name in ("AMD EPYC", "2026-11-21", "12.2", "14.0.6"):
        assert name in results
        assert name in table


@pytest.mark.parametrize("document", ["README.md", *(f"docs/{p.name}" for p in sorted((ROOT / "docs").glob("*.md")))])
def test_links_lead_somewhere(document: str) -> None:
    path = ROOT / document
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", path.read_text(encoding="utf-8"))
    missing = [t for t in targets if not (path.parent / t).exists()]
    assert not missing
