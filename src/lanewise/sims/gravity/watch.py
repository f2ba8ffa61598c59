"""What nobody tells a simulation: that its bodies were written to between steps, and that one of
them left the finite numbers.

Both are looked at once for each call that takes steps, however short that is. So on a GPU one
kernel compares before it, and one looks and remembers after it; the host reads their answers in its
own memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lanewise.sims.common.devices import array_module, remembered
from lanewise.support.errors import InputError

MOST_COUNTED = 1 << 30  # steps: counts have 32 bits


class Watch:
    """Watches over the bodies of one simulation.

    `counts` is int32 of shape (n,) on the device, of steps since `restart`; the kernel `kick` of
    `physics` counts.
    """

    __slots__ = ("_begin", "_memory", "_module", "counts")

    def __init__(self, data: Any, count: int, device: str, step: int) -> None:
        """`data`: (nbytes,) uint8, as `RecordArray.data`; `step`: the one before those that will be
        counted.
        """
        self._module = array_module(device)
        self.counts: Any = self._module.zeros(count, np.int32)
        self._begin = step
        self._memory = remembered(data, self.counts, device)

    def changed(self) -> bool:
        """Whether somebody has written to the bodies since `settle`."""
        return self._memory.changed()

    def restart(self, step: int) -> None:
        """Count anew, after this step, and remember the bodies as they are."""
        self._module.copyto(self.counts, 0)
        self._begin = step
        self._memory.settle(0)

    def settle(self, step: int) -> None:
        """Remember the bodies as they are after this step.

        Raises `InputError` when one of them has left the finite numbers.

        The smallest count tells the step that broke, and its place the body.
        """
        if self._memory.settle(step - self._begin):
            if step - self._begin > MOST_COUNTED:
                self.restart(step)
            return
        survived, body = int(self._module.min(self.counts)), int(self._module.argmin(self.counts))
        raise InputError(
            f"step {self._begin + survived + 1}: body {body} has no finite position or velocity "
            "any more; a smaller dt or more softening keeps close encounters finite; lengths "
            "below 1e-12 need precision f64 or another unit of length"
        )
