"""The ladder `memory`: the memory-access micro-benchmark of the Gravit study, under five layouts
and three accesses.

Every rung is one user function (`memory_cells.total`, or `hot_total` for position and mass) that
reads a record and adds its elements. On a GPU each warp reads its clock before the loads and after
the sum; the figure is the median of the warps' cycles over the number of elements of four bytes, as
in the study's figure 9. On a CPU one thread is timed from outside: cycles = seconds x clock /
elements. Every pass that is timed follows another one over the same records, so records that fit
the last-level cache come from there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import lanewise as lw
from lanewise.ladders.memory_cells import (
    ACCESSES,
    BLOCK,
    MemoryCell,
    MemoryMeasurer,
    predicted_seconds,
)
from lanewise.ladders.run import skipped
from lanewise.ladders.rung import Column, Ladder, Options, Rate, Rung, digits, factor_text, number
from lanewise.models import device_model
from lanewise.sims.common.devices import target_of

RECORD_BYTES = 28  # seven elements of four bytes
PAPER = {"SoA": {"CUDA 1.0": 1.1}, "SoAoAS": {"CUDA 1.0": 1.5, "CUDA 2.2": 1.3}}


def layouts(device: str) -> dict[str, lw.Layout]:
    """The layouts by name, AoS first; the blocks of AoSoA are as wide as a warp or a SIMD
    register.
    """
    blocks = lw.AoSoA(target_of(device).lanes)
    return {
        "AoS": lw.AoS(),
        "SoA": lw.SoA(),
        "AoAS": lw.AoAS(),
        "SoAoAS": lw.SoAoAS(),
        "AoSoA": blocks,
    }


def sizes(device: str, quick: bool) -> tuple[int, ...]:
    """Bodies that take a quarter of the last-level cache, and bodies that take far more than all of
    it.
    """
    held = _last_level_bytes(device) / RECORD_BYTES
    least = (
        (8_000_000 if quick else 64_000_000)
        if not target_of(device).host_memory
        else (3_000_000 if quick else 8_000_000)
    )
    return _rounded(held / 4), max(least, _rounded(3 * held))


def _rounded(count: float) -> int:
    """Two digits and zeros: arrays whose length is a power of two fall into the same places of a
    cache.
    """
    unit = 10 ** max(0, len(str(int(count))) - 2)
    return max(1, int(count) // unit * unit)


def is_cached(device: str, bodies: int) -> bool:
    """Whether the records of a pass, with as much again for results and indices, fit the last-level
    cache.
    """
    return 2 * RECORD_BYTES * bodies <= _last_level_bytes(device)


def climb(options: Options) -> Iterator[Rung]:
    """The rungs at every size, each as soon as it is measured."""
    for count in options.bodies:
        measurer = MemoryMeasurer(options, count)
        for access in ACCESSES:
            base: Rung | None = None
            for name, layout in layouts(options.device).items():
                rung = _rung(measurer, name, MemoryCell(layout, access), base)
                base = base or rung
                yield rung


def _rung(measurer: MemoryMeasurer, name: str, cell: MemoryCell, base: Rung | None) -> Rung:
    """The rung of a cell; its factors are those of the cycles an element over those of AoS, as the
    study's.
    """
    device, count = measurer.options.device, measurer.count
    cached = is_cached(device, count)
    blank = Rung(
        name=f"{cell.access}, {name}",
        bodies=count,
        skipped="not run",
        device=device,
        layout=str(cell.layout),
        plan=f"block={BLOCK}" if target_of(device).has_blocks else "neutral",
        paper=PAPER.get(name) if cell.access == "streamed" else None,
        predicted_seconds=predicted_seconds(cell, device, count, cached=cached),
        extra={
            "access": cell.access,
            "cached": "yes" if cached else "no",
            "elements": cell.elements,
        },
    )
    measured = measurer.measure(cell)
    if measured.wrong is not None:
        return skipped(replace(blank, relative_error=measured.error), "wrong", measured.wrong)
    own, rate = measured.cycles / cell.elements, 4 * cell.elements * count / measured.seconds
    rung = replace(
        blank, skipped=None, seconds=measured.seconds, relative_error=measured.error,
        extra={**blank.extra, "cycles_per_element": own, "useful_bytes_per_second": rate},
    )  # fmt: skip
    first = None if base is None else number(base, "cycles_per_element")
    if base is None or first is None or not base.predicted_seconds or not rung.predicted_seconds:
        return rung
    return replace(
        rung,
        over=base.name,
        speedup=first / own,
        predicted=base.predicted_seconds / rung.predicted_seconds,
    )


def summary(rungs: list[Rung]) -> list[str]:
    """For every access and size: the layout with the fewest cycles."""
    lines: list[str] = []
    for bodies, access in dict.fromkeys((r.bodies, str(r.extra.get("access"))) for r in rungs):
        timed = [
            (number(r, "cycles_per_element"), r)
            for r in rungs
            if (r.bodies, r.extra.get("access")) == (bodies, access)
        ]
        clocked = [(c, r) for c, r in timed if c is not None]
        if clocked:
            cycles, best = min(clocked, key=lambda pair: pair[0])
            where = "the cache" if best.extra.get("cached") == "yes" else "memory"
            lines.append(
                f"{access}, from {where}: {best.layout} takes the fewest cycles an element, "
                f"{digits(cycles)}"
            )
    return lines


def _rate(rung: Rung) -> str:
    rate = number(rung, "useful_bytes_per_second")
    return factor_text(None if rate is None else rate * 1e-9)


LADDER = Ladder(
    name="memory",
    title="reading records",
    source="J. Siegel, J. Ributzka, X. Li, CUDA memory optimizations for large data structures in "
    "the Gravit simulator (2010), "
    "figures 9 and 10, GeForce 8800 GTX",
    sizes=sizes,
    climb=climb,
    columns=(
        Column("cycles", lambda r: factor_text(number(r, "cycles_per_element"))),
        Column("GB/s", _rate),
    ),
    summary=summary,
    rate=Rate(
        "cycles_per_element", "cycles until an element of four bytes is there", 1.0, "Cycles"
    ),
)


CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
USUAL_BYTES = 32 << 20  # of a CPU whose system does not tell
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@cache
def _last_level_bytes(device: str) -> int:
    """The size of the L2 cache of a GPU, or of the largest cache of a CPU (`USUAL_BYTES` where the
    system does not tell).
    """
    if not target_of(device).host_memory:
        return device_model(device).l2_bytes
    return cpu_cache_bytes(CACHES) or USUAL_BYTES


def cpu_cache_bytes(folder: Path) -> int:
    """The largest cache that Linux lists in a folder of `index*/size` files, in bytes; 0 for
    none.
    """
    sizes = [path.read_text(encoding="ascii").strip() for path in folder.glob("index*/size")]
    return max((int(s.rstrip("KMG")) * _UNITS.get(s[-1], 1) for s in sizes if s), default=0)
