"""2F of any templates on a device: amplitudes in float32 sums of float64 phases, assembled in
float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.profiling import stage
from lanewise.sims.common.devices import resolve, to_host
from lanewise.sims.waves.definition import (
    Floats,
    FStatistic,
    amplitudes,
    antenna_matrices,
    check_bins,
    two_f_of_parts,
)
from lanewise.sims.waves.device.spectra import CELLS, Spectra, are_far
from lanewise.sims.waves.kernels import Method
from lanewise.sims.waves.prepared import Geometry, SearchData, geometry
from lanewise.sims.waves.templates import Templates
from lanewise.sims.waves.timing import Ephemeris
from lanewise.support.errors import InputError

SIZES = (
    # templates: groups of a direction are filled up to few sizes from here on, so that few kinds of
    # calls are made
    64
)
TOGETHER = 4096  # templates that are assembled at a time: some hundred KiB


def device_f_statistic(
    data: SearchData,
    templates: Templates,
    ephemeris: Ephemeris,
    *,
    dterms: int | None,
    device: str,
    kernel: Method = "interpolated",
) -> FStatistic:
    """`f_statistic` on a device. Raises InputError for what kernels do not compute: all bins, and a
    third derivative.
    """
    if dterms is None:
        raise InputError(
            "dterms=None, the full kernel, is computed by device='numpy' alone; wanted a number of "
            "bins"
        )
    if (templates.f3dot != 0).any():
        raise InputError(f"f3dot is computed by device='numpy' alone; wanted zero on {device!r}")
    where = resolve(device)
    alpha, delta, which = templates.directions()
    with stage("barycentring", name="times and patterns"):
        seen = geometry(data, ephemeris, alpha, delta, templates.orbit)
    since = float(abs(seen.arrival.since(templates.reference)).max())
    spins = abs(templates.spins).max(axis=0).tolist()
    if are_far(data, spins, since, float(abs(seen.arrival.rate).max())):
        check_bins(data, seen, which, templates, dterms)
    with stage("transfer", name="SFTs to the device"):
        spectra = Spectra(data, where, dterms, kernel=kernel)
    with stage("statistic", name="kernel"):
        amplitudes = _amplitudes(spectra, seen, which, templates)
    with stage("statistic", name="2F of sums"):
        result = _assembled(amplitudes, antenna_matrices(data, seen), which)
        _check(data, seen, which, templates, dterms, result)
    return result


def _amplitudes(
    spectra: Spectra, seen: Geometry, which: NDArray[np.int64], templates: Templates
) -> NDArray[np.float32]:
    """Fa and Fb of every template and group, (n, s d, 4): real and imaginary parts."""
    groups, directions = len(spectra.data.group) - 1, len(seen.alpha)
    largest = max(SIZES, CELLS // groups)
    parameters = templates.freq, templates.f1dot, templates.f2dot
    view = spectra.view()
    if directions == 1 and len(templates) <= largest:  # a band: as it is
        spectra.look(view, seen, 0, templates.reference)
        every = spectra.templates(len(templates), *parameters)
        return to_host(spectra.amplitudes(every, view)).reshape(-1, groups, 4)
    result = np.empty((len(templates), groups, 4), np.float32)
    order = np.argsort(which, kind="stable")
    ends = np.searchsorted(which[order], np.arange(directions + 1))
    rooms: dict[int, Any] = {}
    for direction in range(directions):
        spectra.look(view, seen, direction, templates.reference)
        mine = order[ends[direction] : ends[direction + 1]]
        for first in range(0, len(mine), largest):
            some = mine[first : first + largest]
            size = min(largest, _size(len(some)))
            if size not in rooms:
                rooms[size] = spectra.templates(size)
            room = rooms[size]
            filled = np.resize(some, size)  # what is too many is computed twice
            room.frequency, room.f1dot, room.f2dot = (x[filled] for x in parameters)
            result[some] = to_host(spectra.amplitudes(room, view)).reshape(size, groups, 4)[
                : len(some)
            ]
    return result


def _size(count: int) -> int:
    """Rounded up to eighths of a power of two, but few to the number of themselves."""
    step = max(1, 1 << max(0, (count - 1).bit_length() - 4))
    return count if count < SIZES else -(-count // step) * step


def _assembled(
    amplitudes: NDArray[np.float32], matrix: Floats, which: NDArray[np.int64]
) -> FStatistic:
    """From amplitudes of detectors (n, s d, 4) and the antenna matrices (3, s, d, p) of all
    directions.

    Some templates at a time: what is computed of them stays in the caches.
    """
    _, s, d, directions = matrix.shape
    n = len(amplitudes)
    both, apart = np.empty((s, n)), np.empty((s, d, n))
    fa, fb = np.empty((s, n), np.complex128), np.empty((s, n), np.complex128)
    abc = np.empty((3, s, n))
    for first in range(0, n, TOGETHER):
        some = slice(first, first + TOGETHER)
        own = matrix if directions == 1 else matrix[..., which[some]]
        parts = np.ascontiguousarray(
            amplitudes[some].reshape(-1, s, d, 4).transpose(3, 1, 2, 0), np.float64
        )
        total, sums = parts.sum(axis=2), own.sum(axis=2)
        fa.real[:, some], fa.imag[:, some], fb.real[:, some], fb.imag[:, some] = total
        abc[..., some] = sums
        both[:, some], apart[..., some] = (
            two_f_of_parts(*total, *sums),
            two_f_of_parts(*parts, *own),
        )
    a, b, c = abc
    return FStatistic(both, apart, fa, fb, a, b, c, a * b - c**2)


def _check(
    data: SearchData,
    seen: Geometry,
    which: NDArray[np.int64],
    templates: Templates,
    dterms: int,
    result: FStatistic,
) -> None:
    """What is not a number lies outside of the bins: the definition says which template and which
    bins.
    """
    bad = np.flatnonzero(~(np.isfinite(result.fa) & np.isfinite(result.fb)).all(axis=0))
    if not len(bad):
        return
    some = bad[:1].astype(np.int64)
    amplitudes(data, seen, which[some], templates, some, dterms)
    raise InputError(
        f"template {int(bad[0])} has no finite amplitudes; the data hold values that are not finite"
    )
