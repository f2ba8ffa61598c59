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
from lanewise.patterns.sitewise.parts import (
    into_box,
    own_column,
    own_rows_of_parts,
    set_own_column,
    sites_in_order,
)
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
    others = _counts_of_others(sites)
    for leaf in sites.parts[0].current.record.leaves:
        own = np.concatenate([to_host(own_column(part, leaf.name)) for part in sites.parts])
        if whole is None:
            transport.exchange([(0, own)], [])
            continue
        came = [(rank, np.empty(count, own.dtype)) for rank, count in others.items()]
        if came:
            transport.exchange([], came)
        rows = np.concatenate([own, *(column for _, column in came)])
        setattr(whole, leaf.name, into_box(sites.box_cut.blocks, rows))
    return np.empty(0, np.uint8) if whole is None else whole.data


def _counts_of_others(sites: SplitSites) -> dict[int, int]:
    """How many sites every process but the first one owns."""
    found: dict[int, int] = {}
    for rank, block in zip(sites.mesh.ranks, sites.box_cut.blocks, strict=True):
        found[rank] = found.get(rank, 0) + int(np.prod(block.owned_shape))
    return {rank: count for rank, count in found.items() if rank}


def hold_bytes(sites: AnySites, data: Bytes) -> None:
    """Put them back; as many as `held_bytes` gives."""
    if isinstance(sites, Sites):
        with on(sites.device):
            sites.current.data[...] = bring(data, sites.device)
        return
    sites.ghosts.changed()
    whole = _whole(sites)
    whole.data[...] = data
    for leaf in whole.record.leaves:
        rows = own_rows_of_parts(sites.box_cut, np.ascontiguousarray(getattr(whole, leaf.name)))
        for part, own in zip(sites.parts, rows, strict=True):
            set_own_column(part, leaf.name, own)
    if sites.mesh.parts > 1:  # what a step has put into ghosts, its owner has brought back
        for phase in sites.form.phases:
            if phase.put_links:
                sites.exchange(phase, sites.step)()


def byte_count(sites: AnySites) -> int:
    """How many they are."""
    record = (sites.parts[0] if isinstance(sites, SplitSites) else sites).current.record
    return sites.layout.arrange(record.leaves).nbytes(sites.count)


def left_at_outlets(sites: AnySites) -> Mapping[Face, Any]:
    """What arrived through each outflow face, on the host."""
    if isinstance(sites, Sites):
        return {face: to_host(kept) for face, kept in sites.outflow.items()}
    found: dict[Face, Any] = {}
    for face in sites.parts[0].outflow:
        kept = SplitArray(sites.mesh, [part.outflow[face] for part in sites.parts]).numpy()
        numbers = sites_in_order(sites.box_cut, [part.outlet(*face) for part in sites.parts])
        found[face] = kept if numbers is None else kept[np.argsort(numbers)]
    return found


def outlet_room(sites: AnySites, face: Face, real: Scalar) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """The shape and type of what is kept of a face."""
    each = [part.before(*face, real) for part in parts_of(sites)]
    return (sum(_lengths(sites, each)), *each[0].shape[1:]), each[0].dtype


def leave_at_outlet(sites: AnySites, face: Face, real: Scalar, kept: Any) -> None:
    """Put it back."""
    each = [part.before(*face, real) for part in parts_of(sites)]
    lengths = _lengths(sites, each)
    own = [range(lengths[0])]
    if isinstance(sites, SplitSites):
        own = sites.mesh.own_rows(lengths)
        numbers = sites_in_order(sites.box_cut, [part.outlet(*face) for part in sites.parts])
        if numbers is not None:  # where each of them is among all in the order of the box
            kept = kept[np.argsort(np.argsort(numbers))]
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
