"""The text of functions that stand in no file: `python -c`, a script on standard input, lines typed
at the prompt.

Python keeps none of it before version 3.13. It is looked up where it came from and compiled anew;
only text that gives the same code, line numbers included, is believed.
"""

from __future__ import annotations
from __future__ import annotations as postponed

import inspect
import linecache
import os
import stat
import sys
from collections.abc import Iterator
from itertools import pairwise
from types import CodeType

COMMAND, INPUT = "<string>", "<stdin>"  # what Python calls the file of each
POSTPONED = postponed.compiler_flag  # `from __future__ import annotations` was in force


def typed_lines(code: CodeType) -> tuple[str, list[str], int] | None:
    """Of the function with this code: what to call its file, its lines, and the number of the first
    one; None where the text is gone.

    `linecache` knows the text afterwards, so that errors can show its lines.
    """
    for name, text in _texts(code):
        try:
            module = compile(
                text, code.co_filename, "exec", code.co_flags & POSTPONED, dont_inherit=True
            )
        except (SyntaxError, ValueError):
            continue
        if code in _codes(module):
            lines = text.splitlines(keepends=True)
            linecache.cache[name] = (len(text), None, lines, name)
            return name, inspect.getblock(lines[code.co_firstlineno - 1 :]), code.co_firstlineno
    return None


def why_lost(code: CodeType) -> tuple[str, str]:
    """What a function was made of whose text is gone, and what to do instead; ("", "") where it is
    said to be in a file.
    """
    if code.co_filename == COMMAND:
        return (
            "text that the program executed, which is in no file",
            "write it to a file, and import that",
        )
    if code.co_filename != INPUT:
        return "", ""
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        mode = 0
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
        return (
            "a script that came through a pipe, which Python has read to its end and not kept",
            "name the file, `python script.py`, or let the shell read it, `python < script.py`; "
            "text that a program writes may be an "
            'argument, `python -c "$(program)"`',
        )
    return (
        "lines typed at the prompt, which keeps no history here",
        "write them to a file, or type them into IPython",
    )


def _texts(code: CodeType) -> Iterator[tuple[str, str]]:
    """Texts that the code may come from, each with a name for its file."""
    if code.co_filename == COMMAND:
        options = sys.orig_argv[1:]
        yield from (
            ("<python -c>", text) for option, text in pairwise(options) if option[-1:] == "c"
        )
    elif code.co_filename == INPUT:
        if (script := _redirected()) is not None:
            yield "<standard input>", script
        yield from ((f"<prompt, line {line}>", text) for line, text in _typed())


def _redirected() -> str | None:
    """The file that standard input comes from (`python < script.py`); None for a pipe or a
    terminal, which cannot be read again.
    """
    try:
        status = os.fstat(0)
        return os.pread(0, status.st_size, 0).decode() if stat.S_ISREG(status.st_mode) else None
    except (OSError, UnicodeDecodeError, AttributeError):
        # closed, not text, or a system without `pread`
        return None


def _typed() -> Iterator[tuple[int, str]]:
    """The definitions in the prompt's history, the last one first, each as Python was given it,
    with its line in the history.
    """
    if (readline := sys.modules.get("readline")) is None:
        return
    history = [
        readline.get_history_item(i) or ""
        for i in range(1, readline.get_current_history_length() + 1)
    ]
    for start in reversed(range(len(history))):
        if history[start].startswith(("@", "def ")):
            yield start + 1, "".join(f"{line}\n" for line in _statement(history[start:]))


def _statement(lines: list[str]) -> Iterator[str]:
    """Decorators, the head, and what is indented below it."""
    inside = False
    for line in lines:
        if inside and not line.startswith((" ", "\t", ")", "#")):
            return
        inside = inside or line.startswith("def ")
        yield line


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)
