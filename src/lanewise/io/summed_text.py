"""Tables as text with the sum of their lines: what is read is what was written, or an error.

The first line is a comment, `# lanewise, CRC-32 of the lines below: 1a2b3c4d`. It stands above, so
that a file which was cut off anywhere does not fit it. How lines end is no part of the sum: they
may be given the ends of another system.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from lanewise.io.atomic import atomic_path, writing
from lanewise.io.source import FilePath
from lanewise.support.errors import InputError

WORDS = "# lanewise, CRC-32 of the lines below: "
TELLING = re.compile(rb"\s*#\s*(lanewise\b|.*(CRC-32 of|of the lines below))", re.IGNORECASE)
"""Of a first line with a sum, whatever of it is damaged."""

EXACT = re.compile(re.escape(WORDS).encode() + rb"([0-9a-f]{8})")


_ENDS = re.compile(rb"\r+\n")
_MARK = b"\xef\xbb\xbf"  # that some editors put in front of a text


class Lines:
    """Takes text and has the sum of what it took."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.crc = 0

    def write(self, text: str, /) -> None:
        data = text.encode()
        self.crc = zlib.crc32(_ENDS.sub(b"\n", data), self.crc)
        self._stream.write(data)


@contextmanager
def summed_text(path: FilePath, overwrite: bool) -> Generator[Lines]:
    r"""A file that is there in one step; what this yields takes whole lines, each with its \n.

    Raises InputError as `atomic_path`.
    """
    with atomic_path(path, overwrite) as temporary, writing(path), temporary.open("wb") as stream:
        stream.write(_first(0))
        lines = Lines(stream)
        yield lines
        stream.seek(0)
        stream.write(_first(lines.crc))


def _first(crc: int) -> bytes:
    return f"{WORDS}{crc:08x}\n".encode()


def check_lines(path: FilePath) -> None:
    """Refuse a file whose lines are not those that were written.

    A file without a sum is taken as it is: nothing tells a table of an older version of lanewise
    from those of other programs. Raises InputError, without the name of the file.
    """
    with Path(path).open("rb") as stream:
        first = stream.readline().removeprefix(_MARK)
        if not TELLING.match(first):
            return
        stated = EXACT.fullmatch(first.rstrip(b"\r\n"))
        if stated is None:
            raise InputError(
                f"line 1 is damaged; wanted {WORDS!r} and eight digits. Delete it to read the "
                "others as they are"
            )
        crc = 0
        for line in stream:
            crc = zlib.crc32(_ENDS.sub(b"\n", line if line.endswith(b"\n") else line + b"\n"), crc)
        if crc != int(stated[1], 16):
            raise InputError(
                f"the CRC-32 of the lines below the first one is {crc:08x}; wanted "
                f"{stated[1].decode()}: they are not what was written. If you have changed them, "
                "delete line 1"
            )


def without_comments(stream: Iterable[str]) -> Iterator[str]:
    """The lines, comments as blank ones: a quote in a comment begins nothing, and lines keep their
    numbers.
    """
    return ("\n" if line.lstrip().startswith("#") else line for line in stream)
