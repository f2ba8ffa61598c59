"""Bodies that stay finite: counted on the device in every step, looked at when steps are done."""

from __future__ import annotations

from typing import Any

import numpy as np

from lanewise.errors import InputError
from lanewise.runtime.memory import array_module


class Survival:
    """How many steps since the last `check` each body has ended with finite coordinates.

    `counts` is int32 of shape (n,) on the device; the kernel `kick` of `physics` counts.
    """

    def __init__(self, count: int, device: str) -> None:
        self._module = array_module(device)
        self.counts: Any = self._module.zeros(count, np.int32)

    def check(self, before: int, after: int) -> None:
        """Raise `InputError` when a body has left the finite numbers between two steps, and count anew.

        The smallest count tells the step that broke, and its place the body.
        """
        survived = int(self._module.min(self.counts))
        if survived < after - before:
            body = int(self._module.argmin(self.counts))
            raise InputError(
                f"step {before + survived + 1}: body {body} has no finite position or velocity any more; "
                "a smaller dt or more softening keeps close encounters finite"
            )
        self.restart()

    def restart(self) -> None:
        """Count anew."""
        self.counts.fill(0)
