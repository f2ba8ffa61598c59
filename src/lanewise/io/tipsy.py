"""Tipsy binary files: reading, of either byte order, and writing.

Format: Katz and Quinn, "TIPSY manual" (1994), and tipsydefs.h. A header, then all gas, all dark and
all star bodies as structures of float32 without padding. The header is a double (time) and five
32-bit integers (bodies, dimensions, gas, dark, stars); programs that dump their C structure add 4
bytes, which the size of the file gives away.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lanewise.io.atomic import atomic_path
from lanewise.io.formats import Format
from lanewise.io.particles import Particles, as_float32
from lanewise.io.source import FilePath, existing_file, reading
from lanewise.support.errors import FileWarning, InputError
from lanewise.support.warned import warn_user


def read_tipsy(path: FilePath) -> Particles:
    """All bodies: gas (component 0), dark (1) and stars (4), numbered from 0.

    Softening is kept when all bodies share one that is not 0. Raises InputError naming the file
    when the header makes no sense or the size is not what the header asks for.
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
            component=np.repeat([component for _, component in _FAMILIES], header.counts),
            time=header.time,
            softening=float(softenings[0]) if len(softenings) == 1 and softenings[0] != 0 else None,
        )


def _checked_header(file: Path) -> Header:
    with file.open("rb") as stream:
        header = _header_of(stream.read(_HEADER_BYTES))
    if header is None:
        raise InputError(
            "not a Tipsy file: the header is not of 3 dimensions with gas + dark + stars = bodies"
        )
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
            "this Tipsy file is truncated: it is 4 bytes short of a padded file, and read as an "
            "unpadded one it would "
            "start with a body without mass"
        )


def _starts_with_nothing(file: Path, header: Header) -> bool:
    """Whether what follows the header is no mass but padding: 0, or a small integer that reads as a
    subnormal float.
    """
    with file.open("rb") as stream:
        stream.seek(_HEADER_BYTES)
        first = np.frombuffer(stream.read(_PADDING_BYTES), f"{header.order}f4")[0]
    return bool(abs(first) < np.finfo(np.float32).tiny)


def _parts(file: Path, header: Header) -> list[NDArray[np.void]]:
    """The bodies of each family; the padding is what the file has too much."""
    start = file.stat().st_size - header.sizes()[0] + _HEADER_BYTES
    parts: list[NDArray[np.void]] = []
    with file.open("rb") as stream:
        stream.seek(start)
        for count, (family, _) in zip(header.counts, _FAMILIES, strict=True):
            parts.append(np.fromfile(stream, _body_type(family, header.order), count))
    return parts


def _columns(parts: list[NDArray[Any]], *names: str) -> NDArray[np.float64]:
    """(n, len(names)) float64 over all families."""
    # a damaged value is reported by Particles.of, with its body
    with np.errstate(invalid="ignore"):
        return np.concatenate(
            [np.stack([part[name].astype(np.float64) for name in names], axis=1) for part in parts]
        )


def _recognises(head: bytes) -> bool:
    """A header that adds up is enough: with a wrong size the file is a damaged Tipsy file, which
    the error says. Without bodies it is all.
    """
    header = _header_of(head)
    return header is not None and (
        sum(header.counts) > 0 or len(head) <= _HEADER_BYTES + _PADDING_BYTES
    )


FORMAT = Format(
    name="Tipsy",
    suffixes=(".tipsy", ".std", ".bin"),
    recognises=_recognises,
    read=read_tipsy,
    write=lambda path, particles, overwrite: write_tipsy(path, particles, overwrite=overwrite),
)


_HEADER = "diiiii"
_HEADER_BYTES = 28
_PADDING_BYTES = 4
_FAMILIES = (("gas", 0), ("dark", 1), ("star", 4))
"""The families in the order of the file, and the component (Gadget's particle type) that each
becomes.
"""

_COMMON = ("mass", "x", "y", "z", "vx", "vy", "vz")
_FIELDS = {
    "gas": (*_COMMON, "density", "temperature", "softening", "metals", "potential"),
    "dark": (*_COMMON, "softening", "potential"),
    "star": (*_COMMON, "metals", "formed", "softening", "potential"),
}


def _body_type(family: str, order: str) -> np.dtype[np.void]:
    """The structure of one body: "gas" 48 bytes, "dark" 36, "star" 44. `order` is "<" or ">"."""
    return np.dtype([(name, f"{order}f4") for name in _FIELDS[family]])


@dataclass(frozen=True, slots=True)
class Header:
    """What the first 28 bytes say: byte order "<" or ">", time, bodies of each family in the order
    of `_FAMILIES`.
    """

    order: str
    time: float
    counts: tuple[int, int, int]

    def sizes(self) -> tuple[int, int]:
        """Bytes of a whole file without and with padding after the header."""
        bodies = sum(
            count * _body_type(family, "<").itemsize
            for count, (family, _) in zip(self.counts, _FAMILIES, strict=True)
        )
        return _HEADER_BYTES + bodies, _HEADER_BYTES + _PADDING_BYTES + bodies


def _header_of(head: bytes) -> Header | None:
    """The header, in the byte order that makes sense of it: 3 dimensions, and families that add up.

    Else None.
    """
    if len(head) < _HEADER_BYTES:
        return None
    for order in "<>":
        time, total, dimensions, *counts = struct.unpack(order + _HEADER, head[:_HEADER_BYTES])
        if dimensions == 3 and min(counts) >= 0 and sum(counts) == total:
            return Header(order, time, (counts[0], counts[1], counts[2]))
    return None


FAMILY_OF_COMPONENT = np.array([0, 1, 2, 2, 2, 2])
"""Tipsy has three families only.

Disc (2), bulge (3) and the rest (5) are counted among the stars.
"""


def write_tipsy(
    path: FilePath,
    particles: Particles,
    *,
    overwrite: bool = False,
    byte_order: Literal["<", ">"] = "<",
    padded: bool = True,
) -> None:
    """Write in one step. Bodies are sorted by family; values are rounded to float32; ids are not
    stored.

    Warns (`FileWarning`) where bodies come back in another order, with other ids or components.
    `padded` adds the 4 bytes after the header that readers (pynbody, for one) expect. What
    Particles does not know (temperature, metals, potential, ...) is 0. Raises InputError as
    `atomic_path` and for values too large for float32.
    """
    families = FAMILY_OF_COMPONENT[particles.component]
    if lost := _lost(particles, families):
        warn_user(f"{path}: Tipsy has no place for {' and '.join(lost)}", FileWarning)
    counts = np.bincount(families, minlength=len(_FAMILIES)).tolist()
    types = [_body_type(family, byte_order) for family, _ in _FAMILIES]
    bodies = [_structures(particles, families == place, dtype) for place, dtype in enumerate(types)]
    with atomic_path(path, overwrite) as temporary, temporary.open("wb") as stream:
        stream.write(struct.pack(byte_order + _HEADER, particles.time, len(particles), 3, *counts))
        stream.write(bytes(_PADDING_BYTES if padded else 0))
        for part in bodies:
            stream.write(part.tobytes())


def _lost(particles: Particles, families: NDArray[Any]) -> list[str]:
    """What of these bodies comes back otherwise, in words."""
    lost: list[str] = []
    if (families[1:] < families[:-1]).any():
        lost.append("the order of bodies, which come back as gas, dark and stars")
    if not np.array_equal(particles.ids, np.arange(len(particles))):
        lost.append("ids, which come back as 0 to n-1")
    kept = np.array([component for _, component in _FAMILIES])
    if others := sorted(
        {int(c) for c in np.unique(particles.component[kept[families] != particles.component])}
    ):
        lost.append(f"component {', '.join(map(str, others))}, which comes back as 4")
    return lost


def _structures(
    particles: Particles, chosen: NDArray[np.bool_], dtype: np.dtype[np.void]
) -> NDArray[np.void]:
    """The chosen bodies as (n,) structures."""
    bodies = np.zeros(int(chosen.sum()), dtype)
    bodies["mass"] = as_float32("mass", particles.mass)[chosen]
    for name, values, columns in (
        ("position", particles.position, ("x", "y", "z")),
        ("velocity", particles.velocity, ("vx", "vy", "vz")),
    ):
        rounded = as_float32(name, values)[chosen]
        for axis, column in enumerate(columns):
            bodies[column] = rounded[:, axis]
    bodies["softening"] = as_float32("softening", np.array([particles.softening or 0.0]))
    return bodies
