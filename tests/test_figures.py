"""Every measured figure of a document has a source in its section: a result that holds it, or the command that prints it."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.figures_exempt import FIGURES, LONG

ROOT = Path(__file__).parent.parent
LINK = re.compile(r"\(?((?:\.\./)?bench/results/[\w/.]+\.(?:md|json))")
COMMAND = re.compile(
    r"`((?:\.venv/bin/)?(?:lanewise [a-z]|python -m (?:bench|lanewise)|python (?:bench|examples)/|make |pytest )[^`]*)`"
)
SHELL = re.compile(r"^(lanewise|python|make|\.venv/bin/\w+) ", re.MULTILINE)
NUMBER = r"(?<![\w.,/^-])(\d[\d,]*(?:\.\d+)?(?:e\d+)?)"
UNIT = r"(?:ms|us|µs|ns|[GT]B/s|[GT]FLOP/s|MLUPS|pairs/s|points/s|sites/s|%|milliseconds|microseconds|times as fast)"
FIGURE = re.compile(rf"{NUMBER}(?: |&nbsp;)?(?={UNIT}(?!\w))")
COLUMN = re.compile(rf"(?<!\w){UNIT}(?!\w)")


CONTINUED = re.compile(r"(?<=[^\n|])\n[ ]*(?![ ]*([-*+] |\d+\. |[|#`>]|\n))")
"""Where a sentence goes on in the next line: no cell of a table, no item of a list and no heading begins there."""


@dataclass(frozen=True)
class Section:
    """What stands under one heading of a page, down to the next one."""

    page: str
    title: str
    text: str

    def links(self) -> list[Path]:
        return [ROOT / found.removeprefix("../") for found in LINK.findall(self.text)]

    def commands(self) -> list[str]:
        """In the text, or as blocks."""
        blocks = re.findall(r"^```(?:sh|console)\n(.*?)^```", self.text, re.MULTILINE | re.DOTALL)
        text = re.sub(CONTINUED, " ", self.text)
        lines = [line for b in blocks for line in re.sub(r"\\\n\s*", "", b).splitlines()]
        return COMMAND.findall(text) + [line for line in lines if SHELL.match(line)]

    def figures(self) -> Iterator[tuple[str, str]]:
        """Paragraphs or rows, and the figures in them: those with a unit, and those of a table whose head has one in their column.

        Code is none, and what Python prints is not among them: `tests/test_docs.py` runs and compares it.
        """
        heads: list[bool] = []
        text = re.sub(r"^```(?:python|py|text|llvm)\n.*?^```", "", self.text, flags=re.MULTILINE | re.DOTALL)
        for line in re.sub(CONTINUED, " ", text).splitlines():
            cells = [c.strip() for c in line.strip().strip("|").split("|")] if line.startswith("|") else []
            if not cells:
                heads = []
            elif not heads:
                heads = [bool(COLUMN.search(c)) for c in cells]
            own = FIGURE.findall(line)
            own += [c for c, named in zip(cells, heads, strict=False) if named and re.fullmatch(r"\d[\d,.]*(e\d+)?", c)]
            yield from ((line, figure) for figure in dict.fromkeys(own))


def sections() -> Iterator[Section]:
    for path in sorted((ROOT / "docs").glob("*.md")):
        title, lines, fenced = "", list[str](), False
        for line in path.read_text(encoding="utf-8").splitlines():
            fenced ^= line.startswith("```")
            if line.startswith("#") and not fenced:
                yield Section(path.name, title, "\n".join(lines))
                title, lines = line.lstrip("# "), []
            lines.append(line)
        yield Section(path.name, title, "\n".join(lines))


@cache
def numbers(path: Path) -> tuple[float, ...]:
    text = path.read_text(encoding="utf-8")
    return tuple(float(x.replace(",", "")) for x in re.findall(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?", text))


def is_in(figure: str, path: Path) -> bool:
    """Whether a result has a number that rounds to the figure, in any unit: ms of us or s, and so on."""
    wanted, digits = float(figure.replace(",", "")), max(1, len(re.sub(r"e.*|[,.]", "", figure).lstrip("0")))
    scales = [10.0**k for k in (0, 3, -3, 6, -6, 9, -9, -12, 2)]
    return any(
        float(f"{n * s:.{digits - 1}e}") == float(f"{wanted:.{digits - 1}e}") for n in numbers(path) for s in scales
    )


def is_exempt(page: str, line: str, figure: str) -> bool:
    return any(p == page and part in line and figure in part for p, part in FIGURES)


def unsourced(section: Section) -> list[str]:
    """Figures without a source: no result that is linked has them, and no command stands there."""
    results, commands = section.links(), section.commands()
    return [
        f"{section.page}, {section.title!r}: {figure!r} in {line.strip()!r}"
        for line, figure in section.figures()
        if not is_exempt(section.page, line, figure) and not any(is_in(figure, r) for r in results) and not commands
    ]


def test_every_figure_has_a_source() -> None:
    assert [x for s in sections() for x in unsourced(s)] == []


def test_no_exemption_is_left_over() -> None:
    lines = [(s.page, line) for s in sections() for line, _ in s.figures()]
    assert [e for e in FIGURES if not any(p == e[0] and e[1] in line for p, line in lines)] == []
    assert set(LONG) <= set(every_command())


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("It takes 1.234 ms.", ["1.234"]),
        ("It takes 1.234 ms ([rows](../bench/results/gpu_boids.md)).", ["1.234"]),
        ("It takes 1.295 ms ([rows](../bench/results/gpu_boids.md)).", []),
        ("It takes 1.234 ms: `lanewise ladder boids --quick`.", []),
        ("| size | ms |\n| --- | --- |\n| 12 | 7.125 |", ["7.125"]),
        ("A copy is 3.7 times as fast, and 61 % of it waits.", ["3.7", "61"]),
        ("```text\n1.234 ms\n```", []),
    ],
)
def test_what_counts_as_a_source(text: str, wanted: list[str]) -> None:
    assert [re.findall(r": '([\d.]+)' in", found)[0] for found in unsourced(Section("none.md", "", text))] == wanted


# ---------------------------------------------------------------- commands that give figures


def every_command() -> list[str]:
    """Of `lanewise` on a CPU, named in sections that have figures."""
    named = [c for s in sections() if any(s.figures()) for c in s.commands() if c.startswith("lanewise ")]
    return [c for c in dict.fromkeys(named) if "cuda" not in c]


@pytest.mark.slow
@pytest.mark.parametrize("command", [c for c in every_command() if c not in LONG])
def test_commands_that_give_figures_run(command: str, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    arguments = shlex.split(command)[1:]
    done = subprocess.run(
        [sys.executable, "-m", "lanewise", *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
