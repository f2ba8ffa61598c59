"""Parts of a whole add up to it, and tables of documents are those of the files that they link."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.ladder_pictures import draw, rung_of
from lanewise.ladders.boids import LADDER
from lanewise.ladders.boids_run import REST, STAGES, parts_of
from lanewise.ladders.compiler import LADDER as COMPILER
from lanewise.ladders.rung import NOTHING, Rung, factor_text, seconds_text

ROOT = Path(__file__).parents[2]
RESULT = ROOT / "bench" / "results" / "ladders" / "boids.json"


def rungs(path: Path = RESULT) -> list[Rung]:
    found: list[dict[str, Any]] = json.loads(path.read_text())["rungs"]
    return [rung_of(r) for r in found]


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(p.stem for p in RESULT.parent.glob("*.png") if p.with_suffix(".json").exists()))
def test_pictures_are_drawn_again_from_results(name: str, tmp_path: Path) -> None:
    draw(RESULT.with_name(f"{name}.json"), tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_parts_add_up_to_the_whole() -> None:
    columns = {c.heading: c for c in LADDER.columns}
    above = 0
    for rung in rungs():
        shown = [columns[stage].text(rung) for stage in (*STAGES, REST)]
        parts = parts_of(rung)
        if parts is None:
            assert shown == [NOTHING] * len(shown), rung.name
            above += rung.seconds is not None
        else:
            assert rung.seconds is not None
            assert min(parts.values()) >= 0, rung.name
            assert sum(parts.values()) == pytest.approx(rung.seconds), rung.name
    assert 0 < above < len(rungs())


def test_the_table_of_the_document_is_that_of_the_result() -> None:
    text = (ROOT / "docs" / "ladder-boids.md").read_text()
    words = "some of its flocks ([all](../bench/results/ladders/boids.json))".split()
    _, below = re.split(r"\s+".join(map(re.escape, words)), text)
    table = below.partition("\n\n")[2]
    table = table.partition("\n\n")[0]
    header, _, *rows = table.splitlines()
    flocks: list[tuple[int, str]] = []
    for cell in header.split("|")[2:-2]:
        found = re.match(r"\s*([\d,]+)(?: agents)?, (?:world )?(\d+)", cell)
        assert found is not None
        flocks.append((int(found[1].replace(",", "")), found[2]))
    by = {(r.bodies, r.name): r for r in rungs()}
    assert len(rows) == 10
    for row in rows:
        name, *cells = (c.strip() for c in row.split("|")[1:-1])
        for (agents, world), cell in zip(flocks, cells, strict=False):
            rung = by[agents, f"W={world}, {name.partition(' (')[0]}"]
            assert cell == (seconds_text(rung.seconds) if rung.seconds is not None else cell), (name, agents)
            assert (rung.seconds is None) == (cell in ("too long", "the same as device"))
        idle = by[262_144, f"W=200, {name.partition(' (')[0]}"].extra["idle_share"]
        assert cells[-1] == ("" if idle is None else f"{100 * idle:.1f} %")


def table_below(page: str, heading: str) -> list[list[str]]:
    """The cells of the rows of a page's table that begins with this heading."""
    lines = (ROOT / "docs" / page).read_text().partition(f"\n| {heading} |")[2].partition("\n\n")[0].splitlines()[2:]
    assert lines
    return [[c.strip() for c in line.split("|")[1:-1]] for line in lines]


def test_the_table_of_flows_is_that_of_the_result() -> None:
    every = rungs(RESULT.with_name("lbm.json"))
    rows = table_below("ladder-lbm.md", "rung | D2Q9 128 × 128")
    assert len(rows) == 9
    for name, *cells in rows:
        name = name.partition(":")[0].partition(" (")[0].partition(";")[0]
        same = [r for r in every if r.name.partition(", ")[2] == name]
        for rung, cell in zip(same, cells, strict=True):
            value = cell.partition(" (")[0].partition(";")[0]
            seconds = rung.seconds
            assert seconds is not None
            long = f"{1e6 * seconds:,.0f} µs"
            wanted = factor_text(rung.speedup) if " split" in name else seconds_text(seconds)
            assert value in (wanted, long if seconds >= 1e-3 else wanted), (rung.name, rung.bodies)


def test_the_table_of_naive_kernels_is_that_of_the_result() -> None:
    every = rungs(RESULT.with_name("compiler.json"))
    rows = table_below("ladder-compiler.md", "benchmark | naive")
    assert len(rows) == 14
    for name, naive, default, factor, _, _, library, *_ in rows:
        steps = {r.extra["step"]: r for r in every if r.extra["benchmark"] == f"{name.strip('`')}" and r.seconds}
        plan = steps["default plan"]
        found = [seconds_text(steps[s].seconds) for s in ("naive", "default plan", "library")]
        assert [naive, default, library.partition(" (")[0]] == found, name
        assert factor == factor_text(float(plan.extra["over_naive"])), name  # type: ignore[arg-type]


def test_the_table_of_trees_is_that_of_the_result() -> None:
    every = {r.name: r for r in rungs(RESULT.with_name("tree.json")) if r.bodies == 100_000}
    rows = table_below("ladder-tree.md", "rung of 100,000 bodies")
    assert {row[0] for row in rows} >= {n for n, r in every.items() if r.extra["library"]}
    for name, time, factor, *errors in rows:
        rung = every[name]
        assert time == seconds_text(rung.seconds)
        assert factor == ("" if rung.speedup is None else factor_text(rung.speedup))
        wanted = [rung.extra[key] for key in ("error_median", "error_99", "error_largest")]
        assert [f"{float(e):.1e}" for e in errors] == [f"{e:.1e}" for e in wanted]


@pytest.mark.parametrize(
    ("factor", "said"), [(1.02, "which is the naive one"), (6.44, "whose kernel is the naive one's")]
)
def test_a_default_that_is_faster_than_the_naive_kernel_is_not_called_it(factor: float, said: str) -> None:
    path = ROOT / "bench" / "results" / "ladders" / "compiler.json"
    every = rungs(path)
    default = next(r for r in every if r.extra["step"] == "default plan" and r.seconds is not None)
    naive = next(r for r in every if r.extra["benchmark"] == default.extra["benchmark"] and r.extra["step"] == "naive")
    assert naive.seconds is not None
    same = replace(
        default, seconds=naive.seconds / factor, over=naive.name, speedup=factor, extra={**default.extra, "code_of": "naive", "over_naive": factor},
    )  # fmt: skip
    (line,) = [x for x in COMPILER.summary([naive, same]) if x.startswith(str(default.extra["benchmark"]))]
    assert said in line
    assert ("which is the naive one" in line) == (factor < 1.25)
