"""AoSoA: blocks of `width` elements, structure of arrays inside each block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lanewise.language.record import Leaf
from lanewise.layouts.base import Arrangement, Buffer, Layout, Slot
from lanewise.support.attributes import frozen
from lanewise.support.checks import shown
from lanewise.support.errors import RecordError

_WIDTHS = frozenset(1 << n for n in range(11))


@frozen
@dataclass(frozen=True, slots=True)
class AoSoA(Layout):
    """Array of structures of arrays: each block holds `width` values of the first scalar
    component, then `width` of the next.

    SIMD lanes read adjacent values, and the fields of one element stay near each other: the
    default of lattices on GPUs. width: a power of two from 1 to 1,024, otherwise `RecordError`.
    """

    width: int = 8

    def __post_init__(self) -> None:
        width: Any = self.width
        if not isinstance(width, int) or width not in _WIDTHS:
            raise RecordError(
                f"AoSoA(width={shown(width)}): the width must be a power of two from 1 to 1024"
            )

    def arrange(self, leaves: Sequence[Leaf]) -> Arrangement:
        slots: list[Slot] = []
        position = 0
        for leaf in leaves:
            position = -(-position // leaf.type.size) * leaf.type.size
            slots.append(Slot(leaf.name, leaf.type, 0, position, leaf.type.size))
            position += leaf.type.size * self.width
        widest = max(leaf.type.size for leaf in leaves)
        return Arrangement(
            tuple(slots), (Buffer("blocks", self.width, -(-position // widest) * widest),)
        )

    def __str__(self) -> str:
        return f"AoSoA({self.width})"
