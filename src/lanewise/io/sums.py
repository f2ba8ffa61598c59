"""The sum of every dataset of an HDF5 file of lanewise, besides HDF5's own: what is read is what
was written, or an error.

Fletcher sums of HDF5 add words modulo 65,535, so words of zeros and of ones are the same to them.
So a dataset has two CRC-32 as its attribute `lanewise_crc32`: that of its bytes, in the order of C;
and that of its name, type and shape with the first one behind, by which it is no other dataset of
the file. The attribute `lanewise_sums` of a file says that every dataset has them.
"""

from __future__ import annotations

import zlib
from collections.abc import Generator, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.support.errors import InputError
from lanewise.support.interrupts import imported

PROMISE, SUM = "lanewise_sums", "lanewise_crc32"
KIND = b"crc32"

PIECE = 1 << 24
"""Bytes that are looked at or copied at a time."""

DENSEST = 1100
"""Bytes that a stored byte can stand for.

Deflate, the densest of HDF5's usual filters, has 1032 at most (zlib's documentation).
"""

SMALL = 1 << 24
"""Bytes of a compressed dataset up to which its storage is not examined."""


# ------------------------------------------------------------ writing


def promise(file: Any) -> None:
    """Say of a file that every dataset has its sum. Raises `AssertionError` where one has none."""
    bare = [name for name, held in _datasets(file) if SUM not in held.attrs]
    assert not bare, f"datasets without a sum: {bare}"
    file.attrs[PROMISE] = np.bytes_(KIND)


def put_sum(dataset: Any, values: NDArray[Any]) -> None:
    """Keep the sum of `values`, which are all that the dataset holds."""
    _keep(dataset, crc_of(values))


def put_rows(dataset: Any, pieces: Iterable[NDArray[Any]]) -> None:
    """Fill a dataset with pieces, one after the other along its first axis, which together are all
    of it.
    """
    first, crc = 0, 0
    for piece in pieces:
        rows = np.asarray(piece, dataset.dtype)
        dataset[first : first + len(rows)] = rows
        first, crc = first + len(rows), crc_of(rows, crc)
    assert first == len(dataset), "a part of it is not written"
    _keep(dataset, crc)


def _keep(dataset: Any, crc: int) -> None:
    dataset.attrs[SUM] = np.array([crc, _of_place(dataset, crc)], np.uint32)


def _of_place(dataset: Any, crc: int) -> int:
    return zlib.crc32(
        f"{dataset.name} {dataset.dtype.str} {dataset.shape} {crc}".encode(
            "utf-8", "surrogateescape"
        )
    )


def crc_of(values: NDArray[Any], before: int = 0) -> int:
    """CRC-32 of the bytes in the order of C, behind those whose sum is `before`."""
    if values.flags.c_contiguous:
        return zlib.crc32(values.reshape(-1).view(np.uint8).data, before)
    if values.ndim and values.nbytes > PIECE:  # without a copy of all of it
        rows = max(1, PIECE * len(values) // values.nbytes)
        for first in range(0, len(values), rows):
            before = crc_of(np.ascontiguousarray(values[first : first + rows]), before)
        return before
    return crc_of(np.ascontiguousarray(values), before)


# ------------------------------------------------------------ reading


def promised(file: Any) -> bool:
    """Whether every dataset of a file has its sum, by its own word."""
    return PROMISE in file.attrs


def read_array(dataset: Any) -> NDArray[Any]:
    """All values of a dataset, which are those that were written.

    In a file that has sums they are compared; a dataset without one is refused. Raises
    `InputError`, before memory is taken, for what is no array of numbers or of text of fixed
    length, and for more values than the stored bytes can hold.
    """
    name = check_stored(dataset)
    values: NDArray[Any] = np.asarray(dataset[()])
    if promised(dataset.file):
        _compare(dataset, name, crc_of(values))
    return values


def check_sum(dataset: Any) -> None:
    """Read a dataset some rows at a time, and keep nothing of it; raises as `read_array`."""
    for _ in checked_rows(dataset):
        pass


def checked_rows(dataset: Any) -> Generator[NDArray[Any]]:
    """The values of a dataset some rows at a time; raises as `read_array`, after the last ones
    where they are not what was written.
    """
    name = check_stored(dataset)
    crc = 0
    if dataset.shape and dataset.size:
        rows = max(1, PIECE * dataset.shape[0] // (dataset.dtype.itemsize * dataset.size))
        for first in range(0, len(dataset), rows):
            piece = dataset[first : first + rows]
            crc = crc_of(piece, crc)
            yield piece
    elif dataset.size:
        piece = np.asarray(dataset[()])
        crc = crc_of(piece)
        yield piece
    if promised(dataset.file):
        _compare(dataset, name, crc)


def check_stored(dataset: Any) -> str:
    """The name of a dataset whose values can be read; raises `InputError` for another one, before
    memory is taken.
    """
    name = str(dataset.name).removeprefix("/")
    if not isinstance(dataset, imported("h5py").Dataset) or dataset.shape is None:
        raise InputError(f"{name} is no array; wanted one")
    if dataset.dtype.kind not in "biufcSV" or dataset.dtype.hasobject:
        raise InputError(f"{name} holds {dataset.dtype}; wanted numbers")
    wanted = dataset.dtype.itemsize * int(np.prod(dataset.shape, dtype=object))
    stored = dataset.id.get_storage_size()
    filtered = (
        dataset.id.get_create_plist().get_nfilters() - dataset.fletcher32 - dataset.shuffle > 0
    )
    if stored < wanted and not (filtered and wanted <= max(SMALL, DENSEST * stored)):
        raise InputError(
            f"{name} is {dataset.shape} of {dataset.dtype}, which is {wanted:,} bytes, and "
            f"{stored:,} are stored; "
            "wanted all of its values"
        )
    return name


def _compare(dataset: Any, name: str, crc: int) -> None:
    if SUM not in dataset.attrs:
        raise InputError(
            f"damaged file: {name} has no sum ({SUM}), and every dataset of this file has one"
        )
    kept = np.asarray(dataset.attrs[SUM])
    if (
        kept.shape != (2,)
        or kept.dtype.kind not in "iu"
        or kept.tolist() != [crc, _of_place(dataset, crc)]
    ):
        raise InputError(
            f"damaged file: {name} is not what was written: its CRC-32 is {crc:08x}{_wanted(kept)}"
        )


def _wanted(kept: NDArray[Any]) -> str:
    if kept.shape != (2,) or kept.dtype.kind not in "iu":
        return ""
    return f", wanted {int(kept[0]):08x}"


def _datasets(file: Any) -> list[tuple[str, Any]]:
    h5py, found = imported("h5py"), []

    def visit(name: str, held: Any) -> None:
        if isinstance(held, h5py.Dataset):
            found.append((name, held))

    file.visititems(visit)
    return found


def check_sums(file: Any) -> None:
    """Read everything, so that damage anywhere is known before the file is carried on.

    Raises `InputError`, and what h5py does.
    """
    for attribute in file.attrs:
        file.attrs[attribute]

    def visit(name: str, held: Any) -> None:
        for attribute in held.attrs:
            held.attrs[attribute]

    file.visititems(visit)
    for _, held in _datasets(file):
        if held.shape is not None:
            check_sum(held)
