"""Graphs of an NVIDIA GPU: launches that are captured once and put on a stream with one call, and
readings of the device's clock between them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

from lanewise.runtime import cuda
from lanewise.support.errors import DeviceError
from lanewise.support.interrupts import interrupts_wait


@cache
def graph_stream(device: str) -> Any:
    """One stream for all graphs of a device, so that they run in the order of their launches."""
    with cuda.use(device):
        return cuda.cupy().cuda.Stream(non_blocking=True)


class Graph:
    """A captured sequence of launches, replayed with one call."""

    def __init__(self, device: str, work: Callable[[], None]) -> None:
        cuda.synchronize(device)  # what the launches read must be there before the first replay
        self.device, self._stream = device, graph_stream(device)
        # half a capture would leave the stream in one
        with interrupts_wait(), cuda.use(device), self._stream:
            self._stream.begin_capture()
            try:
                work()
            finally:
                self._graph = self._stream.end_capture()

    def launch(self) -> None:
        with cuda.use(self.device):
            self._graph.launch(self._stream)


class Replay:
    """Launches that are captured once and put on whatever stream is the current one, with one call.

    They are captured on a separate stream: other threads may use theirs meanwhile
    (`cudaStreamCaptureModeRelaxed`).
    """

    def __init__(self, device: str, work: Callable[[], object]) -> None:
        self._device = device
        with cuda.use(device):
            stream = cuda.cupy().cuda.Stream(non_blocking=True)
            with interrupts_wait(), stream:
                stream.begin_capture(cuda.cupy().cuda.runtime.streamCaptureModeRelaxed)
                try:
                    work()
                finally:
                    self._graph = stream.end_capture()

    def launch(self) -> None:
        with cuda.use(self._device):
            self._graph.launch(cuda.cupy().cuda.get_current_stream())


class Marks:
    """Events that a graph records between its launches: readings of the device's clock, taken anew
    by every replay.

    Nodes that record events (CUDA Programming Guide, "Cross-stream Dependencies and Events";
    `CU_EVENT_RECORD_EXTERNAL`).
    """

    def __init__(self, device: str, count: int) -> None:
        self.device, self._stream = device, graph_stream(device)
        with cuda.use(device):
            self._events = [cuda.cupy().cuda.Event() for _ in range(count)]

    @interrupts_wait()
    def record(self, number: int) -> None:
        """Within the work of a `Graph`: put the node here."""
        from cuda.bindings import driver as module  # pyright: ignore[reportAttributeAccessIssue]

        driver: Any = module
        event = driver.CUevent(int(self._events[number].ptr))
        stream = driver.CUstream(int(self._stream.ptr))
        flag = driver.CUevent_record_flags.CU_EVENT_RECORD_EXTERNAL
        (error,) = driver.cuEventRecordWithFlags(event, stream, int(flag))
        if int(error):
            raise DeviceError(
                f"an event cannot be recorded in a graph on {self.device!r}: {error.name}"
            )

    def seconds(self) -> list[float]:
        """From each event to the next, in the last replay; waits for its end."""
        with cuda.use(self.device):
            self._events[-1].synchronize()
            return [_seconds(a, b) for a, b in pairwise(self._events)]

    def since(self, event: Any) -> float:
        """Seconds from another event to the first one; waits for the end of the last replay."""
        with cuda.use(self.device):
            self._events[-1].synchronize()
            return _seconds(event, self._events[0])


def graph_event(device: str) -> Any:
    """An event, recorded after all graphs of a device that have been launched."""
    with cuda.use(device):
        event = cuda.cupy().cuda.Event()
        event.record(graph_stream(device))
        return event


def _seconds(start: Any, stop: Any) -> float:
    return float(cuda.cupy().cuda.get_elapsed_time(start, stop)) * 1e-3


def copy_to_graphs(device: str, to: int, source: int, nbytes: int) -> None:
    """Put a copy of pinned memory of the host on the stream of the graphs: those launched before
    are done with what was there.
    """
    with cuda.use(device):
        runtime = cuda.cupy().cuda.runtime
        runtime.memcpyAsync(
            to, source, nbytes, runtime.memcpyHostToDevice, graph_stream(device).ptr
        )


def put_behind_graphs(device: str) -> Any:
    """Let what comes on the current stream be behind all graphs of a device that have been
    launched; an event after these.
    """
    with cuda.use(device):
        with graph_stream(device):
            done = cuda.passed()
        cuda.wait_for(done)
        return done


def put_graphs_behind(device: str) -> Any:
    """Let graphs that are launched from now on be behind what the current stream has to do; an
    event after that.
    """
    with cuda.use(device):
        done = cuda.passed()
        with graph_stream(device):
            cuda.wait_for(done)
        return done


def wait_for_graphs(device: str) -> None:
    """Wait until all launched graphs of a device are done."""
    graph_stream(device).synchronize()
