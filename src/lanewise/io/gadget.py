"""Gadget snapshots in HDF5, read; `io/gadget_writing.py` writes them.

Format: Springel, "User guide for GADGET-2" (2005), section 6, snapshot format 3. Groups `Header`
(attributes) and `PartType0` to `PartType5`, each with Coordinates (n, 3), Velocities (n, 3), Masses
(n,), ParticleIDs (n,). A type whose bodies all weigh the same may give that mass in
Header/MassTable instead. Velocities of a run without expansion are plain velocities; those of a
comoving run carry a factor 1/sqrt(a), and its lengths are comoving: refused here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.io.formats import Format
from lanewise.io.gadget_writing import ORDER, SOFTENING, write_gadget
from lanewise.io.hdf5 import MAGIC, open_hdf5
from lanewise.io.particles import COMPONENTS, Particles
from lanewise.io.source import FilePath
from lanewise.io.sums import read_array
from lanewise.support.checks import shown
from lanewise.support.errors import FileWarning, InputError
from lanewise.support.warned import warn_user


def read_gadget(path: FilePath) -> Particles:
    """All bodies of all types: by type and then as stored, or in the order they were written when
    lanewise wrote them.

    Numbers are taken as they are, without conversion of units. Warns (`FileWarning`) of a box,
    which is no box here, and of types without ids. Raises InputError naming the file and what is
    wrong: also what the header promises and the file does not hold, and every sign of a comoving
    run. Parameters of a cosmology are no sign where ComovingIntegrationOn is 0: the run has not
    used them.
    """
    with open_hdf5(path) as file:
        header = _header(file)
        counts = _counts(file, header)
        parts = [_part(file, header, kind, count) for kind, count in enumerate(counts) if count]
        if not parts:
            raise InputError(
                "there are no bodies in PartType0 to PartType5; at least one is wanted"
            )
        particles = Particles.of(
            position=np.concatenate([part.position for part in parts]),
            velocity=np.concatenate([part.velocity for part in parts]),
            mass=np.concatenate([part.mass for part in parts]),
            ids=_joined_ids(path, parts),
            component=np.concatenate([np.full(len(part.mass), part.kind) for part in parts]),
            time=_number(header, "Time", 0.0),
            softening=_number(header, SOFTENING, 0.0) if SOFTENING in header else None,
        )
        if (box := _row(header, "BoxSize")).any():
            size = " x ".join(f"{length:g}" for length in box)
            text = (
                f"{path}: BoxSize in Header is {size}, and is ignored: space is open, and "
                "forces are those of bodies alone"
            )
            warn_user(text, FileWarning)
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


SWITCHES = {
    "Header": ("ComovingIntegrationOn",),
    "Parameters": ("ComovingIntegrationOn",),
    "Cosmology": ("Cosmological run",),
}
"""Attributes by group that say whether a run is comoving: those of Gadget-4, Arepo and SWIFT."""

COSMOLOGY = {
    "Header": ("Omega0", "OmegaLambda", "OmegaBaryon"),
    "Parameters": ("Omega0", "OmegaLambda", "OmegaBaryon"),
}
"""Attributes by group that are 0 in a run without expansion, unless a switch says that it is one:
then the run has not used them.
"""


def _header(file: Any) -> dict[str, Any]:
    """Attributes of Header, one-element arrays as scalars; of a whole snapshot without
    expansion.
    """
    if not hasattr(file.get("Header"), "attrs"):
        raise InputError(
            f"this HDF5 file has no group Header (it has {_names(file)}); wanted a Gadget snapshot"
        )
    header = _attributes(file, "Header")
    if (files := _number(header, "NumFilesPerSnapshot", 1)) > 1:
        raise InputError(
            f"this is one of {files:g} files of a snapshot; wanted a snapshot in a single file"
        )
    _refuse_expansion(file, header)
    if (hubble := _number(header, "HubbleParam", 1)) not in (0, 1):
        raise InputError(
            f"HubbleParam in Header is {hubble:g}, so that its units are those of 1/h; wanted 1, "
            "without expansion"
        )
    if (axes := _number(header, "Dimension", 3)) != 3:
        raise InputError(f"Dimension in Header is {axes:g}; wanted 3")
    return header


def _refuse_expansion(file: Any, header: Mapping[str, Any]) -> None:
    """Raise InputError for a comoving snapshot, and for one whose redshift denies its switch."""
    off = ""
    for group, name, value in _stated(file, SWITCHES):
        if value != 0:
            raise InputError(
                f"this is a comoving snapshot ({name} in {group} is {value:g}); wanted one without "
                "expansion"
            )
        off = f"{name} in {group}"
    redshift = _number(header, "Redshift", 0)
    if redshift != 0 and off:
        raise InputError(
            f"{off} is 0, but the snapshot is at redshift {redshift:g}; wanted one without "
            "expansion, at redshift 0"
        )
    if redshift != 0:
        raise InputError(
            f"this is a comoving snapshot at redshift {redshift:g}; wanted one without expansion"
        )
    for group, name, value in () if off else _stated(file, COSMOLOGY):
        if value != 0:
            raise InputError(
                f"this is a comoving snapshot ({name} in {group} is {value:g}); wanted one without "
                "expansion, or with ComovingIntegrationOn in Parameters, which is 0 if the run has "
                f"not used {name}"
            )


def _stated(file: Any, wanted: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[str, str, float]]:
    """Those of the wanted attributes that the file has: group, name, number."""
    for group, names in wanted.items():
        held = _attributes(file, group)
        yield from ((group, n, _number(held, n, 0, group)) for n in names if n in held)


def _attributes(file: Any, group: str) -> dict[str, Any]:
    held = file.get(group)
    return {} if held is None else {str(key): _single(value) for key, value in held.attrs.items()}


def _number(header: Mapping[str, Any], name: str, absent: float, group: str = "Header") -> float:
    """One number of the header."""
    row = _row(header, name, group)
    if name in header and len(row) != 1:
        raise InputError(f"{name} in {group} is {shown(header[name])}; wanted a number")
    return float(row[0]) if len(row) else absent


def _row(header: Mapping[str, Any], name: str, group: str = "Header") -> NDArray[Any]:
    """Numbers of the header in a row, none where it has no such entry."""
    row = np.ravel(header.get(name, np.empty(0)))
    if row.dtype.kind not in "biuf":
        raise InputError(f"{name} in {group} is {shown(header[name])}; wanted numbers")
    return row


def _whole_row(header: Mapping[str, Any], name: str) -> list[int] | None:
    """Counts by type, None where the header has no such entry."""
    if name not in header:
        return None
    row = _row(header, name)
    if not np.isfinite(row).all() or (row != np.floor(row)).any() or (row < 0).any():
        raise InputError(
            f"{name} in Header is {row.tolist()}; wanted a number of bodies for each type"
        )
    return [int(n) for n in row]


def _counts(file: Any, header: Mapping[str, Any]) -> list[int]:
    """Bodies of types 0 to 5: as many as the header promises and the groups hold, here and in the
    whole snapshot.
    """
    groups = {_kind_of(name): name for name in file if re.fullmatch(r"PartType\d+", name)}
    held = {kind: _held(file[name]) for kind, name in groups.items()}
    promised = _whole_row(header, "NumPart_ThisFile")
    for kind in sorted({*held, *range(len(promised or ()))}):
        wanted, found = held.get(kind, 0), held.get(kind, 0)
        if promised is not None:
            wanted = promised[kind] if kind < len(promised) else 0
        if kind >= COMPONENTS and max(wanted, found):
            raise InputError(
                f"there are {max(wanted, found)} bodies of PartType{kind}; wanted those of "
                f"PartType0 to PartType{COMPONENTS - 1}"
            )
        if wanted != found:
            where = (
                f"its Coordinates hold {found}"
                if kind in groups
                else f"there is no group PartType{kind}"
            )
            raise InputError(f"Header promises {wanted} bodies of PartType{kind}; {where}")
    counts = [held.get(kind, 0) for kind in range(COMPONENTS)]
    _check_total(header, counts)
    return counts


def _kind_of(name: str) -> int:
    """The type of a group; another way to write one may stand next to it, and hold other bodies."""
    if not re.fullmatch(r"PartType(0|[1-9]\d{0,3})", name):
        raise InputError(
            f"there is a group {name}; wanted PartType0 to PartType{COMPONENTS - 1}, written so"
        )
    return int(name.removeprefix("PartType"))


def _check_total(header: Mapping[str, Any], counts: list[int]) -> None:
    """Refuse a file that holds a part of a snapshot."""
    low = _whole_row(header, "NumPart_Total")
    high = _whole_row(header, "NumPart_Total_HighWord") or []
    low = counts if low is None else low  # the high word alone promises no fewer
    for kind in range(max(len(low), len(high))):
        count = low[kind] if kind < len(low) else 0
        total = count + ((high[kind] << 32) if kind < len(high) else 0)
        here = counts[kind] if kind < len(counts) else 0
        if total != here:
            raise InputError(
                f"Header promises {total} bodies of PartType{kind} in the whole snapshot "
                f"(NumPart_Total), and this file holds {here}; "
                "wanted a snapshot in a single file"
            )


def _held(group: Any) -> int:
    """Bodies of a group: rows of its Coordinates; 0 when it holds nothing.

    Other data without Coordinates are refused.
    """
    if not hasattr(group, "keys"):
        raise InputError(f"{group.name} is no group; wanted the datasets of a type")
    if "Coordinates" not in group:
        if any(getattr(group[name], "shape", None) and group[name].shape[0] for name in group):
            raise InputError(f"{group.name} has no Coordinates (it has {_names(group)})")
        return 0
    shape: tuple[int, ...] = getattr(group["Coordinates"], "shape", None) or ()
    return shape[0] if shape else 0


def _part(file: Any, header: dict[str, Any], kind: int, count: int) -> _Part:
    group = file[f"PartType{kind}"]
    return _Part(
        kind=kind,
        position=_dataset(group, "Coordinates", (count, 3)),
        velocity=_dataset(group, "Velocities", (count, 3)),
        mass=_masses(group, header, kind, count),
        ids=_dataset(group, "ParticleIDs", (count,)) if "ParticleIDs" in group else None,
        order=_dataset(group, ORDER, (count,)) if ORDER in group else None,
    )


def _masses(group: Any, header: dict[str, Any], kind: int, count: int) -> NDArray[Any]:
    """Masses; else the mass of the type in the header (user guide, section 6.1).

    Both must say the same.
    """
    table = _row(header, "MassTable")
    if kind >= len(table) or float(table[kind]) == 0.0:
        return _dataset(group, "Masses", (count,))
    same = float(table[kind])
    if "Masses" in group:
        masses = _dataset(group, "Masses", (count,))
        if masses.dtype.kind not in "fiu" or not np.allclose(masses, same, rtol=1e-6, atol=0.0):
            raise InputError(
                f"{group.name} has Masses, and MassTable in Header says {same:g} for each; wanted "
                "one of them"
            )
    return np.full(count, same)


def _dataset(group: Any, name: str, shape: tuple[int, ...]) -> NDArray[Any]:
    if name not in group:
        raise InputError(f"{group.name} has no {name} (it has {_names(group)})")
    if getattr(group[name], "shape", None) != shape:
        raise InputError(
            f"{group.name}/{name} has shape {getattr(group[name], 'shape', None)}; wanted {shape}"
        )
    return read_array(group[name])


def _joined_ids(path: FilePath, parts: list[_Part]) -> NDArray[Any] | None:
    """ParticleIDs of all types, or None (numbered anew) when one type has none; warns where another
    one has some.
    """
    ids = [part.ids for part in parts if part.ids is not None]
    if len(ids) == len(parts):
        return np.concatenate(ids)
    if ids:
        without = next(part.kind for part in parts if part.ids is None)
        text = (
            f"{path}: PartType{without} has no ParticleIDs, so all bodies are numbered anew from 0"
        )
        warn_user(text, FileWarning)
    return None


def _as_written(particles: Particles, parts: list[_Part]) -> Particles:
    """Undo the sorting by type, which the writer recorded."""
    orders = [part.order for part in parts if part.order is not None]
    if len(orders) != len(parts):
        return particles
    written = np.concatenate(orders)
    back = np.argsort(written, kind="stable")
    if not np.array_equal(written[back], np.arange(len(particles))):
        raise InputError(
            f"the datasets {ORDER} do not number the bodies from 0 to {len(particles) - 1}"
        )
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
