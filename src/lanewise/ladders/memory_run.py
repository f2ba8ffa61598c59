"""How a cell of the ladder of memory accesses is checked and timed."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from lanewise.arrays import RecordArray
from lanewise.ladders.memory_cells import (
    NO_READING,
    AccessName,
    Bodies,
    BoundCell,
    Cell,
    bind,
    compile_cell,
    compile_clocked,
    make_bodies,
)
from lanewise.ladders.run import one_thread
from lanewise.ladders.rung import Options
from lanewise.layouts import Layout
from lanewise.runtime.memory import bring, to_host
from lanewise.target import is_gpu

TOLERANCE = 1e-6  # of a float32 sum of seven numbers, relative to the largest sum
ROUNDS, QUICK_ROUNDS = 15, 5
LEAST, QUICK_LEAST = 0.02, 0.005  # seconds of one timed run: short passes are repeated within it


@dataclass(frozen=True, slots=True)
class Measured:
    """A pass over all records: its error, its seconds, and the cycles of one record; or what is wrong with it."""

    error: float
    seconds: float = 0.0
    cycles: float = 0.0
    wrong: str | None = None


@dataclass
class Measurer:
    """The records of one size in every layout, made when they are needed, and the measurements of their cells."""

    options: Options
    count: int
    bodies: Bodies = field(init=False)
    arrays: dict[Layout, RecordArray] = field(default_factory=dict[Layout, RecordArray])
    order: Any = None
    sums: dict[AccessName, npt.NDArray[np.float64]] = field(default_factory=dict[AccessName, npt.NDArray[np.float64]])

    def __post_init__(self) -> None:
        self.bodies = make_bodies(self.count, self.options.seed)
        self.order = bring(self.bodies.order, self.options.device)

    def measure(self, cell: Cell) -> Measured:
        """Check a cell against float64, then time it: only what is right has a time."""
        device = self.options.device
        if cell.layout not in self.arrays:
            self.arrays[cell.layout] = self.bodies.array(cell.layout, device)
        with nullcontext() if is_gpu(device) else one_thread():
            plain = bind(compile_cell(cell, device), self.arrays[cell.layout], self.order)
            error = self.error(cell, plain)
            if not error <= TOLERANCE:
                return Measured(error, wrong=_wrong(error))
            seconds = self.time(plain)
        if not is_gpu(device):
            from lanewise.models.host import clock_hz

            return Measured(error, seconds, seconds * clock_hz() / self.count)
        return self.clocked(cell, error, seconds)

    def error(self, cell: Cell, bound: BoundCell) -> float:
        """The largest difference from the float64 sums after one pass, over the largest of them."""
        bound.run()
        if cell.access not in self.sums:
            self.sums = {cell.access: self.bodies.sums(cell.access)}  # of one access at a time: they are large
        wanted = self.sums[cell.access]
        return float(np.max(np.abs(to_host(bound.result) - wanted)) / np.max(np.abs(wanted)))

    def time(self, bound: BoundCell) -> float:
        """The median time of a pass that follows another one."""
        least = QUICK_LEAST if self.options.quick else LEAST
        timed = _timer(self.options.device)
        repeats = max(1, min(1000, round(least / timed(bound.run))))

        def passes() -> None:
            for _ in range(repeats):
                bound.run()

        passes()
        return statistics.median(timed(passes) for _ in range(self.rounds)) / repeats

    def clocked(self, cell: Cell, error: float, seconds: float) -> Measured:
        """The median of the warps' cycles, from the kernel that reads the clock; its sums are checked too."""
        bound = bind(compile_clocked(cell, self.options.device), self.arrays[cell.layout], self.order, clocked=True)
        found = self.error(cell, bound)
        if not found <= TOLERANCE:
            return Measured(found, wrong=_wrong(found))
        medians: list[float] = []
        for _ in range(self.rounds):
            bound.run()
            readings = to_host(bound.cycles)
            if missing := int(np.count_nonzero(readings == NO_READING)):
                return Measured(error, wrong=f"wrong: {missing} of {len(readings)} warps did not read the clock")
            medians.append(float(np.median(readings)))
        return Measured(error, seconds, statistics.median(medians))

    @property
    def rounds(self) -> int:
        return QUICK_ROUNDS if self.options.quick else ROUNDS


def _wrong(error: float) -> str:
    return f"wrong: the relative error against float64 is {error:.1e}, and {TOLERANCE:.0e} is allowed"


def _timer(device: str) -> Callable[[Callable[[], None]], float]:
    """Seconds of some work: by events on a GPU, by the clock of the host on a CPU."""
    if is_gpu(device):
        from lanewise.runtime import cuda

        return cuda.timer(device)

    def measure(work: Callable[[], None]) -> float:
        start = time.perf_counter()
        work()
        return time.perf_counter() - start

    return measure
