"""The command line as a user meets it: arguments in; exit code, standard output and standard error back."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lanewise.cli import compiling
from lanewise.cli.main import main
from tests.cli.command import Command, Outcome


@pytest.fixture(autouse=True)
def ctrl_c() -> Iterator[None]:
    """Ctrl-C arrives: where tests run in the background of a shell, they and what they start would ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


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
