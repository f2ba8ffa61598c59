from __future__ import annotations

import io

import pytest
from rich.console import Console

from lanewise.ladders.rung import Column, Ladder, Rung, as_json, digits, factor_text, paper_text, seconds_text, show

RUNGS = [
    Rung(name="first", bodies=1000, seconds=0.25, relative_error=1.25e-7, extra={"rate": 4e6}),
    Rung(
        name="second", bodies=1000, seconds=0.0125, over="first", speedup=20.0, predicted=18.52, paper={"A": 7781, "B": 0.83},
        relative_error=3e-6, extra={"rate": 8e7},
    ),
    Rung(name="third", bodies=1000, skipped="the pass says no", paper={"A": 1.5, "B": 1.0}),
    Rung(name="fourth", bodies=1000, skipped="the pass says no"),
    Rung(name="fifth", bodies=1000, skipped="it would take a year"),
    Rung(name="first", bodies=20_000, seconds=3.5e-5, relative_error=2e-7, extra={"rate": 1.1e13}),
]  # fmt: skip
LADDER = Ladder(
    name="test", title="a ladder", source="a paper", sizes=lambda device, quick: (1000,), climb=lambda options: iter(RUNGS),
    columns=(
        Column("rate", lambda r: "–" if r.skipped else f"{r.extra['rate']:.1e}"),
        Column("empty", lambda r: "–"),
    ),
)  # fmt: skip


def shown(width: int) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    show(console, LADDER, RUNGS)
    assert isinstance(console.file, io.StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines()) + "\n"


def test_golden_table(golden):
    golden("table", shown(110))


@pytest.mark.parametrize("width", [24, 40, 60, 80])
def test_narrow_terminals_lose_nothing(width: int) -> None:
    text = shown(width)
    assert max(map(len, text.splitlines())) <= max(width, 33)  # narrower than names and a column nothing is
    for r in RUNGS:
        cells = (
            r.name,
            seconds_text(r.seconds) if r.seconds else "skipped",
            paper_text(r.paper),
            factor_text(r.predicted),
        )
        assert all(cell in text for cell in cells)
    assert text.replace("\n", " ").count("the pass says no") <= 1
    assert text.count("a ladder: ") == 2


def test_names_take_lines_before_columns_take_tables() -> None:
    ladder = Ladder(
        name="test", title="a ladder", source="", sizes=lambda device, quick: (1,), climb=lambda options: iter(()),
        columns=(Column("operations a core cycle", lambda r: "12.5"),),
    )  # fmt: skip
    rung = Rung(name="all of the optimisations of the paper together", bodies=7, seconds=1.0, relative_error=1e-7)
    console = Console(file=io.StringIO(), width=60, color_system=None)
    show(console, ladder, [rung])
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert text.count("┏") == 1
    assert max(map(len, text.splitlines())) <= 60
    assert all(f"{word} ┃\n" in text for word in ("operations", "a", "core", "cycle"))
    assert " 12.5 │\n" in text


def test_json():
    found = as_json({"name": "x"}, LADDER, RUNGS)
    assert found["machine"] == {"name": "x"}
    assert found["ladder"] == "test"
    assert [(r["name"], r["bodies"]) for r in found["rungs"]] == [(r.name, r.bodies) for r in RUNGS]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "–"), (12.34, "12.3 s"), (0.5, "500 ms"), (0.001, "1.00 ms"), (2.5e-5, "25.0 µs"), (3e-8, "30.0 ns")],
)
def test_times(seconds, text):
    assert seconds_text(seconds) == text


def test_numbers():
    assert [digits(x) for x in (0.0, 1.0, 0.014, 7781.3, 999.6, 123.4, 1e-5)] == [
        "0.00", "1.00", "0.0140", "7,781", "1,000", "123", "1.0e-05",
    ]  # fmt: skip
    assert (factor_text(None), factor_text(float("inf")), factor_text(2.0)) == ("–", "–", "2.00")
    assert (paper_text(None), paper_text({"A": 7781, "B": 0.83})) == ("–", "7,781 / 0.83")
