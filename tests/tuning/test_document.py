"""docs/tuning.md is true: its Python prints what it shows, its command lines parse, its numbers are those of the code."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import typer

from lanewise.cli.main import app
from lanewise.compiler.optimisations import OPTIMISATIONS
from lanewise.patterns.elements import ELEMENTWISE
from lanewise.patterns.pairwise.build import PAIRWISE
from lanewise.tuning import measure, race, search
from tests.markdown import commands, differences, run_blocks

TEXT = (Path(__file__).parents[2] / "docs/tuning.md").read_text(encoding="utf-8")


def test_python_blocks_print_what_is_shown(tmp_path: Path) -> None:
    wrong = [differences(block, printed) for block, printed in run_blocks(TEXT, tmp_path / "physics.py")]
    assert not any(wrong), "\n".join(filter(None, wrong))


def test_command_lines_parse() -> None:
    lines = commands(TEXT, "lanewise")
    assert len(lines) == 10
    for line in lines:
        command = typer.main.get_command(app).commands["tune"]  # type: ignore[attr-defined]
        command.make_context("lanewise tune", shlex.split(line)[2:])


def test_the_table_names_the_axes_of_the_catalogue() -> None:
    rows = {
        row[0].strip(): [re.findall(r"`(\w+)`", cell) for cell in row[1:]]
        for row in re.findall(r"^\|(.+)\|(.+)\|(.*)\|$", TEXT, re.M)
    }
    for pattern in (PAIRWISE, ELEMENTWISE):
        for kind, shown in zip(("cuda", "cpu"), rows[pattern.name], strict=True):
            tried = {o.field for o in OPTIMISATIONS if len(o.values(kind, pattern)) > 1 and not o.on_request}
            assert set(shown) == tried - {"layout", "reciprocity"}
    assert {o.field for o in OPTIMISATIONS if o.rank} == {o.field for o in OPTIMISATIONS if not o.on_request} - {
        "layout",
        "reciprocity",
    }


def test_numbers() -> None:
    for number in (
        f"at most {search.ENUMERABLE} plans", f"at most {search.SMALL} of them", "the eight best shapes", "less than 0.5 % per axis",
        f"The best five within {100 * (race.CLOSE - 1):.0f} %", f"faster by {100 * race.WORTH:.0f} %",
        f"{measure.ROUNDINGS:,} units in the last place", f"{race.SLOW} times as long", f"up to {measure.MOST_COMPILERS}",
        f"at most {measure.MOST_COPIES} copies",
    ):  # fmt: skip
        assert number in " ".join(TEXT.split()), number
    assert (search.STARTS, search.GAIN, race.FINALISTS, search.PROMISING, measure.COLD) == (8, 0.005, 5, 2.0, 3)
