"""Memory as the interpreter has it: arrays of records, and what threads of a block share, with
asynchronous copies under way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lanewise.ir.interpret import Environment
from lanewise.language.target import WARP
from lanewise.layouts.base import Arrangement, Buffer, Slot
from lanewise.support.errors import VerificationError

SHARED = "@shared"  # among the variables of a thread: the shared memory of its block


@dataclass
class ArrayMemory:
    """The bytes of one array of records, addressed through its arrangement."""

    data: np.ndarray[Any, Any]
    arrangement: Arrangement
    count: int
    # of leaves that were touched
    _views: dict[tuple[str, int], Any] = field(default_factory=dict[tuple[str, int], Any])
    # how each lies, and where that of the first element does
    _places: dict[str, tuple[Slot, Buffer, int]] = field(
        default_factory=dict[str, "tuple[Slot, Buffer, int]"]
    )

    def read(self, leaf: str, index: int) -> Any:
        view = self._views.get((leaf, index))  # most were read before
        return (self._view(leaf, index) if view is None else view)[0]

    def write(self, leaf: str, index: int, value: Any) -> None:
        self._view(leaf, index)[0] = value

    def _view(self, leaf: str, index: int) -> Any:
        view = self._views.get((leaf, index))
        if view is None:
            raw = self.raw(leaf, index)
            self._views[leaf, index] = view = raw.view(self._places[leaf][0].type.dtype)
        return view

    def raw(self, leaf: str, index: int) -> Any:
        """The bytes of a leaf of an element, to read or to change."""
        if not 0 <= index < self.count:
            raise VerificationError(
                f"access to {leaf} of element {index}, outside 0..{self.count - 1}"
            )
        if leaf not in self._places:
            slot = self.arrangement.slot(leaf)
            first = self.arrangement.address(leaf, 0, self.count)
            self._places[leaf] = slot, self.arrangement.buffers[slot.buffer], first
        slot, buffer, first = self._places[leaf]
        block, lane = divmod(index, buffer.width)
        address = first + block * buffer.block + lane * slot.stride
        return self.data[address : address + slot.type.size]


@dataclass(frozen=True, slots=True)
class AsyncCopy:
    """An asynchronous copy under way: the places that it changes, and what finishes it."""

    places: tuple[tuple[str, str, int], ...]
    finish: Callable[[], None]


@dataclass
class SharedMemory:
    """The shared memory of one block of threads: its arrays or buffers, and who touched what since
    the last barrier.
    """

    contents: dict[str, Any] = field(default_factory=dict[str, Any])
    touched: dict[tuple[str, str, int], tuple[set[int], set[int]]] = field(
        default_factory=dict[tuple[str, str, int], tuple[set[int], set[int]]]
    )
    # asynchronous ones by thread, in groups: the last one is that of copies without a commit
    copies: dict[int, list[list[AsyncCopy]]] = field(
        default_factory=dict[int, "list[list[AsyncCopy]]"]
    )
    # the places that they change
    under_way: set[tuple[str, str, int]] = field(default_factory=set[tuple[str, str, int]])
    apart: bool = False  # warps never meet
    barriers: int = 0  # that its threads have met
    warps: dict[tuple[str, str, int], int] = field(default_factory=dict[tuple[str, str, int], int])
    # between threads of a warp
    exchanged: dict[tuple[str, int], Any] = field(default_factory=dict[tuple[str, int], Any])

    def touch(
        self, array: str, leaf: str, index: int, thread: int, *, write: bool, memory: str = ""
    ) -> None:
        """Note an access; raises `VerificationError` when another thread's access to the same place
        may come before or after it.

        memory: what the array is a view of, where there are several.
        """
        place = (memory or array, leaf, index)
        if place in self.under_way:
            raise VerificationError(
                f"{array}[{index}]{leaf} is touched while an asynchronous copy to it is under way"
            )
        if self.warps.setdefault(place, thread // WARP) != thread // WARP and self.apart:
            raise VerificationError(
                f"a race: two warps touch {array}[{index}]{leaf}, and nothing orders them"
            )
        if (touched := self.touched.get(place)) is None:
            touched = self.touched[place] = (set[int](), set[int]())
        readers, writers = touched
        if len(writers) > (thread in writers) or (write and len(readers) > (thread in readers)):
            raise VerificationError(
                f"a race: two threads touch {array}[{index}]{leaf} between two barriers, and one "
                "writes"
            )
        (writers if write else readers).add(thread)

    def begin(
        self, thread: int, places: Iterable[tuple[str, str, int]], finish: Callable[[], None]
    ) -> None:
        """Begin an asynchronous copy, which writes at any time until its thread waits for it."""
        copy = AsyncCopy(tuple(places), finish)
        for place in copy.places:
            self.touch(*place, thread, write=True)
        self.under_way.update(copy.places)
        self.copies.setdefault(thread, [[]])[-1].append(copy)

    def commit(self, thread: int) -> None:
        """What a thread has begun since its last commit is a group."""
        self.copies.setdefault(thread, [[]]).append([])

    def wait(self, thread: int, pending: int) -> None:
        """Finish the copies of a thread, or all groups but the last `pending`, and what is in no
        group.

        For the others the places change now: they have to meet a barrier first.
        """
        groups = self.copies.get(thread, [[]])
        done = len(groups) - 1 - pending if pending else len(groups)
        self.copies[thread] = groups[max(done, 0) :] or [[]]
        for copy in [c for g in groups[: max(done, 0)] for c in g]:
            copy.finish()
            self.under_way.difference_update(copy.places)
            for place in copy.places:
                self.touch(*place, thread, write=True)


@dataclass(frozen=True, slots=True)
class Words:
    """The words of exact sums, as the elements of an array."""

    memory: ArrayMemory
    leaf: str

    def __getitem__(self, place: int) -> Any:
        return self.memory.read(self.leaf, place)

    def __setitem__(self, place: int, word: Any) -> None:
        self.memory.write(self.leaf, place, np.int64(word))


def shared_of(env: Environment) -> SharedMemory:
    """That of the block of a thread."""
    return env[SHARED]
