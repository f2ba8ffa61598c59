"""How Tipsy files lie in bytes.

Format: Katz and Quinn, "TIPSY manual" (1994), and tipsydefs.h. A header, then all gas, all dark and all star bodies as
structures of float32 without padding. The header is a double (time) and five 32-bit integers (bodies, dimensions, gas,
dark, stars); programs that dump their C structure add 4 bytes, which the size of the file gives away.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

HEADER = "diiiii"
HEADER_BYTES = 28
PADDING_BYTES = 4
FAMILIES = (("gas", 0), ("dark", 1), ("star", 4))
"""The families in the order of the file, and the component (Gadget's particle type) that each becomes."""

_COMMON = ("mass", "x", "y", "z", "vx", "vy", "vz")
_FIELDS = {
    "gas": (*_COMMON, "density", "temperature", "softening", "metals", "potential"),
    "dark": (*_COMMON, "softening", "potential"),
    "star": (*_COMMON, "metals", "formed", "softening", "potential"),
}


def body_type(family: str, order: str) -> np.dtype[np.void]:
    """The structure of one body: "gas" 48 bytes, "dark" 36, "star" 44. `order` is "<" or ">"."""
    return np.dtype([(name, f"{order}f4") for name in _FIELDS[family]])


@dataclass(frozen=True, slots=True)
class Header:
    """What the first 28 bytes say: byte order "<" or ">", time, bodies of each family in the order of `FAMILIES`."""

    order: str
    time: float
    counts: tuple[int, int, int]

    def sizes(self) -> tuple[int, int]:
        """Bytes of a whole file without and with padding after the header."""
        bodies = sum(
            count * body_type(family, "<").itemsize for count, (family, _) in zip(self.counts, FAMILIES, strict=True)
        )
        return HEADER_BYTES + bodies, HEADER_BYTES + PADDING_BYTES + bodies


def header_of(head: bytes) -> Header | None:
    """The header, in the byte order that makes sense of it: 3 dimensions, and families that add up. Else None."""
    if len(head) < HEADER_BYTES:
        return None
    for order in "<>":
        time, total, dimensions, *counts = struct.unpack(order + HEADER, head[:HEADER_BYTES])
        if dimensions == 3 and min(counts) >= 0 and sum(counts) == total:
            return Header(order, time, (counts[0], counts[1], counts[2]))
    return None
