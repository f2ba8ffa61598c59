"""VTK ImageData files (.vti) of lattice fields, which ParaView and VisIt open as they are.

An XML header, then the arrays as they lie in memory ("appended raw": little-endian, each behind its
length as uint64).
Format: VTK file formats, https://docs.vtk.org/en/latest/vtk_file_formats/vtkxml_file_format.html.

Values are **point data**: a lattice site is a point at which the flow is known, and ParaView's
contours, stream tracers and volume rendering take point data as it is. With the first site half a
spacing inside of the box (the default origin) half-way walls lie at 0 and n spacings, and the
contour 0.5 of `solid` is the half-way wall of an obstacle.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lanewise.io.atomic import atomic_path
from lanewise.io.source import FilePath
from lanewise.support.errors import ArgumentError

NAMES = {
    "float32": "Float32",
    "float64": "Float64",
    "bool": "UInt8",
    "uint8": "UInt8",
    "int8": "Int8",
    "uint16": "UInt16",
    "int16": "Int16",
    "uint32": "UInt32",
    "int32": "Int32",
    "uint64": "UInt64",
    "int64": "Int64",
}
"""VTK's name of each NumPy type that it has."""

LENGTH = np.dtype("<u8")
"""Of the number that stands before each array (`header_type`)."""

CHUNK = 1 << 22
"""Values converted at a time, so that writing a field needs no second copy of it."""


def write_vti(
    path: FilePath,
    fields: Mapping[str, ArrayLike],
    *,
    spacing: float = 1.0,
    origin: Sequence[float] | None = None,
    time: float | None = None,
    overwrite: bool = False,
) -> None:
    """Write lattice fields in one step (see `atomic_path`).

    Args:
        path: the file.
        fields: by name, scalars (ny, nx) or (nz, ny, nx), and vectors with one more axis of x, y(,
            z) components; two components get z = 0, as ParaView's vectors have three. float32,
            float64, bool (as 0 and 1) or integers. The field of fewest axes is taken for a scalar,
            so at least one scalar is needed; ParaView shows it first.
        spacing: between sites, in the user's unit of length.
        origin: (x, y, z) of the first site; default half a spacing in every direction that the
        lattice has.
        time: of these values, in the user's unit; ParaView shows it.
        overwrite: whether an existing file is replaced.

    Raises:
        ArgumentError: no scalar field, a shape or a type that does not fit, or a spacing that is no
        positive number.
        InputError: the file cannot be written there.
    """
    arrays = {name: np.asarray(values) for name, values in fields.items()}
    shape = _lattice_shape(arrays)
    for name, array in arrays.items():
        _check(name, array, shape)
    if not (math.isfinite(spacing) and spacing > 0):
        raise ArgumentError(f"spacing is {spacing}; wanted a positive number")
    if origin is None:
        origin = [spacing / 2] * len(shape) + [0.0] * (3 - len(shape))
    if len(origin) != 3:
        raise ArgumentError(f"origin has {len(origin)} values; wanted 3, of x, y, z")
    with atomic_path(path, overwrite) as temporary, temporary.open("wb") as stream:
        stream.write(_header(arrays, shape, spacing, origin, time).encode())
        for array in arrays.values():
            _append(stream, array, len(shape))
        stream.write(b"\n</AppendedData>\n</VTKFile>\n")


def _lattice_shape(arrays: Mapping[str, NDArray[Any]]) -> tuple[int, ...]:
    """The smallest number of axes is that of a scalar: (nz, ny, nx, 3) has four, (ny, nx, 2)
    besides it needs (ny, nx).
    """
    candidates = [array.shape for array in arrays.values() if array.ndim in (2, 3)]
    shape = min(candidates, key=len, default=None)
    if shape is None:
        described = (
            ", ".join(f"{name} {array.shape}" for name, array in arrays.items()) or "no field"
        )
        raise ArgumentError(
            f"found {described}; wanted at least one scalar field of shape (ny, nx) or (nz, ny, nx)"
        )
    if 0 in shape:
        raise ArgumentError(f"a lattice of shape {shape} has no site")
    return shape


def _check(name: str, array: NDArray[Any], shape: tuple[int, ...]) -> None:
    if array.dtype.name not in NAMES:
        raise ArgumentError(f"{name} has dtype {array.dtype}; wanted one of {', '.join(NAMES)}")
    components = array.shape[len(shape) :]
    if array.shape[: len(shape)] != shape or components not in ((), (2,), (3,)):
        raise ArgumentError(
            f"{name} has shape {array.shape}; wanted {shape}, or that with a last axis of 2 or 3"
        )


def _header(
    arrays: Mapping[str, NDArray[Any]],
    shape: tuple[int, ...],
    spacing: float,
    origin: Sequence[float],
    time: float | None,
) -> str:
    """All text before the data."""
    extent = " ".join(f"0 {size - 1}" for size in (*shape[::-1], 1)[:3])
    lines = [
        '<?xml version="1.0"?>',
        '<VTKFile type="ImageData" version="1.0" byte_order="LittleEndian" header_type="UInt64">',
        f'<ImageData WholeExtent="{extent}" Origin="{" ".join(repr(float(x)) for x in origin)}" '
        f'Spacing="{" ".join([repr(float(spacing))] * 3)}">',
    ]
    if time is not None:
        values = f'format="ascii">{float(time)!r}</DataArray>'
        lines.append(
            '<FieldData><DataArray type="Float64" Name="TimeValue" NumberOfTuples="1" '
            f"{values}</FieldData>"
        )
    lines += [
        f'<Piece Extent="{extent}">',
        f"<PointData{_shown_first(arrays, shape)}>",
        *_declared(arrays, shape),
    ]
    lines += ["</PointData>", "</Piece>", "</ImageData>", '<AppendedData encoding="raw">']
    return "\n".join(lines) + "\n_"  # what follows the underscore is data


def _quoted(name: str) -> str:
    from xml.sax.saxutils import quoteattr  # which brings the web along, and few runs write a file

    return quoteattr(name)


def _shown_first(arrays: Mapping[str, NDArray[Any]], shape: tuple[int, ...]) -> str:
    scalars = [name for name, array in arrays.items() if array.ndim == len(shape)]
    vectors = [name for name, array in arrays.items() if array.ndim > len(shape)]
    return "".join(
        f" {kind}={_quoted(n[0])}" for kind, n in (("Scalars", scalars), ("Vectors", vectors)) if n
    )


def _declared(arrays: Mapping[str, NDArray[Any]], shape: tuple[int, ...]) -> Iterator[str]:
    """A line for each array, with the place of its length after the underscore."""
    offset, sites = 0, math.prod(shape)
    for name, array in arrays.items():
        components = 1 if array.ndim == len(shape) else 3
        yield (
            f'<DataArray type="{NAMES[array.dtype.name]}" Name={_quoted(name)} '
            f'NumberOfComponents="{components}" '
            f'format="appended" offset="{offset}"/>'
        )
        offset += LENGTH.itemsize + sites * components * array.dtype.itemsize


def _append(stream: BinaryIO, array: NDArray[Any], dimension: int) -> None:
    """The length and the values, x fastest: the order of the array itself.

    Converted in chunks of rows.
    """
    little = array.dtype.newbyteorder("<")
    pad = array.ndim > dimension and array.shape[-1] == 2
    size = array.size // 2 * 3 if pad else array.size
    stream.write(np.array(size * little.itemsize, LENGTH).tobytes())
    rows = max(1, CHUNK * len(array) // max(array.size, 1))
    for start in range(0, len(array), rows):
        part = array[start : start + rows]
        if pad:
            part = np.concatenate([part, np.zeros_like(part[..., :1])], axis=-1)
        stream.write(np.ascontiguousarray(part, little).data)
