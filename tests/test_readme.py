"""The README is true: a picture and two commands come first, its Python prints what it shows, its figures were measured."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lanewise.compiler.optimisations import OPTIMISATIONS
from lanewise.launch import tuned_plans as store
from tests.markdown import Block, blocks, commands, differences, run_blocks

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
SUMMARY = (ROOT / "bench/results/summary.md").read_text(encoding="utf-8")


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


@pytest.mark.parametrize(
    ("section", "files", "facts"),
    [
        ("Measured on a CPU", ("cpu_gravity",), ("AMD EPYC", "2026-11-21", "12.2", "14.0.6")),
        ("Measured on a GPU", ("gpu_gravity",), ("NVIDIA H200", "2026-11-21", "580.159.04", "1980 MHz")),
    ],
)
def test_measured_figures_are_those_of_the_benchmarks(
    section: str, files: tuple[str, ...], facts: tuple[str, ...]
) -> None:
    results = "".join((ROOT / f"bench/results/{name}.md").read_text(encoding="utf-8") for name in files)
    measured = {float(x) for x in re.findall(r"\d\.\d+e\+\d+", results)}
    table = SUMMARY.partition(f"## {section}\n")[2].partition("\n## ")[0]
    shown = [float(x) for x in re.findall(r"\d\.\d+e\d+", table)]
    assert shown
    assert set(shown) <= measured
    for share in re.findall(r"(\d+\.\d) %", table):
        assert f"| {share} |" in results
    for name in facts:
        assert name in results
        assert name in table


def test_six_numbers_are_those_of_the_benchmarks() -> None:
    table = README.partition("## Six numbers\n")[2].partition("\n## ")[0]
    rows = [line.split("|")[1:-1] for line in table.splitlines() if line.startswith("| [")]
    assert len(rows) == 6
    for what, measured, share, beside in rows:
        (name,) = re.findall(r"\((bench/results/\w+\.md)\)", what)
        results = (ROOT / name).read_text(encoding="utf-8")
        for figure in re.findall(r"\d[\d.,e]*\d", measured + beside):
            assert re.sub(r"e(?=\d)", "e+", figure) in results
        for percent in re.findall(r"(\d+\.\d) %", share):
            assert f"| {percent} |" in results or f"| {float(percent) / 100:.3f} |" in results


def test_figures_beside_others_are_those_of_the_benchmarks() -> None:
    names = ("cpu_nearest", "cpu_boids", "cpu_lbm")
    results = "".join((ROOT / f"bench/results/{name}.md").read_text(encoding="utf-8") for name in names)
    table = SUMMARY.partition("beside others on a CPU\n")[2].partition("\n## ")[0]
    rows = [line.split("|")[2:4] for line in table.splitlines() if line.startswith("| ")][1:]
    assert len(rows) == 5
    for figure in (cell.split(",")[0].strip() for row in rows for cell in row):
        assert f"| {figure.replace('e', 'e+0')} |" in results


def test_figures_of_flow_are_those_of_the_benchmark() -> None:
    results = (ROOT / "bench/results/gpu_lbm.md").read_text(encoding="utf-8")
    table = SUMMARY.partition("## Flow measured on a GPU\n")[2].partition("\n## ")[0]
    shown = re.findall(r"\| ([\d,]+ \| 0\.\d+) \|", table)
    assert len(shown) == 8
    for figures in shown:
        assert f"| {figures} |" in results


def test_figures_of_flocks_are_those_of_the_benchmark() -> None:
    results = (ROOT / "bench/results/gpu_boids.md").read_text(encoding="utf-8")
    part = SUMMARY.partition("## Flocks measured on a GPU\n")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in part.splitlines() if line.startswith("| 2^")]
    assert len(rows) == 3
    for agents, *figures in rows:
        (measured,) = (
            line for line in results.splitlines() if line.startswith(f"| {agents} | ") and line.count("|") == 11
        )
        assert all(f"| {figure} |" in measured for figure in figures if figure)
    for figure in re.findall(r"\d\.\d{3}(?= ms| times)", part):
        assert f"| {figure} |" in results


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

    text = (ROOT / "docs/ladders.md").read_text(encoding="utf-8")
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
