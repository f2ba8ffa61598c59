"""The README is true: a picture and two commands come first, its Python prints what it shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lanewise.compiler.optimisations import OPTIMISATIONS
from lanewise.launch import tuned_plans as store
from tests.markdown import Block, blocks, commands, differences, run_blocks

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_two_commands_come_first() -> None:
    first: Block = blocks(README)[0]
    assert [line.split("#")[0].strip() for line in first.text.splitlines()] == ["make run", "make test"]


def test_it_is_short_and_its_picture_comes_from_a_command_that_it_shows() -> None:
    assert len(README.splitlines()) <= 200
    picture = re.match(
        r"# lanewise\n\n!\[.+\]\((docs/pictures/(\w+\.png))\)\n\n\*.*?`(lanewise [^`]+)`.*?\*\n", README, re.DOTALL
    )
    assert picture is not None
    assert (ROOT / picture[1]).stat().st_size < 200_000
    assert picture[3].endswith(f"--plot {picture[2]}")
    assert picture[3] in commands(README, "lanewise")


def test_python_blocks_print_what_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "store_directory", lambda: tmp_path / "tuned")  # other tests expect untuned calls
    wrong = [differences(block, printed) for block, printed in run_blocks(README, tmp_path / "physics.py")]
    assert not any(wrong), "\n".join(filter(None, wrong))


def test_optimisations_are_those_of_the_catalogue() -> None:
    names = {o.name for o in OPTIMISATIONS}
    for page in (ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs").glob("*.md"))):
        counted = set(re.findall(r"(\d+) optimisations", page.read_text(encoding="utf-8")))
        assert counted <= {str(len(names))}, page.name
    assert f"{len(names)} optimisations" in README
    text = (ROOT / "docs/explain.md").read_text(encoding="utf-8")
    excerpt = text.partition("\noptimisation  ")[2].partition("...")[0]
    shown = [re.split(r"  +", line)[0] for line in excerpt.splitlines()[2:] if line[:1].strip()]
    assert shown
    assert set(shown) <= names


def test_rungs_are_those_of_the_ladder() -> None:
    from lanewise.ladders import tutorial

    text = (ROOT / "docs/ladder-tutorial.md").read_text(encoding="utf-8")
    excerpt = text.partition("n-body step by step: ")[2].partition("```")[0]
    shown = re.findall(r"^│ (.+?)\s+│", excerpt, re.MULTILINE)
    assert shown
    assert set(shown) <= set(tutorial.NAMES)


@pytest.mark.parametrize(
    "document",
    [
        "README.md",
        "ARCHITECTURE.md",
        "bench/results/summary.md",
        *(f"docs/{p.name}" for p in sorted((ROOT / "docs").glob("*.md"))),
    ],
)
def test_links_lead_somewhere(document: str) -> None:
    path = ROOT / document
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", path.read_text(encoding="utf-8"))
    missing = [t for t in targets if not (path.parent / t).exists()]
    assert not missing
