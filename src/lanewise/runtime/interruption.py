"""Ctrl-C that waits for whole steps: states change in place, so an interruption within a step would leave half of one."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any

Handler = Callable[[int, FrameType | None], Any]


class Interruption:
    """Keeps Ctrl-C back from the handler that it is meant for: Python's own, or that of a host program."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._kept: list[tuple[int, FrameType | None]] = []

    @property
    def asked(self) -> bool:
        """Whether Ctrl-C was pressed, and nobody was told so far."""
        return bool(self._kept)

    def note(self, number: int, frame: FrameType | None) -> None:
        """The first Ctrl-C is kept; with a second one both go on at once, for whoever cannot wait for the step to end."""
        self._kept.append((number, frame))
        if len(self._kept) > 1:
            signal.signal(signal.SIGINT, self._handler)  # also when what follows leaves by an exception
            self.deliver()

    def deliver(self) -> None:
        """Hand on what was kept. Python's own handler raises KeyboardInterrupt; another one may return, and work goes on."""
        kept, self._kept = self._kept, []
        for number, frame in kept:
            self._handler(number, frame)


@contextmanager
def deferred_interruption() -> Generator[Interruption]:
    """Within the block Ctrl-C is kept back until somebody calls `deliver`.

    In another thread than the main one nothing changes, as Python runs handlers in the main thread; nor where Ctrl-C is
    ignored, or handled by no function of Python.
    """
    before: Any = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield Interruption(signal.default_int_handler)
        return
    interruption = Interruption(before)
    signal.signal(signal.SIGINT, interruption.note)
    try:
        yield interruption
    finally:
        signal.signal(signal.SIGINT, before)
    if interruption.asked and before is not signal.default_int_handler:
        interruption.deliver()  # a host program may count on it, though all of the work is done
