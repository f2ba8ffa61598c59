"""NumPy archives: arrays `position`, `velocity`, `mass`, and optionally `ids`, `component`, `time`,
`softening`.

Format: NumPy enhancement proposal 1 (.npy), several in a zip file. Pickles are never read: they can
run code.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from lzma import LZMAError
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.io.atomic import atomic_path
from lanewise.io.formats import Format
from lanewise.io.particles import Particles
from lanewise.io.source import FilePath, existing_file, reading
from lanewise.support.attributes import near
from lanewise.support.errors import InputError

REQUIRED = ("position", "velocity", "mass")
OPTIONAL = ("ids", "component", "time", "softening")
WANTED = f"{', '.join(REQUIRED)} and perhaps {', '.join(OPTIONAL)}"
MAGIC = (b"PK\x03\x04", b"PK\x05\x06")
"""First bytes of a zip file with and without members (PKWARE APPNOTE 4.3)."""

DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    KeyError,
    ValueError,
    TypeError,
    RuntimeError,
    SyntaxError,
    TokenError,
    LZMAError,
    struct.error,
)
"""What zipfile and numpy have been seen to raise on archives with wrong bytes."""


def read_npz(path: FilePath) -> Particles:
    """The bodies of a NumPy archive.

    Raises InputError naming the file and the array that is missing or wrong.
    """
    file = existing_file(path)
    with reading(path, "NPZ", DAMAGE):
        arrays = _arrays(file)
        settings = {
            name: _number(name, arrays[name]) for name in ("time", "softening") if name in arrays
        }
        return Particles.of(
            arrays["position"],
            arrays["velocity"],
            arrays["mass"],
            ids=arrays.get("ids"),
            component=arrays.get("component", 1),
            time=settings.get("time", 0.0),
            softening=settings.get("softening"),
        )


def write_npz(path: FilePath, particles: Particles, *, overwrite: bool = False) -> None:
    """Write all fields, float64, in one step. Raises InputError as `atomic_path`."""
    arrays: dict[str, Any] = {name: getattr(particles, name) for name in (*REQUIRED, *OPTIONAL)}
    with atomic_path(path, overwrite) as temporary, temporary.open("wb") as stream:
        # Through a stream: given a name, NumPy would add .npz to it.
        np.savez(stream, **{name: value for name, value in arrays.items() if value is not None})


def _arrays(file: Path) -> dict[str, NDArray[Any]]:
    # Through a stream of our own: NumPy leaves its own open when the archive is damaged.
    with file.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
        names = list(archive.files)
        for name in names:
            if name not in REQUIRED + OPTIONAL:
                raise InputError(
                    f"unknown array {name}{near(name, REQUIRED + OPTIONAL) or ';'} wanted {WANTED}"
                )
        for name in REQUIRED:
            if name not in names:
                raise InputError(
                    f"no array {name} (there is {', '.join(names) or 'none'}); wanted {WANTED}"
                )
        for name in names:
            _check_member(archive, name)
        return {name: _array(name, archive[name]) for name in names}


def _check_member(archive: Any, name: str) -> None:
    """Refuse, before memory is taken, an array that promises other values than its member has bytes
    for.
    """
    member = next(n for n in archive.zip.namelist() if n in (name, f"{name}.npy"))
    held = archive.zip.getinfo(member).file_size
    with archive.zip.open(member) as stream:
        try:
            version = np.lib.format.read_magic(stream)
        except ValueError:
            return  # bytes of no array, which is said where they are read
        read = (
            np.lib.format.read_array_header_1_0
            if version == (1, 0)
            else np.lib.format.read_array_header_2_0
        )
        shape, _, dtype = read(stream)
        promised = stream.tell() + dtype.itemsize * int(np.prod(shape, dtype=object))
    if promised != held and not dtype.hasobject:
        raise InputError(
            f"{name} is {shape} of {dtype}, which is {promised:,} bytes, and the archive holds "
            f"{held:,}"
        )


def _array(name: str, value: Any) -> NDArray[Any]:
    """A member that is not in .npy form comes back as bytes."""
    if isinstance(value, bytes):
        raise InputError(f"{name} is not a NumPy array")
    return np.asarray(value)


def _number(name: str, array: NDArray[Any]) -> float:
    if array.size != 1 or array.dtype.kind not in "fiu":
        raise InputError(
            f"{name} has shape {array.shape} and dtype {array.dtype}; wanted one number"
        )
    return float(array.reshape(())[()])


FORMAT = Format(
    name="NPZ",
    suffixes=(".npz",),
    recognises=lambda head: head.startswith(MAGIC),
    read=read_npz,
    write=lambda path, particles, overwrite: write_npz(path, particles, overwrite=overwrite),
)
