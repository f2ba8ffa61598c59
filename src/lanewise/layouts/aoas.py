"""AoAS: an array of aligned structures, padded so that a thread reads an element in 16-byte
pieces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lanewise.language.record import Leaf
from lanewise.layouts.base import Arrangement, Layout, place_structure
from lanewise.support.attributes import frozen
from lanewise.support.checks import shown
from lanewise.support.errors import RecordError


@frozen
@dataclass(frozen=True, slots=True)
class AoAS(Layout):
    """Array of aligned structures: AoS with the structure rounded up to `align` bytes.

    A GPU loads such an element with few wide instructions instead of many narrow ones; the padding
    takes memory. align: 8 or 16, otherwise `RecordError`.
    """

    align: int = 16

    def __post_init__(self) -> None:
        align: Any = self.align
        if not isinstance(align, int) or align not in (8, 16):
            raise RecordError(
                f"AoAS(align={shown(align)}): a GPU thread loads at most 16 bytes at once; align "
                "must be 8 or 16"
            )

    def arrange(self, leaves: Sequence[Leaf]) -> Arrangement:
        slots, buffer = place_structure("records", leaves, 0, align=self.align)
        return Arrangement(tuple(slots), (buffer,))

    def __str__(self) -> str:
        return f"AoAS({self.align})"
