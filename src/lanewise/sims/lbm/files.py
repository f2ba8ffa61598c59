"""What a flow simulation writes for other programs: fields as HDF5 that h5py, MATLAB, Julia or
h5dump read, time series as CSV.

| name | shape | |
| --- | --- | --- |
| density | (ny, nx) or (nz, ny, nx) | in lattice units, in the precision of the simulation |
| velocity | the same and an axis of x, y(, z) components | in lattice units |
| solid | as density, uint8 | 1 where there is no fluid; only if there are such sites to tell of |
| history/NAME | (n,) | columns of the force history, if there is one |

Every parameter of the run (text: UTF-8 of fixed length) is an attribute of the file (see
`parameters.attributes`), besides those in `OWN`.

A series is written during the run: a line of column names, then a line a measurement. The
first column is `step`, growing from line to line. Each line goes to the system in one piece as soon
as it is measured, so that `tail -f` shows it and a killed run leaves whole lines, but for perhaps
the last one. `sync` before each checkpoint makes sure that a checkpoint never knows of a step that
the series lacks; a resumed run cuts what came after it, and refuses a series that ends before it.
The last line of a run that was not killed is a comment with the CRC-32 of the others.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

import lanewise as lw
from lanewise.io.atomic import atomic_path, writable_target, writing
from lanewise.io.hdf5 import (
    add_dataset,
    open_hdf5,
    set_attributes,
    text_of,
    warn_without_sums,
    write_hdf5,
)
from lanewise.io.source import FilePath, reading
from lanewise.io.sums import PROMISE, read_array
from lanewise.sims.common.attributes import attributes
from lanewise.support.errors import ArgumentError, InputError

FORMAT = "lanewise flow 1"
"""The attribute `format`, by which the file is recognised."""

OWN = {"format": FORMAT, "lanewise_version": lw.__version__, "field_units": "lattice"}
"""Attributes of the file itself, besides the parameters of the run."""

COMPRESSED: dict[str, Any] = {"compression": "gzip", "compression_opts": 1}
"""For long runs of equal bytes, of which nearly nothing is left."""

AXES = {2: "y,x", 3: "z,y,x"}

NUMBER = re.compile(rb"-?(\d+(\.\d+)?(e[-+]?\d+)?|inf)|nan")  # as repr writes one

SUM = "# lanewise, CRC-32 of the lines above: "
"""The last line of a series, with eight digits. It cannot stand above, as that of other tables
does: lines that were written are not touched again.
"""


@dataclass(frozen=True, slots=True)
class FlowFile:
    """What `read_flow` returns, in lattice units.

    Attributes:
        density: (ny, nx) or (nz, ny, nx), in the precision of the run.
        velocity: the same and a last axis of x, y(, z) components.
        solid: bool, as density, True where there is no fluid; None if there are no such sites.
        parameters: of the run, by name, such as `case`, `re`, `viscosity`, `step`.
        history: columns of the measurements by name, (n,) each; empty if there are none.
    """

    density: NDArray[Any]
    velocity: NDArray[Any]
    solid: NDArray[np.bool_] | None
    parameters: dict[str, Any]
    history: dict[str, NDArray[Any]]


def write_flow(
    path: FilePath,
    density: NDArray[Any],
    velocity: NDArray[Any],
    parameters: Mapping[str, Any],
    *,
    solid: NDArray[Any] | None = None,
    history: Mapping[str, ArrayLike] | None = None,
    extra: Callable[[Any], None] | None = None,
    overwrite: bool = False,
) -> None:
    """Write the fields in one step: the file is there whole or not at all.

    Args:
        path: the file.
        density: (ny, nx) or (nz, ny, nx), float32 or float64.
        velocity: (..., 2) or (..., 3) of the same type.
        parameters: whatever decides the run; nested dictionaries and dataclasses are flattened.
        solid: bool, as density; True where there is no fluid.
        history: columns of equal length, such as step, time, force_x.
        extra: called with the open h5py.File at the end, to add its own groups.
        overwrite: whether an existing file is replaced.

    Raises:
        ArgumentError: a shape, a type or a parameter does not fit.
        InputError: the file cannot be written there.
    """
    _check_fields(density, velocity, solid)
    columns = _checked_columns(history or {})
    named = _named(parameters)

    def fill(file: Any) -> None:
        set_attributes(file, {**named, **OWN})
        axes = {"axes": AXES[density.ndim]}
        set_attributes(add_dataset(file, "density", density), axes)
        set_attributes(
            add_dataset(file, "velocity", velocity), {"axes": f"{AXES[density.ndim]},component"}
        )
        if solid is not None:
            data = np.asarray(solid, np.bool_).view(np.uint8)
            set_attributes(add_dataset(file, "solid", data, **COMPRESSED), axes)
        for name, column in columns.items():
            add_dataset(file, f"history/{name}", column)
        if extra is not None:
            extra(file)

    write_hdf5(path, fill, overwrite=overwrite)


def read_flow(path: FilePath) -> FlowFile:
    """Read the `run.h5` of `lanewise lbm run --out` or `Simulation.checkpoint`.

    Raises `InputError`, which names the file, for a damaged file or one of another kind.
    """
    with open_hdf5(path) as file:
        kind = text_of(file.attrs["format"]) if "format" in file.attrs else None
        if kind != FORMAT:
            raise InputError(f"no flow field: its attribute format is {kind!r}; wanted {FORMAT!r}")
        parameters = {name: _plain(value) for name, value in file.attrs.items() if name != PROMISE}
        warn_without_sums(file, path)
        history = (
            {name: read_array(column) for name, column in file["history"].items()}
            if "history" in file
            else {}
        )
        solid = read_array(file["solid"]).astype(np.bool_) if "solid" in file else None
        return FlowFile(
            read_array(file["density"]), read_array(file["velocity"]), solid, parameters, history
        )


def _plain(value: Any) -> Any:
    """Python's own numbers and text instead of NumPy's scalars."""
    if isinstance(value, bytes):
        return text_of(value)
    return value.item() if isinstance(value, np.generic) else value


def _named(parameters: Mapping[str, Any]) -> dict[str, Any]:
    named = dict(attributes(parameters))
    if clash := sorted(named.keys() & OWN.keys()):
        raise ArgumentError(
            f"the parameter {clash[0]} has the name of an attribute of the file itself; rename it"
        )
    return named


def _check_fields(
    density: NDArray[Any], velocity: NDArray[Any], solid: NDArray[Any] | None
) -> None:
    if density.ndim not in AXES or 0 in density.shape:
        raise ArgumentError(f"density has shape {density.shape}; wanted (ny, nx) or (nz, ny, nx)")
    if density.dtype.name not in ("float32", "float64"):
        raise ArgumentError(f"density has dtype {density.dtype}; wanted float32 or float64")
    if velocity.shape != (*density.shape, density.ndim) or velocity.dtype != density.dtype:
        wanted = f"{(*density.shape, density.ndim)} of {density.dtype}, as density"
        raise ArgumentError(
            f"velocity has shape {velocity.shape} of {velocity.dtype}; wanted {wanted}"
        )
    if solid is not None and (solid.shape != density.shape or solid.dtype != np.bool_):
        raise ArgumentError(
            f"solid has shape {solid.shape} of {solid.dtype}; wanted {density.shape} of bool"
        )


def _checked_columns(history: Mapping[str, ArrayLike]) -> dict[str, NDArray[Any]]:
    columns = {name: np.asarray(values) for name, values in history.items()}
    first = next(iter(columns.values()), np.empty(0))
    for name, column in columns.items():
        if column.ndim != 1 or len(column) != len(first):
            raise ArgumentError(
                f"history {name} has shape {column.shape}; wanted ({len(first)},), as the other "
                "columns"
            )
    return columns


class TimeSeries:
    """A CSV file that grows. Use it in a `with` block, or call `close`.

    `last_step` is that of its last line, or -1; `continued` says whether the file was there.
    """

    def __init__(
        self,
        path: FilePath,
        columns: Sequence[str],
        *,
        resume_step: int | None = None,
        overwrite: bool = False,
    ) -> None:
        """Start a new file, or continue one behind `resume_step`.

        Args:
            path: the file.
            columns: names; the first one is `step`.
            resume_step: the step of the checkpoint from which the run continues; later lines are
            dropped. The file
                is begun anew where it does not exist (a run may ask for a series only when it is
                resumed).
            overwrite: whether an existing file is replaced when nothing is resumed.

        Raises:
            ArgumentError: the columns do not begin with `step`.
            InputError: the file exists, has other columns, or cannot be written.
        """
        if not columns or columns[0] != "step":
            raise ArgumentError(
                f"the columns are {','.join(columns) or 'none'}; wanted step as the first one"
            )
        self.columns = tuple(columns)
        self.path = writable_target(path, overwrite or resume_step is not None)
        self.continued = resumed = resume_step is not None and self.path.exists()
        # with its first line from the beginning: a full disk leaves no file of nothing
        if not resumed:
            with atomic_path(path, overwrite or resume_step is not None) as temporary:
                temporary.write_text(",".join(self.columns) + "\n", encoding="utf-8")
        kept = truncate(path, self.columns, -1 if resume_step is None else resume_step)
        self.last_step, self._crc, self._whole = kept.last_step, kept.crc, True
        with writing(self.path):
            self._handle = os.open(self.path, os.O_WRONLY | os.O_APPEND)

    def add(self, step: int, *values: float) -> None:
        """Write one line; numbers keep all their digits.

        A step that is not after the last one is an ArgumentError.
        """
        if len(values) != len(self.columns) - 1:
            raise ArgumentError(
                f"{len(values)} values besides the step; wanted {','.join(self.columns[1:])}"
            )
        if step <= self.last_step:
            raise ArgumentError(f"step {step} after step {self.last_step}; wanted growing steps")
        self._write(",".join([str(int(step)), *(repr(float(value)) for value in values)]))
        self.last_step = step

    def sync(self) -> None:
        """Wait until all lines are on the disk. To be called before a checkpoint is written."""
        with writing(self.path):
            os.fsync(self._handle)

    def _write(self, line: str) -> None:
        data, self._whole = f"{line}\n".encode(), False
        with writing(self.path):
            rest = memoryview(data)
            while rest:  # a full disk may take a part, and says why at the next call
                rest = rest[os.write(self._handle, rest) :]
        self._crc, self._whole = zlib.crc32(data, self._crc), True

    def close(self) -> None:
        """Write the sum of the lines, if all of them are whole, and close the file; a second call
        does nothing.
        """
        if self._handle >= 0:
            try:
                if self._whole:
                    self._write(f"{SUM}{self._crc:08x}")
            finally:
                os.close(self._handle)
                self._handle = -1

    def __enter__(self) -> TimeSeries:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class KeptLines:
    """What is left of a series: the step of its last line, or -1, and the CRC-32 of all lines."""

    last_step: int
    crc: int


def truncate(path: FilePath, columns: Sequence[str], step: int) -> KeptLines:
    """Cut the lines after `step`, the sum, and a last line that was not finished.

    A series that has its sum is compared with it: those of runs that were killed and of older
    versions have none.

    Raises:
        InputError: the file has other columns, a damaged line, lines that are not those of its sum,
        or cannot be written.
    """
    kept, last, crc, all_lines, ended = 0, -1, 0, 0, False
    with reading(path, "CSV", (ValueError,)), Path(path).open("rb") as stream:
        for number, line in enumerate(stream, 1):
            if not line.endswith(b"\n"):
                break
            if ended:
                raise InputError(f"line {number} is below the sum of the others; wanted none")
            if number > 1 and line.startswith(b"#"):
                _check_sum(number, line, all_lines)
                ended = True
                continue
            all_lines = zlib.crc32(line, all_lines)
            if number == 1:
                _check_header(line, columns)
            elif (step_of_line := _step(number, line)) <= last:
                raise InputError(
                    f"line {number} is of step {step_of_line}, behind one of step {last}; wanted "
                    "growing steps"
                )
            elif step_of_line > step:
                continue
            else:
                last = step_of_line
            kept, crc = kept + len(line), all_lines
        if not kept:
            raise InputError(f"no line of column names; wanted {','.join(columns)}")
    with writing(path):
        os.truncate(path, kept)
    return KeptLines(last, crc)


def _check_sum(number: int, line: bytes, crc: int) -> None:
    stated = re.fullmatch(re.escape(SUM).encode() + rb"([0-9a-f]{8})\r?\n", line)
    if stated is None:
        raise InputError(f"line {number} is damaged; wanted {SUM!r} and eight digits")
    if crc != int(stated[1], 16):
        raise InputError(
            f"the CRC-32 of the lines above the last one is {crc:08x}; wanted "
            f"{stated[1].decode()}: they are not what was written. If you have changed them, "
            f"delete line {number}"
        )


def _check_header(line: bytes, columns: Sequence[str]) -> None:
    header, expected = line.decode().strip(), ",".join(columns)
    if header != expected:
        raise InputError(f"its columns are {header}; wanted {expected}, to continue it")


def _step(number: int, line: bytes) -> int:
    first, *others = line.strip().split(b",")
    if not first.isdigit():
        raise InputError(
            f"line {number} starts with {first.decode(errors='replace')!r}; wanted a step"
        )
    if wrong := next((cell for cell in others if not NUMBER.fullmatch(cell)), None):
        raise InputError(
            f"line {number} has {wrong.decode(errors='replace')!r}; wanted numbers behind its step"
        )
    return int(first)
