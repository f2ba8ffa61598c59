"""Rows between processes that have a GPU each, by NCCL: over NVLink, or a network that reads a GPU.

NCCL connects and waits without listening, for ever where another process does not come. So all
ranks meet before each call, and the host waits for it as well: both as `runtime/ranks.py` does,
which listens meanwhile to the other ranks.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import accumulate, pairwise
from types import ModuleType
from typing import Any, TypeVar

import numpy as np

from lanewise.runtime import cuda
from lanewise.runtime.device import get_device
from lanewise.runtime.devices import cuda_number
from lanewise.runtime.transport import MpiTransport, Rows
from lanewise.support.errors import DeviceError
from lanewise.support.interrupts import interrupts_wait

T = TypeVar("T")
SWITCH = "LANEWISE_NCCL"  # a variable: "1" requests it


def card_of(devices: Sequence[str]) -> bytes | str | None:
    """What tells the GPU of a process from all others, or why NCCL cannot serve these devices; None
    where it is not requested, or nothing lies on a GPU.
    """
    if not _is_requested() or get_device(devices[0]).target.host_memory:
        return None
    if len(devices) > 1:
        return f"this process has {len(devices)} parts of the mesh, and NCCL wants one"
    if library() is None:
        return "NCCL is not found: it is the package nvidia-nccl-cu13"
    number = cuda_number(devices[0])
    found: bytes = cuda.cupy().cuda.runtime.getDeviceProperties(number)["uuid"]
    return found


def _is_requested() -> bool:
    match os.environ.get(SWITCH, ""):
        case "" | "0":
            return False
        case "1":
            return True
        case other:
            raise DeviceError(
                f"{SWITCH}={other!r}: wanted 1, for NCCL between processes with a GPU each, or 0"
            )


@cache
def library() -> ModuleType | None:
    """NCCL as CuPy calls it; None where it is not installed."""
    cuda.cupy()
    try:
        with interrupts_wait():
            from cupy.cuda import nccl  # pyright: ignore[reportMissingImports]

        nccl.get_version()
    except (ImportError, RuntimeError, OSError):
        return None
    return nccl


class NcclTransport:
    """Arrays of GPUs by NCCL, those of the host as `rest` does.

    device: of this process. until: waits for an answer to be true, and looks meanwhile whether the
    other ranks are well.
    """

    way = "by NCCL, from GPU to GPU"

    def __init__(
        self, rest: MpiTransport, device: str, until: Callable[[Callable[[], bool]], None]
    ) -> None:
        self._rest, self._device, self._until = rest, device, until
        self.rank, self.size = rest.rank, rest.size
        self._nccl: Any = library()
        first = rest.agree(self._nccl.get_unique_id() if rest.rank == 0 else None)[0]
        with cuda.use(device):
            self._communicator = self._nccl.NcclCommunicator(rest.size, first, rest.rank)

    def gather(self, own: Rows, counts: Sequence[int], /) -> Rows:
        if isinstance(own, np.ndarray):
            return self._rest.gather(own, counts)
        self._rest.compare(own, counts)
        with cuda.use(self._device):
            module = cuda.cupy()
            own = module.ascontiguousarray(own)
            whole = module.empty((sum(counts), *own.shape[1:]), own.dtype)
            pieces = [whole[a:b] for a, b in pairwise(accumulate(counts, initial=0))]

            def launch(stream: int) -> None:
                for rank, piece in enumerate(pieces):
                    source = own if rank == self.rank else piece
                    ends = source.data.ptr, piece.data.ptr
                    if piece.nbytes:
                        self._communicator.broadcast(
                            *ends, piece.nbytes, self._nccl.NCCL_UINT8, rank, stream
                        )

            self._run(launch)
        return whole

    def exchange(self, sent: Iterable[tuple[int, Rows]], into: Iterable[tuple[int, Rows]]) -> None:
        sent, into = list(sent), list(into)
        if all(isinstance(rows, np.ndarray) for _, rows in (*sent, *into)):
            self._rest.exchange(sent, into)
            return
        self._rest.barrier()
        with cuda.use(self._device):
            module = cuda.cupy()
            given = [(rank, module.ascontiguousarray(rows)) for rank, rows in sent]
            rooms = [(rank, module.empty(room.shape, room.dtype), room) for rank, room in into]

            def launch(stream: int) -> None:
                for calls, ends in (
                    (self._communicator.send, given),
                    (self._communicator.recv, [(rank, own) for rank, own, _ in rooms]),
                ):
                    for rank, rows in ends:
                        where = rows.data.ptr, rows.nbytes, self._nccl.NCCL_UINT8
                        calls(*where, rank, stream)

            self._run(launch)
            for _, own, room in rooms:
                room[...] = own

    def _run(self, launch: Callable[[int], None]) -> None:
        """Put calls on the current stream as one, and wait for them."""
        self._nccl.groupStart()
        try:
            launch(int(cuda.cupy().cuda.get_current_stream().ptr))
        finally:
            self._nccl.groupEnd()
        behind = cuda.passed()
        try:
            self._until(lambda: bool(behind.done))
        except BaseException:
            self._communicator.abort()  # which ends what waits on the GPU
            raise

    def agree(self, value: T, /) -> list[T]:
        return self._rest.agree(value)

    def barrier(self) -> None:
        self._rest.barrier()
