"""AoS: an array of structures, packed as a C compiler packs them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lanewise.language.record import Leaf
from lanewise.layouts.base import Arrangement, Layout, place_structure
from lanewise.support.attributes import frozen


@frozen
@dataclass(frozen=True, slots=True)
class AoS(Layout):
    """One structure behind the other.

    Every field of an element is near, but a warp that wants one field reads all of them.
    """

    def arrange(self, leaves: Sequence[Leaf]) -> Arrangement:
        slots, buffer = place_structure("records", leaves, 0)
        return Arrangement(tuple(slots), (buffer,))

    def __str__(self) -> str:
        return "AoS"
