"""NVRTC in separate processes.

It holds one lock for all that it compiles, so that threads of one process wait for each other.

A process begins with the standard library alone (`nvrtc_child`) and takes some hundredths of a
second more than the compilation. It is a fresh one and no fork: there are threads here, and a
driver.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from threading import BoundedSemaphore
from typing import Any

from lanewise.runtime import nvrtc_child
from lanewise.runtime.devices import cpu_threads

_COMPILER = Path(nvrtc_child.__file__)
_INTERPRETER = re.compile("python")  # python3.12, python.exe


class NoProcess(Exception):
    """There is no compiler in a separate process; the reason is its text."""


@cache
def _seats() -> BoundedSemaphore:
    """As many processes at a time as there are cores."""
    return BoundedSemaphore(cpu_threads())


def compile_apart(asked: dict[str, Any], text: str) -> nvrtc_child.Answer:
    """What NVRTC makes of a text and what it says; see `nvrtc_child`.

    Raises `NoProcess` where a process cannot be had.
    """
    with _seats():
        output = _answer(nvrtc_child.written(asked, text.encode()))
    return nvrtc_child.read(output)


def _answer(message: bytes) -> bytes:
    """What a compiler process makes of a message."""
    command = [_python(), "-I", "-S", os.fspath(_COMPILER)]
    try:
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            try:
                output, said = process.communicate(message)
            except BaseException:  # Ctrl-C: nothing waits for it any more
                process.kill()
                raise
    except OSError as error:
        raise NoProcess(str(error)) from error
    if process.returncode:
        raise NoProcess(
            f"it ended with {process.returncode}: {said.decode(errors='replace').strip()}"
        )
    return output


def _python() -> str:
    """The interpreter; a program that Python is part of may be anything else."""
    if (
        not sys.executable
        or not _INTERPRETER.match(Path(sys.executable).name)
        or not _COMPILER.exists()
    ):
        raise NoProcess(f"{sys.executable or 'this program'} is no Python interpreter")
    return sys.executable
