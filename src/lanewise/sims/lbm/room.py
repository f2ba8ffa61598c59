"""Whether a case fits the memory, before any of its arrays is made: masks and initial fields of a large box are large themselves."""

from __future__ import annotations

import math
from dataclasses import replace

from lanewise.errors import DeviceError
from lanewise.runtime.devices import resolve
from lanewise.runtime.memory import available_memory
from lanewise.sims.lbm.arguments import LATTICES, chosen_numbers, chosen_streaming
from lanewise.sims.lbm.cases.registry import Case, Request
from lanewise.sims.lbm.checks import check_memory, gigabytes
from lanewise.sims.lbm.obstacles.boxes import sites_text
from lanewise.target import is_gpu

SMALL = 64  # sizes up to this one are made at once
PROBES = (4, 8)  # sizes from which the box of a larger one is foreseen
FLOAT64 = 8


def check_room(
    case: Case, request: Request, *, precision: str | None, storage: str | None, streaming: str | None, device: str | None
) -> None:  # fmt: skip
    """Raise `DeviceError` for a size whose populations do not fit the device, or whose beginning does not fit the main memory."""
    if request.size <= SMALL:
        return
    where, lattice, shape = resolve(device), LATTICES[request.lattice], foreseen_shape(case, request)
    real, stored = chosen_numbers(precision, storage, where)
    form = chosen_streaming(streaming, where)
    check_memory(shape, lattice, stored, form, available_memory(where))
    kept = 0 if is_gpu(where) else lattice.size * (1 if form == "in-place" else 2) * _size(stored)
    needed = math.prod(shape) * (kept + initial_bytes(case, request, _size(real)))
    if needed > (available := available_memory("cpu")):
        raise DeviceError(
            f"--size {request.size:,} makes about {sites_text(shape)}, whose initial state takes {gigabytes(needed)} of main "
            f"memory, and {gigabytes(available)} are available; wanted a smaller size"
        )


def foreseen_shape(case: Case, request: Request) -> tuple[int, ...]:
    """About the shape that `case.make` will give: extents are proportional to the size, but for a constant."""
    low, high = (case.make(replace(request, size=n, obstacle=None)).shape for n in PROBES)
    slopes = ((b - a) / (PROBES[1] - PROBES[0]) for a, b in zip(low, high, strict=True))
    return tuple(round(a + slope * (request.size - PROBES[0])) for a, slope in zip(low, slopes, strict=True))


def initial_bytes(case: Case, request: Request, real: int) -> int:
    """Bytes a site of what is there at once while a flow begins.

    Velocity and its gradient in float64 with what they are computed by, and one set of populations before it goes to the device.
    """
    setup = case.make(replace(request, size=PROBES[0], obstacle=None))
    dimension, lattice = len(setup.shape), LATTICES[request.lattice]
    fields = 0
    if setup.velocity is not None:
        fields += 2 * FLOAT64 * dimension
    if setup.gradient is not None:
        fields += 2 * FLOAT64 * dimension**2
    populations = lattice.size * real + 2 * FLOAT64 if fields or setup.force or setup.density is not None else 0
    return fields + populations


def _size(name: str) -> int:
    return int(name[1:]) // 8
