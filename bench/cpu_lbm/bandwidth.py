"""What memory gives: as many bytes as a flow needs, read and written once, by NumPy on some
threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGEST = 1 << 28  # bytes of an array: far beyond the caches, and quick to pass over


def in_place(nbytes: int, threads: int) -> tuple[Callable[[], None], float]:
    """Multiplies an array by one: every byte is read and written back where it was.

    With it the share of `nbytes` it does.
    """
    size = min(nbytes, LARGEST) // 4
    values = np.ones(size, np.float32)
    jobs = [partial(_scale, part) for part in np.array_split(values, threads)]
    return lambda: _together(jobs), size * 4 / nbytes


def copy(nbytes: int, threads: int) -> tuple[Callable[[], None], float]:
    """Copies one array to another: every byte is read, and written elsewhere."""
    size = min(nbytes, LARGEST) // 4
    source, target = np.ones(size, np.float32), np.zeros(size, np.float32)
    parts = zip(np.array_split(target, threads), np.array_split(source, threads), strict=True)
    jobs = [partial(np.copyto, t, s) for t, s in parts]
    return lambda: _together(jobs), size * 4 / nbytes


def _scale(values: NDArray[Any]) -> None:
    np.multiply(values, np.float32(1), out=values)


def _together(jobs: Sequence[Callable[[], None]]) -> None:
    for job in [_pool(len(jobs)).submit(job) for job in jobs]:
        job.result()


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads)
