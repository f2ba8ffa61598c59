"""Sums of floats in order on several threads: parts of a launch have their own sums, which are
added in the order of the parts.

How many parts there are and where they begin is fixed before the launch; how many threads run them,
and when each is done, changes no bits. The first part adds to the memory of the call, all others to
copies, which begin as -0.0: an element that a part does not reach keeps its bits, and one that it
reaches once gets that value. A copy whose part has been added is used again, so that there are
about as many of them as threads. Some stay for the next call, because the system takes longer to
allocate and free memory of several threads than a part takes to add.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from itertools import pairwise
from threading import Lock
from typing import Any

import numpy as np

from lanewise.primitives.own_copies import OwnCopy, combine, copied, threads_worth
from lanewise.runtime import compile_workers, cpu
from lanewise.runtime.devices import cpu_threads
from lanewise.runtime.memory import allocate

KEPT = 1 << 24  # bytes that stay for the next call
_SPARE: list[Any] = []  # memory of copies that no call has; `pop` and `append` are atomic


def edges(extent: int, parts: int) -> tuple[tuple[int, int], ...]:
    """Where parts of 0..extent begin and end: those that have elements, equally long but for whole
    rows.
    """
    places = [cpu.whole_rows(extent * n // parts) for n in range(parts)]
    return tuple((a, b) for a, b in pairwise((*places, extent)) if a < b)


def _memory(nbytes: int) -> Any:
    """Memory of a copy, of any contents."""
    with suppress(IndexError):
        memory = _SPARE.pop()
        if memory.nbytes == nbytes:
            return memory
    return allocate("cpu", nbytes, "a part's own sums")


def _clear(arrays: Sequence[Any]) -> None:
    """Make arrays ready for the sums of a part."""
    for array in arrays:
        array.fill(-0.0)


class _Sums:
    """The sums of all parts, added in order to the arrays of a call."""

    __slots__ = ("_arrays", "_free", "_is_adding", "_lock", "_next", "_waiting")

    def __init__(self, arrays: Sequence[Any]) -> None:
        self._arrays = arrays
        self._next, self._is_adding, self._lock = 0, False, Lock()
        # copies of parts that are done before an earlier part, and those that were added
        self._waiting = dict[int, Sequence[Any]]()
        self._free = list[Sequence[Any]]()

    def copies(self) -> Sequence[Any]:
        """Memory of a part."""
        return [_memory(a.nbytes).view(a.dtype) for a in self._arrays]

    def end(self, *more: Sequence[Any]) -> None:
        """Keep some of the copies for the next call."""
        for own in (*self._free, *more):
            for copy in own:
                if sum(m.nbytes for m in _SPARE) + copy.nbytes <= KEPT:
                    _SPARE.append(copy.view(np.uint8))

    def add(self, own: Sequence[Any]) -> None:
        """Add the sums of the next part. As kernels do, it says nothing of infinities and NaN."""
        with np.errstate(all="ignore"):
            for array, copy in zip(self._arrays, own, strict=True):
                np.add(array, copy, out=array)

    def of(self, part: int) -> Sequence[Any]:
        """What a part adds to."""
        if not part:
            return self._arrays
        with self._lock:
            own = self._free.pop() if self._free else None
        own = own or self.copies()
        _clear(own)
        return own

    def done(self, part: int, own: Sequence[Any]) -> None:
        """Add what a part has and what waits for it; by another thread, where that one is adding
        just now.
        """
        with self._lock:
            self._waiting[part] = own
            if self._is_adding:
                return
            self._is_adding = True
        while True:
            with self._lock:
                ready = self._waiting.pop(self._next, None)
                if ready is None:
                    self._is_adding = False
                    return
                self._next += 1
            if ready is not self._arrays:
                self.add(ready)
                with self._lock:
                    self._free.append(ready)


def run_in_parts(
    kernel: cpu.RangeKernel,
    arguments: tuple[Any, ...],
    spans: Sequence[tuple[int, int]],
    summed: Sequence[int],
    copies: Sequence[OwnCopy],
) -> None:
    """Run the parts of a launch. spans: their elements. summed: positions of the arrays to which
    floats are added in order. copies: what each thread has for itself besides.
    """
    compile_workers.need((kernel,))
    kernel, done, (_, end) = cpu.function_of(kernel, arguments), 0, spans[0]
    threads = min(cpu_threads(), len(spans))
    if threads > 1:
        done, seconds = cpu.begin(kernel, arguments, spans[-1][1], end)
        threads = min(threads, threads_worth(seconds, copies, arguments))
    if threads > 1:
        _share([(done, end), *spans[1:]], threads, kernel, arguments, summed, copies)
        return
    kernel(*arguments, done, end)
    sums = _Sums([arguments[n] for n in summed])
    own = sums.copies()
    given = _with(arguments, summed, own)
    for first, last in spans[1:]:
        _clear(own)
        kernel(*given, first, last)
        sums.add(own)
    sums.end(own)


def _share(
    spans: Sequence[tuple[int, int]],
    threads: int,
    kernel: cpu.RangeKernel,
    arguments: tuple[Any, ...],
    summed: Sequence[int],
    copies: Sequence[OwnCopy],
) -> None:
    """Run parts on so many threads, each of which takes the next one."""
    # `next` of a list's iterator is atomic
    todo = iter([*enumerate(spans)])
    sums = _Sums([arguments[n] for n in summed])
    owners: list[tuple[Any, ...]] = []

    def work(number: int) -> None:
        own = arguments
        if number:
            own = copied(arguments, copies)
            owners.append(own)
        for part, (first, last) in todo:
            to = sums.of(part)
            kernel(*_with(own, summed, to), first, last)
            sums.done(part, to)

    cpu.at_once([partial(work, n) for n in range(threads)])
    sums.end()
    combine(arguments, owners, copies)


def _with(
    arguments: tuple[Any, ...], positions: Sequence[int], arrays: Sequence[Any]
) -> tuple[Any, ...]:
    """Arguments with other arrays at some positions."""
    given = list(arguments)
    for position, array in zip(positions, arrays, strict=True):
        given[position] = array
    return tuple(given)
