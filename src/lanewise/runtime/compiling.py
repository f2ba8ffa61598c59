"""Who wants to know that a kernel is being compiled: nothing else takes seconds at the first start
and none at the second.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Compilation:
    """A kernel that a compiler begins with (`done` is False) or is through with.

    number: of the kernels that this process compiles. of: how many these are, as far as it is
    known: None where a program makes kernels as it meets them.
    """

    name: str
    number: int
    done: bool
    of: int | None = None


CompilationObserver = Callable[[Compilation], None]

LOGGER = logging.getLogger("lanewise.compiling")

_OBSERVERS: list[CompilationObserver] = []
_BEGUN: list[str] = []  # kernels that this process compiled, in order


@contextmanager
def observed(observer: CompilationObserver) -> Generator[None]:
    """Tell `observer` of every kernel that is compiled meanwhile, in any thread; what is read from
    the cache is none.
    """
    _OBSERVERS.append(observer)
    try:
        yield
    finally:
        _OBSERVERS.remove(observer)


def begin(name: str, waiting: int | None = None) -> None:
    """Say that the compiler begins with a kernel that no cache has; `waiting`: how many more are
    known to follow.
    """
    _BEGUN.append(name)
    LOGGER.info("compiling %s (kernel %d of this process)", name, len(_BEGUN))
    _tell(Compilation(name, len(_BEGUN), False, None if waiting is None else len(_BEGUN) + waiting))


def end(name: str) -> None:
    """Say that it is through with it."""
    _tell(Compilation(name, len(_BEGUN), True))


def count() -> int:
    """How many kernels this process has compiled, and not found in the cache."""
    return len(_BEGUN)


def _tell(compilation: Compilation) -> None:
    for observer in tuple(_OBSERVERS):
        observer(compilation)
