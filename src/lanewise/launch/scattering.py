"""Kernels of a CPU that scatter: each thread has separate memory to combine with, and that of all
threads is combined when they are done.

Integers and exact sums of floats give the same bits in every order, so that a thread may take what
another one has left, and a clock may say how many threads there are. The first thread has the
memory of the call. Minima and maxima of floats, which seldom change an element, stay atomic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from math import isqrt
from typing import Any

import numpy as np

from lanewise.ir import nodes as ir
from lanewise.ir.functions import functions
from lanewise.ir.traverse import statements
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


def own_copies(kernel: ir.Kernel, taken: tuple[ir.BufferArgument, ...]) -> tuple[OwnCopy, ...]:
    """The arguments of a kernel that each thread has for itself. taken: its buffers."""
    places = {b.name: n for n, b in enumerate(taken)}
    found = dict[int, OwnCopy]()
    for s in _scatters(kernel):
        at, kind = places[s.buffer], s.value.type
        if s.operation == "sum" or not kind.is_float:
            found[at] = OwnCopy(at, s.operation, kind)
    return tuple(found.values())


def _scatters(kernel: ir.Kernel) -> Iterator[ir.Scatter]:
    for body in (kernel.body, *(f.body for f in functions(kernel.body))):
        yield from (s for s in statements(body) if isinstance(s, ir.Scatter))


@dataclass(frozen=True, slots=True)
class ScatterLaunch:
    """A kernel that scatters, over so many elements; called as `cpu.RangeLaunch` is."""

    kernel: cpu.RangeKernel
    extent: int
    grain: int
    copies: tuple[OwnCopy, ...]

    def __call__(self, arguments: tuple[Any, ...]) -> None:
        compile_workers.need((self.kernel,))
        kernel, done = cpu.function_of(self.kernel, arguments), 0
        if self.extent > self.grain and (threads := cpu_threads()) > 1:
            done, seconds = cpu.begin(kernel, arguments, self.extent, self.grain)
            threads = self._worth(threads, seconds, arguments)
            if threads > 1:
                self._share(threads, kernel, arguments, done)
                return
        kernel(*arguments, done, self.extent)

    def prepare(self) -> None:
        """Compile the kernel."""
        cpu.prepare(self.kernel)

    def flat(self, arguments: tuple[Any, ...]) -> Callable[[], None]:
        """The run with these arguments as one function: of few elements the compiled kernel
        itself.
        """
        compile_workers.need((self.kernel,))
        if self.extent <= self.grain:
            kernel = cpu.function_of(self.kernel, arguments)
            return partial(kernel, *arguments, 0, self.extent)
        return partial(self, arguments)

    def _worth(self, threads: int, seconds: float, arguments: tuple[Any, ...]) -> int:
        """How many threads end work first that takes one of them so long: each one more takes its
        share, and has memory that is made and combined.
        """
        nbytes = sum(c.nbytes(arguments[c.position]) for c in self.copies)
        room = 1 + ROOM // max(1, nbytes)
        return max(
            1, min(threads, room, isqrt(int(seconds / (cpu.HANDING_OVER + COPYING * nbytes))))
        )

    def _share(
        self, threads: int, kernel: cpu.RangeKernel, arguments: tuple[Any, ...], done: int
    ) -> None:
        """Run what is left on so many threads."""
        others: list[tuple[Any, ...]] = []
        # `next` of a list's iterator is atomic
        shares = [iter(p) for p in cpu.spans(self.extent - done, threads, self.grain)]

        def work(first: int) -> None:
            own = arguments
            if first:
                own = self._own(arguments)
                others.append(own)
            for share in (*shares[first:], *shares[:first]):
                for begin, end in share:
                    kernel(*own, done + begin, done + end)

        cpu.at_once([partial(work, n) for n in range(len(shares))])
        for own in others:
            for c in self.copies:
                c.combine(arguments[c.position], own[c.position])

    def _own(self, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        made = {c.position: c.made(arguments[c.position]) for c in self.copies}
        return tuple([made.get(n, a) for n, a in enumerate(arguments)])
