"""No collection of cycles while trees are made.

Kernels have no cycles, and passes make so many nodes that a collector looks through all objects of
a process again and again: a third of their time, and far more in one that holds a large library.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock


@dataclass(slots=True)
class _Pauses:
    """How many there are at the moment, in all threads, and whether to collect after the last."""

    count: int = 0
    collects: bool = False
    lock: Lock = field(default_factory=Lock)


_pauses = _Pauses()


@contextmanager
def uncollected() -> Generator[None]:
    """Nothing is collected meanwhile; what a process had set before holds again afterwards."""
    with _pauses.lock:
        if not _pauses.count:
            _pauses.collects = gc.isenabled()
            gc.disable()
        _pauses.count += 1
    try:
        yield
    finally:
        with _pauses.lock:
            _pauses.count -= 1
            if not _pauses.count and _pauses.collects:
                gc.enable()
