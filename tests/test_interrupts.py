"""Ctrl-C while modules are imported and kernels compiled: it waits, comes as KeyboardInterrupt, and breaks nothing."""

from __future__ import annotations

import ast
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lanewise.support.command import is_command
from lanewise.support.interrupts import WAITING, interrupts_wait
from tests.cli.command import start_process
from tests.interrupted_calls import CALLS, digest
from tests.storeys import SOURCE

ROOT = SOURCE.parent.parent
COMMANDS: dict[str, tuple[str, ...]] = {
    "gravity": ("gravity", "run", "--bodies", "64", "--steps", "20000000", "--quiet"),
    "lbm": ("lbm", "run", "cavity", "--size", "16", "--steps", "20000000", "--no-until-steady", "--quiet"),
    "boids": ("boids", "run", "--agents", "300", "--steps", "20000000", "--quiet"),
    "tune": ("tune", "gravity", "--bodies", "4096"),
    "explain": ("explain", "boids"),
    "help": ("gravity", "run", "--help"),
}


ENDLESS = ("gravity", "lbm", "boids")


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Ctrl-C arrives: where tests run in the background of a shell it would be ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def press() -> None:
    signal.raise_signal(signal.SIGINT)


# ------------------------------------------------------------ the context


def test_it_comes_at_the_outermost_end(ctrl_c: None, capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[str] = []

    @interrupts_wait()
    def work() -> None:
        with interrupts_wait():
            press()
            seen.append("within")
        seen.append("between")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert seen == ["within", "between"]
    assert capsys.readouterr().err == ""


def test_pressed_again_it_says_that_it_waits(ctrl_c: None, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt):
        interrupts_wait()(lambda: [press(), press()])()
    assert capsys.readouterr().err == f"{WAITING}\n"


def test_every_press_is_handed_on(ctrl_c: None) -> None:
    """A handler may count them: the one around steps stops at once at the second."""
    seen: list[int] = []

    @interrupts_wait()
    def work() -> None:
        with interrupts_wait():
            press()
            press()
        press()

    signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    try:
        work()
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    assert seen == [signal.SIGINT] * 3


def test_it_comes_with_an_error_too(ctrl_c: None) -> None:
    @interrupts_wait()
    def work() -> None:
        press()
        raise ValueError("of the block")

    with pytest.raises(KeyboardInterrupt) as caught:
        work()
    assert isinstance(caught.value.__context__, ValueError)


def test_handlers_of_others_are_called_and_kept(ctrl_c: None) -> None:
    """Of a notebook or an event loop; and one that is set within the block stays."""
    seen: list[int] = []

    def handler(number: int, frame: object) -> None:
        seen.append(number)

    with pytest.MonkeyPatch.context():
        signal.signal(signal.SIGINT, handler)
        try:
            with interrupts_wait():
                press()
                assert seen == []
            assert seen == [signal.SIGINT]
            assert signal.getsignal(signal.SIGINT) is handler
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            with interrupts_wait():
                press()
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
            signal.signal(signal.SIGINT, handler)
            with interrupts_wait():
                signal.signal(signal.SIGINT, signal.default_int_handler)
        finally:
            kept = signal.signal(signal.SIGINT, signal.default_int_handler)
        assert kept is signal.default_int_handler


def test_in_another_thread_nothing_changes(ctrl_c: None) -> None:
    found: list[Any] = []

    @interrupts_wait()
    def work() -> None:
        found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    work()
    assert found[0] is signal.default_int_handler
    assert found[1] is not signal.default_int_handler


def test_what_is_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    for arguments, original, wanted in (
        (["/usr/bin/lanewise", "info"], ["python", "/usr/bin/lanewise", "info"], True),
        (["-m", "info"], ["python", "-m", "lanewise", "info"], True),
        (["-m"], ["python", "-Im", "lanewise.cli.main"], True),
        (["-m", "lanewise"], ["python", "-m", "pytest", "lanewise"], False),
        (["mine.py", "lanewise"], ["python", "mine.py", "lanewise"], False),
        ([""], ["python"], False),
    ):
        monkeypatch.setattr(sys, "argv", arguments)
        monkeypatch.setattr(sys, "orig_argv", original)
        assert is_command() is wanted, original


# ------------------------------------------------------------ every place

BREAKABLE = ("llvmlite", "cupy", "cuda", "h5py", "matplotlib", "PIL")
"""Packages that cannot be imported again after half an import, or that take so long that it happens."""


def _imported(node: ast.AST) -> list[str]:
    match node:
        case ast.Import():
            return [a.name for a in node.names]
        case ast.ImportFrom():
            return [str(node.module), *(f"{node.module}.{a.name}" for a in node.names)]
        case ast.Call(func=ast.Name(id="import_module"), args=[ast.Constant(value=str(name))]):
            return [name]
        case _:
            return []


@cache
def _files() -> dict[str, Path]:
    names = {".".join(f.relative_to(SOURCE.parent).with_suffix("").parts): f for f in SOURCE.rglob("*.py")}
    return {n.removesuffix(".__init__"): f for n, f in names.items()}


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse(_files()[module].read_text(encoding="utf-8"))


LATE = re.compile(r"^ +(from|import) |import_module\(", re.MULTILINE)


@cache
def _breakable(name: str) -> bool:
    """Whether an import of this name brings one of these packages along."""
    seen, open_names = set[str](), [name]
    while open_names:
        now = open_names.pop()
        if now.partition(".")[0] in BREAKABLE:
            return True
        if now in _files() and now not in seen:
            seen.add(now)
            open_names += [i for n in _tree(now).body for i in _imported(n)]
    return False


def _waits(node: ast.AST) -> bool:
    """Whether Ctrl-C waits within a function or a block."""
    match node:
        case ast.FunctionDef():
            marks: list[ast.expr] = node.decorator_list
        case ast.With():
            marks = [i.context_expr for i in node.items]
        case _:
            return False
    return any(
        isinstance(m, ast.Call) and isinstance(m.func, ast.Name) and m.func.id == "interrupts_wait" for m in marks
    )


def _unguarded(node: ast.AST, within: bool, waits: bool) -> Iterator[tuple[int, str]]:
    within = within or isinstance(node, ast.FunctionDef)
    waits = waits or _waits(node)
    if within and not waits:
        for name in _imported(node):
            if _breakable(name):
                yield getattr(node, "lineno", 0), name
                break
    for child in ast.iter_child_nodes(node):
        yield from _unguarded(child, within, waits)


def test_ctrl_c_waits_for_every_late_import() -> None:
    """Each import within a function that brings a package along which an interrupted import would break."""
    late = [m for m, f in _files().items() if LATE.search(f.read_text(encoding="utf-8"))]
    assert len(late) > 50
    wrong = [f"{m}:{line} {name}" for m in late for line, name in _unguarded(_tree(m), False, False)]
    assert not wrong, "with interrupts_wait() around them:\n" + "\n".join(wrong)


# ------------------------------------------------------------ first calls


def first_call(name: str, moment: str, cache_folder: Path | None = None) -> dict[str, Any]:
    """What `tests.interrupted_calls` says."""
    environment = {**os.environ, "LANEWISE_THREADS": "1"}
    if cache_folder is not None:
        environment["LANEWISE_CACHE_DIR"] = str(cache_folder)
    done = subprocess.run(
        [sys.executable, "-m", "tests.interrupted_calls", name, moment],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, (moment, done.stderr)
    said: dict[str, Any] = json.loads(done.stdout)
    assert done.stderr == ""
    return said


@pytest.mark.quick("elementwise-module:llvmlite.binding.executionengine")
@pytest.mark.parametrize(
    ("name", "moment"),
    [
        ("elementwise", "module:llvmlite.binding.executionengine"),
        ("boids", "module:h5py._hl.files"),
    ],
)
def test_a_first_call_that_is_interrupted_and_the_same_call_again(name: str, moment: str) -> None:
    found = first_call(name, moment)
    assert found["ended"] == "KeyboardInterrupt"
    assert found["digest"] == digest(CALLS[name]())


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_first_calls_at_many_moments(name: str, tmp_path: Path) -> None:
    """At modules that are requested, and at times, with an empty cache: 16 moments each."""
    whole = first_call(name, "never", tmp_path / "first")
    random = np.random.default_rng(len(name))
    moments = [f"import:{n}" for n in np.linspace(3, whole["asked"] - 1, 8).astype(int)]
    moments += [f"time:{s:.3f}" for s in random.uniform(0.01, whole["seconds"], 8)]
    for number, moment in enumerate(moments):
        found = first_call(name, moment, tmp_path / str(number))
        assert found["ended"] == "KeyboardInterrupt" or (moment.startswith("time") and found["ended"] == "finished")
        assert found["digest"] == whole["digest"], moment


# ------------------------------------------------------------ the command


def check_command(name: str, moment: str, folder: Path, *, cold: bool = False) -> None:
    """One line and code 130, whenever it comes; or the command was done before."""
    environment = {
        **os.environ,
        "LANEWISE_THREADS": "1",
        "COLUMNS": "100",
        "PYTHONPATH": f"{SOURCE.parent}{os.pathsep}{ROOT}",
    }
    if cold:
        environment["LANEWISE_CACHE_DIR"] = str(folder / f"cache-{moment}")
    done = subprocess.run(
        [sys.executable, "-m", "tests.interrupted_commands", moment, *COMMANDS[name]],
        cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    lines = [x for x in done.stderr.splitlines() if not x.startswith(("compiling kernel", "note: "))]
    if done.returncode == 0 and name not in ENDLESS:
        assert lines == []
        return
    assert done.returncode == 130, (moment, done.stderr)
    assert len(lines) == 1, (moment, done.stderr)
    assert lines[0].startswith("interrupted")


@pytest.mark.parametrize(
    ("name", "moment"),
    [
        ("gravity", "module:lazy_loader"), ("gravity", "module:typer"), ("boids", "module:llvmlite.binding.ffi"),
        pytest.param("lbm", "time:2.5", marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_an_interrupted_command_says_one_line(name: str, moment: str, tmp_path: Path) -> None:
    check_command(name, moment, tmp_path)


FIRST_LINES = """
import _signal, sys
sys.argv, before, seen = ["lanewise"], set(sys.modules), []
_signal.signal = lambda number, handler: seen.append(sorted(set(sys.modules) - before))
import lanewise
print(seen[0])
"""


def test_little_is_imported_before_ctrl_c_is_taken_care_of() -> None:
    """What comes there would end a command with Python's traceback."""
    done = subprocess.run([sys.executable, "-c", FIRST_LINES], cwd=ROOT, capture_output=True, text=True, check=True)
    support = ["lanewise.support", "lanewise.support.command", "lanewise.support.launchers"]
    assert ast.literal_eval(done.stdout) == ["__future__", "lanewise", *support]


@pytest.mark.slow
@pytest.mark.parametrize("cold", [False, True], ids=["warm", "cold"])
@pytest.mark.parametrize("name", COMMANDS)
def test_commands_at_many_moments(name: str, cold: bool, tmp_path: Path) -> None:
    """At modules that are requested, and at times: 16 moments each."""
    random = np.random.default_rng(len(name) + cold)
    moments = [f"import:{n}" for n in random.integers(1, 900, 8)]
    moments += [f"time:{s:.3f}" for s in random.uniform(0.0, 8.0 if cold else 4.0, 8)]
    for moment in moments:
        check_command(name, moment, tmp_path, cold=cold)


def test_a_process_of_its_own(tmp_path: Path) -> None:
    """As a shell starts it."""
    process = start_process(tmp_path, *COMMANDS["help"])
    out, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (0, "")
    assert "--bodies" in out
