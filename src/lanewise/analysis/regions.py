"""A kernel as regions: pieces that run equally often, each with its instructions, its memory accesses, and how often.

How often is found by following index arithmetic for a sample of threads (`sampling`); what it costs, by numbering values
(`instructions`). Both work for any kernel that has been lowered, whatever passes made it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from lanewise.analysis.region import SECTOR, Access, KernelWork, Pattern, Region
from lanewise.analysis.region_walk import walk_kernel
from lanewise.analysis.sampling import Known, sample_range, sample_threads, value_of
from lanewise.ir import nodes as ir

__all__ = ["SECTOR", "UNKNOWN_COUNT", "Access", "KernelWork", "Pattern", "Region", "analyse"]

UNKNOWN_COUNT = 65_536  # elements of an array whose length is not known


def analyse(
    kernel: ir.Kernel, environment: Mapping[str, object] | None = None, *, fast_math: bool = False
) -> KernelWork:
    """The work of a lowered kernel for counts and uniform arguments (`environment`, by their names in the IR).

    A count that is missing is taken as 65,536, and a loop whose bounds are not known runs 8 times.
    """
    known: Known = {p.name: np.asarray(UNKNOWN_COUNT) for p in kernel.counts}
    known |= {n: np.asarray(v) for n, v in (environment or {}).items() if isinstance(v, (int, float, np.generic))}
    if (grid := kernel.grid) is not None:
        across = -(-_whole(grid.extent, known) // grid.lanes)
        known |= sample_threads(grid.threads, across, grid.parts)
        root = walk_kernel(kernel, kernel.body, known, fast_math=fast_math)
        return KernelWork(kernel, root, max(across, 1) * grid.parts, grid.threads)
    match kernel.body:
        case (ir.Parallel() as loop,):
            elements = _whole(loop.extent, known)
            known[loop.variable] = sample_range(elements)
            root = walk_kernel(kernel, loop.body, known, fast_math=fast_math, simd=loop.variable)
            return KernelWork(kernel, root, elements, 1)
        case body:
            return KernelWork(kernel, walk_kernel(kernel, body, known, fast_math=fast_math), 1, 1)


def _whole(e: ir.Expression, samples: Known) -> int:
    value = value_of(e, samples)
    return UNKNOWN_COUNT if value is None else int(value)
