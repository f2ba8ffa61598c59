"""NVRTC in processes of their own. It holds one lock for all that it compiles, so that threads of one process wait for each other.

A process begins with the standard library alone (`nvrtc_child`) and takes some hundredths of a second more than the compilation. It is
a fresh one and no fork: there are threads here, and a driver.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from threading import BoundedSemaphore

from lanewise.runtime import nvrtc_child
from lanewise.runtime.devices import cpu_threads

_COMPILER = Path(nvrtc_child.__file__)


class NoProcess(Exception):
    """There is no compiler in a process of its own; the reason is its text."""


@cache
def _seats() -> BoundedSemaphore:
    """As many processes at a time as there are cores."""
    return BoundedSemaphore(cpu_threads())


def compile_apart(text: str, name: str, options: list[bytes], version: str) -> tuple[bytes, str, str]:
    """The machine code of a text, what the compiler said, and what it failed for ("" where it did not).

    version: of the NVRTC that is meant. Raises `NoProcess` where a process cannot be had.
    """
    asked = {"library": _library(), "name": name, "options": [o.decode() for o in options], "version": version}
    with _seats():
        output = _answer(nvrtc_child.written(asked, text.encode()))
    told, code = nvrtc_child.read(output)
    if not code and not told["log"]:
        raise NoProcess(told["error"])
    return code, told["log"], told["error"]


def _answer(message: bytes) -> bytes:
    """What a compiler process makes of a message."""
    command = [_python(), "-I", "-S", os.fspath(_COMPILER)]
    try:
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            try:
                output, said = process.communicate(message)
            except BaseException:  # Ctrl-C: nobody waits for it any more
                process.kill()
                raise
    except OSError as error:
        raise NoProcess(str(error)) from error
    if process.returncode:
        raise NoProcess(f"it ended with {process.returncode}: {said.decode(errors='replace').strip()}")
    return output


def _python() -> str:
    """The interpreter; a program that Python is part of may be anything else."""
    if not sys.executable or not Path(sys.executable).name.startswith("python") or not _COMPILER.exists():
        raise NoProcess(f"{sys.executable or 'this program'} is no Python interpreter")
    return sys.executable


@cache
def _library() -> str:
    """The path of NVRTC, as `cuda.bindings` loads it."""
    try:
        from cuda.pathfinder import load_nvidia_dynamic_lib
    except ImportError as error:
        raise NoProcess("the package cuda-pathfinder is missing") from error
    try:
        path = load_nvidia_dynamic_lib("nvrtc").abs_path
    except RuntimeError as error:
        raise NoProcess(str(error)) from error
    if not path:
        raise NoProcess("where NVRTC lies is not known")
    return path
