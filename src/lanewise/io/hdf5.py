"""HDF5 files, opened so that damage becomes an InputError; h5py is imported at first use (it costs 0.1 s)."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from lanewise.errors import InputError
from lanewise.io.atomic import atomic_path
from lanewise.io.source import FilePath, existing_file, reading

MAGIC = b"\x89HDF\r\n\x1a\n"
"""First bytes of an HDF5 file (HDF5 file format specification 3.0, superblock)."""

DAMAGE = (OSError, RuntimeError, KeyError, ValueError, TypeError, AttributeError, OverflowError)
"""What h5py has been seen to raise on files with wrong bytes."""


@contextmanager
def open_hdf5(path: FilePath) -> Generator[Any]:
    """The file as an open, read-only h5py.File. What h5py raises inside the block is an InputError naming the file."""
    source = existing_file(path)
    with source.open("rb") as stream:
        if stream.read(len(MAGIC)) != MAGIC:
            raise InputError(f"{path}: this is no HDF5 file")
    with reading(path, "HDF5", DAMAGE), import_module("h5py").File(source, "r") as file:
        yield file


def write_hdf5(path: FilePath, fill: Callable[[Any], None], *, overwrite: bool = False) -> None:
    """Call `fill` with a new, empty h5py.File and put it at `path` in one step (see `atomic_path`)."""
    with atomic_path(path, overwrite) as temporary, import_module("h5py").File(temporary, "w") as file:
        fill(file)


def text_of(value: Any) -> str:
    """An attribute that is text: of fixed length as lanewise writes it, or of variable length. Raises `ValueError` for another one."""
    match value:
        case bytes():
            return value.decode("utf-8", "surrogateescape")
        case str():
            return str(value)
        case _:
            raise ValueError(f"an attribute is a {type(value).__name__}; wanted text")
