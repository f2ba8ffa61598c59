"""Gadget snapshots in HDF5: reading, and writing so that yt, pynbody and Gadget itself read them.

Format: Springel, "User guide for GADGET-2" (2005), section 6, snapshot format 3. Groups `Header` (attributes) and
`PartType0` to `PartType5`, each with Coordinates (n, 3), Velocities (n, 3), Masses (n,), ParticleIDs (n,). A type
whose bodies all weigh the same may give that mass in Header/MassTable instead. Velocities of a run without expansion
are plain velocities; those of a comoving run carry a factor 1/sqrt(a), and its lengths are comoving: refused here.

A header that is written holds every attribute that those readers ask for; zero or one where an isolated run without expansion has nothing
to say. BoxSize = 0 tells readers that space is open, so that they measure the bodies instead. The format says nothing about how datasets
are stored; readers with HDF5 1.10 (2016) or later check the sums as they read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lanewise.checks import shown
from lanewise.errors import InputError
from lanewise.io.formats import Format
from lanewise.io.hdf5 import MAGIC, add_dataset, add_rows, open_hdf5, write_hdf5
from lanewise.io.particles import COMPONENTS, Particles, as_float32, check_any
from lanewise.io.source import FilePath
from lanewise.io.sums import read_array


def read_gadget(path: FilePath) -> Particles:
    """All bodies of all types: by type and then as stored, or in the order they were written when lanewise wrote them.

    Numbers are taken as they are, without conversion of units. Raises InputError naming the file and what is wrong.
    """
    with open_hdf5(path) as file:
        header = _header(file)
        parts = [_part(file, header, kind) for kind in range(COMPONENTS) if _count(file, kind)]
        if not parts:
            raise InputError("there are no bodies in PartType0 to PartType5; at least one is wanted")
        particles = Particles.of(
            position=np.concatenate([part.position for part in parts]),
            velocity=np.concatenate([part.velocity for part in parts]),
            mass=np.concatenate([part.mass for part in parts]),
            ids=_joined_ids(parts),
            component=np.concatenate([np.full(len(part.mass), part.kind) for part in parts]),
            time=_number(header, "Time", 0.0),
            softening=_number(header, SOFTENING, 0.0) if SOFTENING in header else None,
        )
        return _as_written(particles, parts)


@dataclass(frozen=True, slots=True)
class _Part:
    """The arrays of one PartType group, (n, ...) each; what the file may leave out is None."""

    kind: int
    position: NDArray[Any]
    velocity: NDArray[Any]
    mass: NDArray[Any]
    ids: NDArray[Any] | None
    order: NDArray[Any] | None


def _header(file: Any) -> dict[str, Any]:
    """Attributes of Header, one-element arrays as scalars."""
    if "Header" not in file:
        raise InputError(f"this HDF5 file has no group Header (it has {_names(file)}); wanted a Gadget snapshot")
    header = {str(key): _single(value) for key, value in file["Header"].attrs.items()}
    if (files := _number(header, "NumFilesPerSnapshot", 1)) > 1:
        raise InputError(f"this is one of {files:g} files of a snapshot; wanted a snapshot in a single file")
    if (redshift := _number(header, "Redshift", 0)) != 0:
        raise InputError(f"this is a comoving snapshot at redshift {redshift:g}; wanted one without expansion")
    return header


def _number(header: Mapping[str, Any], name: str, absent: float) -> float:
    """One number of the header."""
    row = _row(header, name)
    if name in header and len(row) != 1:
        raise InputError(f"{name} in Header is {shown(header[name])}; wanted a number")
    return float(row[0]) if len(row) else absent


def _row(header: Mapping[str, Any], name: str) -> NDArray[Any]:
    """Numbers of the header in a row, none where it has no such entry."""
    row = np.ravel(header.get(name, np.empty(0)))
    if row.dtype.kind not in "biuf":
        raise InputError(f"{name} in Header is {shown(header[name])}; wanted numbers")
    return row


def _part(file: Any, header: dict[str, Any], kind: int) -> _Part:
    group = file[f"PartType{kind}"]
    count = _count(file, kind)
    declared = _row(header, "NumPart_ThisFile")
    if len(declared) == COMPONENTS and int(declared[kind]) != count:
        raise InputError(f"Header promises {declared[kind]} bodies of PartType{kind}; its Coordinates hold {count}")
    return _Part(
        kind=kind,
        position=_dataset(group, "Coordinates", (count, 3)),
        velocity=_dataset(group, "Velocities", (count, 3)),
        mass=_masses(group, header, kind, count),
        ids=_dataset(group, "ParticleIDs", (count,)) if "ParticleIDs" in group else None,
        order=_dataset(group, ORDER, (count,)) if ORDER in group else None,
    )


def _masses(group: Any, header: dict[str, Any], kind: int, count: int) -> NDArray[Any]:
    """Masses; else the mass of the type in the header. A nonzero MassTable wins (user guide, section 6.1)."""
    table = _row(header, "MassTable")
    if len(table) == COMPONENTS and float(table[kind]) != 0.0:
        return np.full(count, float(table[kind]))
    return _dataset(group, "Masses", (count,))


def _dataset(group: Any, name: str, shape: tuple[int, ...]) -> NDArray[Any]:
    if name not in group:
        raise InputError(f"{group.name} has no {name} (it has {_names(group)})")
    if group[name].shape != shape:
        raise InputError(f"{group.name}/{name} has shape {group[name].shape}; wanted {shape}")
    return read_array(group[name])


def _count(file: Any, kind: int) -> int:
    """Bodies of this type; 0 when the group is missing or has no Coordinates."""
    name = f"PartType{kind}/Coordinates"
    shape: tuple[int, ...] = file[name].shape if name in file else ()
    return shape[0] if shape else 0


def _joined_ids(parts: list[_Part]) -> NDArray[Any] | None:
    """ParticleIDs of all types, or None (numbered anew) when one type has none."""
    ids = [part.ids for part in parts if part.ids is not None]
    return np.concatenate(ids) if len(ids) == len(parts) else None


def _as_written(particles: Particles, parts: list[_Part]) -> Particles:
    """Undo the sorting by type, which the writer recorded."""
    orders = [part.order for part in parts if part.order is not None]
    if len(orders) != len(parts):
        return particles
    written = np.concatenate(orders)
    back = np.argsort(written, kind="stable")
    if not np.array_equal(written[back], np.arange(len(particles))):
        raise InputError(f"the datasets {ORDER} do not number the bodies from 0 to {len(particles) - 1}")
    return particles.take(back)


def _single(value: Any) -> Any:
    """Some writers store scalars as arrays of one element."""
    array: NDArray[Any] = np.asarray(value)
    return array.reshape(())[()] if array.size == 1 else array


def _names(group: Any) -> str:
    return ", ".join(list(group)[:8]) or "nothing"


FORMAT = Format(
    name="Gadget HDF5",
    suffixes=(".h5", ".hdf5"),
    recognises=lambda head: head.startswith(MAGIC),
    read=read_gadget,
    write=lambda path, particles, overwrite: write_gadget(path, particles, overwrite=overwrite),
)


ORDER = "LanewiseOrder"
"""Dataset of ours beside ParticleIDs, (n,) int64: where a body stood before the bodies were sorted by type."""

ROWS = 65_536
"""Bodies that are converted and written at once."""

SOFTENING = "LanewiseSoftening"
"""Header attribute of ours: the softening length of all bodies."""


def write_gadget(
    path: FilePath,
    particles: Particles,
    *,
    overwrite: bool = False,
    precision: Literal["f32", "f64"] = "f64",
    extra: Callable[[Any], None] | None = None,
) -> None:
    """Write one snapshot file in one step: whole or not at all.

    `precision` is that of the coordinates, velocities and masses. `extra` gets the open h5py.File before it is put in
    place, to add groups of its own (other readers pass over groups that they do not know).
    Raises InputError as `atomic_path`, for no bodies, and for values too large for float32.
    """
    check_any(path, particles)

    def fill(file: Any) -> None:
        _write_header(file.create_group("Header"), particles, precision)
        for kind in np.unique(particles.component):
            _write_part(file.create_group(f"PartType{kind}"), particles, int(kind), precision)
        if extra is not None:
            extra(file)

    write_hdf5(path, fill, overwrite=overwrite)


def _write_header(header: Any, particles: Particles, precision: str) -> None:
    counts = np.bincount(particles.component, minlength=COMPONENTS)
    header.attrs["NumPart_ThisFile"] = counts.astype(np.int32)
    header.attrs["NumPart_Total"] = counts.astype(np.uint32)
    header.attrs["NumPart_Total_HighWord"] = np.zeros(COMPONENTS, np.uint32)
    header.attrs["MassTable"] = np.zeros(COMPONENTS)
    header.attrs["Time"] = particles.time
    header.attrs["NumFilesPerSnapshot"] = np.int32(1)
    header.attrs["Flag_DoublePrecision"] = np.int32(precision == "f64")
    for name in ("Redshift", "BoxSize", "Omega0", "OmegaLambda"):
        header.attrs[name] = 0.0
    header.attrs["HubbleParam"] = 1.0
    for name in ("Sfr", "Cooling", "StellarAge", "Metals", "Feedback"):
        header.attrs[f"Flag_{name}"] = np.int32(0)
    if particles.softening is not None:
        header.attrs[SOFTENING] = particles.softening


def _write_part(group: Any, particles: Particles, kind: int, precision: str) -> None:
    chosen = np.flatnonzero(particles.component == kind)
    for name, field, values in (
        ("Coordinates", "position", particles.position),
        ("Velocities", "velocity", particles.velocity),
        ("Masses", "mass", particles.mass),
    ):
        shape = (len(chosen), *values.shape[1:])
        chunks = (min(len(chosen), ROWS), *shape[1:])  # each is written once, as a whole
        pieces = (  # a run has no memory to spare for a copy of itself
            _rounded(field, values[rows], precision, rows)
            for rows in (chosen[first : first + ROWS] for first in range(0, len(chosen), ROWS))
        )
        add_rows(group, name, shape, np.float32 if precision == "f32" else np.float64, pieces, chunks=chunks)
    add_dataset(group, "ParticleIDs", particles.ids[chosen])
    if _is_unsorted(particles):
        add_dataset(group, ORDER, chosen.astype(np.int64))


def _rounded(field: str, values: NDArray[Any], precision: str, rows: NDArray[np.int64]) -> NDArray[np.floating[Any]]:
    return as_float32(field, values, rows) if precision == "f32" else values


def _is_unsorted(particles: Particles) -> bool:
    return bool((particles.component[1:] < particles.component[:-1]).any())
