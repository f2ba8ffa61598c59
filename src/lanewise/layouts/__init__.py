"""Layouts: how the records of an array lie in memory. One file a layout."""

from lanewise.layouts.aoas import AoAS
from lanewise.layouts.aos import AoS
from lanewise.layouts.aosoa import AoSoA
from lanewise.layouts.base import ALIGNMENT, Arrangement, Buffer, Layout, Slot
from lanewise.layouts.draw import draw
from lanewise.layouts.named import default_layout, layout_by_name
from lanewise.layouts.prove import prove
from lanewise.layouts.soa import SoA
from lanewise.layouts.soaoas import SoAoAS
from lanewise.layouts.strided import Strided, packed, strided

__all__ = [
    "ALIGNMENT",
    "AoAS",
    "AoS",
    "AoSoA",
    "Arrangement",
    "Buffer",
    "Layout",
    "Slot",
    "SoA",
    "SoAoAS",
    "Strided",
    "default_layout",
    "draw",
    "layout_by_name",
    "packed",
    "prove",
    "strided",
]  # fmt: skip
