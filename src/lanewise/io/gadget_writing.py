"""Gadget snapshots in HDF5, written so that yt, pynbody and Gadget itself read them; the format is
that of `io/gadget.py`.

The header holds every attribute that those readers ask for; zero or one where an isolated run
without expansion has nothing to say. BoxSize = 0 tells readers that space is open, so that they
measure the bodies instead. The format says nothing about how datasets are stored; readers with HDF5
1.10 (2016) or later check the sums as they read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lanewise.io.hdf5 import add_dataset, add_rows, write_hdf5
from lanewise.io.particles import COMPONENTS, Particles, as_float32, check_any
from lanewise.io.source import FilePath

ORDER = "LanewiseOrder"
"""Dataset of ours besides ParticleIDs, (n,) int64.

Where a body stood before the bodies were sorted by type.
"""

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

    `precision` is that of the coordinates, velocities and masses. `extra` gets the open h5py.File
    before it is put in place, to add its own groups (other readers pass over groups that they do
    not know). Raises InputError as `atomic_path`, for no bodies, and for values too large for
    float32.
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
        add_rows(
            group,
            name,
            shape,
            np.float32 if precision == "f32" else np.float64,
            pieces,
            chunks=chunks,
        )
    add_dataset(group, "ParticleIDs", particles.ids[chosen])
    if _is_unsorted(particles):
        add_dataset(group, ORDER, chosen.astype(np.int64))


def _rounded(
    field: str, values: NDArray[Any], precision: str, rows: NDArray[np.int64]
) -> NDArray[np.floating[Any]]:
    return as_float32(field, values, rows) if precision == "f32" else values


def _is_unsorted(particles: Particles) -> bool:
    return bool((particles.component[1:] < particles.component[:-1]).any())
