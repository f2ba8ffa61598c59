"""Arrays that begin anywhere in a line of memory, within memory that shows what is written beside them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from lanewise.language.target import LINE

Array = np.ndarray[Any, Any]
OUTSIDE = 7  # what memory holds before a kernel writes


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """An array, and the memory that it is a part of, from element `first` on."""

    memory: Array
    first: int
    array: Array

    def assert_nothing_beside(self) -> None:
        """Nobody has written before the array or behind it."""
        assert (self.memory[: self.first] == OUTSIDE).all()
        assert (self.memory[self.first + self.array.size :] == OUTSIDE).all()


def part_of_memory(shape: int | tuple[int, ...], before: int, dtype: DTypeLike = np.float32) -> Part:
    """An array that begins so many elements behind the beginning of a line."""
    size = int(np.prod(shape))
    line = LINE // np.dtype(dtype).itemsize
    memory = np.full(size + 4 * line, OUTSIDE, dtype)
    first = (-memory.ctypes.data // memory.itemsize) % line + before
    return Part(memory, first, memory[first : first + size].reshape(shape))
