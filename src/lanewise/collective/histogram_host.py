"""Histograms on a CPU: a thread counts a part of the values in bins of its own, and adds these to those of all.

Parts are longer than there are bins, so that adding up takes less time than counting. Without that a thread would take the atomic
operations for every value, each of which takes as long as twenty additions. Bins that are more than the caches of a core hold are
counted in buckets of neighbours (`collective.bucket_sums_host`).
"""

from __future__ import annotations

from typing import Any

from lanewise.collective import bucket_sums_host
from lanewise.runtime import cpu

PART = 65_536  # values at least
BINS = 4  # times as many values as bins
MANY = 2**15  # bins from which on buckets pay
TEXT = """import numpy as np
from numba import int64, njit, uint64

from lanewise.runtime.atomics import lw_scatter_add


@njit(error_model="numpy", nogil=True)
def histogram_kernel(values, counts, begin, end):
    own = np.zeros(len(counts), np.int64)
    for i in range(begin, end):
        v = int64(values[uint64(i)])
        if 0 <= v < len(own):
            own[uint64(v)] += 1
    for b in range(len(own)):
        if own[b]:
            lw_scatter_add(counts, uint64(b), own[b])
"""


def histogram(values: Any, counts: Any) -> None:
    """Count the values of an array of NumPy into another one."""
    counts[:] = 0
    if counts.size > MANY and bucket_sums_host.fits(values.size, counts.size):
        bucket_sums_host.add_numbers(values, None, counts)
        return
    kernel: Any = cpu.own_kernel(TEXT, "histogram")
    cpu.run_range(kernel, (values, counts), values.size, max(PART, BINS * counts.size))
