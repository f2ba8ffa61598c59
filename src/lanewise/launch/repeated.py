"""Calls like an earlier one: only sizes, addresses and numbers are new.

the very same again  records where they were, the same numbers: only results are new (`again.py`)
the same kind        records, layouts, devices and types are the same; sizes are looked up
anything else        the way of a first call, which also says what is wrong with it
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import partial
from typing import Any

from lanewise.frontend.function import Signature
from lanewise.language.target import is_gpu
from lanewise.launch.arguments import (
    Arguments,
    device_without_records,
)
from lanewise.launch.repeatable import Repeatable, SeenCalls
from lanewise.launch.sized import Repeats, Resize, Sized
from lanewise.launch.slots import (
    NOTHING,
    Given,
    Slot,
    slots_of,
)
from lanewise.launch.support import Uses
from lanewise.launch.tuned_plans import store_enabled

MOST = 8  # kinds of calls that a kernel remembers


class Repeated:
    """The calls of one kernel that can be made again, the last one first."""

    __slots__ = ("_entries", "_tuned")

    def __init__(self) -> None:
        self._entries: tuple[Repeatable, ...] = ()
        self._tuned = True

    def find(
        self, arguments: tuple[Any, ...], named: Mapping[str, Any], *, makes: bool = True
    ) -> tuple[Repeatable, Given] | None:
        """A call like this one, and its arguments. makes: whether it makes its results."""
        if self._tuned is not (tuned := store_enabled()):
            self._entries, self._tuned = (), tuned
        for entry in self._entries:
            if (matched := entry.match(arguments, named, makes=makes)) is not None:
                return entry, matched
        return None

    def remember(
        self,
        signature: Signature,
        positional: tuple[Any, ...],
        named: Mapping[str, Any],
        arguments: Arguments,
        resize: Resize,
        sizes: dict[Hashable, Sized],
        met: dict[tuple[int, ...], SeenCalls],
        *,
        identical: tuple[str, str, bool] | None = None,
        own: Mapping[str, Slot] = NOTHING,
        besides: Repeats | None = None,
        uses: Mapping[str, Uses] = NOTHING,
        own_only: bool = False,
    ) -> None:
        """Keep a call for those like it, where they can be recognised.

        sizes, met: see `Repeatable`. own: slots of
        arguments that a pattern makes arrays of, which they bring along under the names in
        `arguments.added`. uses: of records.
        """
        slots = slots_of(signature, positional, named, arguments, own=own, uses=uses)
        if slots is None:
            return
        there = arguments.device if arguments.arrays and is_gpu(arguments.device) else None
        device_of = partial(device_without_records, there)
        entry = Repeatable(
            signature.source.name,
            tuple(named),
            slots,
            arguments.device,
            resize,
            sizes,
            met,
            device_of=None
            if arguments.records
            else device_of
            if besides is None
            else besides.device_of,
            identical=identical,
            apart=() if besides is None else besides.apart,
            uses=uses,
            own_only=own_only,
            whole=() if besides is None else besides.whole,
        )
        # Else it would never be found, and push out another one. Its results are there already.
        if entry.match(positional, named, makes=False) is not None:
            self._entries = (entry, *self._entries[: MOST - 1])

    def forget(self) -> None:
        self._entries = ()
