"""The memory that launches of a program have besides their arguments: partial sums, counters.

It grows and never shrinks.

Launches of any size share it, one at a time: kernels get how much of it is theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from lanewise.runtime.device import get_device
from lanewise.runtime.lease import Lease
from lanewise.runtime.memory import allocate, on


def nothing() -> None:
    """For memory that may move without a word."""


def mender(device: str, clean: Iterable[Any]) -> Callable[[], None] | None:
    """What makes memory zero again, after an exception within a run, that is zero before every run.

    None where there is none.
    """
    memory = tuple(clean)
    if not memory:
        return None

    def mend() -> None:
        with on(device):
            for data in memory:
                data[:] = 0

    return mend


class OwnMemory:
    """Memory by name.

    lease: of all of it. grown: what is called when some of it has moved to a larger place.
    """

    __slots__ = ("_clean", "_device", "_grown", "_kept", "lease")

    def __init__(self, what: str, device: str, grown: Callable[[], None] = nothing) -> None:
        self._device, self._grown = device, grown
        self._kept: dict[str, Any] = {}
        self._clean: set[str] = set()
        self.lease: Lease = get_device(device).lease(what)

    @property
    def clean(self) -> Mapping[str, Any]:
        """What is zero before every run, as it is now: when more is requested, launches of before
        keep what they have.
        """
        return {name: self._kept[name] for name in sorted(self._clean)}

    def grows_to(self, name: str, nbytes: int) -> int:
        """How many bytes `reserve` would allocate; 0 where there are enough.

        What grows gets a quarter more than it had, so that sizes that grow step by step move
        seldom.
        """
        kept = self._kept.get(name)
        if kept is None:
            return nbytes
        return 0 if kept.nbytes >= nbytes else max(nbytes, kept.nbytes + kept.nbytes // 4)

    def reserve(self, name: str, nbytes: int, what: str, *, zeroed: bool) -> Any:
        """At least that many bytes, which stay where they are until more are requested.

        zeroed: they are zero at first, and before every run.
        """
        kept = self._kept.get(name)
        if kept is not None and kept.nbytes >= nbytes:
            return kept
        if get_device(self._device).is_capturing():  # then nothing runs
            return self._grow(name, nbytes, what, zeroed=zeroed)
        with self.lease:  # one after the other, after the stream that used it last
            return self._grow(name, nbytes, what, zeroed=zeroed)

    def _grow(self, name: str, nbytes: int, what: str, *, zeroed: bool) -> Any:
        """The same for who is alone here; others may have been before."""
        device, kept = get_device(self._device), self._kept.get(name)
        if kept is not None:
            if kept.nbytes >= nbytes:
                return kept
            if not device.is_capturing():  # launches may still use what is given back
                device.synchronize()
        data = allocate(self._device, self.grows_to(name, nbytes), what)
        if zeroed:
            self._clean.add(name)
            if not device.target.host_memory:  # what a system gives is zero, and not there yet
                with on(self._device):
                    data[:] = 0
        self._kept[name] = data
        if kept is not None:
            self._grown()
        return data
