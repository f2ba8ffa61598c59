"""Every measured figure of a document stands beside its source, and has it from there.

A source is a result of `bench/results`, a command of `lanewise`, or a test. It is named in the same paragraph, item or row as
the figure; of a table or a block of output also directly above or below. Results are looked into, and so are tests. Commands
run where the slow tests do: what they print is compared, but for times and what follows from them.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import typer

from lanewise.cli.commands import app
from tests.figures_exempt import COMPARED, FIGURES, LONG
from tests.outputs import differences, numbers_of

ROOT = Path(__file__).parent.parent
LINK = re.compile(r"\(?((?:\.\./)?bench/results/[\w/.]+\.(?:md|json))")
COMMAND = re.compile(r"`((?:lanewise [a-z]|pytest )[^`]*)`")
TEST = re.compile(r"`(test_\w+\.py)`")
NUMBER = r"(?<![\w.,/^-])(\d[\d,]*(?:\.\d+)?(?:e\d+)?)"
ERROR = re.compile(r"(?<![\w.,/^-])(\d[\d,]*(?:\.\d+)?e-\d+)(?!\w)")
"""A small number: most are errors and drifts."""

DURATION = r"(?:ms|us|µs|ns|milliseconds|microseconds)"
RATE = r"(?:[GT]B/s|[GT]FLOP/s|MLUPS|pairs/s|points/s|sites/s)"
UNIT = rf"(?:{DURATION}|{RATE}|%|times as (?:fast|long))"
FIGURE = re.compile(rf"{NUMBER}(?: |&nbsp;)?({UNIT})(?!\w)")
COLUMN = re.compile(rf"(?<!\w)({UNIT})(?!\w)")
CONTINUED = re.compile(r"\n[ ]*")


@dataclass(frozen=True)
class Figure:
    digits: str
    unit: str
    """"" of an error."""

    line: str

    @property
    def value(self) -> float:
        return float(self.digits.replace(",", ""))

    def is_by_the_clock(self) -> bool:
        return bool(re.fullmatch(rf"{DURATION}|{RATE}|times as (?:fast|long)", self.unit))

    def scales(self) -> tuple[float, ...]:
        """What the unit of a result may be, in that of the figure."""
        if re.fullmatch(DURATION, self.unit):
            return (1, 1e3, 1e-3, 1e6, 1e-6, 1e9)
        if re.fullmatch(RATE, self.unit):
            return (1, 1e3, 1e-3, 1e-6, 1e-9, 1e-12)
        return (1, 100) if self.unit == "%" else (1,)

    def is_among(self, numbers: tuple[float, ...]) -> bool:
        """Whether one of them rounds to it."""
        significant = max(1, len(re.sub(r"e.*|[,.]", "", self.digits).lstrip("0"))) - 1
        wanted = f"{self.value:.{significant}e}"
        return any(f"{n * s:.{significant}e}" == wanted for n in numbers for s in self.scales())


@dataclass(frozen=True)
class Part:
    """A paragraph, an item, a table, a heading or a fenced block of a page."""

    page: str
    kind: str  # "prose", "table", "heading", or the language of a fenced block
    text: str

    def lines(self) -> list[str]:
        return self.text.splitlines() if self.kind == "table" else [CONTINUED.sub(" ", self.text)]

    def sources(self) -> str:
        """The text in which sources are looked for: commands of a block of `sh` as in a sentence."""
        if self.kind == "sh":
            text = re.sub(r"\\\n\s*", "", self.text)
            return "\n".join(f"`{line}`" for line in text.splitlines() if line.startswith("lanewise "))
        return "" if self.kind not in ("prose", "table") else "\n".join(self.lines())

    def figures(self) -> Iterator[Figure]:
        """Numbers with a unit, errors, and numbers of a column whose head has a unit.

        Code has none. What Python prints is compared by `tests/test_docs.py`, what commands print as a whole.
        """
        if self.kind not in ("prose", "table"):
            return
        heads: list[str] = []
        for line in self.lines():
            cells = [c.strip() for c in line.strip().strip("|").split("|")] if self.kind == "table" else []
            if cells and not heads:
                heads = [found[1] if (found := COLUMN.search(c)) else "" for c in cells]
            own = [Figure(digits, unit, line) for digits, unit in FIGURE.findall(line)]
            own += [Figure(digits, "", line) for digits in ERROR.findall(re.sub(r"`[^`]*`", "`", line))]
            for cell, head in zip(cells, heads, strict=False):
                if head and re.fullmatch(r"\d[\d,.]*(e\d+)?", cell):
                    own.append(Figure(cell, head, line))
            yield from dict.fromkeys(own)


def parts_of(page: str, text: str) -> Iterator[Part]:
    held: list[str] = []
    kind = "prose"

    def ended() -> Iterator[Part]:
        if held:
            yield Part(page, kind, "\n".join(held))
            held.clear()

    fenced = False
    for line in text.splitlines():
        if line.startswith("```"):
            yield from ended()
            fenced, kind = not fenced, "prose" if fenced else line.removeprefix("```").strip() or "none"
        elif fenced:
            held.append(line)
        elif not line.strip():
            yield from ended()
        elif line.startswith("#"):
            yield from ended()
            yield Part(page, "heading", line)
        else:
            begun = "table" if line.startswith("|") else "prose"
            if begun != kind or re.match(r"\s*([-*+]|\d+\.) ", line):
                yield from ended()
            kind = begun
            held.append(line)
    yield from ended()


@dataclass(frozen=True)
class Placed:
    """A part and what stands beside it."""

    part: Part
    beside: tuple[Part, ...]

    def near(self, line: str) -> str:
        """Where the source of a figure of this line may be named."""
        if self.part.kind == "prose":
            return self.part.sources()
        head = self.part.lines()[0]
        return "\n".join([line, head, *(p.sources() for p in self.beside)])

    def command(self) -> str | None:
        """Of a block of output: what prints it."""
        named = [c for p in self.beside for c in COMMAND.findall(p.sources())]
        return named[0] if named else None


def placed(page: str, text: str) -> list[Placed]:
    parts = [None, *parts_of(page, text), None]
    around = zip(pairwise(parts), parts[2:], strict=False)
    return [Placed(p, tuple(x for x in (above, below) if x)) for (above, p), below in around if p]


@cache
def pages() -> tuple[Placed, ...]:
    every = [
        ROOT / "README.md",
        *sorted((ROOT / "docs").glob("*.md")),
        *sorted((ROOT / "docs/coming_from").glob("*.md")),
    ]
    return tuple(p for path in every for p in placed(path.name, path.read_text(encoding="utf-8")))


@cache
def numbers(path: Path) -> tuple[float, ...]:
    return numbers_in(path.read_text(encoding="utf-8"))


def numbers_in(text: str) -> tuple[float, ...]:
    return tuple(
        float(x.replace("_", "").replace(",", ""))
        for x in re.findall(r"(?<![\w.])\d(?:[\d_]|,(?=\d{3}))*(?:\.\d+)?(?:e[+-]?\d+)?", text)
    )


def files_named(near: str) -> list[Path]:
    """Results that are linked, and tests that are named: what has the figures in it."""
    results = [ROOT / found.removeprefix("../") for found in LINK.findall(near)]
    tests = [path for name in TEST.findall(near) for path in (ROOT / "tests").rglob(name)]
    for command in COMMAND.findall(near):
        if command.startswith("pytest "):
            folder = next((w for w in shlex.split(command)[1:] if w.startswith("tests/")), "")
            if not folder:
                continue
            tests += (
                sorted((ROOT / folder).rglob("test_*.py"))
                if (ROOT / folder).is_dir()
                else [ROOT / folder] * (ROOT / folder).is_file()
            )
    return results + tests


def is_exempt(page: str, figure: Figure) -> bool:
    return any(p == page and part in figure.line and figure.digits in part for p, part in FIGURES)


def unsourced(place: Placed) -> list[str]:
    """Figures beside which no source is named, or whose source does not have them."""
    found: list[str] = []
    for figure in place.part.figures():
        near = place.near(figure.line)
        commands = [c for c in COMMAND.findall(near) if c.startswith("lanewise ")]
        if (
            not is_exempt(place.part.page, figure)
            and not any(figure.is_among(numbers(path)) for path in files_named(near))
            and not commands
        ):
            found.append(f"{place.part.page}: {figure.digits!r} {figure.unit} in {figure.line.strip()!r}")
    if place.part.kind == "console" and not place.command():
        found.append(f"{place.part.page}: no command stands beside the block {place.part.text[:60]!r}")
    return found


def test_every_figure_has_a_source_beside_it() -> None:
    assert [x for place in pages() for x in unsourced(place)] == []


def test_no_exemption_is_left_over() -> None:
    lines = [(p.part.page, f.line) for p in pages() for f in p.part.figures()]
    assert [e for e in FIGURES if not any(p == e[0] and e[1] in line for p, line in lines)] == []
    assert set(COMPARED) | set(LONG) <= {c for _, c in every_command()}
    assert all((ROOT / path).is_file() for path in COMPARED.values())


def test_every_result_names_its_command() -> None:
    """What a document links is in the list of results, whose rows have commands."""
    listed = "".join(
        (ROOT / f"bench/results/{x}").read_text(encoding="utf-8") for x in ("README.md", "ladders/README.md")
    )
    linked = {x.removeprefix("../") for p in pages() for x in LINK.findall(p.part.text)}
    linked -= {"bench/results/summary.md"}  # made of the others
    rows = [row for row in listed.splitlines() if re.search(r"`[^`]*(python|make|lanewise)[^`]*`|ladders/README", row)]
    assert linked
    assert [x for x in sorted(linked) if not any(f"{Path(x).stem}" in row for row in rows)] == []


PAGE = "`{0}` prints:\n\n| size | ms |\n| --- | --- |\n| 12 | 7.125 |\n"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("It takes 1.234 ms.", ["1.234"]),
        ("It takes 1.234 ms ([rows](../bench/results/gpu_boids.md)).", ["1.234"]),
        ("It takes 1.295 ms ([rows](../bench/results/gpu_boids.md)).", []),
        ("It takes 1.295 ms.\n\nSee [rows](../bench/results/gpu_boids.md).", ["1.295"]),
        ("It takes 1.234 ms: `lanewise ladder boids --quick`.", []),
        ("It takes 1.234 ms.\n\n`lanewise ladder boids --quick` runs for long.", ["1.234"]),
        ("- It takes 1.234 ms.\n- `lanewise ladder boids --quick` runs for long.", ["1.234"]),
        ("```sh\nlanewise ladder boids\n```\n\nText between.\n\nIt takes 1.234 ms.", ["1.234"]),
        ("| size | ms |\n| --- | --- |\n| 12 | 7.125 |", ["7.125"]),
        (PAGE.format("lanewise ladder boids"), []),
        (f"`lanewise ladder boids` is long.\n\nIt prints:\n\n{PAGE.split(':', 1)[1]}", ["7.125"]),
        (f"{PAGE.split(':', 1)[1]}\nThis is `lanewise ladder boids`.", []),
        ("A copy is 3.7 times as fast, and 61 % of it waits.", ["3.7", "61"]),
        ("| truth | within |\n| --- | --- |\n| a line | 3e-11 |", ["3e-11"]),
        ("| truth | within |\n| --- | --- |\n| a line | 3.5e-11, `test_parallel_flows.py` |", ["3.5e-11"]),
        ("| truth | within |\n| --- | --- |\n| a line | 1e-10, `test_parallel_flows.py` |", []),
        ("A column is off by 0.20 % (`pytest -m slow tests/sims/lbm/boundaries`).", []),
        ("A column is off by 0.93 % (`pytest -m slow tests/sims/lbm/boundaries`).", ["0.93"]),
        ("It takes 5 ms (`python -m bench.steps`).", ["5"]),
        ("Where `eps=1e-4` is set.", []),
        ("```text\n1.234 ms\n```", []),
    ],
)
def test_what_counts_as_a_source(text: str, wanted: list[str]) -> None:
    found = [x for place in placed("none.md", text) for x in unsourced(place)]
    assert [re.findall(r": '([\de.-]+)' ", x)[0] for x in found] == wanted


@pytest.mark.parametrize("above", ["", "Text.\n\n", "`lanewise explain`\n\nText.\n\n"])
def test_a_block_of_output_has_its_command_beside_it(above: str) -> None:
    (place,) = (p for p in placed("none.md", f"{above}```console\n1.234 ms\n```") if p.part.kind == "console")
    assert unsourced(place)
    (place,) = (p for p in placed("none.md", "`lanewise info`:\n\n```console\n1 ms\n```") if p.part.kind == "console")
    assert place.command() == "lanewise info"
    assert not unsourced(place)


# ---------------------------------------------------------------- commands that give figures

SHOWN = """\
16,384 bodies, 100 steps to t = 0.1 on cpu
3.806 s, 7.053e+09 pairs/s
energy -0.246930361, drift +2.105e-09
┏━━━━━━┳━━━━━━━━━┳━━━━━━━━┳━━━━━━━━━━━━┳━━━━━━━━┓
┃ rung ┃    time ┃  paper ┃ rel. error ┃ B/site ┃
┡━━━━━━╇━━━━━━━━━╇━━━━━━━━╇━━━━━━━━━━━━╇━━━━━━━━┩
│ AoS  │ 28.8 ms │ 1 / 12 │    1.1e-07 │     76 │
│ SoA  │ 12.8 ms │   1.24 │    1.1e-07 │     40 │
└──────┴─────────┴────────┴────────────┴────────┘
{"device": "cpu", "bodies": 16384, ...}
"""


@pytest.mark.parametrize(
    ("old", "new", "missed"),
    [
        ("3.806 s, 7.053e+09", "9.1 s, 1e+08", 0),
        ("28.8 ms", "1.04 us", 0),
        ("+2.105e-09", "-3.7e-09", 0),
        ("-0.246930361", "-0.246930362", 0),
        (", ...}", ', "steps": 100}', 0),
        ("│ SoA", "│ AoSoA │ 1 ms │ - │ - │ 1 │\n│ SoA", 0),
        ("16,384 bodies", "16,385 bodies", 1),
        ("-0.246930361", "-0.246930761", 1),
        ("+2.105e-09", "+2.105e-07", 1),
        ("16384,", "16385,", 1),
        ("1.24", "1.27", 1),
        ("1.1e-07 │     76", "1.1e-05 │     76", 1),
        ("     76", "     80", 1),
        ("│ SoA ", "│ SoB ", 1),
        ("B/site", "B/atom", 3),
        ("drift", "drifts", 1),
    ],
)
def test_what_is_compared(old: str, new: str, missed: int) -> None:
    assert old in SHOWN
    assert len(differences(SHOWN, SHOWN.replace(old, new))) == missed


def every_command() -> list[tuple[Placed, str]]:
    """Commands of `lanewise` for the host beside figures and blocks of output."""
    found: list[tuple[Placed, str]] = []
    for place in pages():
        if place.part.kind == "console" and (command := place.command()):
            found.append((place, command))
        for figure in place.part.figures():
            if not is_exempt(place.part.page, figure):
                found += [(place, c) for c in COMMAND.findall(place.near(figure.line)) if c.startswith("lanewise ")]
    return [x for x in dict.fromkeys(found) if x[1] in COMPARED or "--device cuda" not in x[1]]


def problem_of(command: str) -> str:
    """Why a command cannot be run as it stands, such as one that is only spoken of; "" if it can."""
    group: Any = typer.main.get_command(app)
    words = shlex.split(command)[1:]
    context = group.make_context("lanewise", words, resilient_parsing=True)
    try:
        while isinstance(group, typer.core.TyperGroup):
            name, group, words = group.resolve_command(context, words)
            if not words and group.params and any(p.required for p in group.params):
                return "it lacks its arguments"
            context = group.make_context(name, [*words], parent=context)
    except Exception as error:
        return str(error) or type(error).__name__
    return ""


def test_every_command_can_be_run() -> None:
    """One that is only spoken of, as `lanewise explain`, prints no figures."""
    assert problem_of("lanewise explain")
    assert problem_of("lanewise units run")
    assert not problem_of("lanewise info")
    found = {c: problem for _, c in every_command() if (problem := problem_of(c))}
    assert found == {}


@cache
def printed(command: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "lanewise", *shlex.split(command)[1:]],
        cwd=folder,
        env=os.environ | {"COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return f"{done.stderr}\n{done.stdout}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "command"),
    [pytest.param(*x, id=f"{x[0].part.page}-{x[1]}") for x in every_command() if x[1] not in COMPARED | LONG],
)
def test_commands_print_what_is_shown(place: Placed, command: str, tmp_path: Path) -> None:
    """Blocks of output line by line; of sentences and tables every figure that no clock gives."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    text = printed(command, tmp_path)
    if place.part.kind == "console":
        assert differences(place.part.text, text) == [], text
    for figure in place.part.figures():
        if command in place.near(figure.line) and not figure.is_by_the_clock():
            assert figure.is_among(tuple(numbers_of(text))), f"{figure.digits} {figure.unit}\n{text}"
