"""Work on a device next to what runs there, with a copy of a state, and its results on the host.

What continues with the state waits for the copy alone, on the device, and not for what is made of
it. On a GPU the work has its own stream, and goes before what is left of a kernel that runs there.
The host waits for it in the thread that does it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.language.target import CPU
from lanewise.runtime import cuda, cuda_graphs
from lanewise.runtime.device import get_device
from lanewise.runtime.memory import Need, address, allocate, require_together

AT_ONCE = 2  # copies of a state that are worked with, as a rule
FIRST = 1e-3  # seconds in which the thread that continues with the state has launched its work
BETWEEN = 1e-3  # seconds between two questions whether a copy is there


class Snapshot:
    """Memory of a device that holds a copy until that is no longer needed."""

    def __init__(self, device: str, nbytes: int, what: str) -> None:
        self.memory = allocate(device, nbytes, what, zeroed=False)
        self.free = True
        self.taken: Any = None  # an event after the copy

    @property
    def nbytes(self) -> int:
        """Of the memory."""
        return self.memory.nbytes


class _Way:
    """Memory of a device and pinned memory of the host, for bytes that go from there to here."""

    def __init__(self, device: str, nbytes: int, what: str) -> None:
        self._device = device
        self.there = allocate(device, nbytes, what, zeroed=False)
        self._here = get_device(device).pinned(nbytes, what)

    @property
    def nbytes(self) -> int:
        """Of either."""
        return self._here.nbytes

    def bring(self, to: NDArray[np.uint8]) -> None:
        """The first bytes, which what was launched before writes; waits for them."""
        nbytes = to.nbytes
        cuda.copy_pinned(self._device, address(self._here), address(self.there), nbytes)
        cuda.cupy().cuda.get_current_stream().synchronize()
        np.copyto(to, self._here[:nbytes])  # other threads of Python run meanwhile


class Aside:
    """See the module. what: for errors, what the memory is for. remedy: where there is too little
    of it.
    """

    def __init__(self, device: str, what: str, remedy: str) -> None:
        self._device, self._what, self._remedy = device, what, remedy
        self._on_host = get_device(device).target.host_memory
        self._snapshots: list[Snapshot] = []
        self._way: _Way | None = None
        self._stream: Any = None

    def require(self, snapshot: int, brought: int, between: int = 0) -> None:
        """Refuse, before any of it is allocated, memory for snapshots and results of these sizes,
        and for what the work makes between them, that does not fit. Raises `DeviceError` with all
        figures.
        """
        needs = [Need(self._device, snapshot, "a copy of the state")] * AT_ONCE
        if between:
            needs.append(Need(self._device, between, "what comes between them"))
        if not self._on_host:
            needs.append(Need(self._device, brought, "what is made of it"))
        needs.append(Need(CPU.name, brought * (1 if self._on_host else 2), "what is made of it"))
        require_together(self._what, needs, self._remedy)

    def copied(self, nbytes: int, fill: Callable[[Any], None]) -> Snapshot:
        """Bytes that `fill` copies from a state, behind all that was launched before. The host does
        not wait for them; what is launched afterwards, on the current stream or as a graph, may
        overwrite the state.
        """
        with get_device(self._device).use():
            made = self._snapshot(nbytes)
            made.free = False
            try:
                if not self._on_host:
                    cuda_graphs.put_behind_graphs(self._device)
                fill(made.memory[:nbytes])
                if not self._on_host:
                    made.taken = cuda_graphs.put_graphs_behind(self._device)
            except BaseException:
                made.free = True
                raise
            return made

    def kept(self) -> Any:
        """An event: after it, what was read of a state until now is there, in arrays that are not
        written to any more.
        """
        if self._on_host:
            return None
        with get_device(self._device).use():
            return cuda.passed()

    def _snapshot(self, nbytes: int) -> Snapshot:
        """Memory whose copy is no longer needed: of two, as long as no more are wanted."""
        free = [s for s in self._snapshots if s.free]
        found = next((s for s in free if s.nbytes >= nbytes), None)
        if found is None:
            for small in free:
                self._snapshots.remove(small)
            found = Snapshot(self._device, nbytes, self._what)
            self._snapshots.append(found)
        return found

    @contextmanager
    def working(self, behind: Snapshot | Any) -> Generator[None]:
        """In the block, which one thread at a time is in, compute with a copy, or with what was
        there at an event. At its end that is done, and the copy's memory is used again.
        """
        taken = behind.taken if isinstance(behind, Snapshot) else behind
        try:
            with get_device(self._device).use():
                if self._on_host:
                    yield
                    return
                time.sleep(FIRST)
                # which may be a step of a large state later: the driver waits with all of a core
                while not cuda.has_passed(taken):
                    time.sleep(BETWEEN)
                if self._stream is None:
                    self._stream = cuda.preferred_stream()
                with self._stream:
                    try:
                        yield
                    finally:
                        self._stream.synchronize()
        finally:
            if isinstance(behind, Snapshot):
                behind.free = True

    @staticmethod
    def drop(behind: Snapshot | Any) -> None:
        """Let go a copy that no thread works with; what is launched after that may overwrite it."""
        if isinstance(behind, Snapshot):
            behind.free = True

    def brought(self, begin: bytearray, nbytes: int, fill: Callable[[Any], None]) -> bytearray:
        """`begin` and, behind it, bytes that `fill` writes on the device; within `working`."""
        made = bytearray(len(begin) + nbytes)
        made[: len(begin)] = begin
        here = np.frombuffer(made, np.uint8)[len(begin) :]
        if self._on_host:
            fill(here)
            return made
        if self._way is None or self._way.nbytes < nbytes:
            self._way = None
            self._way = _Way(self._device, nbytes, self._what)
        fill(self._way.there[:nbytes])
        self._way.bring(here)
        return made
