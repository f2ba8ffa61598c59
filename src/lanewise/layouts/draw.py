"""Draw an arrangement as text: one line a buffer, one box a scalar, padding shown."""

from __future__ import annotations

from lanewise.layouts.base import Arrangement


def draw(arrangement: Arrangement) -> str:
    """A picture of the first block of every buffer, with byte offsets and the loads that it
    allows.
    """
    lines: list[str] = []
    for number, buffer in enumerate(arrangement.buffers):
        slots = sorted((s for s in arrangement.slots if s.buffer == number), key=lambda s: s.offset)
        boxes, position = [], 0
        for slot in slots:
            if slot.offset > position:
                boxes.append(f"({_bytes(slot.offset - position)} padding)")
            boxes.append(f"{slot.leaf}" + (f" x{buffer.width}" if buffer.width > 1 else ""))
            position = slot.offset + slot.type.size * buffer.width
        if buffer.block > position:
            boxes.append(f"({_bytes(buffer.block - position)} padding)")
        load = max(arrangement.lanes(s) * s.type.size for s in slots)
        elements = "an element" if buffer.width == 1 else f"{buffer.width} elements"
        lines.append(
            f"{buffer.name}: {_bytes(buffer.block)} for {elements}, loads of {_bytes(load)}"
        )
        lines.append("  | " + " | ".join(boxes) + " | ...")
    return "\n".join(lines)


def _bytes(count: int) -> str:
    return "1 byte" if count == 1 else f"{count} bytes"
