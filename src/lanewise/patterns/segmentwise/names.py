"""What a segmentwise kernel calls its loops and the arrays that it adds."""

from __future__ import annotations

from lanewise.ir.names import own

# counts; ITEMS: of a segment, on average
CELLS = own("cells")
SEGMENTS = own("segments")
DENSE = own("dense")
ITEMS = own("items")
# loop variables; PLACE on the dense axis
CELL = own("cell")
SEGMENT = own("segment")
PLACE = own("place")
ITEM = own("item")
# where the items of a segment begin and end
FIRST, LAST = own("segment.first"), own("segment.last")


def first_of(row: str) -> str:
    """The array that says where an item's row begins."""
    return own(f"first.{row}")


def last_of(row: str) -> str:
    """The array that says where an item's row ends."""
    return own(f"last.{row}")
