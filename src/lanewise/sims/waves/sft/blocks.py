"""One SFT of a file: 48 bytes of header, a comment, complex bins; and what may be wrong with it
(LIGO-T040164, versions 2 and 3).

Header: version (float64), GPS seconds and nanoseconds (int32), duration in seconds (float64), first
bin and number of bins (int32), checksum (uint64), detector (two characters), window (uint16;
padding in version 2), length of the comment (int32).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from lanewise.sims.waves.sft.crc import START, crc64
from lanewise.support.attributes import frozen
from lanewise.support.errors import InputError
from lanewise.support.numerals import numeral

HEADER = "diidiiQ2sHi"
HEADER_BYTES = 48
CRC_AT, CRC_BYTES = 32, 8
BIN_BYTES = 8
VERSIONS = (2.0, 3.0)
SECOND = 1_000_000_000  # nanoseconds
CHUNK = 1 << 20  # bytes; what a checksum holds in memory at a time
LARGEST_COMMENT = 1 << 24


@frozen
@dataclass(frozen=True, slots=True)
class Block:
    """The header of one SFT, and where it lies.

    Attributes:
        number: which SFT of the file, from 0
        offset: bytes before it
        order: "<" or ">": the byte order that it was written in
        start: GPS time of its first sample, in nanoseconds
        duration: seconds; its bins are 1 / duration Hz wide
        window: the number in the header, in version 2 two bytes of padding
    """

    path: Path
    number: int
    offset: int
    order: str
    version: int
    start: int
    duration: float
    first_bin: int
    bins: int
    crc: int
    detector: str
    window: int
    comment_bytes: int

    @property
    def data_offset(self) -> int:
        """Bytes of the file before the first bin."""
        return self.offset + HEADER_BYTES + self.comment_bytes

    @property
    def end(self) -> int:
        """Bytes of the file up to the end of this SFT."""
        return self.data_offset + self.bins * BIN_BYTES

    def __str__(self) -> str:
        return f"{self.path}, SFT {self.number} ({self.detector}, GPS {gps_text(self.start)})"


def gps_text(time: int) -> str:
    """A GPS time in nanoseconds as seconds."""
    seconds, rest = divmod(time, SECOND)
    return f"{seconds}.{rest:09d}".rstrip("0") if rest else str(seconds)


class Damage(Exception):
    """An SFT cannot be used, and nothing that follows it in the file can, for the reason given."""


def read_header(stream: BinaryIO, path: Path, number: int, size: int) -> Block:
    """The header at the position of the stream, checked as far as a header can be; raises `Damage`.

    size: bytes of the file.
    """
    offset = stream.tell()
    raw = stream.read(HEADER_BYTES)
    if len(raw) < HEADER_BYTES:
        raise Damage(f"truncated: its header has {len(raw)} bytes; wanted {HEADER_BYTES}")
    order = _byte_order(raw, number)
    values = struct.unpack(order + HEADER, raw)
    (
        version,
        seconds,
        nanoseconds,
        duration,
        first_bin,
        bins,
        crc,
        detector,
        window,
        comment_bytes,
    ) = values
    wrong = [
        (not 0 <= nanoseconds < SECOND, f"its start has {nanoseconds} nanoseconds"),
        (not 0 < duration < 1e9, f"its duration is {numeral(duration)} s"),
        (first_bin < 0, f"its first bin is {first_bin}"),
        (bins <= 0, f"it has {bins} bins"),
        (
            not 0 <= comment_bytes <= LARGEST_COMMENT or comment_bytes % 8,
            f"its comment has {comment_bytes} bytes",
        ),
        (not (detector.isalnum() and detector[:1].isupper()), f"its detector is {detector!r}"),
    ]
    if faults := [text for bad, text in wrong if bad]:
        raise Damage(f"not the header of an SFT, or damaged: {', '.join(faults)}")
    block = Block(
        path, number, offset, order, int(version), seconds * SECOND + nanoseconds, duration,
        first_bin, bins, crc, detector.decode("ascii"), window, comment_bytes,
    )  # fmt: skip
    if block.end > size:
        raise Damage(f"truncated: the file has {size} bytes, and this SFT ends after {block.end}")
    return block


def _byte_order(raw: bytes, number: int) -> str:
    versions = {order: struct.unpack_from(f"{order}d", raw)[0] for order in "<>"}
    for order, version in versions.items():
        if version in VERSIONS:
            return order
    # A small integer in one of the orders is a version that this reader does not know.
    for version in versions.values():
        if version.is_integer() and 0 < version < 100:
            raise Damage(f"SFT version {numeral(version)} is not supported; wanted 2 or 3")
    where = "not an SFT file" if number == 0 else "not an SFT"
    raise Damage(f"{where}: it starts with {raw[:8].hex(' ')}, which is neither version 2 nor 3")


def checksum(stream: BinaryIO, block: Block) -> int:
    """The CRC-64 of a block: of the header with its checksum as zeros, comment and bins, read in
    parts of `CHUNK` bytes.
    """
    stream.seek(block.offset)
    state = START
    left = block.end - block.offset
    while left:
        raw = stream.read(min(left, CHUNK))
        if not raw:
            raise InputError(f"{block}: the file became shorter while it was read")
        words = np.frombuffer(raw, "<u8")
        if left == block.end - block.offset:
            words = words.copy()
            words[CRC_AT // CRC_BYTES] = 0
        state = crc64(words.astype(np.uint64, copy=False), state)
        left -= len(raw)
    return state


def read_comment(stream: BinaryIO, block: Block) -> bytes:
    """The comment with its padding, as it stands in the file."""
    stream.seek(block.offset + HEADER_BYTES)
    return stream.read(block.comment_bytes)


def read_bins(stream: BinaryIO, block: Block, first: int, out: NDArray[np.complex64]) -> None:
    """Read bins from `first` (an absolute number, which the block has) into `out`, complex64,
    contiguous; nothing else is read.
    """
    stream.seek(block.data_offset + (first - block.first_bin) * BIN_BYTES)
    raw = stream.read(out.nbytes)
    if len(raw) != out.nbytes:
        raise InputError(f"{block}: the file became shorter while it was read")
    out[:] = np.frombuffer(raw, f"{block.order}c8")


def packed(block: Block, comment: bytes, data: NDArray[np.complex64]) -> bytes:
    """A block as little-endian bytes with its checksum; of `block` only what stands in a header is
    used.
    """
    seconds, nanoseconds = divmod(block.start, SECOND)

    def raw(crc: int) -> bytes:
        return struct.pack(
            "<" + HEADER,
            float(block.version),
            seconds,
            nanoseconds,
            block.duration,
            block.first_bin,
            len(data),
            crc,
            block.detector.encode("ascii"),
            block.window,
            len(comment),
        )

    rest = comment + data.astype("<c8", copy=False).tobytes()
    crc = crc64(np.frombuffer(raw(0) + rest, "<u8").astype(np.uint64, copy=False))
    return raw(crc) + rest
