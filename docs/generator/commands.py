"""`--help` of every command."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import typer
from typer.testing import CliRunner

from lanewise.cli.main import app
from lanewise.sims import PRODUCTS

COLUMNS = 88


def pages() -> dict[str, str]:
    """The page of the commands."""
    lines = [
        "# Commands",
        "",
        "`lanewise` and its subcommands, as `--help` prints them.",
        "",
        "Every command ends with the code 0 if it succeeded, 2 if an input was wrong (one line on "
        "standard error says what to change), 1 if lanewise itself failed, and 130 after Ctrl-C.",
        "",
    ]
    root: Any = typer.main.get_command(app)
    for product in PRODUCTS:  # whose own commands are loaded when one of them runs
        below = import_module(f"lanewise.sims.{product}.command").app
        root.add_command(typer.main.get_command(below), product)
    every = list(_commands(root, ("lanewise",)))
    for words in every:
        lines += [f"## {' '.join(words)}", "", "```text", help_of(words[1:]), "```", ""]
    return {"commands.md": "\n".join(lines).rstrip() + "\n"}


def _commands(command: Any, words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """A command and those below it, by the words that one types."""
    yield words
    for name, below in sorted(getattr(command, "commands", {}).items()):
        if not below.hidden:
            yield from _commands(below, (*words, name))


def help_of(words: tuple[str, ...]) -> str:
    """What `lanewise WORDS --help` prints on 100 columns, without colour."""
    plain = {"COLUMNS": str(COLUMNS), "NO_COLOR": "1", "TERM": "dumb"}
    run = CliRunner(env=plain).invoke(app, [*words, "--help"], prog_name="lanewise")
    if run.exit_code:
        raise RuntimeError(f"lanewise {' '.join(words)} --help: {run.output}")
    return "\n".join(line.rstrip() for line in run.output.strip("\n").splitlines())
