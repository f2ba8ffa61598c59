"""A line on standard error while something compiles, and the warnings of caches as notes: what a
command says besides its results.
"""

from __future__ import annotations

import math
import sys
import threading
import time
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from lanewise.runtime import compiling
from lanewise.runtime.cache import CacheWarning, keeps
from lanewise.runtime.compiling import Compilation
from lanewise.support.errors import FileWarning

MOMENT = 1.0  # seconds of compiling that need no word
_ERASE = "\r\x1b[2K"


class CompilingLine:
    """Says what compiles, where it takes longer than a moment: one kernel, or several one after the
    other.

    At a terminal a line that goes away when it is done; above a progress bar, which holds the last
    line, one that stays, for a kernel that takes long. In a log one line, for the first that
    the user waits for.
    """

    def __init__(self, moment: float = MOMENT) -> None:
        self._moment, self._shown, self._said = moment, False, False
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._running = 0
        # seconds of kernels before, this one's begin, the end of the last
        self._waited = 0.0
        self._since = 0.0
        self._until = -math.inf

    def __call__(self, compilation: Compilation) -> None:
        with self._lock:
            now = time.monotonic()
            self._running += -1 if compilation.done else 1
            if compilation.done and self._running > 0:
                return  # the line tells of one that others compile at the same time
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            if self._shown:
                sys.stderr.write(_ERASE)
                sys.stderr.flush()
                self._shown = False
            if compilation.done:
                self._running, self._until = 0, now
                self._waited += now - self._since
                return
            if self._running == 1:
                self._since = now
                if now - self._until > self._moment:
                    self._waited = 0.0
            spent = self._waited + now - self._since if sys.stderr is sys.__stderr__ else 0.0
            self._timer = threading.Timer(max(0.0, self._moment - spent), self._say, [compilation])
            self._timer.daemon = True
            self._timer.start()

    def _say(self, compilation: Compilation) -> None:
        with self._lock:
            if not self._running:  # it was done while this thread waited for the lock
                return
            once = "once per machine" if keeps() else "in every run, as there is no cache"
            count = (
                f"{compilation.number} of {compilation.of}"
                if compilation.of
                else f"{compilation.number}"
            )
            text = f"compiling kernel {count} ({compilation.name}), {once}"
            if sys.stderr is sys.__stderr__ and sys.stderr.isatty():
                self._shown = True
                sys.stderr.write(f"{_ERASE}{text} ...")
                sys.stderr.flush()
            elif sys.stderr is not sys.__stderr__ or not self._said:  # a progress bar, or a log
                print(text, file=sys.stderr)
            self._said = True


@contextmanager
def spoken() -> Generator[None]:
    """While a command runs, say what compiles (not with --quiet) and what is wrong with caches."""
    before = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *place: Any, **options: Any) -> None:
        if category is FileWarning or category.__name__ in (
            CacheWarning.__name__,
            "StoreWarning",
        ):  # the store is imported where it is needed
            print(f"note: {message}", file=sys.stderr)
        else:
            before(message, category, *place, **options)

    warnings.showwarning = show
    try:
        if "--quiet" in sys.argv:
            yield
        else:
            with compiling.observed(CompilingLine(MOMENT)):
                yield
    finally:
        warnings.showwarning = before
