"""Arrays that their user may write to between steps: compared with what they were when something was computed from them."""

from __future__ import annotations

from typing import Any

import numpy as np

from lanewise.runtime.memory import array_module


class Remembered:
    """A copy of the bytes of an array, on its device. Comparing takes about as long as copying: little beside any step."""

    __slots__ = ("_copy", "_module", "_words")

    def __init__(self, data: Any, device: str) -> None:
        """`data`: (nbytes,) uint8, as `RecordArray.data`."""
        size = next(n for n in (8, 4, 2, 1) if data.nbytes % n == 0)
        self._module = array_module(device)
        self._words = data.view(np.dtype(f"u{size}"))
        self._copy = self._words.copy()

    def remember(self) -> None:
        """Take what is there now."""
        self._copy[...] = self._words

    def changed(self) -> bool:
        """Whether any byte differs from what was remembered."""
        return not bool(self._module.array_equal(self._copy, self._words))
