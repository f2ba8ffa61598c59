"""What a simulation is not notified of: bodies that were written to between steps, and one of
them left the finite numbers.

Both are looked at once for each call that takes steps, however short that is. So on a GPU one
kernel compares before it, and one looks and remembers after it; the host reads their answers in its
own memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import lanewise as lw
from lanewise.records.binding import places_of
from lanewise.sims.common.devices import array_module, remembered
from lanewise.sims.common.meshes import first_rows, mesh_of, parts_of, transport_of
from lanewise.support.errors import InputError

MOST_COUNTED = 1 << 30  # steps: counts have 32 bits


class Watch:
    """Watches over the bodies of one simulation.

    `counts` is int32 of shape (n,) where the bodies lie, of steps since `restart`; the kernel
    `kick` of `physics` counts.
    """

    __slots__ = ("_begin", "_first", "_parts", "_transport", "counts")

    def __init__(self, bodies: lw.RecordArray, step: int) -> None:
        """`step`: the one before those that will be counted."""
        self._begin = step
        self._parts = [_Part(part) for part in parts_of(bodies)]
        self._first, self._transport = first_rows(bodies), transport_of(bodies)
        mesh, counts = mesh_of(bodies), [part.counts for part in self._parts]
        self.counts: Any = counts[0] if mesh is None else lw.SplitArray(mesh, counts)

    def changed(self) -> bool:
        """Whether a caller has written to the bodies since `settle`."""
        return any(self._transport.agree(any(part.memory.changed() for part in self._parts)))

    def restart(self, step: int) -> None:
        """Count anew, after this step, and remember the bodies as they are."""
        self._begin = step
        for part in self._parts:
            part.module.copyto(part.counts, 0)
            part.memory.settle(0)

    def settle(self, step: int) -> None:
        """Remember the bodies as they are after this step.

        Raises `InputError` when one of them has left the finite numbers.

        The smallest count tells the step that broke, and its place the body.
        """
        settled = [part.memory.settle(step - self._begin) for part in self._parts]
        if all(self._transport.agree(all(settled))):
            if step - self._begin > MOST_COUNTED:
                self.restart(step)
            return
        own = self._least([part.counts for part in self._parts])
        self._refuse([found for some in self._transport.agree(own) for found in some])

    def look(self) -> None:
        """Raise the same within a step that something else has ended, of the bodies of this process
        that have no finite position.
        """
        lost = [
            part.module.where(
                part.module.isfinite(part.position).all(axis=1), MOST_COUNTED, part.counts
            )
            for part in self._parts
        ]
        self._refuse([found for found in self._least(lost) if found[0] < MOST_COUNTED])

    def _least(self, counts: list[Any]) -> list[tuple[int, int]]:
        """Of each part the smallest count, and its body."""
        return [
            (int(part.module.min(count)), first + int(part.module.argmin(count)))
            for first, part, count in zip(self._first, self._parts, counts, strict=True)
            if len(count)
        ]

    def _refuse(self, lost: list[tuple[int, int]]) -> None:
        if not lost:
            return
        survived, body = min(lost)
        raise InputError(
            f"step {self._begin + survived + 1}: body {body} has no finite position or velocity "
            "any more; a smaller dt or more softening keeps close encounters finite; lengths "
            "below 1e-12 need precision f64 or another unit of length"
        )


class _Part:
    """The bodies of one device, what they were, and their counts."""

    __slots__ = ("_bodies", "counts", "memory", "module")

    def __init__(self, bodies: lw.RecordArray) -> None:
        self._bodies = bodies
        self.module = array_module(bodies.device)
        self.counts: Any = self.module.zeros(len(bodies), np.int32)
        self.memory = remembered(places_of(bodies).data, self.counts, bodies.device)

    @property
    def position(self) -> Any:
        """Of its bodies, (n, 3)."""
        return self._bodies.position
