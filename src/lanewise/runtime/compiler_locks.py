"""The locks of compilers for CPUs, and forks, which find them free."""

from __future__ import annotations

import os
import signal
import threading
from functools import cache
from typing import Any

from lanewise.support.interrupts import interrupts_wait

# of kernels; who watches compilations may load one
LOADING = threading.RLock()


@cache
@interrupts_wait()
def keep_over_forks() -> None:
    """A fork waits until no thread compiles: the child would find the compiler locked, half way
    through something, for ever.

    Ctrl-C waits until the locks are free again: Python continues after an exception of these
    functions, and the locks would stay taken.
    """
    from llvmlite.binding import ffi

    library: Any = ffi.lib
    llvm = library._lock
    own = threading.local()

    def hold() -> None:
        own.mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        LOADING.acquire()  # in the order in which loading and compiling take them
        llvm.__enter__()

    def let_go() -> None:
        llvm.__exit__(None, None, None)
        LOADING.release()
        signal.pthread_sigmask(signal.SIG_SETMASK, own.mask)

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=hold, after_in_parent=let_go, after_in_child=let_go)
