"""Calls like an earlier one: only sizes, addresses and numbers are new.

the very same again  records where they were, the same numbers: only results are new (`again.py`)
the same kind        records, layouts, devices and types are the same; sizes are looked up
anything else        the way of a first call, which also says what is wrong with it
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, Protocol, TypeVar

from lanewise.launch.slots import Given
from lanewise.launch.tuned_plans import store_enabled

MOST = 8  # kinds of calls that a kernel remembers


Settles = Callable[[tuple[Any, ...], Mapping[str, Any]], bool]
"""Chooses the layout of arguments that leave it open, and says whether there were any: they may
lie as those of an earlier call now.
"""


class Match(Protocol):
    """The arguments of a call like an earlier one; None for another one."""

    def __call__(
        self,
        arguments: tuple[Any, ...],
        named: Mapping[str, Any],
        /,
        *,
        makes: bool = True,
        asks: bool = True,
    ) -> Given | None: ...


class Known(Protocol):
    """What is kept of calls that can be made again."""

    @property
    def match(self) -> Match: ...


K = TypeVar("K", bound=Known)


class Repeated(Generic[K]):
    """The calls of one kernel that can be made again, the last one first."""

    __slots__ = ("_entries", "_tuned")

    def __init__(self) -> None:
        self._entries: tuple[K, ...] = ()
        self._tuned = True  # whether they follow what was tuned

    def find(
        self,
        arguments: tuple[Any, ...],
        named: Mapping[str, Any],
        settles: Settles | None = None,
        *,
        makes: bool = True,
    ) -> tuple[K, Given] | None:
        """A call like this one, and its arguments. makes: whether it makes its results."""
        if self._tuned is not (tuned := store_enabled()):
            self._entries, self._tuned = (), tuned
        for entry in self._entries:
            if (matched := entry.match(arguments, named, makes=makes)) is not None:
                return entry, matched
        if settles is None or not settles(arguments, named):
            return None
        for entry in self._entries:  # again: written out, as every call comes here
            if (matched := entry.match(arguments, named, makes=makes, asks=False)) is not None:
                return entry, matched
        return None

    def knows(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> bool:
        """Whether there is a call like this one, which was made just now."""
        return any(e.match(arguments, named, asks=False) is not None for e in self._entries)

    def keep(self, entry: K) -> None:
        """Find it from now on."""
        self._entries = (entry, *self._entries[: MOST - 1])

    def forget(self) -> None:
        self._entries = ()
