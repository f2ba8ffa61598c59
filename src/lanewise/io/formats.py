"""Which format a file has, or should get. Reading goes by content, for names lie; writing goes by
suffix.

A format is one module of this package that defines `FORMAT`; the modules are found, not listed.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lanewise.io.particles import Particles, check_any
from lanewise.io.source import FilePath, existing_file
from lanewise.support.checks import checked
from lanewise.support.errors import InputError

HEAD = 512


@dataclass(frozen=True, slots=True)
class Format:
    """One file format.

    Attributes:
        recognises: whether a file that starts with these (at most HEAD) bytes is meant to be this
          format, damaged or not; for every file at most one format may say yes, but for those that
          are last
        read: raises InputError, naming the file, for whatever is wrong with it
        write: (path, particles, overwrite); writes atomically
        last: whether it is asked when all others have said no: CSV takes all text
    """

    name: str
    suffixes: tuple[str, ...]
    recognises: Callable[[bytes], bool]
    read: Callable[[FilePath], Particles]
    write: Callable[[FilePath, Particles, bool], None]
    last: bool = False


@cache
def formats() -> tuple[Format, ...]:
    """All formats, by name of their module.

    Looked up at first use, so that importing lanewise stays fast.
    """
    names = sorted(info.name for info in pkgutil.iter_modules([str(Path(__file__).parent)]))
    entries = [vars(importlib.import_module(f"lanewise.io.{name}")).get("FORMAT") for name in names]
    return tuple(entry for entry in entries if isinstance(entry, Format))


@checked(InputError)
def read_particles(path: FilePath) -> Particles:
    """The bodies of a Gadget HDF5, Tipsy, NPZ or CSV file, told apart by content.

    Raises InputError that names the file if it is missing, empty, damaged, truncated or of another
    kind.
    """
    file = existing_file(path)
    with file.open("rb") as stream:
        head = stream.read(HEAD)
    for entry in sorted(formats(), key=lambda entry: entry.last):
        if entry.recognises(head):
            return entry.read(path)
    start = head[:16].hex(" ")
    raise InputError(
        f"{path}: not a particle file (it starts with the bytes {start}); wanted {_listed()}"
    )


@checked(InputError)
def write_particles(path: FilePath, particles: Particles, overwrite: bool = False) -> None:
    """Write the format that the suffix of `path` names. The file is written completely or not at
    all.

    .h5 .hdf5 Gadget HDF5 (float64), .tipsy .std .bin Tipsy (float32), .npz NPZ, .csv CSV. Raises
    InputError for another suffix, for an existing file without `overwrite`, for no bodies, and for
    values that the format cannot hold.
    """
    check_any(path, particles)
    suffix = Path(path).suffix.lower()
    for entry in formats():
        if suffix in entry.suffixes:
            return entry.write(path, particles, overwrite)
    raise InputError(f"{path}: unknown suffix {suffix or '(none)'}; wanted {_listed()}")


def _listed() -> str:
    return ", ".join(f"{entry.name} ({' '.join(entry.suffixes)})" for entry in formats())
