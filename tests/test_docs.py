"""The documents are true: their Python prints what they show, command lines parse, figures were measured."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from docs.generator.scenes import SCENES
from lanewise.cli.main import app
from tests.markdown import commands, differences, run_blocks

ROOT = Path(__file__).parent.parent
# docs/tuning.md has a test of its own in tests/tuning, beside the store that it writes to; docs/walkthrough.md is
# generated, and compared by
# tests/test_architecture.py; docs/README.md is the index, docs/index.md that of the site, docs/glossary.md has no code.
DOCUMENTS = tuple(
    f"docs/{n}.md"
    for n in (
        "install", "decorators", "determinism", "errors", "limits", "interface", "language", "reductions", "threadwise-plans", "recipes", "methods", "layouts", "arrays", "gravity", "passes", "explain", "ladders", "ladder-tutorial", "ladder-layouts", "ladder-memory", "ladder-lbm", "ladder-boids", "ladder-waves", "ladder-compiler", "ladder-tree", "ladder-gravity-mesh", "segmentwise", "fields", "sitewise", "threadwise", "searches", "far-fields", "lbm", "lbm_obstacles_units", "profile", "view", "flocks", "waves", "gradients", "own-loops", "mesh", "units",
    )
)  # fmt: skip
OTHERS = {f"docs/coming_from/{p.name}" for p in (ROOT / "docs/coming_from").glob("*.md")}
DOCUMENTS = (*DOCUMENTS, *sorted(OTHERS))


def test_every_document_is_read() -> None:
    assert {
        *DOCUMENTS,
        "docs/tuning.md",
        "docs/walkthrough.md",
        "docs/README.md",
        "docs/glossary.md",
        "docs/index.md",
    } == {f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md")} | OTHERS


def test_the_index_names_every_document() -> None:
    index = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\]\(([\w-]+\.md)\)", index)) == {p.name for p in (ROOT / "docs").glob("*.md")} - {
        "README.md",
        "index.md",
    }


# Sites are also on the page of flows, what recipes use on the pages of its own.
LONG = (
    "docs/far-fields.md",
    "docs/fields.md",
    "docs/methods.md",
    "docs/recipes.md",
    "docs/searches.md",
    "docs/sitewise.md",
)


# Tuning on the page of searches takes most of its time, and has tests of its own.
TUNING = dict.fromkeys(("docs/far-fields.md", "docs/searches.md"), r"\btun(e|ing)\b")


@pytest.mark.parametrize("document", [pytest.param(d, marks=[pytest.mark.slow] * (d in LONG)) for d in DOCUMENTS])
def test_python_blocks_print_what_is_shown(document: str, tmp_path: Path) -> None:
    _print_what_is_shown(document, tmp_path, TUNING.get(document))


@pytest.mark.slow
@pytest.mark.parametrize("document", TUNING)
def test_blocks_that_tune_print_what_is_shown(document: str, tmp_path: Path) -> None:
    _print_what_is_shown(document, tmp_path, None)


def _print_what_is_shown(document: str, folder: Path, without: str | None) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    ran = run_blocks(text, folder / "physics.py", without=without)
    wrong = [differences(block, printed) for block, printed in ran]
    assert not any(wrong), "\n".join(filter(None, wrong))


def _command_lines() -> list[str]:
    scenes = {line for s in SCENES.values() for line in (s.before, s.command) if line}
    texts = ((ROOT / document).read_text(encoding="utf-8") for document in ("README.md", *DOCUMENTS))
    return sorted(
        scenes
        | {line for text in texts for line in commands(text, "lanewise")}
        - {f"lanewise {s} run --help" for s in ("gravity", "lbm", "boids")}
    )


@pytest.mark.parametrize("line", _command_lines())
def test_command_lines_parse(line: str) -> None:
    _, *arguments = shlex.split(line)
    command, context, arguments = _found(arguments)
    # raises for an option that does not exist or a value that does not fit; a command keeps the names of --help that it
    # first had, which are those of all
    command.make_context("lanewise", arguments, parent=context)


def _found(words: list[str]) -> tuple[Any, typer.Context, list[str]]:
    """The command that these words begin with, where it stands, and what they leave; raises for a command that does not
    exist.
    """
    command: Any = typer.main.get_command(app)
    context = typer.Context(command, info_name="lanewise", **command.context_settings)
    while words and not words[0].startswith("-") and hasattr(command, "resolve_command"):
        _, command, words = command.resolve_command(context, words)
    return command, context, words


def _named_commands() -> list[str]:
    """`lanewise WORD ...` in running text, up to the first word that is no command's name."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    texts = (p.read_text(encoding="utf-8") for p in pages)
    return sorted({m.strip() for text in texts for m in re.findall(r"`lanewise ((?:[a-z][a-z-]+ ?)+)", text)})


@pytest.mark.parametrize("words", _named_commands())
def test_commands_in_running_text_exist(words: str) -> None:
    _found(words.split())


def test_promotion_table_is_the_compilers() -> None:
    from lanewise.language import types as t

    text = (ROOT / "docs/language.md").read_text(encoding="utf-8")
    named = {scalar.name: scalar for scalar in t.SCALARS}
    rows = re.findall(r"^\| \*\*(\w+)\*\* \| (.+) \|$", text, re.MULTILINE)
    columns = [name for name, _ in rows]
    assert set(columns) == set(named)
    for name, row in rows:
        for other, result in zip(columns, row.split(" | "), strict=True):
            assert t.promote(named[name], named[other]) == named[result]


def test_json_keys_are_those_of_the_summary() -> None:
    from lanewise.sims.gravity import runner

    summary = runner.start(ic="two-body", steps=1).finish()
    text = (ROOT / "docs/gravity.md").read_text(encoding="utf-8")
    table = text.partition("| JSON key |")[2].partition("\n\n")[0]
    keys = [key for row in table.splitlines()[2:] for key in re.findall(r"`(\w+)`", row.split("|")[1])]
    assert sorted(keys) == sorted(summary)


def test_initial_conditions_and_integrators_are_all_named() -> None:
    from lanewise.sims.gravity import INITIAL_CONDITIONS, INTEGRATORS

    text = (ROOT / "docs/gravity.md").read_text(encoding="utf-8")
    for name in (*INITIAL_CONDITIONS, *INTEGRATORS):
        assert f"| `{name}` |" in text


def test_cpu_figures_of_the_layouts_are_those_of_the_benchmark() -> None:
    text = (ROOT / "docs/layouts.md").read_text(encoding="utf-8")
    results = (ROOT / "bench/results/cpu_gravity.md").read_text(encoding="utf-8")
    shown = re.search(r"^\| (7\.[\d. |]+) \|$", text, re.MULTILINE)
    assert shown is not None
    assert all(f"{rate}e+09" in results for rate in shown[1].split(" | "))
