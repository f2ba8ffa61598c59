"""Work on a device next to what runs there, and its results on the host when they have come.

On a GPU it has its own stream, so that what continues with the state waits until the state
was read, and not for what is made of it, nor for copies.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from lanewise.runtime import cuda, cuda_graphs
from lanewise.runtime.device import get_device
from lanewise.runtime.memory import address, allocate


class OnTheWay:
    """Bytes of a device, `there`, that come to memory of the host. Used again once they are taken:
    fresh memory would be slow to write for code that fills it.
    """

    def __init__(self, device: str, nbytes: int, what: str) -> None:
        """In a block of `Aside`, whose stream the memory belongs to."""
        self._device, self.free = device, True
        self.there = allocate(device, nbytes, what, zeroed=False)
        on_host = get_device(device).target.host_memory
        self._here = self.there if on_host else get_device(device).pinned(nbytes, what)
        self._event: Any = None
        self._count = 0

    @property
    def nbytes(self) -> int:
        """Of the memory."""
        return self._here.nbytes

    def send(self, nbytes: int) -> None:
        """The first bytes are filled, or will be by what was launched before."""
        self._count = nbytes
        if self._here is not self.there:
            cuda.copy_pinned(self._device, address(self._here), address(self.there), nbytes)
            self._event = cuda.passed()

    def taken(self, begin: bytearray) -> bytearray:
        """Wait for the bytes, and have them, after `begin`, in memory that the caller owns. In any
        thread, once.
        """
        try:
            if self._event is not None:
                self._event.synchronize()
            return bytearray().join((begin, self._here[: self._count].data))
        finally:
            self.free = True


class Aside:
    """See the module. what: for errors, what the memory is for."""

    def __init__(self, device: str, what: str) -> None:
        self._device, self._what = device, what
        self._on_host = get_device(device).target.host_memory
        self._ways: list[OnTheWay] = []
        self._stream: Any = None

    @contextmanager
    def reading(self) -> Generator[None]:
        """In the block, read a state, behind all that was launched before. At its end that is done:
        what follows may overwrite the state.
        """
        with get_device(self._device).use():
            if self._on_host:
                yield
                return
            if self._stream is None:
                self._stream = cuda.cupy().cuda.Stream(non_blocking=True)
            before = cuda.passed()
            with cuda_graphs.graph_stream(self._device):
                graphs = cuda.passed()
            with self._stream:
                cuda.wait_for(before)
                cuda.wait_for(graphs)
                try:
                    yield
                finally:
                    self._stream.synchronize()

    @contextmanager
    def going_on(self) -> Generator[None]:
        """In the block, compute with what was read, and send it. Nothing waits at its end.

        All memory is that of the stream: CuPy gives it to nothing else before the stream is past
        its last use.
        """
        with get_device(self._device).use():
            if self._on_host:
                yield
                return
            with self._stream:
                yield

    def sent(self, nbytes: int, fill: Callable[[Any], None]) -> OnTheWay:
        """Bytes that `fill` puts in memory of the device, on their way to the host; in a block of
        `going_on`.
        """
        way = self._way(nbytes)
        try:
            fill(way.there[:nbytes])
            way.send(nbytes)
        except BaseException:
            way.free = True  # what was launched comes before all that is launched for the next one
            raise
        return way

    def _way(self, nbytes: int) -> OnTheWay:
        """Memory on both sides that nothing waits for."""
        free = [w for w in self._ways if w.free]
        found = next((w for w in free if w.nbytes >= nbytes), None)
        if found is None:
            for small in free:
                self._ways.remove(small)
            found = OnTheWay(self._device, nbytes, self._what)
            self._ways.append(found)
        found.free = False
        return found
