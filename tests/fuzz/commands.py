"""Commands in this process or in a forked one, and small runs of every product to damage and to kill."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import h5py
import numpy as np

from lanewise.cli.main import main
from lanewise.launch import support

MEMORY = "/dev/shm"
SCRATCH = MEMORY if os.access(MEMORY, os.W_OK) else None
"""Where cases work: in memory if possible, for every checkpoint waits for its disk."""

RAISED = 71
"""The exit code of a forked command that raised what no command may raise."""

RUNS: dict[str, tuple[object, ...]] = {
    "gravity": ("--bodies", 8, "--softening", 0.05, "--dt", 0.01),
    "lbm": ("karman", "--size", 4),
    "boids": ("--agents", 8, "--every", 2, "--search", "all-pairs"),
}  # fmt: skip


@dataclass(frozen=True)
class Ended:
    """How a command ended: its code, and what it said on standard error."""

    code: int
    errors: str


@contextlib.contextmanager
def folder(path: Path) -> Iterator[None]:
    """Work in this folder within the block."""
    before = Path.cwd()
    os.chdir(path)
    try:
        yield
    finally:
        os.chdir(before)


def command(*arguments: object) -> Ended:
    """`lanewise ARGUMENTS` in this process. What it raises but SystemExit escapes."""
    errors = io.StringIO()
    argv = ["lanewise", *(str(a) for a in arguments)]
    with (
        mock.patch.object(sys, "argv", argv),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(errors),
    ):
        try:
            main()
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
    return Ended(code, errors.getvalue())


def forked(log: Path, *arguments: object) -> int:
    """Start the command in a forked process, which has every kernel that this one has; returns its number."""
    parent = os.getpid()
    both = {signal.SIGINT, signal.SIGTERM}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, both)  # until the child is where an interruption ends it
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads: the pool makes its own anew
            child = os.fork()
        if child:
            return child
    finally:
        if os.getpid() == parent:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
    code = RAISED
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, both)
        ended = command(*arguments)
        code = ended.code
        with log.open("a") as stream:
            stream.write(ended.errors)
    except KeyboardInterrupt:
        code = 130
    except BaseException:
        with log.open("a") as stream:
            traceback.print_exc(file=stream)
    finally:
        os._exit(code)


def wait(child: int, seconds: float) -> int:
    """The exit code of a forked process, negative for a signal; one that goes on for too long is killed, and an
    AssertionError.
    """
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        number, status = os.waitpid(child, os.WNOHANG)
        if number:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise AssertionError(f"a command goes on for more than {seconds:g} s")


def state(path: Path) -> dict[str, Any]:
    """Every dataset of a file, and every attribute that decides how a run goes on."""
    found: dict[str, Any] = {}
    with h5py.File(path) as file:

        def visit(name: str, held: Any) -> None:
            if isinstance(held, h5py.Dataset):
                found[name] = (held.dtype.str, held.shape, np.asarray(held[()]).tobytes())

        file.visititems(visit)
        kept = file["lanewise"].attrs
        found |= {name: np.asarray(kept[name]).tobytes() for name in ("step", "clock", "settings") if name in kept}
    return found


def remember_programs() -> None:
    """Keep what kernels become, for this process and those forked from it: what is compiled is not what these campaigns
    look at.
    """
    build: Any = support.built
    if getattr(build, "remembers", False):
        return
    known: dict[str, Any] = {}

    def remembered(reference: Any, plan: Any, device: str, *begin: Any) -> Any:
        key = repr((reference, plan, device))
        if key not in known:
            known[key] = build(reference, plan, device, *begin)
        return known[key]

    remembered.remembers = True  # type: ignore[attr-defined]
    support.built = remembered
