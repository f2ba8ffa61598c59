"""What sites hold, as one array of bytes on the host, and back: on any number of parts the same
bytes, in which a run continues wherever its sites then lie.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from lanewise.language.target import CPU
from lanewise.language.types import Scalar
from lanewise.patterns.sitewise.site_records import zero_records
from lanewise.patterns.sitewise.sites import Sites
from lanewise.patterns.sitewise.split_sites import AnySites, SplitSites
from lanewise.records.arrays import RecordArray
from lanewise.runtime.memory import bring, on, to_host

Bytes = npt.NDArray[np.uint8]
Face = tuple[int, int]


def held_bytes(sites: AnySites) -> Bytes:
    """The memory of what the next step reads, as it lies on one device."""
    if isinstance(sites, Sites):
        return to_host(sites.current.data)
    whole = _whole(sites)
    for part, rows, own in _pieces(sites):
        for leaf in part.current.record.leaves:
            with on(part.device):
                column = getattr(part.current, leaf.name)[own]
            setattr(whole[rows], leaf.name, to_host(column))
    return whole.data


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
    faces = sites.parts[0].outflow
    return {
        face: np.concatenate([to_host(part.outflow[face]) for part in sites.parts])
        for face in faces
    }


def outlet_room(sites: AnySites, face: Face, real: Scalar) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """The shape and type of what is kept of a face."""
    each = [part.before(*face, real) for part in parts_of(sites)]
    return (sum(map(len, each)), *each[0].shape[1:]), each[0].dtype


def leave_at_outlet(sites: AnySites, face: Face, real: Scalar, kept: Any) -> None:
    """Put it back."""
    first = 0
    for part in parts_of(sites):
        before = part.before(*face, real)
        own = kept[first : first + len(before)]
        with on(part.device):
            before[...] = bring(own, part.device)
        first += len(before)


def parts_of(sites: AnySites) -> tuple[Sites, ...]:
    """The sites of each part of a mesh, or those of one device."""
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
