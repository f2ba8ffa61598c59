"""What products ask of arrays on a mesh: their parts, and all of them in one place."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

import lanewise as lw
from lanewise.records.arrays import class_of, storage_of
from lanewise.records.split_array import split_values
from lanewise.records.split_rows import split_rows
from lanewise.sims.common.cards import TURN
from lanewise.sims.common.devices import (
    CUDA,
    array_module,
    available_memory,
    bring,
    device_of_rank,
    module_of,
    on,
    place_of,
    require_memory,
    target_of,
    to_host,
)
from lanewise.sims.common.processes import Alone, Transport, joined
from lanewise.support.errors import InputError

__all__ = [
    "available_on",
    "check_parts",
    "copied",
    "first_rows",
    "in_one_place",
    "lies_on",
    "mesh_of",
    "parts_of",
    "place_of_run",
    "processes_here",
    "repeated",
    "require_divided",
    "spelled",
    "split_values",
    "transport_of",
    "values_in_one_place",
    "values_on_host",
    "writes_files",
    "written",
]

LEAST = 64  # elements a part, in runs


def spelled(place: str | lw.Mesh) -> str:
    """A device, or a mesh, as `place_of` reads it."""
    return place.spelling if isinstance(place, lw.Mesh) else place


def place_of_run(device: str | lw.Mesh | None, before: str | None = None) -> str | lw.Mesh:
    """Where the arrays of a run lie: where it is requested, else where they were before. Of a run
    of several processes each has what is requested; "cuda" is a GPU for each of a host, in turn.

    A unit's process waits for its card here: a run asks when it has read and made on the host all
    that its arrays begin with. Raises `DeviceError` for what is not there.
    """
    TURN.begin()
    ranks = joined()
    if ranks is None or isinstance(device, lw.Mesh):
        return place_of(device or before)
    name = device or (target_of(before).name if before else "cpu")
    if name == CUDA.name and target_of(own := device_of_rank(ranks.number_here)).has_blocks:
        name = own
    return lw.Mesh.over_ranks(name)


def mesh_of(array: lw.RecordArray) -> lw.Mesh | None:
    """The mesh that the rows of an array lie on; None on one device."""
    rows = split_rows(storage_of(array))
    return None if rows is None else rows.mesh


def lies_on(array: lw.RecordArray) -> str:
    """The device or the mesh of an array, as `place_of` reads it."""
    mesh = mesh_of(array)
    return array.device if mesh is None else mesh.spelling


def parts_of(array: lw.RecordArray) -> list[lw.RecordArray]:
    """The rows of each device as its own array, in their order."""
    rows = split_rows(storage_of(array))
    if rows is None:
        return [array]
    return [lw.RecordArray(part, class_of(array)) for part in rows.parts]


def first_rows(array: lw.RecordArray) -> list[int]:
    """The rows of the whole array that those parts begin with."""
    rows = split_rows(storage_of(array))
    return [0] if rows is None else [own.start for own in rows.mesh.own_rows(rows.lengths)]


def transport_of(array: lw.RecordArray) -> Transport:
    """What moves values between the processes that have an array."""
    mesh = mesh_of(array)
    return Alone() if mesh is None else mesh.transport


def in_one_place(array: lw.RecordArray) -> lw.RecordArray:
    """All rows on one device: the array itself, or a copy on the first device of its mesh.

    Sums over it have the order, and so the bits, of an array that lies there.
    """
    return array if mesh_of(array) is None else array.to(array.device)


def values_in_one_place(values: Any) -> Any:
    """The same of values."""
    if not isinstance(values, lw.SplitArray):
        return values
    device = values.mesh.devices[0]
    if values.mesh.everywhere:
        return bring(values.numpy(), device)
    with on(device):
        return array_module(device).concatenate([bring(part, device) for part in values.parts])


def values_on_host(values: Any) -> NDArray[Any]:
    """Values of a device or a mesh, on the host; those of a CPU without copying."""
    return values.numpy() if isinstance(values, lw.SplitArray) else to_host(values)


def copied(values: Any) -> Any:
    """A copy of values, where they lie."""
    if not isinstance(values, lw.SplitArray):
        return module_of(values).copy(values)
    return lw.SplitArray(values.mesh, [module_of(part).copy(part) for part in values.parts])


def require_divided(place: str | lw.Mesh, count: int, row: int, what: str) -> None:
    """Refuse rows of so many bytes that do not fit where they shall lie; raises `DeviceError`."""
    if not isinstance(place, lw.Mesh):
        require_memory(place, count * row, what)
        return
    rows = place.own_rows([len(r) for r in place.rows(count)])
    for device in dict.fromkeys(place.devices):
        own = sum(len(r) for r, there in zip(rows, place.devices, strict=True) if there == device)
        require_memory(device, own * row, what)


def available_on(place: str | lw.Mesh) -> int:
    """Bytes that are free on a device, or on all devices of a mesh; of hosts once."""
    if not isinstance(place, lw.Mesh):
        return available_memory(place)
    own = {device: available_memory(device) for device in place.devices}
    ranks = joined()
    if ranks is None or not place.everywhere:
        return sum(own.values())
    found: dict[tuple[Any, str], int] = {}
    for rank, each in enumerate(place.transport.agree(own)):
        for device, free in each.items():
            shared = target_of(device).host_memory
            found[ranks.members[rank].host if shared else rank, device] = free
    return sum(found.values())


def processes_here(place: str | lw.Mesh) -> int:
    """How many processes of a mesh share the memory of this host."""
    ranks = joined()
    shared = ranks is not None and isinstance(place, lw.Mesh) and place.everywhere
    return len(ranks.beside) if ranks is not None and shared else 1


def writes_files(mesh: lw.Mesh | None) -> bool:
    """Whether this process writes files of what lies on a mesh: of several the first one does; the
    others take part in gathering, and wait in `written`.
    """
    return mesh is None or mesh.rank == 0


def written(mesh: lw.Mesh | None) -> None:
    """Wait until a file is there for all processes of a mesh."""
    if mesh is not None:
        mesh.transport.barrier()


def check_parts(count: int, kind: str, place: str | lw.Mesh) -> None:
    """Refuse runs whose parts would have next to nothing."""
    if isinstance(place, lw.Mesh) and place.parts > 1 and count < LEAST * place.parts:
        most = count // LEAST
        raise InputError(
            f"{count:,} {kind} on {place.parts} parts ({place}): a run wants at least "
            f"{LEAST} per part; take {f'{most} or fewer' if most > 1 else 'one part'}"
        )


def repeated(place: str | lw.Mesh) -> str:
    """What is said of a mesh that has a GPU more than once, or ""."""
    if not isinstance(place, lw.Mesh):
        return ""
    gpus = dict.fromkeys(d for d in place.devices if target_of(d).has_blocks)
    counts = [(device, place.devices.count(device)) for device in gpus]
    said = [f"{device} has {parts} parts" for device, parts in counts if parts > 1]
    return f"{' and '.join(said)}, one after the other" if said else ""
