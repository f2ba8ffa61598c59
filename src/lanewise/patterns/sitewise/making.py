"""What sites are made of: what the user gives is checked and completed before anything is
allocated.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from lanewise.language.lattices.base import Lattice
from lanewise.language.record import Record
from lanewise.language.target import WARP, target_of
from lanewise.language.types import F16, F32, F64, Scalar
from lanewise.layouts import AoSoA, Layout, SoA
from lanewise.patterns.sitewise.blocks import LEAST_LAYERS
from lanewise.patterns.sitewise.kinds import MOST, Wall
from lanewise.patterns.sitewise.site_records import population_record
from lanewise.patterns.sitewise.sites import DENSE, solid_sites
from lanewise.patterns.sitewise.streaming import Form, form_by_name
from lanewise.records.field_values import brought
from lanewise.records.open_layout import checked_layout
from lanewise.runtime.memory import require_memory
from lanewise.runtime.mesh import Mesh, first_of
from lanewise.support.checks import host_array, shown
from lanewise.support.errors import ArgumentError

STORAGES = {s.name: s for s in (F16, F32, F64)}
# bytes of a population in a block of the default layout on a GPU (bench/results/gpu_lbm.md)
LINE = 128
LONG_LINE = 256  # the same among many walls: sectors that are passed over then lie together


def site_memory(
    lattice: Lattice,
    size: tuple[int, ...],
    real: Scalar,
    where: str | Mesh,
    storage: str | None,
    streaming: str | None,
    layout: Layout | None,
) -> tuple[Scalar, Form, Layout]:
    """How the populations of sites are stored, as wanted or by default, once it is known that they
    fit the memory.
    """
    device = first_of(where)
    stored = _storage(storage, real, device)
    form = form_by_name(target_of(device).streaming if streaming is None else streaming)
    arranged = site_layout(layout, device, stored, size[-1])
    for one, count in _counts(size, where):
        nbytes = _bytes(lattice, count, stored, form, arranged)
        require_memory(one, nbytes, f"{count:,} sites of {lattice.name}")
    return stored, form, arranged


def _counts(size: tuple[int, ...], where: str | Mesh) -> list[tuple[str, int]]:
    """How many sites of a box each device of this process holds, give or take a layer."""
    if isinstance(where, str):
        return [(where, math.prod(size))]
    count, slabs = math.prod(size), LEAST_LAYERS * where.parts <= size[0]
    all_rows, row = (where.rows(size[0]), count // size[0]) if slabs else (where.rows(count), 1)
    counts = dict.fromkeys(where.devices, 0)
    for device, part in zip(where.devices, where.own, strict=True):
        counts[device] += len(all_rows[part]) * row
    return list(counts.items())


def field_memory(
    record_of: Callable[[Scalar], Record],
    size: tuple[int, ...],
    real: Scalar,
    where: str | Mesh,
    storage: str | None,
    layout: Layout | None,
) -> tuple[Scalar, Layout]:
    """How the fields of a stencil's sites are stored, once it is known that they fit the memory."""
    stored = _storage(storage, real, first_of(where))
    arranged = SoA() if layout is None else checked_layout(layout)
    for device, count in _counts(size, where):
        nbytes = (
            2 * arranged.arrange(record_of(stored).leaves).nbytes(count)
            + 4 * count
            + 2 * 4 * -(-count // 32)
        )
        require_memory(device, nbytes, f"{count:,} sites of a stencil")
    return stored, arranged


def layout_among_walls(
    kinds: npt.NDArray[np.uint8], walls: tuple[Wall, ...], device: str, stored: Scalar, form: Form
) -> Layout | None:
    """The default layout of sites with many walls, where it is another one."""
    chosen = target_of(device).has_blocks and form.buffers > 1
    many = chosen and np.count_nonzero(solid_sites(kinds, walls)) > DENSE * kinds.size
    return site_layout(None, device, stored, kinds.shape[-1], LONG_LINE) if many else None


def _bytes(lattice: Lattice, count: int, storage: Scalar, form: Form, layout: Layout) -> int:
    """What the populations, flags and bits of sites take at most: known before anything is
    allocated.
    """
    bits = 2 * 4 * -(-count // 32) if form.buffers > 1 else 0
    return (
        form.buffers * layout.arrange(population_record(lattice, storage).leaves).nbytes(count)
        + 4 * count
        + bits
    )


def site_layout(
    layout: object, device: str, storage: Scalar, extent: int, nbytes: int = LINE
) -> Layout:
    """The wanted one, or a default: on a GPU blocks of a warp's sites, or of as many as fill
    `nbytes` if rows are whole blocks then.
    """
    if layout is not None:
        return checked_layout(layout)
    if not target_of(device).has_blocks:
        return SoA()
    line = nbytes // storage.size
    return AoSoA(line if line > WARP and extent % line == 0 else WARP)


def site_shape(lattice: Lattice, shape: Any) -> tuple[int, ...]:
    """The shape of a box of sites, checked."""
    axes = ("nz", "ny", "nx")[-lattice.dimension :]
    try:
        size = tuple(operator.index(n) for n in shape)
    except Exception:  # of the user's class, or what is no list of integers
        size = ()
    if len(size) != lattice.dimension or any(n < 1 for n in size):
        raise ArgumentError(
            f"sites of {lattice.name} have the shape ({', '.join(axes)}), each at least 1; found "
            f"{shown(shape)}"
        )
    return size


def site_kinds(mask: Any, shape: tuple[int, ...], allowed: frozenset[int]) -> npt.NDArray[np.uint8]:
    """The kind of every site; `allowed` are the kinds that have a function or are walls."""
    if mask is None:
        return np.zeros(shape, np.uint8)
    kinds = (
        brought("the mask", mask, "cpu")
        if hasattr(mask, "__cuda_array_interface__")
        else host_array("the mask", mask)
    )
    if kinds.dtype.kind not in "biu":
        raise ArgumentError(
            f"the mask holds kinds, integers from 0 to {MOST - 1}; found {kinds.dtype}"
        )
    if kinds.shape != shape:
        raise ArgumentError(f"the mask has the shape {kinds.shape}, and the sites {shape}")
    for kind in np.unique(kinds):
        if int(kind) not in allowed:
            place = tuple(int(i) for i in np.argwhere(kinds == kind)[0])
            times = int(np.count_nonzero(kinds == kind))
            names = ", ".join(map(str, sorted(allowed)))
            raise ArgumentError(
                f"the mask has kind {int(kind)} {times:,} times, first at {place}; the kinds are "
                f"{names} (@flow.kind(number, name) and flow.wall(number, name) make others)"
            )
    return np.ascontiguousarray(kinds.astype(np.uint8))


def _storage(name: str | None, real: Scalar, device: str) -> Scalar:
    asked: Any = name
    storage = STORAGES.get(asked or real.name) if asked is None or isinstance(asked, str) else None
    if storage is None:
        raise ArgumentError(
            f"storage={shown(asked)}: wanted one of {', '.join(map(repr, STORAGES))}"
        )
    if storage.size > real.size:
        raise ArgumentError(
            f"storage={name!r} holds more than the {real} that the function computes; wanted "
            f"{real.name!r} or less"
        )
    if storage == F16 and not target_of(device).converts_f16:
        raise ArgumentError(
            "storage='f16' is for GPUs, which convert float16 in one instruction; on a CPU choose "
            "'f32'"
        )
    return storage
