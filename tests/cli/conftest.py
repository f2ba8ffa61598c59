"""The command line as a user meets it: arguments in; exit code, standard output and standard error back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lanewise.cli.main import main


@dataclass(frozen=True)
class Outcome:
    """What a command left."""

    code: int
    out: str
    err: str

    @property
    def last_json(self) -> dict[str, Any]:
        """The last line of output: JSON that any parser reads (Python's own NaN and Infinity are refused)."""

        def refuse(name: str) -> None:
            pytest.fail(f"{name} is not JSON")

        return json.loads(self.out.splitlines()[-1], parse_constant=refuse)


Command = Callable[..., Outcome]


@pytest.fixture
def lanewise(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Command:
    """`lanewise("gravity", "run", ...)` in this process, within an empty folder; anything but SystemExit escapes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")

    def call(*arguments: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["lanewise", *(str(a) for a in arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        captured = capsys.readouterr()
        code = end.value.code
        return Outcome(code if isinstance(code, int) else 0, captured.out, captured.err)

    return call


def start_process(folder: Path, *arguments: object) -> subprocess.Popen[str]:
    """The same in a process of its own, to be killed or interrupted."""
    source = Path(__file__).parents[2] / "src"
    return subprocess.Popen(
        [sys.executable, "-m", "lanewise.cli.main", *(str(a) for a in arguments)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(source)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
