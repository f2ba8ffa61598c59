"""The command line as a user meets it: arguments in; exit code, standard output and standard error back."""

from __future__ import annotations

import functools
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from lanewise.cli import compiling
from lanewise.cli.main import app, main
from tests.cli.command import Command, Outcome


@pytest.fixture(autouse=True)
def ctrl_c() -> Iterator[None]:
    """Ctrl-C arrives: where tests run in the background of a shell, they and what they start would ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True, scope="session")
def _commands_made_once() -> Iterator[None]:
    """The commands of a product do not change, and take a twentieth of a second to make."""
    plain = typer.main.get_command
    made = functools.cache(plain)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(typer.main, "get_command", lambda each: plain(each) if each is app else made(each))
        yield


@pytest.fixture
def lanewise(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Command:
    """`lanewise("gravity", "run", ...)` in this process, within an empty folder; anything but SystemExit escapes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(
        compiling, "MOMENT", 3600.0
    )  # whether something takes longer than a moment depends on the machine

    def call(*arguments: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["lanewise", *(str(a) for a in arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        captured = capsys.readouterr()
        code = end.value.code or 0
        assert isinstance(code, int)
        return Outcome(code, captured.out, captured.err)

    return call
