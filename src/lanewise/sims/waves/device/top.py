"""The highest of many values, chosen where they lie: only those come back."""

from __future__ import annotations

from typing import Any

import numpy as np

from lanewise.runtime.memory import array_module


def highest(values: Any, most: int) -> Any:
    """Places of the highest values of a flat array, at most `most`, on its device: falling, and equal ones in their order.

    On a GPU nothing waits for it: the number of places is known beforehand.
    """
    count = len(values)
    if not isinstance(values, np.ndarray):
        module = array_module("cuda")
        return module.lexsort(module.stack([module.arange(count), -values]))[:most]
    if count > most:
        least = np.partition(values, count - most)[count - most]
        above = np.flatnonzero(values > least)
        chosen = np.concatenate([above, np.flatnonzero(values == least)[: most - len(above)]])
    else:
        chosen = np.arange(count)
    return chosen[np.lexsort((chosen, -values[chosen]))]
