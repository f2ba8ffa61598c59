"""Kernels are compiled side by side, by processes: a compiler that is written in Python does one
thing at a time in each.

The processes are forks of this one, so that they begin at once, with the compiler loaded. They are
forked when the first kernel is
missing, and only where that is safe: on Linux, with several cores, while this process has a single
thread and has not used CUDA. Elsewhere kernels are compiled here, one after the other. Machine code
comes back through pipes, and needs no cache on a disk.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import Any

from lanewise.runtime import compiling
from lanewise.runtime.devices import cuda_is_started
from lanewise.support.errors import LanewiseWarning
from lanewise.support.warned import warn_user

MOST = 8  # workers: each takes some 100 MB, and few programs have more kernels at once

Key = tuple[Any, ...]
Compiler = Callable[[Any], bytes]
"""Makes machine code of a request, in a worker.

B"" where this process shall do it, and say what is wrong.
"""


class WorkerWarning(LanewiseWarning):
    """A process that compiled kernels was ended before it was done, as it is where memory is
    short.
    """


@dataclass(eq=False)
class _Job:
    """A kernel to compile. content: its machine code once that is there."""

    name: str
    request: Any
    effort: int
    begun: bool = False
    done: bool = False
    content: bytes = b""


@dataclass(eq=False)
class _Worker:
    """A process, our end of its pipe, and what it is at."""

    process: Any
    pipe: Connection
    job: _Job | None = None


@dataclass(eq=False)
class _Batch:
    """What a block prepares. waiting: this process does nothing else. calls: of kernels that were
    missing when they were prepared.
    """

    thread: int
    waiting: bool = False
    workers: list[_Worker] | None = None
    jobs: dict[Key, _Job] = field(default_factory=dict[Key, _Job])
    calls: list[tuple[Any, Callable[[], None]]] = field(
        default_factory=list[tuple[Any, Callable[[], None]]]
    )


_OPEN: list[_Batch] = []  # the batch of this process, while there is one


@contextmanager
def side_by_side() -> Generator[None]:
    """Within the block, kernels that are bound are compiled side by side; at its end all of them
    are there.

    A block within another one belongs to it.
    """
    if _OPEN:
        yield
        return
    batch = _Batch(threading.get_ident())
    _OPEN.append(batch)
    try:
        yield
        settle()
    finally:
        _OPEN.remove(batch)
        _dismiss(batch)


def settle() -> None:
    """Wait until all that was bound so far is compiled. The workers end: what is bound later is
    compiled at once.
    """
    if is_open():
        batch = _OPEN[0]
        calls, batch.calls = batch.calls, []
        for _, call in calls:
            call()
        _dismiss(batch)


def need(kernels: Sequence[Any]) -> None:
    """Wait until these kernels are compiled, which are to run: in threads that would begin to
    compile them themselves.
    """
    if not _OPEN or not is_open():
        return
    batch = _OPEN[0]
    now = [c for c in batch.calls if any(c[0] is k for k in kernels)]
    batch.calls = [c for c in batch.calls if c not in now]
    for _, call in now:
        call()


def is_open() -> bool:
    """Whether this thread is within `side_by_side`."""
    return bool(_OPEN) and _OPEN[0].thread == threading.get_ident()


def submit(
    key: Key,
    name: str,
    request: Any,
    effort: int,
    compiler: Compiler,
    kernel: Any,
    call: Callable[[], None],
) -> bool:
    """Let a worker compile what `request` describes; False where there are none.

    effort: the more, the earlier it is begun with. call: takes the result for the kernel, once it
    is needed.
    """
    batch = _OPEN[0]
    if batch.workers is None:
        batch.workers = _fork(compiler)
    if not batch.workers:
        return False
    if key not in batch.jobs:
        batch.jobs[key] = _Job(name, request, effort)
    batch.calls.append((kernel, call))
    _receive(batch, 0)
    return True


def taken(key: Key) -> bytes:
    """What a worker made, once it is there; b"" for what this process has to compile."""
    if not is_open() or key not in _OPEN[0].jobs:
        return b""
    batch, job = _OPEN[0], _OPEN[0].jobs[key]
    job.effort = sys.maxsize
    batch.waiting = True
    while not job.done:
        _receive(batch, None)
    batch.waiting = False
    return job.content


def _fork(compiler: Compiler) -> list[_Worker]:
    """Workers, or none where a fork is not safe or has no use."""
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1
    if cores < 2 or threading.active_count() > 1 or cuda_is_started():
        return []
    context: Any = multiprocessing.get_context("fork")
    workers: list[_Worker] = []
    for _ in range(min(cores, MOST)):
        ours, theirs = context.Pipe()
        inherited = [ours, *(w.pipe for w in workers)]
        process = context.Process(target=_serve, args=(theirs, inherited, compiler), daemon=True)
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # which a worker inherits
        with warnings.catch_warnings():
            # of threads: those of NumPy's BLAS, which knows forks
            warnings.simplefilter("ignore", DeprecationWarning)
            try:
                process.start()
            except OSError:  # no process more for this user, or no memory
                ours.close()
                break
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, mask)
                theirs.close()
        workers.append(_Worker(process, ours))
    return workers


def _serve(pipe: Connection, inherited: list[Connection], compiler: Compiler) -> None:
    """The life of a worker: until its parent is gone or ends it. Ctrl-C is the parent's affair."""
    gc.disable()  # a compiler makes much that stays; the process ends soon
    for other in inherited:
        other.close()
    while True:
        try:
            request = pipe.recv()
            pipe.send_bytes(compiler(request))
        except (EOFError, OSError):
            return


def _receive(batch: _Batch, timeout: float | None) -> None:
    """Give idle workers something to do, and take what others have made, waiting for it that many
    seconds (None: as long as it takes).
    """
    workers = batch.workers or []
    _feed(batch, workers)
    busy = {w.pipe: w for w in workers if w.job is not None}
    for pipe in wait(list(busy), timeout):
        worker = busy[pipe]  # type: ignore[index]
        job, worker.job = worker.job, None
        assert job is not None
        try:
            job.content = worker.pipe.recv_bytes()
        except (EOFError, OSError):
            workers.remove(worker)
            _end(worker)
            text = (
                f"a process that compiled {job.name} ended early (code {worker.process.exitcode}); "
                "is the memory short?"
            )
            warn_user(f"{text} It is compiled in this process", WorkerWarning)
        job.done = True
        compiling.end(job.name)
    if not workers:
        for job in batch.jobs.values():
            job.done = True
    _feed(batch, workers)


def _feed(batch: _Batch, workers: list[_Worker]) -> None:
    """Long ones first: short ones at the end let all workers end together."""
    waiting = sorted((j for j in batch.jobs.values() if not j.begun), key=lambda j: -j.effort)
    for worker in workers:
        if worker.job is None and waiting:
            job = waiting.pop(0)
            job.begun, worker.job = True, job
            compiling.begin(job.name, len(waiting) if batch.waiting else None)
            with suppress(OSError):  # it is gone, which is noticed when its answer is read
                worker.pipe.send(job.request)


def _dismiss(batch: _Batch) -> None:
    workers, batch.workers = batch.workers or [], []
    for worker in workers:
        _end(worker)


def _end(worker: _Worker) -> None:
    worker.process.kill()
    worker.process.join()
    worker.pipe.close()
