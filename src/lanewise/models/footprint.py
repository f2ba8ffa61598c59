"""How many bytes a kernel touches of an array, each counted once."""

from __future__ import annotations

import math
from collections.abc import Mapping

from lanewise.analysis.regions import KernelWork
from lanewise.ir.names import COUNT, count_of


def footprint(work: KernelWork, key: str, counts: Mapping[str, float]) -> float | None:
    """Bytes of one buffer of an array, by its key in `Region.sectors`; None when its length is not known."""
    name, number, _ = key.split("/")
    kernel = work.kernel
    array = next((a for a in kernel.arrays if a.name == name), None)
    if array is None or name in {s.array for s in kernel.scratch}:
        return None
    if array.shape:
        lengths = [n if isinstance(n, int) else counts.get(n) for n in array.shape]
        return (
            None
            if None in lengths
            else float(math.prod(n for n in lengths if n is not None) * array.leaves[0].type.size)
        )
    first = counts.get(kernel.counts[0].name) if kernel.counts else None
    length = counts.get(count_of(name), counts.get(COUNT, first))
    return None if length is None else float(array.arrangement.buffers[int(number)].bytes_for(int(length)))
