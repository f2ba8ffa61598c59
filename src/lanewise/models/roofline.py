"""The least time that a piece of work can take on a device: the busiest of its units at full speed, and the bytes that it touches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lanewise.analysis.regions import KernelWork
from lanewise.ir.names import COUNT, count_of


@dataclass(frozen=True, slots=True)
class Bound:
    """The least time in seconds, the unit that takes it (`limiter`), and the seconds that every unit needs (`details`).

    Units: "issue", "fp32", "fp64", "integer", "special", "conversion", "shared memory", "l1", "l2", "memory".
    """

    seconds: float
    limiter: str
    details: dict[str, float]


def bound_of(seconds: Mapping[str, float]) -> Bound:
    """The bound of units that work side by side, each for so many seconds. Without any work it is zero, by "issue"."""
    if not seconds:
        return Bound(0.0, "issue", {})
    limiter = max(seconds, key=lambda unit: seconds[unit])
    return Bound(seconds[limiter], limiter, dict(seconds))


def bound_in_sequence(bounds: list[Bound]) -> Bound:
    """The bound of several pieces of work, one after the other: times add, the limiter is that of the longest."""
    if not bounds:
        return bound_of({})
    longest = max(bounds, key=lambda b: b.seconds)
    units = {unit for b in bounds for unit in b.details}
    details = {unit: sum(b.details.get(unit, 0.0) for b in bounds) for unit in sorted(units)}
    return Bound(sum(b.seconds for b in bounds), longest.limiter, details)


def footprint(work: KernelWork, key: str, counts: Mapping[str, float]) -> float | None:
    """Bytes of one buffer of an array, by its key in `Region.sectors`; None when its length is not known."""
    name, number, _ = key.split("/")
    kernel = work.kernel
    array = next((a for a in kernel.arrays if a.name == name), None)
    if array is None or name in {s.array for s in kernel.scratch}:
        return None
    first = counts.get(kernel.counts[0].name) if kernel.counts else None
    length = counts.get(count_of(name), counts.get(COUNT, first))
    return None if length is None else float(array.arrangement.buffers[int(number)].bytes_for(int(length)))
