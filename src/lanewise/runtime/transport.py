"""What processes that share one mesh tell each other: rows, and values of the host.

A transport moves and does not compute: what is summed is gathered first, and added in the order of
rows, so that no bit depends on the number of processes.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from lanewise.runtime import cuda
from lanewise.support.errors import ArgumentError

T = TypeVar("T")
Rows = Any  # an array on the host or on a GPU of this process
MOST_BYTES = 1 << 30  # of a message: MPI 3.1 counts them with 31 bits


class Transport(Protocol):
    """Every method is called by all ranks, in the same order, with arrays that lie alike: all on
    the host, or all on GPUs. Raises `ProcessError` where one of them has failed or ended.
    """

    @property
    def rank(self) -> int:
        """This process among `size`."""
        ...

    @property
    def size(self) -> int: ...

    @property
    def way(self) -> str:
        """How rows go from process to process, for people."""
        ...

    def gather(self, own: Rows, counts: Sequence[int], /) -> Rows:
        """The rows of all ranks, one after the other, where the own ones lie. counts: how many
        each has.

        Raises `ArgumentError` where the ranks mean others.
        """
        ...

    def exchange(self, sent: Iterable[tuple[int, Rows]], into: Iterable[tuple[int, Rows]]) -> None:
        """Send arrays to ranks, and fill those that come from them; between two ranks in order."""
        ...

    def agree(self, value: T, /) -> list[T]:
        """The values that the ranks have, in their order."""
        ...

    def barrier(self) -> None:
        """Wait until all are here."""
        ...


class Alone:
    """The transport of a process that has the whole mesh."""

    rank, size = 0, 1
    way = "nowhere"

    def gather(self, own: Rows, counts: Sequence[int], /) -> Rows:
        del counts
        return own

    def exchange(self, sent: Iterable[tuple[int, Rows]], into: Iterable[tuple[int, Rows]]) -> None:
        for (_, rows), (_, room) in zip(sent, into, strict=True):
            room[...] = rows

    def agree(self, value: T, /) -> list[T]:
        return [value]

    def barrier(self) -> None:
        """There is no other process to wait for."""


class MpiTransport:
    """Between processes by MPI. Arrays of a GPU go through memory of the host.

    wait: waits for requests of MPI, and looks meanwhile whether the other ranks are well.
    """

    way = "by MPI, through memory of the host"

    def __init__(self, communicator: Any, wait: Callable[[list[Any]], None]) -> None:
        self._communicator, self._wait = communicator, wait
        self.rank, self.size = int(communicator.Get_rank()), int(communicator.Get_size())

    def gather(self, own: Rows, counts: Sequence[int], /) -> Rows:
        self.compare(own, counts)
        mine = np.ascontiguousarray(_on_host(own))
        whole = np.empty((sum(counts), *mine.shape[1:]), mine.dtype)
        self._gather(mine, whole, counts)
        if isinstance(own, np.ndarray):
            return whole
        return cuda.library(cuda.device_of(own)).asarray(whole)

    def _gather(self, own: Rows, whole: Rows, counts: Sequence[int]) -> None:
        one = whole[:1].nbytes if len(whole) else 0
        if not one:
            return
        from mpi4py import MPI

        row = MPI.BYTE.Create_contiguous(one).Commit()  # rows are counted, in 32 bits, not bytes
        try:
            taken, given = [_bytes(own), len(own), row], [_bytes(whole), list(counts), row]
            self._wait([self._communicator.Iallgatherv(taken, given)])
        finally:
            row.Free()

    def compare(self, own: Rows, counts: Sequence[int]) -> None:
        """Refuse rows that are not those of one array: MPI would bring some of each."""
        row = own.nbytes // max(1, len(own))
        alike = zlib.crc32(repr((own.dtype.str, own.shape[1:], [int(n) for n in counts])).encode())
        mine, all_of = np.array([sum(counts), row, alike], np.int64), np.empty((self.size, 3), "i8")
        self._wait([self._communicator.Iallgather(mine, all_of)])
        if (all_of[:, 2] != alike).any():
            each = ", ".join(f"{n:,} rows of {size:,} bytes" for n, size, _ in all_of.tolist())
            raise ArgumentError(
                f"the processes of a mesh gather rows of different arrays; by ranks: {each}; all "
                "of them make the same calls, in one order, with arrays of the same length"
            )

    def exchange(self, sent: Iterable[tuple[int, Rows]], into: Iterable[tuple[int, Rows]]) -> None:
        rooms = [(rank, np.empty(room.shape, room.dtype), room) for rank, room in into]
        requests = [
            self._communicator.Irecv(piece, source=rank)
            for rank, own, _ in rooms
            for piece in _pieces(own)
        ]
        for rank, rows in sent:
            for piece in _pieces(np.ascontiguousarray(_on_host(rows))):
                requests.append(self._communicator.Isend(piece, dest=rank))
        self._wait(requests)
        for _, own, room in rooms:
            _fill(room, own)

    def agree(self, value: T, /) -> list[T]:
        own = np.frombuffer(pickle.dumps(value), np.uint8)
        sizes = [int(n) for n in self.gather(np.array([len(own)], np.int64), [1] * self.size)]
        texts = self.gather(own, sizes)
        ends = np.cumsum(sizes)
        pieces = zip(ends, sizes, strict=True)
        return [pickle.loads(texts[end - n : end].tobytes()) for end, n in pieces]

    def barrier(self) -> None:
        self._wait([self._communicator.Ibarrier()])


def _on_host(rows: Rows) -> Rows:
    return (
        rows if isinstance(rows, np.ndarray) else cuda.library(cuda.device_of(rows)).asnumpy(rows)
    )


def _fill(room: Rows, values: Rows) -> None:
    """Put an array of the host into one that may lie on a GPU."""
    if isinstance(room, np.ndarray):
        room[...] = values
        return
    with cuda.use(cuda.device_of(room)):
        room.set(values)


def _bytes(array: Rows) -> Rows:
    """The memory of a contiguous array."""
    return array.reshape(-1).view(np.uint8)


def _pieces(array: Rows) -> Iterator[Rows]:
    """The memory of a contiguous array, in messages that MPI 3.1 counts; one, if it has none."""
    whole = _bytes(array)
    for first in range(0, max(1, len(whole)), MOST_BYTES):
        yield whole[first : first + MOST_BYTES]


def lead(transport: Transport, value: Callable[[], T]) -> T:
    """What rank 0 makes of something that processes may see differently, such as a clock."""
    if transport.size == 1:
        return value()
    found: list[Any] = transport.agree(value() if transport.rank == 0 else None)
    return found[0]
