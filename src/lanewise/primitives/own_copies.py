"""Loops of a CPU that scatter: each thread has separate memory to combine with, and that of all
threads is combined when they are done.

Integers and exact sums of floats give the same bits in every order, so that a thread may take what
another one has left, and a clock may say how many threads there are. The first thread has the
memory of the call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import isqrt
from typing import Any

import numpy as np

from lanewise.language.exact_sums import FORMATS
from lanewise.language.scatter import Operation
from lanewise.language.types import Scalar
from lanewise.primitives import own_sums
from lanewise.runtime import compile_workers, cpu
from lanewise.runtime.devices import cpu_threads
from lanewise.runtime.memory import allocate

COPYING = 0.6e-9  # seconds a byte of a thread's own memory takes: made zero, and combined
ROOM = 2**30  # bytes of the separate memory of all threads
INTEGERS = {"add": np.add, "min": np.minimum, "max": np.maximum}


@dataclass(frozen=True, slots=True)
class OwnCopy:
    """An argument that each thread has for itself. kind: of what it is combined with."""

    position: int
    operation: Operation
    kind: Scalar

    @property
    def _is_sum(self) -> bool:
        return self.operation == "sum"

    def nbytes(self, array: Any) -> int:
        """What a thread touches of its copy, about."""
        if not self._is_sum:
            return int(array.nbytes)
        form = FORMATS[self.kind.dtype.name]
        return own_sums.touched(form, own_sums.elements_of(form, array))

    def made(self, array: Any) -> Any:
        """Memory of another thread, which changes nothing when it is combined."""
        if self._is_sum or self.operation == "add":
            return allocate("cpu", array.nbytes, "a thread's own sums").view(array.dtype)
        limits = np.iinfo(array.dtype)
        return np.full(
            len(array), limits.max if self.operation == "min" else limits.min, array.dtype
        )

    def combine(self, array: Any, other: Any) -> None:
        """Add what another thread has."""
        if self._is_sum:
            own_sums.merge(FORMATS[self.kind.dtype.name], array, other)
        else:
            INTEGERS[self.operation](array, other, out=array)


def run_with_copies(
    kernel: cpu.RangeKernel,
    arguments: tuple[Any, ...],
    extent: int,
    grain: int,
    copies: Sequence[OwnCopy],
) -> None:
    """Run elements 0..extent on as many threads as pay, in pieces of at least `grain` elements."""
    compile_workers.need((kernel,))
    kernel, done = cpu.function_of(kernel, arguments), 0
    if extent > grain:
        done, seconds = cpu.begin(kernel, arguments, extent, grain)
        threads = threads_worth(seconds, copies, arguments)
        # asked last: how many there are takes microseconds to say
        if threads > 1 and (threads := min(threads, cpu_threads())) > 1:
            spans = cpu.spans(extent - done, threads, grain)
            _share(spans, kernel, arguments, done, copies)
            return
    kernel(*arguments, done, extent)


def threads_worth(seconds: float, copies: Sequence[OwnCopy], arguments: tuple[Any, ...]) -> int:
    """How many threads end work first that takes one of them so long: each one more takes its
    share, and has copies that are made and combined.
    """
    nbytes = sum(c.nbytes(arguments[c.position]) for c in copies)
    room = 1 + ROOM // max(1, nbytes)
    return min(room, isqrt(int(seconds / (cpu.HANDING_OVER + COPYING * nbytes))))


def _share(
    spans: list[list[tuple[int, int]]],
    kernel: cpu.RangeKernel,
    arguments: tuple[Any, ...],
    done: int,
    copies: Sequence[OwnCopy],
) -> None:
    """Run the pieces of each thread, which lie behind what is done."""
    others: list[tuple[Any, ...]] = []
    # `next` of a list's iterator is atomic
    shares = [iter(pieces) for pieces in spans]

    def work(first: int) -> None:
        own = arguments
        if first:
            own = copied(arguments, copies)
            others.append(own)
        for share in (*shares[first:], *shares[:first]):
            for begin, end in share:
                kernel(*own, done + begin, done + end)

    cpu.at_once([partial(work, n) for n in range(len(shares))])
    combine(arguments, others, copies)


def copied(arguments: tuple[Any, ...], copies: Sequence[OwnCopy]) -> tuple[Any, ...]:
    """The arguments of another thread."""
    made = {c.position: c.made(arguments[c.position]) for c in copies}
    return tuple([made.get(n, a) for n, a in enumerate(arguments)])


def combine(
    arguments: tuple[Any, ...], others: Sequence[tuple[Any, ...]], copies: Sequence[OwnCopy]
) -> None:
    """Add what the other threads have."""
    for own in others:
        for c in copies:
            c.combine(arguments[c.position], own[c.position])
