"""Leases of memory that every call of something writes anew: one call at a time uses it, whichever
threads and streams call.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

from lanewise.support.errors import ArgumentError

_RENEWING = [threading.Lock()]  # held while a forked child makes its own locks


def _in_child() -> None:
    """The child begins with a lock that is free.

    It is not one that is released here: that would stay held where Ctrl-C comes between.
    """
    _RENEWING[0] = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


class Lease:
    """A lock that is held while work is launched on memory that every call of it writes anew.

    Threads wait for each other. On a GPU a launch is over before its work is: a call on another
    stream than the call before waits for that stream first (`follow`, given the last stream,
    returns the present one). In a forked child the lock is free. Where it was held when the process
    forked, the memory is half written for good, and entering raises `ArgumentError`.

    Ctrl-C may come wherever Python begins or ends a call. So nothing of Python's own stands between
    taking the lock and the block, nor between the block and giving it back: a lock that is not
    given back would stop every later call.
    """

    __slots__ = ("_broken", "_follow", "_lock", "_process", "_stream", "_what")

    def __init__(self, what: str, follow: Callable[[Any], Any] | None = None) -> None:
        self._what, self._follow = what, follow
        self._lock, self._process, self._broken = threading.Lock(), os.getpid(), False
        self._stream: Any = None

    @property
    def __enter__(self) -> Callable[[], object]:
        lock = self._of_process()
        if self._broken:
            raise ArgumentError(
                f"{self._what}: another thread was calling it when this process was forked, which "
                "can never finish here; make the call again in the child"
            )
        return lock.__enter__ if self._follow is None else self._enter_and_follow

    @property
    def __exit__(self) -> Callable[..., None]:  # noqa: PLE0302
        return self._of_process().__exit__

    def _of_process(self) -> threading.Lock:
        """The lock of this process: a forked child has its own."""
        if self._process != os.getpid():
            with _RENEWING[0]:
                if self._process != os.getpid():  # several threads of the child may come here
                    self._broken |= self._lock.locked()
                    self._lock = threading.Lock()
                    self._process = os.getpid()
        return self._lock

    def _enter_and_follow(self) -> None:
        assert self._follow is not None
        lock, taken = self._lock, list[bool]()
        try:
            taken.extend(map(lock.acquire, (True,)))  # at once: Ctrl-C comes before or behind it
            self._stream = self._follow(self._stream)
        except BaseException:
            if taken:
                lock.release()
            raise
