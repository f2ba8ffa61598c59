"""The ladder `memory`: the memory-access micro-benchmark of the Gravit study, under five layouts and three accesses.

Every rung is one user function (`memory_cells.total`, or `hot_total` for position and mass) that reads a record and
adds its elements. On a GPU each warp reads its clock before the fetches and after the sum; the figure is the median of
the warps' cycles over the number of elements of four bytes, as in the study's figure 9. On a CPU one thread is timed
from outside: cycles = seconds x clock / elements. Every pass that is timed follows another one over the same records,
so records that fit the last-level cache come from there.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from lanewise.arrays import RecordArray
from lanewise.ladders.caches import last_level_bytes
from lanewise.ladders.memory_cells import (
    ACCESSES,
    NO_READING,
    Bodies,
    Bound,
    Cell,
    bind,
    compile_cell,
    compile_clocked,
    make_bodies,
)
from lanewise.ladders.report import digits, factor_text
from lanewise.ladders.run import one_thread, skipped
from lanewise.ladders.rung import Column, Ladder, Options, Rung
from lanewise.layouts import AoAS, AoS, AoSoA, Layout, SoA, SoAoAS
from lanewise.layouts.cost import Access, cost, memory_model
from lanewise.runtime.memory import bring, to_host

RECORD_BYTES = 28  # seven elements of four bytes
TOLERANCE = 1e-6  # of a float32 sum of seven numbers, relative to the largest sum
ROUNDS, QUICK_ROUNDS = 15, 5
LEAST, QUICK_LEAST = 0.02, 0.005  # seconds of one timed run: short passes are repeated within it
PAPER = {"SoA": {"CUDA 1.0": 1.1}, "SoAoAS": {"CUDA 1.0": 1.5, "CUDA 2.2": 1.3}}


def layouts(device: str) -> dict[str, Layout]:
    """The layouts by name, AoS first; the blocks of AoSoA are as wide as a warp or a SIMD register."""
    blocks = AoSoA(32 if device.startswith("cuda") else 16)
    return {"AoS": AoS(), "SoA": SoA(), "AoAS": AoAS(), "SoAoAS": SoAoAS(), "AoSoA": blocks}


def sizes(device: str, quick: bool) -> tuple[int, ...]:
    """Bodies that take a quarter of the last-level cache, and bodies that take far more than all of it."""
    held = last_level_bytes(device) / RECORD_BYTES
    least = (20_000_000 if quick else 64_000_000) if device.startswith("cuda") else (3_000_000 if quick else 8_000_000)
    return _rounded(held / 4), max(least, _rounded(3 * held))


def _rounded(count: float) -> int:
    """Two digits and zeros: arrays whose length is a power of two fall into the same places of a cache."""
    unit = 10 ** max(0, len(str(int(count))) - 2)
    return max(1, int(count) // unit * unit)


def is_cached(device: str, bodies: int) -> bool:
    """Whether the records of a pass, with as much again for results and indices, fit the last-level cache."""
    return 2 * RECORD_BYTES * bodies <= last_level_bytes(device)


def climb(options: Options) -> Iterator[Rung]:
    """The rungs at every size, each as soon as it is measured."""
    for count in options.bodies:
        size = _Size(options, count)
        for access in ACCESSES:
            base: Rung | None = None
            for name, layout in layouts(options.device).items():
                rung = size.measure(name, Cell(layout, access), base)
                base = base or rung
                yield rung


def run_memory_ladder(device: str, bodies: tuple[int, ...] | None = None, *, quick: bool = False) -> list[Rung]:
    """All rungs on a device: at the default sizes (cached, and far beyond the cache), or for these numbers of bodies."""
    return list(climb(Options(device, bodies or sizes(device, quick), quick)))


@dataclass
class _Size:
    """The records of one size in every layout, made when they are needed."""

    options: Options
    count: int
    bodies: Bodies = field(init=False)
    arrays: dict[Layout, RecordArray] = field(default_factory=dict[Layout, RecordArray])
    order: Any = None

    def __post_init__(self) -> None:
        self.bodies = make_bodies(self.count, self.options.seed)
        self.order = bring(self.bodies.order, self.options.device)

    def measure(self, name: str, cell: Cell, base: Rung | None) -> Rung:
        """The rung of a cell, compared with AoS; it is skipped when its sums are wrong."""
        device = self.options.device
        if cell.layout not in self.arrays:
            self.arrays[cell.layout] = self.bodies.array(cell.layout, device)
        seconds_, _ = predicted_seconds(cell, device, self.count)
        cached = "yes" if is_cached(device, self.count) else "no"
        blank = Rung(
            name=f"{cell.access}, {name}", bodies=self.count, skipped="not run", device=device, layout=str(cell.layout),
            paper=PAPER.get(name) if cell.access == "streamed" else None, predicted_seconds=seconds_,
            extra={"access": cell.access, "cached": cached, "elements": cell.elements},
        )  # fmt: skip
        executable = compile_cell(cell, device)
        array = self.arrays[cell.layout]
        with nullcontext() if device.startswith("cuda") else one_thread():
            plain = bind(executable, array, self.order)
            error = self.error(cell, plain)
            blank = replace(blank, relative_error=error, plan=executable.program.plan.short())
            if not error <= TOLERANCE:
                return skipped(blank, "wrong", _wrong(error))
            seconds = self.time(plain)
        cycles = self.cycles(cell, seconds)
        if cycles is None:
            return skipped(blank, "wrong", "wrong: a warp did not read its clock, or its sums differ")
        return _rung(blank, base, seconds, cycles, cell.elements)

    def error(self, cell: Cell, bound: Bound) -> float:
        """The largest difference from the float64 sums after one pass, over the largest of them."""
        bound.run()
        wanted = self.bodies.sums(cell.access)
        return float(np.max(np.abs(to_host(bound.result) - wanted)) / np.max(np.abs(wanted)))

    def time(self, bound: Bound) -> float:
        """The median time of a pass that follows another one."""
        rounds, least = (QUICK_ROUNDS, QUICK_LEAST) if self.options.quick else (ROUNDS, LEAST)
        timed = _timer(self.options.device)
        repeats = max(1, min(1000, round(least / timed(bound.run))))

        def passes() -> None:
            for _ in range(repeats):
                bound.run()

        passes()
        return statistics.median(timed(passes) for _ in range(rounds)) / repeats

    def cycles(self, cell: Cell, seconds: float) -> float | None:
        """Cycles from the fetch of a record to its sum; None when a reading is missing."""
        device = self.options.device
        if not device.startswith("cuda"):
            from lanewise.models.host import clock_hz

            return seconds * clock_hz() / self.count
        bound = bind(compile_clocked(cell, device), self.arrays[cell.layout], self.order, clocked=True)
        if not self.error(cell, bound) <= TOLERANCE:
            return None
        medians: list[float] = []
        for _ in range(QUICK_ROUNDS if self.options.quick else ROUNDS):
            bound.run()
            readings = to_host(bound.cycles)
            if np.any(readings == NO_READING):
                return None
            medians.append(float(np.median(readings)))
        return statistics.median(medians)


def _wrong(error: float) -> str:
    return f"wrong: the relative error against float64 is {error:.1e}, and {TOLERANCE:.0e} is allowed"


def _timer(device: str) -> Callable[[Callable[[], None]], float]:
    """Seconds of some work: by events on a GPU, by the clock of the host on a CPU."""
    if device.startswith("cuda"):
        from lanewise.runtime import cuda

        return cuda.timer(device)

    def measure(work: Callable[[], None]) -> float:
        start = time.perf_counter()
        work()
        return time.perf_counter() - start

    return measure


def _rung(blank: Rung, base: Rung | None, seconds: float, cycles: float, elements: int) -> Rung:
    """The measured rung; its factors are those of the cycles an element, as the study's."""
    own = cycles / elements
    first = None if base is None else number(base, "cycles_per_element")
    predicted = None
    if base is not None and base.predicted_seconds and blank.predicted_seconds:
        predicted = base.predicted_seconds / blank.predicted_seconds
    rate = 4 * elements * blank.bodies / seconds
    return replace(
        blank, skipped=None, seconds=seconds, over=None if first is None or base is None else base.name,
        speedup=None if first is None else first / own, predicted=None if first is None else predicted,
        extra={**blank.extra, "cycles_per_element": own, "useful_bytes_per_second": rate},
    )  # fmt: skip


def predicted_seconds(cell: Cell, device: str, count: int) -> tuple[float, str]:
    """The time of a pass by the model of `choose_layout`, and what limits it. On a CPU one thread runs."""
    leaves = tuple(p.name.removeprefix("body.") for p in cell.kernel.lowered.function.parameters)
    access = Access(cell.kernel.__name__, "gathered" if cell.access == "gathered" else "streamed", leaves, ())
    result = cost(cell.layout.arrange(cell.record.leaves), access, memory_model(device), count)
    return result.seconds, result.limiter


def number(rung: Rung, key: str) -> float | None:
    """A number among the extra facts of a rung; None where there is none."""
    value = rung.extra.get(key)
    return value if isinstance(value, float) else None


def summary(rungs: list[Rung]) -> list[str]:
    """For every access and size: the layout with the fewest cycles."""
    lines: list[str] = []
    for bodies, access in dict.fromkeys((r.bodies, str(r.extra.get("access"))) for r in rungs):
        timed = [
            (number(r, "cycles_per_element"), r) for r in rungs if (r.bodies, r.extra.get("access")) == (bodies, access)
        ]
        known = [(c, r) for c, r in timed if c is not None]
        if known:
            cycles, best = min(known, key=lambda pair: pair[0])
            where = "the cache" if best.extra.get("cached") == "yes" else "memory"
            lines.append(f"{access}, from {where}: {best.layout} takes the fewest cycles an element, {digits(cycles)}")
    return lines


def _rate(rung: Rung) -> str:
    rate = number(rung, "useful_bytes_per_second")
    return factor_text(None if rate is None else rate * 1e-9)


LADDER = Ladder(
    name="memory",
    title="reading records",
    source="J. Siegel, J. Ributzka, X. Li, CUDA memory optimizations for large data structures in the Gravit simulator (2010), "
    "figures 9 and 10, GeForce 8800 GTX",
    sizes=sizes,
    climb=climb,
    columns=(
        Column("cycles", lambda r: factor_text(number(r, "cycles_per_element"))),
        Column("GB/s", _rate),
    ),
    summary=summary,
)
