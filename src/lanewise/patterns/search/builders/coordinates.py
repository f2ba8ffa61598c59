"""How the text of a CUDA kernel reads a coordinate of an element, in any layout."""

from __future__ import annotations

from lanewise.layouts import Arrangement


def coordinate_text(arrangement: Arrangement, leaf: str, column: str, index: str) -> str:
    """The expression for a coordinate of type T of element `index`; `column` points at that of the first element, as bytes."""
    slot = arrangement.slot(leaf)
    buffer = arrangement.buffers[slot.buffer]
    place = f"(size_t){index} * {buffer.block}"
    if buffer.width > 1:
        place = f"(size_t)({index} / {buffer.width}) * {buffer.block} + {index} % {buffer.width} * {slot.stride}"
    return f"*(const T *)({column} + {place})"
