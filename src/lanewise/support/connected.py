"""Which things are connected through pairs of them: connected components, over whole arrays."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

Whole = npt.NDArray[np.int64]


def connected(count: int, pairs: Iterable[tuple[Whole, Whole]]) -> Whole:
    """For each of `count` things the least number of those that it is connected with through
    pairs, which come in arrays of their ones and others: few of them have to be held at a time, and
    what the first ones join costs later ones little.
    """
    least = np.arange(count)
    for one, other in pairs:
        a, b = least[one], least[other]
        while (apart := a != b).any():
            a, b = a[apart], b[apart]
            np.minimum.at(least, np.maximum(a, b), np.minimum(a, b))
            while not np.array_equal(shorter := least[least], least):
                least = shorter
            a, b = least[a], least[b]
    return least
