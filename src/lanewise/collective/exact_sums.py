"""The sums of floats that kernels scatter to: words beside an array while a kernel runs, and the rounding of them behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any

import numpy as np

from lanewise.collective import exact_sums_device, exact_sums_host
from lanewise.language import exact_sums
from lanewise.language.target import CPU, PYTHON
from lanewise.runtime import memory
from lanewise.runtime.memory import on
from lanewise.runtime.prepared import Turns


def words_for(array: Any, device: str) -> Any:
    """Words for the elements of an array of float32 or float64, all zero. Raises `DeviceError` where there is no room."""
    kind = exact_sums.FORMATS[array.dtype.name]
    what = f"an exact sum of {kind.name}, which takes {8 * kind.words} bytes an element,"
    length = exact_sums.length_in_planes if device == CPU.name else exact_sums.length
    return memory.allocate(device, 8 * length(kind, int(array.size)), what).view(np.int64)


def summed(
    arrays: Mapping[str, Any], words: Mapping[str, Any], device: str, launch: Callable[[], None], turns: Turns | None = None
) -> Callable[[], None]:  # fmt: skip
    """A launch whose sums are rounded behind it. arrays: in one row each, by name; words: of those that are added to.

    turns: at the words, where the launch may be called again and by several threads.
    """

    def run() -> None:
        with nullcontext() if turns is None else turns, on(device):
            try:
                launch()
            except BaseException:
                for each in words.values():
                    each[:] = 0
                raise
            for name, each in words.items():
                close(each, arrays[name], device)

    return run


def close(words: Any, array: Any, device: str) -> None:
    """Add the words to the elements of an array in one row, each rounded once, and make them zero again."""
    if not array.size:
        return
    if not isinstance(array, np.ndarray):
        exact_sums_device.close(words, array, device)
    elif device == PYTHON.name:
        kind = exact_sums.FORMATS[array.dtype.name]
        for n in range(array.size):
            array[n] = exact_sums.rounded(kind, words, n, array[n])
        words[:] = 0
    else:
        exact_sums_host.close(words, array)
