"""Figures of the README and of bench/results/summary.md are inserted from results: none is written by hand."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from docs.generator import figures
from docs.generator.measurements import RESULTS

TEMPLATES = sorted(figures.TEMPLATES.glob("*.md"))
SIZES = re.compile(
    r"2\^\d+|\d+x\d+(?:x\d+)?|\d+ % (?:of )?grains|sqrt\(\d+\)|float\d+|D\dQ\d+|Warp 1\.19|fast_math|H\d00"
)
"""Numbers that name what was measured."""


def test_they_are_up_to_date() -> None:
    """`make reference` inserts them."""
    assert [p.name for p, text in figures.inserted() if p.read_text(encoding="utf-8") != text] == []


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda p: p.name)
def test_no_figure_of_a_table_is_written_by_hand(template: Path) -> None:
    lines = figures.FIGURE.sub("", template.read_text(encoding="utf-8")).splitlines()
    rows = [a for a, b in pairwise([*lines, ""]) if a.startswith("|") and "|---" not in a + b]
    assert rows
    for row in rows:
        cells = row.split("|")[1:-1]
        inserted = "|".join(cells[1:]) if "bench/results" in row else "|".join(cells[-2:])
        assert not re.search(r"\d", SIZES.sub("", inserted)), row


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda p: p.name)
def test_results_have_date_machine_command_and_link(template: Path) -> None:
    text = template.read_text(encoding="utf-8")
    used = {re.split(r"[;#]", f)[0].strip() for f in figures.FIGURE.findall(text)}
    for name in used:
        assert f"{name}.md)" in text
        for what in ("date", "machine", "command"):
            assert figures.figure(f"{name}; {what}")


@pytest.mark.parametrize(
    ("place", "wanted"),
    [
        ("gpu_gravity; 524,288 f32: force; pairs/s", "3.120e12"),
        ("gpu_lbm; D3Q19, f32, 512x512x256, pull, SoA; MLUPS", "25,420"),
        ("gpu_lbm; D3Q19, f32, 512x512x256, pull, SoA; share of the copy; %", "91.0 %"),
        ("gpu_boids # lw.nearest, k=7 within sqrt(18); 2^20; ms", "1.295"),
        ("gpu_boids; all in a ball of 1 % of the volume | dynamic-grid; ms", "1.112"),
        ("gpu_gravity; /driver_version (\\S+?),/", "580.159.04"),
    ],
)
def test_a_place_names_one_figure(place: str, wanted: str) -> None:
    assert figures.figure(place) == wanted
    assert (
        wanted.removesuffix(" %").replace("e", "e+")
        in (RESULTS / f"{place.split(';')[0].split(' ')[0]}.md").read_text()
        or "%" in wanted
    )


@pytest.mark.parametrize(
    "place",
    [
        "gpu_gravity; 524,289 f32; pairs/s",
        "gpu_gravity; 16,384; pairs/s",
        "gpu_lbm; D3Q19; speed",
        "gpu_lbm; /MLUPS (.*)/",
    ],
)
def test_a_place_without_one_is_refused(place: str) -> None:
    with pytest.raises(ValueError, match="wanted: one figure"):
        figures.figure(place)
