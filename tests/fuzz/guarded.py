"""A process that answers questions one after the other, and may crash or hang: then the caller learns it and a new one
starts.

The module that runs in it calls `serve(answer)`. Questions and answers are JSON, one line each, through pipes of their
own: what the process prints goes to a file, and what it works on (`keep`) to another one. Both are part of the message
about a crash: the end of what was printed before it, and where Python stood. Of a process that hangs the message says
what each of its threads waits for, too.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Self

import lanewise

ROOT = Path(__file__).parents[2]
START_LIMIT = 120.0  # seconds to import what it needs
TAIL = 3000  # characters of what a process printed that a message shows
STACKS = 8000  # characters of the stacks of its threads
FATAL = "Fatal Python error"  # what faulthandler begins with
MODULES = "\nExtension modules: "  # and what it ends with: thousands of characters that say nothing
_KEPT: list[Path] = []  # in the guarded process: the file for what it works on


class GuardedError(Exception):
    """The process crashed or hung; it is gone. shown: what it worked on."""

    def __init__(self, what: str, shown: str) -> None:
        super().__init__(what)
        self.shown = shown


class Guarded:
    """A guarded process, started when it is first asked; `with` ends it. It has a compile cache of its own, thrown away
    at its end.
    """

    def __init__(self, module: str, arguments: tuple[str, ...] = (), *, memory: int = 0) -> None:
        self._command = (module, *arguments)
        self._memory = memory
        self._process: subprocess.Popen[bytes] | None = None
        self._answers: IO[bytes] | None = None
        self._folder: Path | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def ask(self, question: dict[str, Any], limit: float) -> dict[str, Any]:
        """The answer; raises `GuardedError` for a process that ends or says nothing for `limit` seconds."""
        process = self._running()
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(question).encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            pass  # it ended: reading says how
        line = self._line(time.monotonic() + limit)
        if line.endswith(b"\n"):
            return json.loads(line)
        what = self._hung(limit) if process.poll() is None and not self._ended else self._crashed()
        shown = self._written("shown")
        self.stop()
        raise GuardedError(what, shown)

    def stop(self) -> None:
        """End the process and whatever it started."""
        if self._process is not None:
            _kill_group(self._process)
        for stream in (self._answers, self._process.stdin if self._process else None):
            if stream is not None:
                try:
                    stream.close()
                except BrokenPipeError:
                    pass
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._process = self._answers = self._folder = None

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is not None:
            return self._process
        self._folder = Path(tempfile.mkdtemp(prefix="lanewise-fuzz-"))
        self._ended = False
        read, write = os.pipe()
        paths = [str(ROOT), str(Path(lanewise.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(p for p in paths if p),
            "LANEWISE_CACHE_DIR": str(self._folder / "cache"),
            "LANEWISE_GUARDED": f"{write} {self._memory} {self._folder / 'shown'}",
        }
        with (self._folder / "output").open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-u", "-X", "faulthandler", "-m", *self._command], cwd=ROOT, env=environment, pass_fds=[write],
                stdin=subprocess.PIPE, stdout=output, stderr=output, start_new_session=True,
            )  # fmt: skip
        os.close(write)
        self._answers = os.fdopen(read, "rb", buffering=0)
        self._line(time.monotonic() + START_LIMIT)  # it is ready; one that could not start is noticed by who asks it
        return self._process

    def _line(self, until: float) -> bytes:
        """One line of the answers, or what of it came before the end or the limit."""
        assert self._answers is not None
        line = b""
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([self._answers], [], [], max(0.0, until - time.monotonic()))
            piece = self._answers.read(65536) if ready else b""
            if not piece:
                self._ended = bool(ready)
                break
            line += piece
        return line

    def _hung(self, limit: float) -> str:
        assert self._process is not None
        waits = _waits(self._process.pid)
        self._process.send_signal(signal.SIGABRT)  # faulthandler prints where every thread stands
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            pass
        return f"HANGS: no answer for {limit:.0f} s\n{self._printed()}\n{waits}"

    def _crashed(self) -> str:
        assert self._process is not None
        try:
            code = self._process.wait(10)
        except subprocess.TimeoutExpired:
            return f"CRASHED: it closed its answers\n{self._printed()}"
        return f"CRASHED: the process ended with {signal.Signals(-code).name if code < 0 else code}\n{self._printed()}"

    def _printed(self) -> str:
        """The end of what it printed, and where each thread stood."""
        said, fatal, stacks = self._written("output").rpartition(FATAL)
        if not fatal:
            return stacks[-TAIL:]
        stacks = stacks.partition(MODULES)[0]
        return f"{said[-TAIL:]}{fatal}{stacks if len(stacks) <= STACKS else stacks[:STACKS] + ' ...'}"

    def _written(self, name: str) -> str:
        assert self._folder is not None
        file = self._folder / name
        return file.read_text(errors="replace") if file.exists() else ""


def _waits(pid: int) -> str:
    """What each thread of a process and of its children does, as Linux tells: its name, its state, seconds of a core,
    and the function of the kernel that it sleeps in.
    """
    lines: list[str] = []
    for task in sorted(Path("/proc").glob("[0-9]*/task/[0-9]*")):
        try:
            if os.getsid(int(task.parts[2])) != pid:  # it leads a session of its own
                continue
            name, _, rest = (task / "stat").read_text().rpartition(")")
            fields, where = rest.split(), (task / "wchan").read_text()
        except OSError:  # it ended
            continue
        seconds = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        lines.append(
            f"process {task.parts[2]}, {name.partition('(')[2]}: state {fields[0]}, {seconds:.1f} s, in {where}"
        )
    return "\n".join(lines)


def keep(text: str) -> None:
    """In a guarded process: what it works on, for the message about its end. Elsewhere nothing."""
    if _KEPT:
        _KEPT[0].write_text(text, encoding="utf-8")


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def serve(answer: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """In the guarded process: answer every question that comes, until there are none."""
    asked, _, shown = os.environ.pop("LANEWISE_GUARDED").rpartition(" ")
    channel, memory = (int(x) for x in asked.split())
    _KEPT[:] = [Path(shown)]
    os.set_inheritable(channel, False)
    if memory:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    os.write(channel, b"ready\n")
    for line in sys.stdin.buffer:
        keep("")
        os.write(channel, json.dumps(answer(json.loads(line))).encode() + b"\n")
