"""Results on their way to the host, and two sets of buffers: a device computes the next piece while
the host finishes the last.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np

from lanewise.profiling import stage
from lanewise.sims.common.devices import device_of, module_of, on
from lanewise.support.errors import InputError

Job = TypeVar("Job")
Done = TypeVar("Done")
Fetched = Callable[[], np.ndarray[Any, Any]]


def fetch(array: Any) -> Fetched:
    """Begin to copy an array to the host; calling what it gives waits for the copy.

    On the host it is copied at once.
    """
    if isinstance(array, np.ndarray):
        copied: np.ndarray[Any, Any] = np.array(array)
        return lambda: copied
    import cupyx  # pyright: ignore[reportMissingImports]

    # a copy to other memory would make the host wait
    pinned = cupyx.empty_pinned(array.shape, array.dtype)
    with on(device_of(array)):
        array.get(out=pinned, blocking=False)
        event = module_of(array).cuda.Event(disable_timing=True)
        event.record()

    def wait() -> np.ndarray[Any, Any]:
        event.synchronize()
        return pinned

    return wait


class FetchedArray:
    """An array on a device, and one on the host that it is copied from: of pinned memory, so that
    the host need not wait for the copy.

    What was sent has arrived when the next thing that is fetched has. On the host both are one
    array.
    """

    def __init__(self, array: Any) -> None:
        self.device, self.host = array, array
        if not isinstance(array, np.ndarray):
            import cupyx  # pyright: ignore[reportMissingImports]

            self.host: Any = cupyx.empty_pinned(array.shape, array.dtype)
            self.host[...] = 0

    def send(self) -> None:
        if self.host is not self.device:
            with on(device_of(self.device)):
                self.device.set(self.host)


def ahead(
    function: Callable[[Job], Done], jobs: Iterable[Job], threads: int, most: int
) -> Iterator[Done]:
    """The results of all jobs in their order, computed by threads up to `most` jobs before they are
    requested.
    """
    waiting: deque[Future[Done]] = deque()
    with ThreadPoolExecutor(threads, "lanewise-prepare") as pool:
        try:
            for job in jobs:
                waiting.append(pool.submit(function, job))
                if len(waiting) > most:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


class DoubleBuffer:
    """Runs jobs in their order, each in two steps.

    `start(job, slot)` puts work on a device, `finish(started)` makes its result on the host.

    finish runs in a separate thread, one job at a time and in order, while the next job starts.
    slot is 0 or 1 in turn: memory of a slot is free again, because the job before the last is
    finished before the next one starts. An error of either step ends it. With `buffers=1` each job
    is finished before the next one starts: the results are the same.
    """

    def __init__(self, buffers: int = 2) -> None:
        if buffers not in (1, 2):
            raise InputError(f"there are {buffers} sets of buffers; wanted 1 or 2")
        self.buffers = buffers

    def run(
        self, jobs: Iterable[Job], start: Callable[[Job, int], Any], finish: Callable[[Any], Done]
    ) -> Iterator[Done]:
        """The results of all jobs, in their order."""
        waiting: list[Future[Done]] = []
        with ThreadPoolExecutor(1, "lanewise-finish") as thread:
            for number, job in enumerate(jobs):
                if len(waiting) == self.buffers:
                    with stage("wait", name="for the device"):
                        done = waiting.pop(0).result()
                    yield done
                waiting.append(thread.submit(finish, start(job, number % self.buffers)))
            for future in waiting:
                with stage("wait", name="for the device"):
                    done = future.result()
                yield done
