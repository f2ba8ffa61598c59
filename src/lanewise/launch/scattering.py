"""Kernels of a CPU that scatter (`primitives/own_copies.py`). Minima and maxima of floats, which
seldom change an element, stay atomic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from lanewise.ir import nodes as ir
from lanewise.ir.functions import functions
from lanewise.ir.traverse import adds_in_order, statements
from lanewise.primitives.own_copies import OwnCopy, run_with_copies
from lanewise.primitives.sums_in_parts import run_in_parts
from lanewise.runtime import compile_workers, cpu


def own_copies(kernel: ir.Kernel, taken: tuple[ir.BufferArgument, ...]) -> tuple[OwnCopy, ...]:
    """The arguments of a kernel that each thread has for itself. taken: its buffers."""
    places = {b.name: n for n, b in enumerate(taken)}
    found = dict[int, OwnCopy]()
    for s in _scatters(kernel):
        at, kind = places[s.buffer], s.value.type
        if s.operation == "sum" or not kind.is_float:
            found[at] = OwnCopy(at, s.operation, kind)
    return tuple(found.values())


def summed_in_order(kernel: ir.Kernel, taken: tuple[ir.BufferArgument, ...]) -> tuple[int, ...]:
    """The arguments to which a kernel adds floats one after the other."""
    names = {s.buffer for s in _scatters(kernel) if adds_in_order((s,))}
    return tuple(n for n, b in enumerate(taken) if b.name in names)


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
        run_with_copies(self.kernel, arguments, self.extent, self.grain, self.copies)

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


@dataclass(frozen=True, slots=True)
class PartedLaunch:
    """A kernel that adds floats in order, in parts that have their own sums: see
    `primitives/sums_in_parts.py`. There are two parts or more.
    """

    kernel: cpu.RangeKernel
    spans: tuple[tuple[int, int], ...]
    summed: tuple[int, ...]
    copies: tuple[OwnCopy, ...]

    def __call__(self, arguments: tuple[Any, ...]) -> None:
        run_in_parts(self.kernel, arguments, self.spans, self.summed, self.copies)

    def prepare(self) -> None:
        """Compile the kernel."""
        cpu.prepare(self.kernel)

    def flat(self, arguments: tuple[Any, ...]) -> Callable[[], None]:
        """The run with these arguments as one function."""
        compile_workers.need((self.kernel,))
        return partial(self, arguments)
