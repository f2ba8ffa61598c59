"""The first of many cells in the order of candidates, chosen where they lie: only those come
back.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lanewise.sims.common.devices import device_of, module_of, on

KEY = 1 << 62  # keys are below


def first_cells(
    level: Any, order: Any, most: int, *, limit: int, largest: int | None = None
) -> Any:
    """Places of the `most` cells that come first in each row: by falling level, cells of one level
    by rising order.

        level: (rows, cells) float64; what is infinite or no number comes first
        order: (rows, cells) int64 from 0 to below `limit`, all different within a row
        largest: of levels that are integers from 0 on: both are then one key, a single sort

    The result is (rows, most), on the device of the arrays. On a GPU nothing waits for it: the
    number of places is known beforehand.
    """
    with on(device_of(level)):
        return _first(level, order, most, limit, largest)


def _first(level: Any, order: Any, most: int, limit: int, largest: int | None) -> Any:
    on_host = isinstance(level, np.ndarray)
    module = module_of(level)
    rows, cells = level.shape
    most = min(most, cells)
    row = module.arange(rows)[:, None]
    finite = module.isfinite(level)
    if largest is None or rows * (largest + 2) * limit >= KEY:
        keys = [order, module.where(finite, -level, -np.inf), module.broadcast_to(row, level.shape)]
        places = module.lexsort(module.stack([k.reshape(-1).astype(np.float64) for k in keys]))
        return places.reshape(rows, cells)[:, :most] - row * cells
    fallen = (largest + 1) - module.where(finite, level, largest + 1).astype(np.int64)
    key = fallen * limit + order
    if on_host:  # rows apart, and nothing is sorted that is not requested
        some = np.argpartition(key, most - 1, axis=1)[:, :most]
        return np.take_along_axis(
            some, np.argsort(np.take_along_axis(key, some, axis=1), axis=1), axis=1
        )
    key += row * ((largest + 2) * limit)
    return module.argsort(key.reshape(-1)).reshape(rows, cells)[:, :most] - row * cells
