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
    """Array of structures: one structure after the other.

    All fields of an element are adjacent, which suits access by random indices. A kernel that
    reads one field of every element loads the others as well. Fields are at multiples of their
    sizes: a record of a `vec3` and an `f32` takes 16 bytes.
    """

    def arrange(self, leaves: Sequence[Leaf]) -> Arrangement:
        slots, buffer = place_structure("records", leaves, 0)
        return Arrangement(tuple(slots), (buffer,))

    def __str__(self) -> str:
        return "AoS"
