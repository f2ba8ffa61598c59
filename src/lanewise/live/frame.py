"""Frames as bytes: a header (see `protocol`) and what follows it. All of it is pure."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from lanewise.live.protocol import HEADER, HEADER_BYTES, KINDS, MAGIC
from lanewise.support.errors import InputError

Frame: TypeAlias = bytes | bytearray
Three: TypeAlias = tuple[float, float, float]
NAMES = {number: name for name, number in KINDS.items()}
CLOUDS = ("points", "arrows")
_FORMAT = {name: struct.Struct(f"<{count}{code}") for name, code, _, count in HEADER}
_HEADER = struct.Struct("<4s" + "".join(f"{count}{code}" for _, code, _, count in HEADER))
_AT = {name: at for name, _, at, _ in HEADER}


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameHeader:
    """What the header of a frame says; see `protocol.HEADER`.

    kind: its name. components: the bytes of a row or of a value. order: frames with the same one
    have the same elements at the same places.
    """

    kind: str
    flags: int = 0
    components: int = 0
    order: int = 0
    sequence: int = 0
    count: int = 0
    first: int = 0
    total: int = 0
    step: int = 0
    time: float = 0.0
    origin: Three = (0.0, 0.0, 0.0)
    extent: Three = (0.0, 0.0, 0.0)
    low: float = 0.0
    high: float = 0.0
    scale: int = 0


def encode(header: FrameHeader, body: bytes | memoryview = b"") -> bytearray:
    """The header and, behind it, the body."""
    h = header
    made = bytearray(HEADER_BYTES + len(body))
    _HEADER.pack_into(
        made, 0, MAGIC.encode(), KINDS[h.kind], h.flags, h.components, h.order, h.sequence, h.count,
        h.first, h.total, h.step, h.time, *h.origin, *h.extent, h.low, h.high, h.scale,
    )  # fmt: skip
    if len(body):  # other threads of Python run while NumPy copies
        np.frombuffer(made, np.uint8)[HEADER_BYTES:] = np.frombuffer(body, np.uint8)
    return made


def stamp(frame: Frame, **values: int) -> Frame:
    """The frame with other values in its header; the same one where its bytes can change."""
    made = frame if isinstance(frame, bytearray) else bytearray(frame)
    for name, value in values.items():
        _FORMAT[name].pack_into(made, _AT[name], value)
    return made


def decode(data: Frame | memoryview) -> tuple[FrameHeader, memoryview]:
    """What `encode` was given. Raises `InputError` for bytes that are no frame."""
    view = memoryview(data)
    if len(view) < HEADER_BYTES:
        raise InputError(f"{len(view)} bytes are no frame; wanted a header of {HEADER_BYTES}")
    magic, kind, *numbers, low, high, scale = _HEADER.unpack_from(view)
    if magic != MAGIC.encode():
        raise InputError(f"a frame begins with {magic!r}; wanted {MAGIC.encode()!r}")
    if kind not in NAMES:
        raise InputError(f"a frame of kind {kind}; wanted one of {sorted(NAMES)}")
    flags, components, order, sequence, count, first, total, step, time, *box = numbers
    header = FrameHeader(
        kind=NAMES[kind], flags=flags, components=components, order=order, sequence=sequence,
        count=count, first=first, total=total, step=step, time=time, low=low, high=high,
        scale=scale, origin=(box[0], box[1], box[2]), extent=(box[3], box[4], box[5]),
    )  # fmt: skip
    body = view[HEADER_BYTES:]
    if len(body) < (wanted := body_bytes(header)):
        raise InputError(f"{header.kind} of {len(body)} bytes where the header says {wanted}")
    return header, body


def body_bytes(header: FrameHeader) -> int:
    """How many bytes the header says that its body has."""
    h = header
    match h.kind:
        case "points":
            return 8 * h.count
        case "arrows":
            return 12 * h.count
        case "boxes":
            return 16 * h.count
        case "suffix":
            return h.components * h.count
        case "slice":
            return h.first * h.total
        case "volume":
            return h.first * h.total * h.count
        case _:
            return h.count
