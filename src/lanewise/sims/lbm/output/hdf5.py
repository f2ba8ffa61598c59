"""A flow field as an HDF5 file that h5py, MATLAB, Julia or h5dump read without lanewise.

| name | shape | |
| --- | --- | --- |
| density | (ny, nx) or (nz, ny, nx) | in lattice units, in the precision of the simulation |
| velocity | the same and an axis of x, y(, z) components | in lattice units |
| solid | as density, uint8 | 1 where there is no fluid; only if there are such sites to tell of |
| history/NAME | (n,) | columns of the force history, if there is one |

Every parameter of the run (text: UTF-8 of fixed length) is an attribute of the file (see `parameters.attributes`), beside those in `OWN`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lanewise._version import __version__
from lanewise.errors import ArgumentError, InputError
from lanewise.io.hdf5 import add_dataset, open_hdf5, set_attributes, text_of, write_hdf5
from lanewise.io.source import FilePath
from lanewise.sims.common.attributes import attributes

FORMAT = "lanewise flow 1"
"""The attribute `format`, by which the file is recognised."""

OWN = {"format": FORMAT, "lanewise_version": __version__, "field_units": "lattice"}
"""Attributes of the file itself, beside the parameters of the run."""

COMPRESSED: dict[str, Any] = {"compression": "gzip", "compression_opts": 1}
"""For long runs of equal bytes, of which nearly nothing is left."""

AXES = {2: "y,x", 3: "z,y,x"}


@dataclass(frozen=True, slots=True)
class FlowFile:
    """What a file holds; arrays as in the module's table, parameters as flat attributes, `history` perhaps empty."""

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
        extra: called with the open h5py.File at the end, to add groups of its own.
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
        set_attributes(add_dataset(file, "velocity", velocity), {"axes": f"{AXES[density.ndim]},component"})
        if solid is not None:
            data = np.asarray(solid, np.bool_).view(np.uint8)
            set_attributes(add_dataset(file, "solid", data, **COMPRESSED), axes)
        for name, column in columns.items():
            add_dataset(file, f"history/{name}", column)
        if extra is not None:
            extra(file)

    write_hdf5(path, fill, overwrite=overwrite)


def read_flow(path: FilePath) -> FlowFile:
    """What `write_flow` wrote. Raises InputError that names the file for another or a damaged one."""
    with open_hdf5(path) as file:
        found = text_of(file.attrs["format"]) if "format" in file.attrs else None
        if found != FORMAT:
            raise InputError(f"no flow field: its attribute format is {found!r}; wanted {FORMAT!r}")
        parameters = {name: _plain(value) for name, value in file.attrs.items()}
        history = {name: column[()] for name, column in file["history"].items()} if "history" in file else {}
        solid = file["solid"][()].astype(np.bool_) if "solid" in file else None
        return FlowFile(file["density"][()], file["velocity"][()], solid, parameters, history)


def _plain(value: Any) -> Any:
    """Python's own numbers and text instead of NumPy's scalars."""
    if isinstance(value, bytes):
        return text_of(value)
    return value.item() if isinstance(value, np.generic) else value


def _named(parameters: Mapping[str, Any]) -> dict[str, Any]:
    named = dict(attributes(parameters))
    if clash := sorted(named.keys() & OWN.keys()):
        raise ArgumentError(f"the parameter {clash[0]} has the name of an attribute of the file itself; rename it")
    return named


def _check_fields(density: NDArray[Any], velocity: NDArray[Any], solid: NDArray[Any] | None) -> None:
    if density.ndim not in AXES or 0 in density.shape:
        raise ArgumentError(f"density has shape {density.shape}; wanted (ny, nx) or (nz, ny, nx)")
    if density.dtype.name not in ("float32", "float64"):
        raise ArgumentError(f"density has dtype {density.dtype}; wanted float32 or float64")
    if velocity.shape != (*density.shape, density.ndim) or velocity.dtype != density.dtype:
        wanted = f"{(*density.shape, density.ndim)} of {density.dtype}, as density"
        raise ArgumentError(f"velocity has shape {velocity.shape} of {velocity.dtype}; wanted {wanted}")
    if solid is not None and (solid.shape != density.shape or solid.dtype != np.bool_):
        raise ArgumentError(f"solid has shape {solid.shape} of {solid.dtype}; wanted {density.shape} of bool")


def _checked_columns(history: Mapping[str, ArrayLike]) -> dict[str, NDArray[Any]]:
    columns = {name: np.asarray(values) for name, values in history.items()}
    first = next(iter(columns.values()), np.empty(0))
    for name, column in columns.items():
        if column.ndim != 1 or len(column) != len(first):
            raise ArgumentError(
                f"history {name} has shape {column.shape}; wanted ({len(first)},), as the other columns"
            )
    return columns
