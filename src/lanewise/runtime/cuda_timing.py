"""Times of short work on a GPU: graphs of many launches between two events."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from lanewise.runtime import cuda
from lanewise.runtime.timing import Work
from lanewise.support.interrupts import interrupts_wait

LEAST = 2e-3  # seconds between the two events: far above the resolution of their clock
MOST_LAUNCHES = 256  # in one graph


class CudaStopwatch:
    """Time on the device by events around a graph of many launches, as a time loop launches them.

    Launched one by one, short kernels would be measured by how fast Python launches them.
    """

    def __init__(self, device: str, works: Sequence[Work], once: float) -> None:
        self._device, self._stream, self._turns = device, _timing_stream(device), 1
        launches = min(MOST_LAUNCHES, max(len(works), round(LEAST / max(once, 1e-7))))
        self._launches = -(-launches // len(works)) * len(works)
        cuda.synchronize(device)  # what the launches read must be there before the first replay
        with interrupts_wait(), cuda.use(device), self._stream:
            self._stream.begin_capture()
            try:
                for turn in range(self._launches):
                    works[turn % len(works)]()
            finally:
                self._graph = self._stream.end_capture()
        # The first guess held Python's own time for a launch as well: now the device's is known.
        self._turns = max(1, min(MOST_LAUNCHES, round(LEAST / max(self() * self._launches, 1e-7))))

    def __call__(self) -> float:
        module = cuda.cupy()
        with cuda.use(self._device), self._stream:
            start, stop = module.cuda.Event(), module.cuda.Event()
            start.record(self._stream)
            for _ in range(self._turns):
                self._graph.launch(self._stream)
            stop.record(self._stream)
            stop.synchronize()
            seconds = float(module.cuda.get_elapsed_time(start, stop)) * 1e-3
        return seconds / (self._turns * self._launches)


class LaunchStopwatch:
    """Time by events around work in which the host takes part, which no graph can hold.

    What the host does, and what the device waits for meanwhile, counts.
    """

    def __init__(
        self, seconds: Callable[[Work], float], works: Sequence[Work], once: float
    ) -> None:
        self._seconds, self._works = seconds, tuple(works)
        self._turns = max(1, round(LEAST / max(once, 1e-7) / len(works)))

    def __call__(self) -> float:
        return self._seconds(self._run) / (self._turns * len(self._works))

    def _run(self) -> None:
        for _ in range(self._turns):
            for work in self._works:
                work()


@cache
def _timing_stream(device: str) -> Any:
    """One stream for all stopwatches of a device."""
    with cuda.use(device):
        return cuda.cupy().cuda.Stream(non_blocking=True)
