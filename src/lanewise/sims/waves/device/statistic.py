"""2F of any templates on a device: amplitudes in float32 sums of float64 phases, assembled in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.errors import InputError
from lanewise.runtime.devices import resolve
from lanewise.runtime.memory import to_host
from lanewise.sims.waves.demodulation import FStatistic, amplitudes, antenna_matrices, assembled
from lanewise.sims.waves.device.spectra import CELLS, Spectra
from lanewise.sims.waves.kernels import Method
from lanewise.sims.waves.prepared import Geometry, SearchData, geometry
from lanewise.sims.waves.templates import Templates
from lanewise.sims.waves.timing import Ephemeris

SIZES = 64  # templates: groups of a direction are filled up to powers of two from here on, so that few calls are bound


def device_f_statistic(
    data: SearchData,
    templates: Templates,
    ephemeris: Ephemeris,
    *,
    dterms: int | None,
    device: str,
    kernel: Method = "interpolated",
) -> FStatistic:
    """`f_statistic` on a device. Raises InputError for what kernels do not compute: all bins, and a third derivative."""
    if dterms is None:
        raise InputError("dterms=None, the full kernel, is computed by device='numpy' alone; wanted a number of bins")
    if (templates.f3dot != 0).any():
        raise InputError(f"f3dot is computed by device='numpy' alone; wanted zero on {device!r}")
    where = resolve(device)
    alpha, delta, which = templates.directions()
    seen = geometry(data, ephemeris, alpha, delta, templates.orbit)
    spectra = Spectra(data, where, dterms, kernel=kernel)
    groups = len(data.group) - 1
    sums = np.empty((2, groups, len(templates)), np.complex128)
    view = spectra.view()
    calls: dict[int, tuple[Any, Any]] = {}
    order = np.argsort(which, kind="stable")
    ends = np.searchsorted(which[order], np.arange(len(alpha) + 1))
    largest = max(SIZES, CELLS // groups)
    for direction in range(len(alpha)):
        spectra.look(view, seen, direction, templates.reference)
        mine = order[ends[direction] : ends[direction + 1]]
        for first in range(0, len(mine), largest):
            some = mine[first : first + largest]
            size = min(largest, _size(len(some)))
            if size not in calls:
                room = spectra.templates(size)
                calls[size] = room, spectra.bind(room, view)
            room, call = calls[size]
            filled = np.resize(some, size)  # what is too many is computed twice
            room.frequency, room.f1dot, room.f2dot = (
                x[filled] for x in (templates.freq, templates.f1dot, templates.f2dot)
            )
            found = to_host(call())[: len(some)].reshape(len(some), groups, 2, 2)
            sums[:, :, some] = (found[..., 0].astype(np.float64) + 1j * found[..., 1]).transpose(2, 1, 0)
    _check(data, seen, which, templates, dterms, sums)
    matrix = antenna_matrices(data, seen)[:, :, :, which]
    return assembled(sums.reshape(2, data.stacks, -1, len(templates)), matrix)


def _size(count: int) -> int:
    """Rounded up to a power of two, but few to the number of themselves."""
    return count if count < SIZES else 1 << (count - 1).bit_length()


def _check(
    data: SearchData,
    seen: Geometry,
    which: NDArray[np.int64],
    templates: Templates,
    dterms: int,
    sums: NDArray[np.complex128],
) -> None:
    """What is not a number lies outside of the bins: the definition says which template and which bins."""
    bad = np.flatnonzero(~np.isfinite(sums).all(axis=(0, 1)))
    if not len(bad):
        return
    some = bad[:1].astype(np.int64)
    amplitudes(data, seen, which[some], templates, some, dterms)
    raise InputError(f"template {int(bad[0])} has no finite amplitudes; the data hold values that are not finite")
