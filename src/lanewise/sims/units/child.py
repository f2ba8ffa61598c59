"""A unit's process: `lanewise` as users start it, with less priority if that is requested, and gone
when its parent is: its standard input ends then. On GPUs it takes turns with others.

    python -m lanewise.sims.units.child NICE CARDS MARK gravity run ...
"""

from __future__ import annotations

import os
import runpy
import sys
import threading
from pathlib import Path

from lanewise.sims.common.cards import TURN

GONE = 75  # "try again later", as sysexits.h has it


def _end_with_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(GONE)


def main() -> None:
    """Run the command of the arguments."""
    nice, cards, mark, *arguments = sys.argv[1:]
    if hasattr(os, "nice"):
        os.nice(int(nice))
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if cards:
        TURN.share(cards.split(","), Path(mark))
    sys.argv = ["lanewise", *arguments]
    runpy.run_module("lanewise", run_name="__main__")


if __name__ == "__main__":
    main()
