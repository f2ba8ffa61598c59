"""An array that leaves its layout to the kernels: what it knows until that is settled.

A first kernel decides; the records may move once more after that, and never where a caller has
memory of the array, or a call is bound to it. Views of records and rows move along.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any, Literal

from lanewise.language.record import Record
from lanewise.language.target import target_of
from lanewise.layouts import Layout, default_layout
from lanewise.records.placement import RecordPlacement
from lanewise.runtime.device import get_device
from lanewise.support.checks import shown
from lanewise.support.errors import ArgumentError

AUTO = "auto"
LayoutArgument = Layout | Literal["auto"]
"""What `layout=` takes: a layout, or the kernels' choice."""

UNDECIDED = "no kernel has used the array yet"
THREADS = "calls come from several threads"
CAPTURED = "a call on it was captured in a graph"
USUAL = "thousands of calls wanted no other"
LONG = 4096  # calls between two looks: then asking at each of them, 0.4 us, is for nothing


class OpenLayout:
    """What is open about the layout of an array.

    decided: by a first kernel. settled: for good. reason: of the layout that it has, a clause.
    lock: held by the thread that decides. users: the calls of kernels that had a say, and how many
    each had made by then.
    """

    __slots__ = (
        "__weakref__",
        "_asked",
        "_device",
        "_former",
        "_next",
        "_parts",
        "_thread",
        "decided",
        "lock",
        "reason",
        "settled",
        "users",
    )

    def __init__(self, device: str) -> None:
        self._device = get_device(device)
        self.decided = self.settled = False
        self.reason = UNDECIDED
        self.lock = threading.RLock()
        self.users = weakref.WeakKeyDictionary[Any, int]()
        self._parts = weakref.WeakSet[Any]()
        self._former: list[weakref.ref[Any]] = []
        self._asked, self._next, self._thread = 0, 4, 0

    # ------------------------------------------------------------ calls

    def asks(self) -> bool:
        """Whether a call like an earlier one is to go the way of a first call, which looks at the
        layout: ever more seldom, by about how often it was asked.

        Launches of another thread cannot be seen: once there are two, the records never move again.
        """
        if self.settled:
            return False
        if not self.decided or self._asked >= self._next:
            return True
        if self._thread != threading.get_ident():
            return True
        if self._device.is_capturing():
            self.heed_graph()
        self._asked += 1
        return False

    def awaits(self, calls: Any) -> bool:
        """Whether a call of this kernel is to choose a layout, or to look at it again."""
        if self.settled:
            return False
        return not self.decided or self.is_due or self.is_elsewhere() or calls not in self.users

    def heed_graph(self) -> None:
        """Never move the records again where memory is used while a graph is captured, which keeps
        its addresses, and nothing says when it is launched.
        """
        if self._device.is_capturing():
            with self.lock:
                self.settle(CAPTURED)

    @property
    def is_due(self) -> bool:
        """Whether so many calls came that it is looked at once more."""
        return self._asked >= self._next

    @property
    def is_usual(self) -> bool:
        """Whether it has been looked at so often that it may be settled."""
        return self._next > LONG

    def is_elsewhere(self) -> bool:
        """Whether another thread decided."""
        return self._thread not in (0, threading.get_ident())

    def looked(self) -> None:
        """It was decided, or left as it is for now."""
        self.decided, self._thread = True, threading.get_ident()
        self._asked, self._next = 0, 2 * self._next

    def settle(self, why: str = "") -> None:
        """Never move the records again. why: added to the reason."""
        self.decided = self.settled = True
        if why:
            self.reason = f"{self.reason}; it stays, as {why}"
        self.users.clear()
        self._parts.clear()

    # ------------------------------------------------------------ views and rows

    def add_part(self, part: Any) -> None:
        """A view, which moves along."""
        if not self.settled:
            self._parts.add(part)

    @property
    def parts(self) -> list[Any]:
        """The views that there are still."""
        return list(self._parts)

    def moved(self, former: RecordPlacement) -> None:
        """The same records lie elsewhere now."""
        self._former.append(weakref.ref(former))

    def forget_former(self) -> None:
        """The records are others now."""
        self._former.clear()

    def was(self, places: RecordPlacement) -> bool:
        """Whether the same records lay there."""
        return any(former() is places for former in self._former)


def read_layout(layout: Any, record: Record, device: str) -> tuple[Layout, bool]:
    """A layout to begin with, and whether kernels choose another one: where that is wanted, and
    unasked on devices whose results have the same bits in every layout.

    Raises `ArgumentError` for what is no layout.
    """
    if layout is None:
        return default_layout(record, device), not target_of(device).bits_of_layouts
    if isinstance(layout, str) and layout == AUTO:
        return default_layout(record, device), True
    return checked_layout(layout), False


def checked_layout(layout: Any) -> Layout:
    """A layout; raises `ArgumentError` for anything else."""
    if isinstance(layout, Layout):
        return layout
    described = layout.__name__ if isinstance(layout, type) else shown(layout)
    raise ArgumentError(
        f"a layout is lw.AoS(), lw.SoA(), lw.AoAS(), lw.SoAoAS() or lw.AoSoA(8), found {described}"
    )
