"""SoA: a structure of arrays, one array for every scalar."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lanewise.language.record import Leaf
from lanewise.layouts.base import Arrangement, Buffer, Layout, Slot
from lanewise.support.attributes import frozen


@frozen
@dataclass(frozen=True, slots=True)
class SoA(Layout):
    """Structure of arrays: one array for each scalar component.

    Neighbouring threads or SIMD lanes read adjacent words, and fields that a kernel does not use
    are never loaded. The default of new arrays on CPUs.
    """

    def arrange(self, leaves: Sequence[Leaf]) -> Arrangement:
        slots = tuple(Slot(leaf.name, leaf.type, i, 0, 0) for i, leaf in enumerate(leaves))
        return Arrangement(slots, tuple(Buffer(leaf.name, 1, leaf.type.size) for leaf in leaves))

    def __str__(self) -> str:
        return "SoA"
