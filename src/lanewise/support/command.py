"""The first lines of a command: from here on Ctrl-C ends it with one line, whatever is being
imported. Little is imported before that.
"""

from __future__ import annotations

import os
import sys

from lanewise.support.launchers import started

TYPE_CHECKING = False  # that of `typing`, which takes longer than all of this
if TYPE_CHECKING:
    import signal
    from types import FrameType
else:
    import _signal as signal  # what `signal` wraps: that imports `enum`, which takes far longer

INTERRUPTED = 130
COMMANDS = ("lanewise", "lanewise.cli.main")


def is_command() -> bool:
    """Whether this process runs `lanewise` or `python -m lanewise`, and not a program that uses
    lanewise.
    """
    # Python looks for the module: its name stands behind a group of options that ends in m
    if sys.argv[:1] == ["-m"]:
        before = zip(sys.orig_argv, sys.orig_argv[1:], strict=False)
        return next(
            (
                name in COMMANDS
                for option, name in before
                if option[:1] == "-" and option[-1:] == "m"
            ),
            False,
        )
    name = os.path.basename(sys.argv[0]) if sys.argv else ""
    return name in ("lanewise", "lanewise.exe", "lanewise-script.py")


def leave(number: int = signal.SIGINT, frame: FrameType | None = None) -> None:
    """The handler of Ctrl-C while a command has nothing to put in order: one line, of several
    processes that of the first, and the process ends.
    """
    del number, frame
    found = started()
    if found is None or found.rank == 0:
        os.write(2, b"interrupted\n")
    os._exit(INTERRUPTED)


def leave_when_interrupted() -> None:
    """Let Ctrl-C end this process with one line, where it is not ignored."""
    if signal.getsignal(signal.SIGINT) in (signal.default_int_handler, leave):
        signal.signal(signal.SIGINT, leave)
