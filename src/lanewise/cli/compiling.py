"""A line on standard error while something compiles, and the warnings of caches as notes: what a command says besides its results."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from lanewise.runtime import compiling
from lanewise.runtime.cache import CacheWarning, keeps
from lanewise.runtime.compiling import Compilation

MOMENT = 1.0  # seconds of compiling that need no word
_ERASE = "\r\x1b[2K"


class CompilingLine:
    """Says what compiles, where it takes longer than a moment.

    At a terminal a line that goes away when it is done; above a progress bar, which holds the last line, one that stays. In a log one
    line, for the first kernel that takes long.
    """

    def __init__(self, moment: float = MOMENT) -> None:
        self._moment, self._shown, self._said = moment, False, False
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def __call__(self, compilation: Compilation) -> None:
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            if self._shown:
                sys.stderr.write(_ERASE)
                sys.stderr.flush()
                self._shown = False
            if not compilation.done:
                self._timer = threading.Timer(self._moment, self._say, [compilation])
                self._timer.daemon = True
                self._timer.start()

    def _say(self, compilation: Compilation) -> None:
        with self._lock:
            once = "once for this machine" if keeps() else "in every run, as there is no cache"
            text = f"compiling {compilation.name} (kernel {compilation.number}), {once}"
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
        if category.__name__ in (CacheWarning.__name__, "StoreWarning"):  # the store is imported where it is needed
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
