"""HDF5 files of ours: every byte of them is checked, and no failure of the system reaches HDF5's C
library. h5py is imported at first use.

What lanewise writes is in the file format of HDF5 1.10 (2016): its headers, links, attributes and
indices carry their own checksums. Data get one by `fletcher32`, which needs chunks, and text has
a fixed length, since text of variable length lies in a heap that has none. So other programs, h5py
for one, notice most damage; what Fletcher sums cannot see is noticed by the CRC-32 of every dataset
(`sums`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from io import RawIOBase
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.io.atomic import atomic_path
from lanewise.io.source import FilePath, existing_file, reading
from lanewise.io.sums import promise, promised, put_rows, put_sum
from lanewise.support.articles import an
from lanewise.support.errors import FileWarning, InputError, RecordError
from lanewise.support.interrupts import imported
from lanewise.support.warned import warn_user

MAGIC = b"\x89HDF\r\n\x1a\n"
"""First bytes of an HDF5 file (HDF5 file format specification 3.0, superblock)."""

DAMAGE = (
    OSError,
    RuntimeError,
    KeyError,
    ValueError,
    TypeError,
    AttributeError,
    OverflowError,
    RecordError,
)
"""What h5py, and what is made of names and numbers, have been seen to raise on files with wrong
bytes.
"""

VERSION = ("v110", "v110")
"""The oldest format with all the checksums, so that programs with an older HDF5 than ours read
it.
"""

PART = 3500
"""Bytes of text in an attribute at most.

Above 4 KiB HDF5 may put it where it has no sum (a huge object of a fractal heap).
"""

CHUNK = 1 << 20
"""Bytes of a chunk at most, if no row is longer: what is read and checked at once."""


# ------------------------------------------------------------ reading


@contextmanager
def open_hdf5(path: FilePath, wanted: str = "") -> Generator[Any]:
    """The file as an open, read-only h5py.File.

    What h5py raises inside the block is an InputError naming the file.

    Refuses files that name others for a part of their content: they could make anything readable
    part of a result.
    """
    source = existing_file(path, wanted or "a particle file")
    with source.open("rb") as stream:
        if stream.read(len(MAGIC)) != MAGIC:
            raise InputError(
                f"{path}: this is no HDF5 file" + (f"; wanted {wanted}" if wanted else "")
            )
    with reading(path, "HDF5", DAMAGE), imported("h5py").File(source, "r") as file:
        _refuse_other_files(file)
        yield file


def _refuse_other_files(file: Any) -> None:
    """Raise InputError for links to other files, and for datasets that lie in others."""
    h5py = imported("h5py")
    links: list[tuple[bytes, int]] = []

    def note(name: bytes, info: Any) -> None:
        links.append((name, info.type))

    file.id.links.visit(note, info=True)
    for name, kind in links:
        if kind not in (h5py.h5l.TYPE_HARD, h5py.h5l.TYPE_SOFT):
            shown = name.decode(errors="replace")
            raise InputError(
                f"{shown} is a link to another file; wanted a file that holds its data itself"
            )
    names = [name for name, kind in links if kind == h5py.h5l.TYPE_HARD]
    for name in names:
        entry = file[name]
        if isinstance(entry, h5py.Dataset) and (entry.external or entry.is_virtual):
            shown = name.decode(errors="replace")
            raise InputError(
                f"the data of {shown} lie in another file; wanted a file that holds its data itself"
            )


def warn_without_sums(file: Any, path: FilePath) -> None:
    """Warn (`FileWarning`) of a file of lanewise whose datasets have no CRC-32."""
    if not promised(file):
        text = (
            f"{path}: the file is of an older version of lanewise, whose sums miss some damage; "
            "what it holds is taken as it is"
        )
        warn_user(text, FileWarning)


def text_of(value: Any) -> str:
    """An attribute that is text: of fixed length as lanewise writes it, or of variable length.

    Raises `ValueError` for another one.
    """
    match value:
        case bytes():
            return value.decode("utf-8", "surrogateescape")
        case str():
            return str(value)
        case _:
            raise ValueError(f"an attribute is {an(type(value).__name__)}; wanted text")


def read_text(attributes: Any, name: str) -> str:
    """The text of an attribute and of those with its further parts (see `set_attributes`).

    Raises as `text_of`, `KeyError` without it.
    """
    parts = [attributes[name]]
    while (further := f"{name}.{len(parts) + 1}") in attributes:
        parts.append(attributes[further])
    return text_of(b"".join(parts) if len(parts) > 1 else parts[0])


# ------------------------------------------------------------ writing


def write_hdf5(
    path: FilePath,
    fill: Callable[[Any], None],
    *,
    overwrite: bool = False,
) -> None:
    """Call `fill` with a new, empty h5py.File, and put it at `path` in one step (see
    `atomic_path`).
    """
    with atomic_path(path, overwrite) as temporary, temporary.open("r+b", buffering=0) as raw:
        sink = _Sink(raw)
        try:
            with imported("h5py").File(sink, "w", libver=VERSION) as file:
                fill(file)
                promise(file)
        except Exception:
            if sink.error is None:
                raise
        if sink.error is not None:
            raise sink.error


def set_attributes(target: Any, values: Mapping[str, Any]) -> None:
    """Attributes of a group or dataset: numbers, short arrays, and text, which h5py reads back as
    bytes.

    Text of more than `PART` bytes is divided: what follows the first part is in attributes NAME.2,
    NAME.3 and so on.
    """
    for name, value in values.items():
        if not isinstance(value, str):
            target.attrs[name] = value
            continue
        content = value.encode("utf-8", "surrogateescape")
        for number in range(1, 2 + max(0, len(content) - 1) // PART):
            part = content[PART * (number - 1) : PART * number]
            target.attrs[name if number == 1 else f"{name}.{number}"] = _fixed(part)


def add_dataset(group: Any, name: str, values: Any, **options: Any) -> Any:
    """A dataset with its sum, and a checksum for each chunk; `options` are h5py's. Returns it."""
    array: NDArray[Any] = np.asarray(values)
    dataset = _created(group, name, array.shape, array.dtype, data=array, **options)
    put_sum(dataset, array)
    return dataset


def add_rows(
    group: Any,
    name: str,
    shape: tuple[int, ...],
    dtype: Any,
    pieces: Iterable[NDArray[Any]],
    **options: Any,
) -> Any:
    """`add_dataset` for values that come in pieces, one after the other along the first axis."""
    dataset = _created(group, name, shape, dtype, **options)
    put_rows(dataset, pieces)
    return dataset


def _created(group: Any, name: str, shape: tuple[int, ...], dtype: Any, **options: Any) -> Any:
    """Nothing (no values) and a single number take no chunks: make a number an attribute."""
    if 0 not in (options.get("maxshape") or shape) and shape:
        options = {
            "chunks": chunk_of(shape, np.dtype(dtype).itemsize),
            **options,
            "fletcher32": True,
        }
    return group.create_dataset(name, shape, dtype, **options)


def chunk_of(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """A part of whole rows of at most `CHUNK` bytes; of less than a row, if rows are longer."""
    chunk = list(shape)
    for axis in range(len(chunk)):
        while chunk[axis] > 1 and int(np.prod(chunk, dtype=object)) * itemsize > CHUNK:
            chunk[axis] = (chunk[axis] + 1) // 2
    return tuple(chunk)


def _fixed(content: bytes) -> Any:
    """Text of fixed length, at least one byte: HDF5 has no shorter one."""
    return np.array(content, imported("h5py").string_dtype("utf-8", max(1, len(content))))


class _Sink(RawIOBase):
    """A file that takes everything and keeps what went wrong as `error`.

    HDF5's library does not survive a write that fails: it keeps half of the file open, and ends the
    process with a segmentation fault. So it never learns of one; the code that closes the file
    does.
    """

    def __init__(self, raw: Any) -> None:
        super().__init__()
        self._raw = raw
        self.error: BaseException | None = None

    def _attempt(self, action: Callable[[], object]) -> None:
        if self.error is None:
            try:
                action()
            except BaseException as error:  # Ctrl-C also has to wait until HDF5 is done
                self.error = error

    def write(self, data: Any, /) -> int:
        rest = memoryview(data).cast("B")
        size = len(rest)

        def write_all() -> None:
            nonlocal rest
            while rest:
                rest = rest[self._raw.write(rest) :]

        self._attempt(write_all)
        return size

    def readinto(self, buffer: Any, /) -> int:
        view = memoryview(buffer).cast("B")
        view[:] = bytes(len(view))  # what was never written
        self._attempt(lambda: self._raw.readinto(view))
        return len(view)

    def seek(self, offset: int, whence: int = 0, /) -> int:
        return self._raw.seek(offset, whence)

    def tell(self) -> int:
        return self._raw.tell()

    def truncate(self, size: int | None = None, /) -> int:
        self._attempt(lambda: self._raw.truncate(size))
        return self._raw.tell() if size is None else size

    def flush(self) -> None:
        """Nothing waits here."""
