"""Times of short work: many repetitions between two readings of a clock, in seconds for one repetition."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Protocol

from lanewise.language.target import is_gpu
from lanewise.runtime import cuda
from lanewise.support.interrupts import interrupts_wait

Work = Callable[[], object]
CPU_LEAST, CUDA_LEAST = 20e-3, 2e-3  # seconds between the two readings: far above the resolution of either clock
MOST_LAUNCHES = 256  # in one graph


class Stopwatch(Protocol):
    """Times a sequence of works that take turns (the same work on several sets of arrays)."""

    def __call__(self) -> float: ...


class CpuStopwatch:
    """Wall time on the host. `once`: a first guess at the seconds of one work."""

    def __init__(self, works: Sequence[Work], once: float) -> None:
        turns = max(1, round(CPU_LEAST / max(once, 1e-7) / len(works)))
        self._works, self._turns = tuple(works), turns

    def __call__(self) -> float:
        start = time.perf_counter()
        for _ in range(self._turns):
            for work in self._works:
                work()
        return (time.perf_counter() - start) / (self._turns * len(self._works))


class CudaStopwatch:
    """Time on the device by events around a graph of many launches, as a time loop launches them.

    Launched one by one, short kernels would be measured by how fast Python launches them.
    """

    def __init__(self, device: str, works: Sequence[Work], once: float) -> None:
        self._device, self._stream, self._turns = device, _timing_stream(device), 1
        launches = min(MOST_LAUNCHES, max(len(works), round(CUDA_LEAST / max(once, 1e-7))))
        self._launches = -(-launches // len(works)) * len(works)
        cuda.synchronize(device)  # what the launches read must be there before the first replay
        with interrupts_wait(), cuda.use(device), self._stream:
            self._stream.begin_capture()
            try:
                for turn in range(self._launches):
                    works[turn % len(works)]()
            finally:
                self._graph = self._stream.end_capture()
        # The first guess held Python's own time for a launch, too: now the device's is known.
        self._turns = max(1, min(MOST_LAUNCHES, round(CUDA_LEAST / max(self() * self._launches, 1e-7))))

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


@cache
def _timing_stream(device: str) -> Any:
    """One stream for all stopwatches of a device."""
    with cuda.use(device):
        return cuda.cupy().cuda.Stream(non_blocking=True)


def stopwatch(device: str, works: Sequence[Work], once: float) -> Stopwatch:
    """The stopwatch of a device. The works have run before: nothing is compiled or loaded while it counts."""
    return CudaStopwatch(device, works, once) if is_gpu(device) else CpuStopwatch(works, once)
