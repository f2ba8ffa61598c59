"""`lanewise`: a command as a process.

Errors of the user end with code 2 and one clear message, Ctrl-C with code 130 and one line.

Little is imported here: Ctrl-C must be taken care of before the commands, and what they need, are.
"""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
import threading
import traceback
from types import FrameType
from typing import Any

from lanewise.support.command import INTERRUPTED, leave, leave_when_interrupted
from lanewise.support.errors import LanewiseError
from lanewise.support.interrupts import interrupts_wait
from lanewise.support.naming import at_first_use

# objects that Python makes before it looks for garbage: modules and compilers make many that stay,
# 220,000 before a command's first result, and to look through them takes 40 ms
YOUNG = 300_000

__getattr__, __dir__ = at_first_use("lanewise.cli", {"commands": ("app",)})


class _Presses:
    """Python's handler of Ctrl-C, which remembers that it was pressed."""

    def __init__(self) -> None:
        self.seen = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.seen = True
        signal.default_int_handler(number, frame)

    def lost(self, what: Any) -> None:
        """The hook of exceptions that Python cannot raise where they come: Ctrl-C is pressed again
        a moment later.
        """
        if not issubclass(what.exc_type, KeyboardInterrupt):
            sys.__unraisablehook__(what)
            return
        again = threading.Timer(0.01, os.kill, [os.getpid(), signal.SIGINT])
        again.daemon = True
        again.start()


def program() -> None:
    """Run a command as a separate process, and end it.

    What lies in memory is not taken apart first, which takes a quarter of a second with a compiler
    loaded.
    """
    leave_when_interrupted()
    gc.set_threshold(YOUNG)
    _import_commands()
    presses = _Presses()
    if signal.getsignal(signal.SIGINT) is leave:
        signal.signal(signal.SIGINT, presses)
        sys.unraisablehook = presses.lost
    code: int | str | None = 0
    try:
        main()
    except SystemExit as end:
        code = end.code
        if isinstance(code, str):
            raise
    except BaseException:  # an interrupted library may say anything
        if _ranks() is None and not presses.seen:
            raise
        if _ranks() is None:
            leave()
        text = "interrupted" if presses.seen else traceback.format_exc().rstrip()
        code = _noted(text, INTERRUPTED if presses.seen else 1)
    if (ranks := _ranks()) is not None:
        code = int(ranks.end(code or 0))
    if signal.getsignal(signal.SIGINT) is presses:
        signal.signal(signal.SIGINT, signal.SIG_IGN if code == INTERRUPTED else leave)
    try:
        atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage]
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        # a closed pipe, a full disk: Python ends such a process with its own word and code
        sys.exit(code)
    if ranks is not None:
        ranks.leave(code)
    os._exit(code or 0)


def _ranks() -> Any:
    """The processes that run this command together, if there are several."""
    module = sys.modules.get("lanewise.runtime.ranks")
    return None if module is None else module.joined()


def _noted(text: str, code: int) -> int:
    """Say how this command ends, or let the first of several processes say it; the exit code."""
    if (ranks := _ranks()) is None:
        print(text, file=sys.stderr)
    else:
        ranks.report(text, code)
    return code


@interrupts_wait()
def _import_commands() -> Any:
    from lanewise.cli.commands import app
    from lanewise.cli.compiling import spoken

    return app, spoken


def main() -> None:
    """Run a command; the exit code is 0, 2 for an error of the user, 130 for Ctrl-C."""
    try:
        app, spoken = _import_commands()
        with spoken():
            app(prog_name="lanewise")
    except LanewiseError as error:
        sys.exit(_noted(f"error: {error}", 2))
    except MemoryError:
        sys.exit(_noted("error: the memory does not suffice; a smaller problem needs less", 2))
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        sys.exit(_noted(f"error: {place}{error.strerror or error}", 2))
    except KeyboardInterrupt:
        _interrupted()
    except SystemError as error:
        if not isinstance(error.__cause__, KeyboardInterrupt):
            raise
        _interrupted()  # within a library's compiled code, whose answer came with it
    except SystemExit as end:
        asked = end.__context__  # Typer ends a command that Ctrl-C has left without a word
        if asked is not None and isinstance(asked.__cause__, KeyboardInterrupt):
            _interrupted()
        raise


def _interrupted() -> None:
    sys.exit(_noted("interrupted", INTERRUPTED))


if __name__ == "__main__":
    program()
