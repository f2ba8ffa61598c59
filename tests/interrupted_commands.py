"""A program that a test starts: `lanewise ARGUMENTS`, with Ctrl-C at a moment after lanewise's first lines.

`python -m tests.interrupted_commands MOMENT ARGUMENTS...`; moments as in `interrupted_calls`, whose modules this must
not import.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import Any


def main(moment: str, *arguments: str) -> None:
    kind, _, text = moment.partition(":")
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = ["lanewise", *arguments]
    asked, done = 0, False

    def hook(event: str, values: Any) -> None:
        nonlocal asked, done
        if done or event != "import" or threading.current_thread() is not threading.main_thread():
            return
        if "lanewise.support.command" not in sys.modules or not hasattr(
            sys.modules["lanewise.support.command"], "is_command"
        ):
            return
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            return  # its own first lines
        asked += 1
        if (kind, text) in (("import", str(asked)), ("module", values[0])):
            done = True
            signal.raise_signal(signal.SIGINT)

    sys.addaudithook(hook)
    import lanewise

    assert lanewise
    if kind == "time":
        timer = threading.Timer(float(text), os.kill, [os.getpid(), signal.SIGINT])
        timer.daemon = True
        timer.start()
    from lanewise.cli.main import program

    program()


if __name__ == "__main__":
    main(*sys.argv[1:])
