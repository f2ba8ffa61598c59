"""Recordings of views, `.lwv`: frames one after another, each with a checksum, and an index at the
end.

    "LWVR" u32 version
    records: u32 kind, u32 sequence, u32 bytes, u32 CRC-32 of all of these and of the bytes, bytes

The first record is what the page gets, as JSON; the last one of a finished recording is the
index: u64 places of the frames. Records are found from one to the next; where one does not say how
long it is, as in a damaged file, the index leads on. A recording that was killed has none, and ends
with the last record that is whole.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from lanewise.io.atomic import unwritable, writable_target
from lanewise.live.feed import FrameSet
from lanewise.live.frame import Frame, decode
from lanewise.support.errors import InputError

MAGIC, VERSION = b"LWVR", 1
ABOUT, FRAME, INDEX = 1, 2, 3
_HEAD, _RECORD = struct.Struct("<4sI"), struct.Struct("<4I")
MOST_BYTES = 1 << 30  # of a record: a larger number is damage
_INDEX = struct.pack("<2I", INDEX, 0)  # how an index begins
LONGEST_INDEX = 1 << 26  # bytes, of eight million frames
SUFFIX = ".lwv"  # by which `lanewise view` knows recordings


class Recorder:
    """Writes a recording during a run; what is written is there, whatever ends the run.

    What is replaced stays until there is a frame, and without any nothing is left behind: a run
    that was refused is started again under the same name.
    """

    def __init__(self, path: Path, about: Mapping[str, Any], *, overwrite: bool = False) -> None:
        if path.suffix.lower() != SUFFIX:
            raise InputError(f"{path}: wanted a recording's name to end in {SUFFIX}")
        target = writable_target(path, overwrite)
        self._path, self._target, self._new = path, target, not target.exists()
        self._about, self._places = json.dumps(dict(about)).encode(), list[int]()
        try:
            self._file: BinaryIO = target.open("ab" if overwrite else "xb")
        except OSError as error:
            raise unwritable(path, target.parent, error) from error

    def add(self, frames: FrameSet) -> None:
        """The frames of one look."""
        if not self._places:
            self._begin()
        for frame in frames.frames:
            self._places.append(self._file.tell())
            self._put(FRAME, frames.sequence, frame)
        self._file.flush()

    def close(self) -> None:
        """Write the index; remove a file that has no frames."""
        if self._file.closed:
            return
        if not self._places:
            self._file.close()
            if self._new:
                self._target.unlink(missing_ok=True)
            return
        self._put(INDEX, 0, struct.pack(f"<{len(self._places)}Q", *self._places))
        with self._file:
            self._file.flush()
            os.fsync(self._file.fileno())

    def _begin(self) -> None:
        try:
            self._file.seek(0)
            self._file.truncate()
            self._file.write(_HEAD.pack(MAGIC, VERSION))
        except OSError as error:
            raise unwritable(self._path, self._path.resolve().parent, error) from error
        self._put(ABOUT, 0, self._about)

    def _put(self, kind: int, sequence: int, data: Frame) -> None:
        crc = zlib.crc32(data, zlib.crc32(struct.pack("<3I", kind, sequence, len(data))))
        try:
            self._file.write(_RECORD.pack(kind, sequence, len(data), crc))
            self._file.write(data)
        except OSError as error:
            raise unwritable(self._path, self._path.resolve().parent, error) from error


@dataclass(frozen=True, slots=True)
class Recording:
    """What a recording has: what the page gets, and the places of the frames of each look.

    whole: whether it was finished; else it ends with the last frame that is whole. lost: what is
    wrong with frames that do not even say which they are.
    """

    path: Path
    about: Mapping[str, Any]
    looks: tuple[tuple[int, tuple[int, ...]], ...]  # sequence, places
    whole: bool
    lost: tuple[str, ...] = ()

    def damaged(self) -> Iterator[str]:
        """What is wrong with each moment that is damaged, and so is left out: reads all frames."""
        yield from self.lost
        for number in range(len(self.looks)):
            try:
                self.frames(number)
            except InputError as error:
                yield str(error)

    def frames(self, number: int) -> FrameSet:
        """Those of a look, checked. Raises `InputError` for damage."""
        sequence, places = self.looks[number]
        with self.path.open("rb") as file:
            frames = tuple(_record_at(file, place, self.path)[2] for place in places)
        return FrameSet(sequence, decode(frames[0])[0].step, frames)


def read_recording(path: Path) -> Recording:
    """Open a recording. Raises `InputError` for a file that is none, or begins with damage."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    with file:
        head = file.read(_HEAD.size)
        if len(head) < _HEAD.size or head[:4] != MAGIC:
            raise InputError(f"{path}: no recording of a view; wanted a file of --view-record")
        if (version := _HEAD.unpack(head)[1]) != VERSION:
            raise InputError(
                f"{path}: a recording of version {version}; this lanewise reads {VERSION}"
            )
        kind, _, about = _record_at(file, _HEAD.size, path)
        if kind != ABOUT:
            raise InputError(f"{path}: damaged: it does not begin with what it shows")
        told = _told(about, path)
        looks: dict[int, list[int]] = {}
        places = _index(file, path)
        lost, last = list[str](), 0
        for place in _places(file) if places is None else places:
            try:
                last = _sequence(file, place, path, last)
                looks.setdefault(last, []).append(place)
            except InputError as error:
                lost.append(str(error))
    if not looks:
        raise InputError(f"{path}: a recording without a whole frame")
    return Recording(
        path, told, tuple((s, tuple(p)) for s, p in looks.items()),
        places is not None, tuple(lost),
    )  # fmt: skip


def _told(about: bytes, path: Path) -> Mapping[str, Any]:
    """What the page gets, of a record with the right checksum that anybody may have written."""
    try:
        told: object = json.loads(about)
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict):
        raise InputError(f"{path}: damaged: what it shows is no JSON object")
    return cast("dict[str, Any]", told)


def _index(file: BinaryIO, path: Path) -> tuple[int, ...] | None:
    """The places of frames that the index at the end has; None where there is none."""
    end = file.seek(0, os.SEEK_END)
    first = max(_HEAD.size, end - LONGEST_INDEX)
    file.seek(first)
    tail, at = file.read(), -1
    while (at := tail.find(_INDEX, at + 1)) >= 0:
        if at + _RECORD.size + int.from_bytes(tail[at + 8 : at + 12], "little") == len(tail):
            with suppress(InputError, struct.error):  # other bytes that look like one
                return struct.unpack(
                    f"<{(len(tail) - at - _RECORD.size) // 8}Q",
                    _record_at(file, first + at, path)[2],
                )
    return None


def _places(file: BinaryIO) -> Iterator[int]:
    """The place of each frame, up to the first record that is not whole."""
    end = file.seek(0, os.SEEK_END)
    place = _HEAD.size
    while place + _RECORD.size <= end:
        file.seek(place)
        kind, _, size, _ = _RECORD.unpack(file.read(_RECORD.size))
        if kind not in (ABOUT, FRAME, INDEX) or place + _RECORD.size + size > end:
            return
        if kind == FRAME:
            yield place
        place += _RECORD.size + size


def _sequence(file: BinaryIO, place: int, path: Path, last: int) -> int:
    """The number of a frame behind one of number `last`. Raises `InputError` for one that goes back
    or far on, and is damaged.
    """
    file.seek(place)
    kind, sequence, *_ = _RECORD.unpack(file.read(_RECORD.size).ljust(_RECORD.size, b"\0"))
    if kind != FRAME or sequence not in (last, last + 1):
        _record_at(file, place, path)
    return sequence


def _record_at(file: BinaryIO, place: int, path: Path) -> tuple[int, int, bytes]:
    file.seek(place)
    head = file.read(_RECORD.size)
    if len(head) == _RECORD.size:
        kind, sequence, size, crc = _RECORD.unpack(head)
        data = file.read(size) if size < MOST_BYTES else b""
        if len(data) == size and zlib.crc32(data, zlib.crc32(head[:12])) == crc:
            return kind, sequence, data
    raise InputError(f"{path}: damaged at byte {place:,}: its checksum does not hold")
