"""What a command says while kernels compile: on standard error, where it takes longer than a moment, and once in a log."""

from __future__ import annotations

import io
import json
import logging
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from lanewise.cli.compiling import CompilingLine, spoken
from lanewise.runtime import cache, compiling
from lanewise.runtime.cache import CacheWarning
from lanewise.runtime.compiling import Compilation


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def compile_slowly(line: CompilingLine, *names: str) -> None:
    for number, name in enumerate(names, 1):
        line(Compilation(name, number, False))
        timer = line._timer
        assert timer is not None
        timer.join()  # as long as the moment takes
        line(Compilation(name, number, True))


def test_a_terminal_shows_what_compiles_and_forgets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(sys, "__stderr__", screen)
    monkeypatch.setattr(cache, "_SAID", set[str]())
    compile_slowly(CompilingLine(0.01), "collide", "walls")
    assert [x for x in screen.getvalue().split("\r\x1b[2K") if x] == [
        "compiling kernel 1 (collide), once per machine ...", "compiling kernel 2 (walls), once per machine ...",
    ]  # fmt: skip
    assert screen.getvalue().endswith("\r\x1b[2K")


def test_the_line_says_how_many_there_are_where_that_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(sys, "__stderr__", screen)
    monkeypatch.setattr(cache, "_SAID", set[str]())
    line = CompilingLine(0.01)
    for number, name in enumerate(("collide", "walls"), 3):  # by two processes at the same time
        line(Compilation(name, number, False, 12))
        assert line._timer is not None
        line._timer.join()
    line(Compilation("collide", 3, True, 12))
    assert screen.getvalue().endswith("compiling kernel 4 of 12 (walls), once per machine ...")
    line(Compilation("walls", 4, True, 12))
    assert screen.getvalue().endswith("\r\x1b[2K")


def test_kernels_that_each_take_a_moment_are_told_of_together(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(sys, "__stderr__", screen)
    clock = iter([0.0, 0.6, 0.6, 1.2, 1.2, 1.3])
    monkeypatch.setattr("lanewise.cli.compiling.time.monotonic", lambda: next(clock))
    line = CompilingLine(1.0)
    waits: list[float] = []
    for number, name in enumerate(("a", "b", "c"), 1):
        line(Compilation(name, number, False))
        assert line._timer is not None
        waits.append(line._timer.interval)
        line._timer.cancel()
        line(Compilation(name, number, True))
    assert waits == pytest.approx([1.0, 0.4, 0.0])


def test_what_was_done_before_its_word_is_not_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    line = CompilingLine(1000)
    line(Compilation("k", 1, False))
    line(Compilation("k", 1, True))
    line._say(Compilation("k", 1, False))
    assert screen.getvalue() == ""


def test_a_log_has_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    monkeypatch.setattr(sys, "__stderr__", log)
    monkeypatch.setattr(cache, "_SAID", {"unwritable"})
    compile_slowly(CompilingLine(0.01), "collide", "walls")
    assert log.getvalue() == "compiling kernel 1 (collide), in every run, as there is no cache\n"


def test_what_takes_a_moment_needs_no_word(capsys: pytest.CaptureFixture[str]) -> None:
    line = CompilingLine(1000)
    for done in (False, True, False):
        line(Compilation("k", 1, done))
    assert line._timer is not None
    line._timer.cancel()
    assert capsys.readouterr().err == ""


def test_programs_can_watch_and_log(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[Compilation] = []
    with compiling.observed(seen.append), caplog.at_level(logging.INFO, "lanewise"):
        compiling.begin("k")
        compiling.end("k")
        compiling.begin("one of several", 7)
    compiling.begin("unseen")
    assert [(c.name, c.done) for c in seen] == [("k", False), ("k", True), ("one of several", False)]
    assert (seen[0].of, seen[2].of) == (None, seen[2].number + 7)
    assert [r.message for r in caplog.records] == [
        f"compiling {c.name} (kernel {c.number} of this process)" for c in (seen[0], seen[2])
    ]


def test_caches_speak_in_notes(capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        with spoken():
            warnings.warn("the cache is full", CacheWarning, stacklevel=1)
    assert capsys.readouterr().err == "note: the cache is full\n"


def test_a_run_without_a_cache_says_so_and_ends_well(tmp_path: Path) -> None:
    """A folder cannot be made where there is a file. Before, this was an error; and standard output has nothing but JSON."""
    (tmp_path / "file").write_text("")
    command = [sys.executable, "-m", "lanewise.cli.main", "gravity", "run", "--bodies", "64", "--steps", "2", "--json"]
    environment = {**os.environ, "LANEWISE_CACHE_DIR": str(tmp_path / "file" / "cache"), "LANEWISE_TUNED": "off"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["steps"] == 2
    notes = [x for x in done.stderr.splitlines() if x.startswith("note: the cache of compiled kernels")]
    assert len(notes) == 1
    assert "cannot be written: Not a directory; every process compiles" in notes[0]
