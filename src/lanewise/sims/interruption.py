"""Ctrl-C that waits for whole steps: states change in place, so an interruption within a step would leave half of one."""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager


class Interruption:
    """Whether Ctrl-C was pressed."""

    asked = False

    def note(self, *_: object) -> None:
        """The first Ctrl-C is noted; a second one stops at once, for whoever cannot wait for the step to end."""
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


@contextmanager
def deferred_interruption() -> Generator[Interruption]:
    """Within the block Ctrl-C is noted instead of raised. Other threads, and handlers of a host program, stay as are."""
    interruption = Interruption()
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield interruption
        return
    signal.signal(signal.SIGINT, interruption.note)
    try:
        yield interruption
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
