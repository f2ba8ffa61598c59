"""Kernels of a CPU: the functions of texts, and ranges of them on a pool of threads."""

from __future__ import annotations

import math
import os
import re
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import pairwise
from math import isqrt
from queue import SimpleQueue
from time import perf_counter
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from lanewise.runtime import compile_workers, llvm
from lanewise.runtime.cache import content_key
from lanewise.runtime.compiler_locks import LOADING, keep_over_forks
from lanewise.runtime.devices import cpu_threads
from lanewise.runtime.llvm import LlvmKernel
from lanewise.runtime.written.kernel import TextKernel
from lanewise.support.interrupts import interrupts_wait

RangeKernel = LlvmKernel | TextKernel | Callable[..., None]
SLAB_UNIT = (
    # sites of one span at most: enough for SIMD loops, short enough to share the work; slabs are
    # multiples
    4096
)

# the kernels that a caller holds, by what they are made of
_LOADED: WeakValueDictionary[str, LlvmKernel] = WeakValueDictionary()


def load_kernel(text: str, name: str) -> LlvmKernel:
    """The function `<name>_kernel` of a generated text; equal code gives one function as long as
    a caller holds it. Its machine code is kept in the cache of compiled kernels.
    """
    key = content_key(code_of(text), name)
    with LOADING:
        kernel = _LOADED.get(key)
        if kernel is None:
            keep_over_forks()
            _LOADED[key] = kernel = LlvmKernel(lambda: text, name, key)
    return kernel


_HEAD = re.compile(r"\A(?:; .*\n)+\n")


def code_of(text: str) -> str:
    """A generated text without its head, which names the plan: plans that come to the same have the
    same code.
    """
    return _HEAD.sub("", text)


@cache
def own_kernel(text: str, name: str) -> TextKernel:
    """The function `<name>_kernel` of a text that is written by hand, of which there are few; it
    stays for the life of the process.
    """
    keep_over_forks()
    return TextKernel(text, name)


@interrupts_wait()
def prepare(kernel: RangeKernel) -> None:
    """Compile a generated kernel. Within `compile_workers.side_by_side` a worker does it, and this
    process continues.
    """
    if not isinstance(kernel, LlvmKernel):
        return
    if not compile_workers.is_open() or kernel.is_known:
        kernel.load()
        return
    text = kernel.written()
    if not compile_workers.submit(
        (kernel.key,), kernel.name, text, len(text), _machine_code, kernel, kernel.load
    ):
        kernel.load()


@interrupts_wait()
def _machine_code(text: str) -> bytes:
    """What a kernel's cache keeps of it; b"" for one that cannot be compiled."""
    try:
        return llvm.machine_code(text)
    except RuntimeError:
        return b""


@interrupts_wait()
def width_problem(bits: int) -> str | None:
    """Why kernels cannot use SIMD registers of that many bits here, or None; 0 leaves the choice to
    the compiler.
    """
    if not bits:
        return None
    from lanewise.runtime import host_width

    keep_over_forks()
    return host_width.problem(bits)


class _Pool:
    """At most so many threads, which end with the program, whatever they run: a kernel without end
    would keep it from ending if it were waited for, as that of an executor is.
    """

    __slots__ = ("_idle", "_lock", "_queue", "_threads")

    def __init__(self, threads: int) -> None:
        self._queue = SimpleQueue[tuple[Future[None], Callable[[], None]]]()
        self._idle = threading.Semaphore(0)
        self._lock, self._threads = threading.Lock(), threads

    def submit(self, work: Callable[[], None]) -> Future[None]:
        future = Future[None]()
        self._queue.put((future, work))
        if not self._idle.acquire(blocking=False):
            with self._lock:
                if self._threads:
                    self._threads -= 1
                    threading.Thread(target=self._serve, name="lanewise", daemon=True).start()
        return future

    def _serve(self) -> None:
        while True:
            future, work = self._queue.get()
            if future.set_running_or_notify_cancel():
                try:
                    work()
                except BaseException as error:  # raised again where it is waited for
                    future.set_exception(error)
                else:
                    future.set_result(None)
            del future, work  # nothing is held while there is nothing to do
            self._idle.release()


_pool = cache(_Pool)


if hasattr(os, "register_at_fork"):
    # threads do not survive a fork: the child makes its own
    os.register_at_fork(after_in_child=_pool.cache_clear)


ROW = 256  # elements: LLVM takes no more of them in a round, of any type


def whole_rows(elements: int) -> int:
    """About so many: whole rows, where there are some. Ranges are cut at rows, as the estimate
    behind `lw.rsqrt` is another one in narrow registers, which the elements after the last vector
    of a range are computed in: which ones these are depends on no number of threads and on no
    clock.
    """
    return elements if elements < ROW else elements - elements % ROW


def spans(extent: int, threads: int, grain: int) -> list[list[tuple[int, int]]]:
    """A span of 0..extent for each thread, equally long, in pieces that become shorter: half of
    what is left of the span, or `grain`.

    A thread goes through its own span first: one piece continues the other, so that what a stencil
    has read of its neighbours is read once. Who is done takes what is left of the others' spans, so
    that all threads end together even when one core is slower.
    """
    grain = whole_rows(grain)
    units = -(-extent // grain)
    threads = max(1, min(threads, units))
    edges = [min(extent, units * t // threads * grain) for t in range(threads + 1)]
    made: list[list[tuple[int, int]]] = []
    for begin, end in pairwise(edges):
        pieces: list[tuple[int, int]] = []
        while begin < end:
            size = max(grain, whole_rows((end - begin) // 2))
            pieces.append((begin, min(begin + size, end)))
            begin += size
        made.append(pieces)
    return made


def function_of(kernel: RangeKernel, arguments: tuple[Any, ...]) -> RangeKernel:
    """What runs a kernel with these arguments, before the ends of a range: it is compiled if it is
    not.
    """
    match kernel:
        case LlvmKernel():
            return kernel.function
        case TextKernel():
            return kernel.function_for((*arguments, 0, 0))
        case _:
            return kernel


HANDING_OVER = 50e-6  # seconds that it takes to hand work over to other threads, and to wait for it
SURE = 256  # pieces that are worth handing over, whatever they compute
READABLE = 2e-6  # seconds that a clock tells apart
SAMPLES = 3  # runs whose first slab is timed: the first ones find nothing in the caches
TIMED_AGAIN = 64  # runs on all threads until a launch is timed again: it may be short by then


def pays(seconds: float) -> bool:
    """Whether work that takes so long alone is worth sharing with other threads: half of it is
    longer than handing it over.
    """
    return seconds > 2 * HANDING_OVER


def begin(
    kernel: RangeKernel, arguments: tuple[Any, ...], extent: int, grain: int
) -> tuple[int, float]:
    """Run the first elements, a piece at most. How many, and the seconds that the others take."""
    grain = whole_rows(grain)
    first, start = max(ROW if grain >= ROW else 1, whole_rows(grain // 16)), perf_counter()
    kernel(*arguments, 0, first)
    spent = perf_counter() - start
    if spent < READABLE and first < grain:
        kernel(*arguments, first, grain)
        first, spent = grain, perf_counter() - start
    return first, spent / first * (extent - first)


@dataclass(slots=True, eq=False)
class OneThread:
    """What was seen of one launch: the least seconds that one thread needs after its first piece,
    how often that was timed, and how often all threads ran it since.
    """

    seconds: float = math.inf
    samples: int = 0
    shared: int = 0

    @property
    def is_known(self) -> bool:
        """Whether it is known if a second thread pays."""
        return self.samples >= SAMPLES

    def add(self, seconds: float) -> None:
        """Note a run whose first piece was timed."""
        self.seconds = min(self.seconds, seconds)
        self.samples += 1

    def run(self, kernel: RangeKernel, arguments: tuple[Any, ...], extent: int, grain: int) -> None:
        """Run all elements, on all threads where that pays: no piece runs first and alone, which
        of two pieces is half of the work.

        The time of all threads does not tell whether one would do, so a launch leaves them
        periodically.
        """
        if pays(self.seconds):
            _share(cpu_threads(), kernel, arguments, (0, extent), grain)
            self.shared += 1
            is_to_be_timed = self.shared >= TIMED_AGAIN
        else:
            start = perf_counter()
            kernel(*arguments, 0, extent)
            is_to_be_timed = pays(perf_counter() - start)
        if is_to_be_timed:
            self.seconds, self.samples, self.shared = math.inf, 0, 0


def run_range(
    kernel: RangeKernel,
    arguments: tuple[Any, ...],
    extent: int,
    grain: int,
    alone: OneThread | None = None,
) -> None:
    """Run elements 0..extent on all threads, in pieces of at least `grain` elements; on one, where
    few pieces are done before others had them.

    Elements are independent: the split changes no bits. alone: of a launch that comes again.
    """
    compile_workers.need((kernel,))
    kernel = function_of(kernel, arguments)
    if extent <= grain:
        kernel(*arguments, 0, extent)
        return
    done = 0
    if extent < SURE * grain:
        if alone is not None and alone.is_known:
            alone.run(kernel, arguments, extent, grain)
            return
        done, seconds = begin(kernel, arguments, extent, grain)
        if alone is not None:
            alone.add(seconds)
        if not pays(seconds):
            kernel(*arguments, done, extent)
            return
    # asked last: how many there are takes microseconds to say
    _share(cpu_threads(), kernel, arguments, (done, extent), grain)


def run_priced(
    kernel: RangeKernel, arguments: tuple[Any, ...], extent: int, nanoseconds: float
) -> None:
    """Run elements 0..extent, each of which takes one thread so long, on as many threads as pay.

    For passes of a millisecond or less, which all threads of a large machine make slower.
    """
    compile_workers.need((kernel,))
    grain = max(1, int(HANDING_OVER * 1e9 / nanoseconds))
    threads = threads_worth(extent * nanoseconds)
    _share(threads, function_of(kernel, arguments), arguments, (0, extent), grain)


def run_shares(kernel: RangeKernel, arguments: tuple[Any, ...], shares: int) -> None:
    """Run the shares 0..shares of work that was divided for so many threads, all of them at once:
    none is timed alone first, as it would take as long as all of them.
    """
    compile_workers.need((kernel,))
    threads = min(shares, cpu_threads())
    _share(threads, function_of(kernel, arguments), arguments, (0, shares), 1)


def threads_worth(nanoseconds: float) -> int:
    """How many threads end work first that takes one of them so long: `n` of them take 1 / n of it
    and n times `HANDING_OVER`.

    Each one that is woken waits for Python's lock around each of its pieces: the builders of
    searches on 16 cores lose about 45 us to each.
    """
    return max(1, min(cpu_threads(), isqrt(int(nanoseconds / (HANDING_OVER * 1e9)))))


def _share(
    threads: int,
    kernel: RangeKernel,
    arguments: tuple[Any, ...],
    span: tuple[int, int],
    grain: int,
) -> None:
    """Run the elements of a span on so many threads."""
    done, extent = span
    if threads == 1:
        kernel(*arguments, done, extent)
        return
    # `next` of a list's iterator is atomic
    shares = [iter(pieces) for pieces in spans(extent - done, threads, grain)]

    def work(first: int) -> None:
        for share in (*shares[first:], *shares[:first]):
            for begin, end in share:
                kernel(*arguments, done + begin, done + end)

    at_once([partial(work, n) for n in range(len(shares))])


def at_once(works: Sequence[Callable[[], None]]) -> None:
    """Run these, the first one here and the others in the threads of the process. Each takes what
    is left of the same list: one that no thread has begun when the first is done has nothing to do.

    Threads find their work in a list that is empty afterwards: one that is late, or has not let go
    of what it ran, would hold the memory of a call that is over.
    """
    waiting = list(works)
    pool = _pool(max(len(works), cpu_threads()) - 1) if len(works) > 1 else None
    others = (
        [pool.submit(partial(_run_one, waiting, n)) for n in range(1, len(works))] if pool else []
    )
    try:
        works[0]()
    finally:
        begun = [other for other in others if not other.cancel()]
        try:
            wait(begun)  # all of them: none writes any more when the error of another one is raised
            for other in begun:
                other.result()
        finally:
            waiting.clear()


def _run_one(works: Sequence[Callable[[], None]], n: int) -> None:
    works[n]()


@dataclass(frozen=True, slots=True)
class RangeLaunch:
    """A kernel over so many elements.

    Calling it runs them with the arguments that come before the ends of a range.
    """

    kernel: RangeKernel
    extent: int
    grain: int
    alone: OneThread = field(default_factory=OneThread, init=False, compare=False)

    def __call__(self, arguments: tuple[Any, ...]) -> None:
        run_range(self.kernel, arguments, self.extent, self.grain, self.alone)

    def prepare(self) -> None:
        """Compile the kernel."""
        prepare(self.kernel)

    def flat(self, arguments: tuple[Any, ...]) -> Callable[[], None]:
        """The run with these arguments as one function: of few elements the compiled kernel
        itself.
        """
        compile_workers.need((self.kernel,))
        if self.extent <= self.grain:
            return partial(function_of(self.kernel, arguments), *arguments, 0, self.extent)
        return partial(run_range, self.kernel, arguments, self.extent, self.grain, self.alone)


@dataclass(frozen=True, slots=True)
class Slabbed:
    """A kernel over a list of places, and where the part of each slab of them begins; the last
    entry is the end.
    """

    kernel: RangeKernel
    arguments: tuple[Any, ...]
    bounds: Sequence[int]


def slab_run(work: Sequence[Slabbed]) -> Callable[[], None]:
    """What `run_slabs` does, as one function; of one slab it is the calls themselves."""
    if not work:
        return partial(run_slabs, work, 1, range(0))
    if len(work[0].bounds) != 2:
        return SharedSlabs(work)
    compile_workers.need([w.kernel for w in work])
    calls = [
        partial(function_of(w.kernel, w.arguments), *w.arguments, *w.bounds)
        for w in work
        if w.bounds[0] < w.bounds[1]
    ]
    if len(calls) == 1:
        return calls[0]

    def run() -> None:
        for call in calls:
            call()

    return run


@dataclass(slots=True, eq=False)
class SharedSlabs:
    """Slabs that threads share where that pays, by how long the one with the most places takes.

    order: that one, then the others; times: how many of it the others are together. seconds: the
    least that it took. samples: how often it was timed.
    """

    work: Sequence[Slabbed]
    order: list[int] = field(init=False)
    times: float = field(init=False)
    seconds: float = math.inf
    samples: int = 0

    def __post_init__(self) -> None:
        places = np.diff([w.bounds for w in self.work]).sum(axis=0)
        self.order = np.argsort(-places, kind="stable").tolist()
        self.order[1:] = sorted(self.order[1:])  # neighbours find each other's sites in the caches
        most = int(places.max(initial=0))
        self.times = (int(places.sum()) - most) / max(1, most)

    def __call__(self) -> None:
        first, threads = 0, cpu_threads()
        if threads > 1 and self.samples < SAMPLES:
            start = perf_counter()
            run_slabs(self.work, 1, self.order[:1])
            self.seconds = min(self.seconds, perf_counter() - start)
            self.samples += 1
            first = 1
        if not pays(self.seconds * self.times):
            threads = 1
        run_slabs(self.work, threads, self.order[first:])


def run_slabs(work: Sequence[Slabbed], threads: int, slabs: Sequence[int]) -> None:
    """Run all kernels on one slab after the other: what one of them leaves in the caches the next
    one finds there.

    The kernels may run in any order, and slabs at the same time. No kernels are no work: of sites
    that are all walls, say.
    """
    if not work:
        return
    compile_workers.need([w.kernel for w in work])
    runs = [(function_of(w.kernel, w.arguments), w.arguments, w.bounds) for w in work]
    todo = iter(slabs)  # `next` of the iterator of a list or a range is atomic

    def run() -> None:
        for slab in todo:
            for kernel, arguments, bounds in runs:
                begin, end = bounds[slab], bounds[slab + 1]
                if begin < end:
                    kernel(*arguments, begin, end)

    at_once([run] * max(1, min(threads, len(slabs))))
