"""SFTs to files: little-endian, with checksums, whole or not at all."""

from __future__ import annotations

import math
from pathlib import Path

from lanewise.io.atomic import atomic_path, writable_folder, writing
from lanewise.io.source import FilePath
from lanewise.sims.waves.sft.blocks import SECOND, Block, packed
from lanewise.sims.waves.sft.names import SftName
from lanewise.sims.waves.sft.sets import DetectorSfts, SftSet
from lanewise.support.checks import checked
from lanewise.support.errors import InputError


@checked(InputError)
def write_file(path: FilePath, sfts: DetectorSfts, overwrite: bool = False) -> Path:
    """Write the SFTs of a detector into one file, in the order of time; returns its path.

    SFTs that were read completely from a little-endian file are written byte for byte as they were.
    Raises InputError for a file that exists (without `overwrite`) or that the system does not let
    be written.
    """
    if not len(sfts):
        raise InputError(f"{path}: there are no SFTs to write")
    with atomic_path(path, overwrite) as temporary, writing(path), temporary.open("wb") as stream:
        for i in range(len(sfts)):
            head = Block(
                Path(path),
                i,
                0,
                "<",
                int(sfts.version[i]),
                int(sfts.start[i]),
                sfts.duration,
                sfts.first_bin,
                sfts.bins,
                0,
                sfts.detector,
                int(sfts.window[i]),
                len(sfts.comments[i]),
            )
            stream.write(packed(head, sfts.comments[i], sfts.data[i]))
    return Path(path)


@checked(InputError)
def write_sfts(
    folder: FilePath, sfts: SftSet, label: str = "", overwrite: bool = False
) -> list[Path]:
    """Write one file per detector into a folder, which is created if necessary, with names by
    LIGO-T040164; returns the paths.

    Errors: see `write_file`.
    """
    with writable_folder(folder) as target:
        return [write_file(target / str(name_of(d, label)), d, overwrite) for d in sfts]


def name_of(sfts: DetectorSfts, label: str = "") -> SftName:
    """The name of a file with these SFTs. Its span runs from whole second to whole second."""
    start = int(sfts.start[0]) // SECOND
    end = math.ceil(int(sfts.end[-1]) / SECOND)
    return SftName(sfts.detector, len(sfts), round(sfts.duration), start, end - start, label)


def padded_comment(text: str) -> bytes:
    """A comment as it stands in a file: with a zero at its end, padded by zeros to a multiple of
    eight bytes. No text is no comment.
    """
    if not text:
        return b""
    raw = text.encode("utf-8") + b"\0"
    return raw + b"\0" * (-len(raw) % 8)
