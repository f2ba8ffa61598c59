"""What becomes of an element: the result of a kernel that lets elements live, die and multiply."""

from __future__ import annotations

from enum import IntEnum


class Fate(IntEnum):
    """The result of an elementwise function over a population: `-> lw.Fate`, an i32 on the device.

    DIE removes the record. KEEP keeps it, as the function left it. SPLIT keeps it and appends a
    copy with a new id.
    """

    DIE = 0
    KEEP = 1
    SPLIT = 2
