"""What sites hold, as one array of bytes on the host, and back: on any number of parts the same
bytes, in which a run continues wherever its sites then lie.

Of sites of several processes the first one has these bytes, and each puts back its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from lanewise.language.target import CPU
from lanewise.language.types import Scalar
from lanewise.patterns.sitewise.site_records import zero_records
from lanewise.patterns.sitewise.sites import Sites
from lanewise.patterns.sitewise.split_sites import AnySites, SplitSites
from lanewise.records.arrays import RecordArray
from lanewise.records.split_array import SplitArray
from lanewise.runtime.memory import bring, on, to_host

Bytes = npt.NDArray[np.uint8]
Face = tuple[int, int]


def held_bytes(sites: AnySites) -> Bytes:
    """The memory of what the next step reads, as it lies on one device; none on the other ones of
    several processes, which call it with the first.
    """
    if isinstance(sites, Sites):
        return to_host(sites.current.data)
    writes, transport = sites.mesh.rank == 0, sites.mesh.transport
    whole = _whole(sites) if writes else None
    others = [(r, rows) for r, rows in _rows_of_ranks(sites) if r != 0]
    for leaf in sites.parts[0].current.record.leaves:
        columns: list[Any] = []
        for part, rows, own in _pieces(sites):
            with on(part.device):
                column = to_host(getattr(part.current, leaf.name)[own])
            columns.append(column)
            if whole is not None:
                setattr(whole[rows], leaf.name, column)
        if transport.size == 1:
            continue
        if whole is None:
            transport.exchange([(0, np.concatenate(columns))], [])
            continue
        into = [(r, np.empty(rows.stop - rows.start, columns[0].dtype)) for r, rows in others]
        transport.exchange([], into)
        for (_, rows), (_, came) in zip(others, into, strict=True):
            setattr(whole[rows], leaf.name, came)
    return np.empty(0, np.uint8) if whole is None else whole.data


def _rows_of_ranks(sites: SplitSites) -> list[tuple[int, slice]]:
    """The sites of all parts of every process, in the whole."""
    found: dict[int, slice] = {}
    for rank, slab in zip(sites.mesh.ranks, sites.box_cut.slabs, strict=True):
        first, stop = slab.layers.start * sites.plane, slab.layers.stop * sites.plane
        found[rank] = slice(found[rank].start if rank in found else first, stop)
    return list(found.items())


def hold_bytes(sites: AnySites, data: Bytes) -> None:
    """Put them back; as many as `held_bytes` gives."""
    if isinstance(sites, Sites):
        with on(sites.device):
            sites.current.data[...] = bring(data, sites.device)
        return
    whole = _whole(sites)
    whole.data[...] = data
    for part, rows, own in _pieces(sites):
        for leaf in part.current.record.leaves:
            column = np.ascontiguousarray(getattr(whole, leaf.name)[rows])
            with on(part.device):
                setattr(part.current[own], leaf.name, bring(column, part.device))


def byte_count(sites: AnySites) -> int:
    """How many they are."""
    record = (sites.parts[0] if isinstance(sites, SplitSites) else sites).current.record
    return sites.layout.arrange(record.leaves).nbytes(sites.count)


def left_at_outlets(sites: AnySites) -> Mapping[Face, Any]:
    """What arrived through each outflow face, on the host."""
    if isinstance(sites, Sites):
        return {face: to_host(kept) for face, kept in sites.outflow.items()}
    return {
        face: SplitArray(sites.mesh, [part.outflow[face] for part in sites.parts]).numpy()
        for face in sites.parts[0].outflow
    }


def outlet_room(sites: AnySites, face: Face, real: Scalar) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """The shape and type of what is kept of a face."""
    each = [part.before(*face, real) for part in parts_of(sites)]
    return (sum(_lengths(sites, each)), *each[0].shape[1:]), each[0].dtype


def leave_at_outlet(sites: AnySites, face: Face, real: Scalar, kept: Any) -> None:
    """Put it back."""
    each = [part.before(*face, real) for part in parts_of(sites)]
    lengths = _lengths(sites, each)
    own = sites.mesh.own_rows(lengths) if isinstance(sites, SplitSites) else [range(lengths[0])]
    for part, before, rows in zip(parts_of(sites), each, own, strict=True):
        with on(part.device):
            before[...] = bring(kept[rows.start : rows.stop], part.device)


def _lengths(sites: AnySites, rows: Sequence[Any]) -> tuple[int, ...]:
    """How many rows every part has, by those of this process."""
    if isinstance(sites, SplitSites):
        return sites.mesh.lengths_of_all(rows)
    return tuple(map(len, rows))


def parts_of(sites: AnySites) -> tuple[Sites, ...]:
    """The sites of each part of a mesh in this process, or those of one device."""
    return sites.parts if isinstance(sites, SplitSites) else (sites,)


def _whole(sites: SplitSites) -> RecordArray:
    """Zeros for all sites on the host, in their layout."""
    held = sites.parts[0].current
    return zero_records(held.record, sites.count, sites.layout, CPU.name)


def _pieces(sites: SplitSites) -> list[tuple[Sites, slice, slice]]:
    """Each part, where its sites lie in the whole, and which of its sites they are."""
    plane = sites.plane
    return [
        (part, slice(s.layers.start * plane, s.layers.stop * plane), s.own(plane))
        for part, s in zip(sites.parts, sites.slabs, strict=True)
    ]
