"""Ctrl-C waits while modules are imported and kernels are compiled, and comes when that is done.

Some packages cannot be imported a second time when their first import was left in the middle, and
LLVM's callbacks swallow exceptions: a session would be broken by a Ctrl-C at the wrong moment.
Within the block the handler of Ctrl-C is replaced, in the main thread, by one that remembers; at
its end that handler (Python's own, a notebook's, an outer block's) is back, and is called.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from contextlib import ContextDecorator, suppress
from importlib import import_module
from types import FrameType, ModuleType
from typing import Any

WAITING = "interrupting as soon as what is being imported or compiled is done"


class interrupts_wait(ContextDecorator):
    """`with interrupts_wait():` or `@interrupts_wait()`: Ctrl-C waits for the end of the block, or
    of every call.

    Pressed again, it says that it waits. Every press is handed on, as a handler may count them: a
    second one may mean "at once". Blocks within blocks are fine: the outermost end decides. In
    other threads than the main one nothing changes, as Python runs handlers in the main thread; nor
    where Ctrl-C is ignored, or handled by no function of Python.
    """

    def __init__(self) -> None:
        self._before: Callable[[int, FrameType | None], Any] | None = None
        self._kept: list[tuple[int, FrameType | None]] = []
        self._mine: Any = None

    def _recreate_cm(self) -> interrupts_wait:
        return interrupts_wait()

    def __enter__(self) -> None:
        before = signal.getsignal(signal.SIGINT)
        if threading.current_thread() is threading.main_thread() and callable(before):
            self._before, self._mine = before, self._note
            signal.signal(signal.SIGINT, self._mine)

    def __exit__(self, *_: object) -> None:
        if self._before is None:
            return
        if signal.getsignal(signal.SIGINT) is self._mine:  # no other handler was set meanwhile
            signal.signal(signal.SIGINT, self._before)
        self._mine = None
        for press in self._kept:
            self._before(*press)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self._kept and not isinstance(getattr(self._before, "__self__", None), interrupts_wait):
            # the stream is being written to just now, or closed
            with suppress(RuntimeError, OSError, ValueError):
                print(WAITING, file=sys.stderr, flush=True)
        self._kept.append((number, frame))


def imported(name: str) -> ModuleType:
    """A module, imported whole: Ctrl-C waits."""
    with interrupts_wait():
        return import_module(name)
