"""Tipsy binary files: writing. Format: see `tipsy_layout`."""

from __future__ import annotations

import struct
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lanewise.io.atomic import atomic_path
from lanewise.io.check import as_float32
from lanewise.io.particles import Particles
from lanewise.io.source import FilePath
from lanewise.io.tipsy_layout import FAMILIES, HEADER, PADDING_BYTES, body_type

FAMILY_OF_COMPONENT = np.array([0, 1, 2, 2, 2, 2])
"""Tipsy has three families only: disc (2), bulge (3) and the rest (5) are counted among the stars."""


def write_tipsy(
    path: FilePath,
    particles: Particles,
    *,
    overwrite: bool = False,
    byte_order: Literal["<", ">"] = "<",
    padded: bool = True,
) -> None:
    """Write in one step. Bodies are sorted by family; values are rounded to float32; ids are not stored.

    `padded` adds the 4 bytes after the header that readers (pynbody, for one) expect. What Particles does not know
    (temperature, metals, potential, ...) is 0. Raises InputError as `atomic_path` and for values too large for float32.
    """
    families = FAMILY_OF_COMPONENT[particles.component]
    counts = np.bincount(families, minlength=len(FAMILIES)).tolist()
    types = [body_type(family, byte_order) for family, _ in FAMILIES]
    bodies = [_structures(particles, families == place, dtype) for place, dtype in enumerate(types)]
    with atomic_path(path, overwrite) as temporary, temporary.open("wb") as stream:
        stream.write(struct.pack(byte_order + HEADER, particles.time, len(particles), 3, *counts))
        stream.write(bytes(PADDING_BYTES if padded else 0))
        for part in bodies:
            stream.write(part.tobytes())


def _structures(particles: Particles, chosen: NDArray[np.bool_], dtype: np.dtype[np.void]) -> NDArray[np.void]:
    """The chosen bodies as (n,) structures."""
    bodies = np.zeros(int(chosen.sum()), dtype)
    bodies["mass"] = as_float32("mass", particles.mass)[chosen]
    for name, values, columns in (
        ("position", particles.position, ("x", "y", "z")),
        ("velocity", particles.velocity, ("vx", "vy", "vz")),
    ):
        rounded = as_float32(name, values)[chosen]
        for axis, column in enumerate(columns):
            bodies[column] = rounded[:, axis]
    bodies["softening"] = as_float32("softening", np.array([particles.softening or 0.0]))
    return bodies
