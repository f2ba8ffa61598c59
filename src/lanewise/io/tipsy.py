"""Tipsy binary files: reading, of either byte order. Format: see `tipsy_layout`."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.errors import InputError
from lanewise.io.formats import Format
from lanewise.io.particles import Particles
from lanewise.io.source import FilePath, existing_file, reading
from lanewise.io.tipsy_layout import FAMILIES, HEADER_BYTES, PADDING_BYTES, Header, body_type, header_of
from lanewise.io.tipsy_writer import write_tipsy


def read_tipsy(path: FilePath) -> Particles:
    """All bodies: gas (component 0), dark (1) and stars (4), numbered from 0.

    Softening is kept when all bodies share one that is not 0.
    Raises InputError naming the file when the header makes no sense or the size is not what the header asks for.
    """
    file = existing_file(path)
    with reading(path, "Tipsy", (struct.error, ValueError)):
        header = _checked_header(file)
        parts = _parts(file, header)
        softenings = np.unique(np.concatenate([part["softening"] for part in parts]))
        return Particles.of(
            position=_columns(parts, "x", "y", "z"),
            velocity=_columns(parts, "vx", "vy", "vz"),
            mass=_columns(parts, "mass")[:, 0],
            component=np.repeat([component for _, component in FAMILIES], header.counts),
            time=header.time,
            softening=float(softenings[0]) if len(softenings) == 1 and softenings[0] != 0 else None,
        )


def _checked_header(file: Path) -> Header:
    with file.open("rb") as stream:
        header = header_of(stream.read(HEADER_BYTES))
    if header is None:
        raise InputError("not a Tipsy file: the header is not of 3 dimensions with gas + dark + stars = bodies")
    if sum(header.counts) == 0:
        raise InputError("there are no bodies; at least one is wanted")
    _check_size(file, header)
    return header


def _check_size(file: Path, header: Header) -> None:
    size = file.stat().st_size
    plain, padded = header.sizes()
    if size not in (plain, padded):
        gas, dark, star = header.counts
        raise InputError(
            f"this Tipsy file is truncated or damaged: it has {size} bytes; "
            f"its header ({gas} gas, {dark} dark, {star} star) wants {plain} or {padded}"
        )
    if size == plain and _starts_with_nothing(file, header):
        raise InputError(
            "this Tipsy file is truncated: it is 4 bytes short of a padded file, and read as an unpadded one it would "
            "start with a body without mass"
        )


def _starts_with_nothing(file: Path, header: Header) -> bool:
    """Whether what follows the header is no mass but padding: 0, or a small integer that reads as a subnormal float."""
    with file.open("rb") as stream:
        stream.seek(HEADER_BYTES)
        first = np.frombuffer(stream.read(PADDING_BYTES), f"{header.order}f4")[0]
    return bool(abs(first) < np.finfo(np.float32).tiny)


def _parts(file: Path, header: Header) -> list[NDArray[np.void]]:
    """The bodies of each family; the padding is what the file has too much."""
    start = file.stat().st_size - header.sizes()[0] + HEADER_BYTES
    parts: list[NDArray[np.void]] = []
    with file.open("rb") as stream:
        stream.seek(start)
        for count, (family, _) in zip(header.counts, FAMILIES, strict=True):
            parts.append(np.fromfile(stream, body_type(family, header.order), count))
    return parts


def _columns(parts: list[NDArray[Any]], *names: str) -> NDArray[np.float64]:
    """(n, len(names)) float64 over all families."""
    with np.errstate(invalid="ignore"):  # a damaged value is reported by Particles.of, with its body
        return np.concatenate([np.stack([part[name].astype(np.float64) for name in names], axis=1) for part in parts])


def _recognises(head: bytes) -> bool:
    """A header that adds up is enough: with a wrong size the file is a damaged Tipsy file, and is told so."""
    header = header_of(head)
    return header is not None and sum(header.counts) > 0


FORMAT = Format(
    name="Tipsy",
    suffixes=(".tipsy", ".std", ".bin"),
    recognises=_recognises,
    read=read_tipsy,
    write=lambda path, particles, overwrite: write_tipsy(path, particles, overwrite=overwrite),
)
