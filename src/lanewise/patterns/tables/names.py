"""What a threadwise kernel calls the extents of its indices and the lengths of its arrays."""

from __future__ import annotations

from lanewise.ir.names import extent_of, length_of, own

__all__ = ["POINTS", "extent_of", "length_of"]

POINTS = own("points")  # of the index space
