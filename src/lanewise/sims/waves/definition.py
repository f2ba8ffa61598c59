"""The F-statistic: its definition by demodulation, in float64 by NumPy, which is what kernels are
compared with.

Williams and Schutz, gr-qc/9912029 (Dirichlet kernel); Cutler and Schutz, Phys. Rev. D 72, 063006
(2005) (several detectors); LIGO-T0900149 for the notation. For every SFT, with Delta = t_SSB -
reference and Tdot at its middle,

    phi    = sum_s f_s Delta^(s+1) / (s+1)!             cycles k_real = T Tdot sum_s f_s Delta^s /
    s!              cycles over the SFT: a bin number, real y      = exp(2 pi i (k_real / 2 - phi))
    sum_k P_k x_k / (2 pi),   P_k = (sin 2 pi kappa + i (cos 2 pi kappa - 1)) / (k_real - k)

over the 2 Dterms bins next to k_real, kappa being its fraction; F_a = sum a y, F_b = sum b y,
2F = 2 (B |F_a|^2 + A |F_b|^2 - 2 C Re(F_a F_b*)) / (A B - C^2).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lanewise.sims.waves.prepared import Geometry, SearchData
from lanewise.sims.waves.templates import Templates
from lanewise.support.attributes import frozen
from lanewise.support.errors import InputError
from lanewise.support.numerals import numeral

Floats = NDArray[np.float64]
Complexes = NDArray[np.complex128]
Ints = NDArray[np.int64]

ON_A_BIN = 2e-4  # kappa this near to an integer: the sum is its limit, one bin
LARGEST_CONDITION = 1e4
EXPECTED = 4.0  # of 2F in noise; what a template gets whose antenna matrix cannot be inverted
PART = 1 << 22  # complex numbers of a part of the work: 64 MiB


@frozen
@dataclass(frozen=True, slots=True, eq=False)
class FStatistic:
    """2F and what it is made of, for s stacks, d detectors and n templates.

    Attributes:
        two_f: (s, n); two_f_detector: (s, d, n), each with its own antenna matrix
        fa, fb: (s, n) complex; their common phase depends on the reference time
        a, b, c, d: (s, n) sums of a^2, b^2, a b over SFTs, and a b - c^2
    """

    two_f: Floats
    two_f_detector: Floats
    fa: Complexes
    fb: Complexes
    a: Floats
    b: Floats
    c: Floats
    d: Floats


def assembled(sums: Complexes, matrix: Floats) -> FStatistic:
    """From sums of a y and b y (2, s, d, n) and antenna matrices (3, s, d, n) of each detector."""
    (fa, fb), (a, b, c) = sums.sum(axis=2), matrix.sum(axis=2)
    return FStatistic(two_f(fa, fb, a, b, c), two_f(*sums, *matrix), fa, fb, a, b, c, a * b - c**2)


def parts(data: SearchData, templates: int, dterms: int | None) -> Iterator[Ints]:
    """Numbers of templates, as many at a time as memory is meant for."""
    bins = 2 * dterms if dterms is not None else int(np.diff(data.offset).max())
    step = max(1, PART // (len(data) * bins))
    for first in range(0, templates, step):
        yield np.arange(first, min(first + step, templates))


def phases(
    seen: Geometry, which: Ints, templates: Templates, some: Ints, duration: float
) -> tuple[Floats, Floats]:
    """Cycles phi and real bin numbers, (templates, n) float64, of the templates `some`, which have
    the directions `which`.
    """
    since = seen.arrival.since(templates.reference)[which]
    phi, k_real = np.zeros_like(since), np.zeros_like(since)
    power = np.ones_like(since)
    for s, spin in enumerate(templates.spins[some].T):
        k_real += spin[:, None] * power
        power = power * since / (s + 1)
        phi += spin[:, None] * power
    return phi, k_real * seen.arrival.rate[which] * duration


def amplitudes(
    data: SearchData,
    seen: Geometry,
    which: Ints,
    templates: Templates,
    some: Ints,
    dterms: int | None,
) -> Complexes:
    """Y, (templates, n) complex128."""
    phi, k_real = phases(seen, which, templates, some, data.duration)
    k_star = np.floor(k_real)
    kappa = k_real - k_star
    low = k_star.astype(np.int64) - (dterms or 1) + 1
    _check_bins(data, low, 2 * (dterms or 1), templates, some)
    if dterms is None:
        total = _all_bins(data, k_real)
    else:
        k = np.arange(2 * dterms)
        x = data.data[(data.offset[:-1] + low - data.first_bin)[..., None] + k]
        distance = (kappa + (dterms - 1))[..., None] - k
        with np.errstate(divide="ignore", invalid="ignore"):
            total = np.sum(x / distance, axis=-1)
    turned = 2 * np.pi * kappa
    kernel = np.sin(turned) + 1j * (np.cos(turned) - 1)
    on_a_bin = (kappa <= ON_A_BIN) | (kappa >= 1 - ON_A_BIN)
    nearest = data.offset[:-1] + np.round(k_real).astype(np.int64) - data.first_bin
    with np.errstate(invalid="ignore"):
        # The limit of the kernel at a bin is 2 pi there, and nothing elsewhere.
        y = np.where(on_a_bin, data.data[nearest], kernel * total / (2 * np.pi))
    cycles = k_real / 2 - phi
    return np.exp(2j * np.pi * (cycles - np.round(cycles))) * y


def _all_bins(data: SearchData, k_real: Floats) -> Complexes:
    """Sums of x_k / (k_real - k) over all bins of each SFT."""
    total = np.empty(k_real.shape, np.complex128)
    bins = np.diff(data.offset)
    for i in range(len(data)):  # the full kernel is for checks: an SFT at a time keeps it small
        x = data.data[data.offset[i] : data.offset[i + 1]]
        with np.errstate(divide="ignore", invalid="ignore"):
            total[:, i] = (1 / (k_real[:, i, None] - (data.first_bin[i] + np.arange(bins[i])))) @ x
    return total


def check_bins(
    data: SearchData, seen: Geometry, which: Ints, templates: Templates, dterms: int
) -> None:
    """Raise InputError for templates, which have the directions `which`, whose bins are not
    there.
    """
    for some in parts(data, len(templates), dterms):
        _, k_real = phases(seen, which[some], templates, some, data.duration)
        _check_bins(
            data, np.floor(k_real).astype(np.int64) - dterms + 1, 2 * dterms, templates, some
        )


def _check_bins(data: SearchData, low: Ints, count: int, templates: Templates, some: Ints) -> None:
    high = low + count
    end = data.first_bin + np.diff(data.offset)
    bad = (low < data.first_bin) | (high > end)
    if bad.any():
        row, sft = (int(i) for i in np.argwhere(bad)[0])
        t = data.duration
        raise InputError(
            f"template {int(some[row])} ({numeral(templates.freq[some[row]])} Hz) needs "
            f"{low[row, sft] / t:.6f} to "
            f"{(high[row, sft] - 1) / t:.6f} Hz of the SFT at GPS "
            f"{int(data.middle[sft]) // 10**9}; there are "
            f"{data.first_bin[sft] / t:.6f} to {(end[sft] - 1) / t:.6f} Hz: cover a wider band"
        )


def group_sums(data: SearchData, values: NDArray[np.inexact]) -> NDArray[np.inexact]:
    """Sums over the SFTs of each group: (..., n) to (..., s d); those of empty groups are zero."""
    full = np.flatnonzero(np.diff(data.group))
    result = np.zeros((*values.shape[:-1], len(data.group) - 1), values.dtype)
    result[..., full] = np.add.reduceat(values, data.group[full], axis=-1)
    return result


def antenna_matrices(data: SearchData, seen: Geometry) -> Floats:
    """(3, s, d, p): sums of a^2, b^2 and a b of each stack and detector, for each direction."""
    products = np.stack([seen.a**2, seen.b**2, seen.a * seen.b])
    sums = np.asarray(group_sums(data, products), np.float64)
    return np.moveaxis(sums.reshape(3, len(seen.alpha), data.stacks, len(data.detectors)), 1, -1)


def two_f(fa: Complexes, fb: Complexes, a: Floats, b: Floats, c: Floats) -> Floats:
    """2F; the expected 4 where the condition number of the antenna matrix is above 1e4, as
    LALPulsar has it.
    """
    return two_f_of_parts(fa.real, fa.imag, fb.real, fb.imag, a, b, c)


def two_f_of_parts(
    fa_real: Floats,
    fa_imaginary: Floats,
    fb_real: Floats,
    fb_imaginary: Floats,
    a: Floats,
    b: Floats,
    c: Floats,
) -> Floats:
    """`two_f` of real and imaginary parts; a, b and c may be the same for many templates."""
    value = b * (fa_real * fa_real + fa_imaginary * fa_imaginary)
    value += a * (fb_real * fb_real + fb_imaginary * fb_imaginary)
    value -= (2 * c) * (fa_real * fb_real + fa_imaginary * fb_imaginary)
    with np.errstate(divide="ignore", invalid="ignore"):
        value *= 2 / (a * b - c**2)
    usable = usable_matrix(a, b, c)
    return value if usable.all() else np.where(usable, value, EXPECTED)


def usable_matrix(a: Floats, b: Floats, c: Floats) -> NDArray[np.bool_]:
    """Whether the antenna matrix of sums of a^2, b^2 and a b can be inverted."""
    root = np.sqrt((a - b) ** 2 + 4 * c**2)
    with np.errstate(divide="ignore", invalid="ignore"):
        condition = (a + b + root) / (a + b - root)
    return np.isfinite(condition) & (condition > 0) & (condition <= LARGEST_CONDITION)
