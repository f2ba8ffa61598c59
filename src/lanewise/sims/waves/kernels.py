"""Demodulation: the amplitudes Fa and Fb of the F-statistic, for templates of frequency and
spin-down at one place of the sky.

The Dirichlet-kernel sum of Williams and Schutz (gr-qc/9912029), as LALPulsar has it. An SFT (a
short Fourier transform of one detector) gives to a template, with dt its time at the solar-system
barycentre less the reference time and T its duration,

    phi   = f dt + f1 dt^2 / 2 + f2 dt^3 / 6                     cycles, in float64 D     = T tdot
    (f + f1 dt + f2 dt^2 / 2)                     the template's frequency in bins k     = floor(D),
    kappa = D - k y     = exp(2 pi i (D / 2 - phi)) sum_j P_j x_j / (2 pi),    P_j = (sin 2 pi kappa
    + i (cos 2 pi kappa - 1)) / (D - j) Fa   += a y,  Fb += b y
    over the bins j = k - dterms + 1 ... k + dterms

With P_j = 2 sin(pi kappa) exp(-i pi kappa) / (D - j) the phases of both factors add up to one that
has no kappa in it:

    y     = (-1)^k exp(-2 pi i phi) sin(pi kappa) / pi sum_j x_j / (D - j).

Two kernels compute it. "dirichlet" adds the terms; two have one reciprocal in common, (kappa +
m)(kappa - m - 1) = kappa^2 - kappa - m (m + 1), and where kappa is within 2e-4 of 0 or 1 the sum is
its nearest bin, as LALPulsar's. "interpolated" reads sin(pi kappa) / pi sum_j x_j / (D - j) from a
table: it is an entire function of kappa, and for each k a polynomial of degree 7 in kappa has it to
2e-6 of the largest bin. Neither reciprocals nor a rule for the ends are needed, and the time does
not depend on dterms.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

import numpy as np

import lanewise as lw
from lanewise.sims.common.devices import array_module, on

Method = Literal["interpolated", "dirichlet"]
DEGREE = 7  # of the polynomials: their error is that of float32 sums
NEAR = 2e-4  # of a bin: where LALPulsar takes the nearest bin for the sum
# bins whose polynomials are made at a time, on a GPU and where they shall stay in the caches
TABLE_PART, HOST_PART = (1 << 15, 1 << 11)
PI = float(np.float32(np.pi))


@lw.record
class Template:
    """Frequency (Hz) and its derivatives (Hz/s, Hz/s^2) at the reference time."""

    frequency: lw.f64
    f1dot: lw.f64
    f2dot: lw.f64


@lw.record
class Sft:
    """What one SFT brings along, at one place of the sky.

    delay: its middle at the barycentre less the reference time, in seconds. bins_per_hertz: its
    duration times the derivative of barycentric time. a, b: antenna patterns times the root of its
    noise weight. first_bin: of its row of bins, that of its band.
    """

    delay: lw.f64
    bins_per_hertz: lw.f64
    a: lw.f32
    b: lw.f32
    first_bin: lw.i32


@lw.function
def arrival(template: Template, sft: Sft) -> tuple[lw.f64, lw.f64]:
    """The template's phase in the middle of an SFT, in turns from -1/2 to 1/2, and its frequency
    there, in bins.
    """
    dt = sft.delay
    phase = dt * (
        template.frequency
        + dt * (0.5 * template.f1dot + dt * (template.f2dot * 0.16666666666666666))
    )
    place = sft.bins_per_hertz * (
        template.frequency + dt * (template.f1dot + dt * (0.5 * template.f2dot))
    )
    return phase - lw.floor(phase + 0.5), place


@lw.function
def rotated(turns: lw.f32, x: lw.f32, y: lw.f32) -> lw.vec2:
    """(x + i y) exp(-2 pi i turns) for turns from -1/2 to 1/2, by polynomials for half the
    angle.
    """
    z = turns * turns
    s = (((0.07765766 * z - 0.59829129) * z + 2.55007752) * z - 5.16771008) * z + 3.14159264
    c = (((0.21968961 * z - 1.33187657) * z + 4.05841135) * z - 4.93479283) * z + 0.99999995
    s = s * turns
    cosine, sine = 1.0 - 2.0 * s * s, 2.0 * s * c
    return lw.vec2(x * cosine + y * sine, y * cosine - x * sine)


@lw.function
def sine(q: lw.f32) -> lw.f32:
    """sin(pi kappa) / pi for kappa from 0 to 1, given q = kappa^2 - kappa: exact to float32 at both
    ends also where it is 0.
    """
    return -q * ((((0.00769275 * q - 0.06511913) * q + 0.35507298) * q - 0.99999978) * q + 1.0)


@cache
def dirichlet_kernel(dterms: int) -> Any:
    """The kernel that adds the terms: `kernel(templates, sfts, bins)` is (Fa, Fb) as four numbers a
    cell.
    """
    terms, before, even = 2 * dterms, dterms - 1, dterms % 2 == 0

    @lw.segmentwise
    def amplitudes(template: Template, sft: Sft, bins: lw.Row[lw.vec2]) -> lw.vec4:
        turns, place = arrival(template, sft)
        whole = lw.floor(place)
        k = lw.i32(whole)
        kappa = lw.f32(place - whole)
        x = lw.window(bins, k - sft.first_bin - before, terms)
        q = kappa * kappa - kappa
        real, imaginary = 0.0, 0.0
        for pair in range(0, dterms - 1, 2):  # two pairs of terms have one reciprocal
            p, r = q - lw.f32(pair * (pair + 1)), q - lw.f32((pair + 1) * (pair + 2))
            left, right = kappa + lw.f32(pair), kappa - lw.f32(pair + 1)
            one = x[before - pair] * right + x[before + 1 + pair] * left
            other = x[before - 1 - pair] * (right - 1.0) + x[before + 2 + pair] * (left + 1.0)
            root = lw.rsqrt(p * r)
            both = (one * r + other * p) * (root * root)
            real += both.x
            imaginary += both.y
        if not even:
            last = (x[0] * (kappa - lw.f32(dterms)) + x[terms - 1] * (kappa + lw.f32(before))) / (
                q - lw.f32(before * dterms)
            )
            real += last.x
            imaginary += last.y
        scale = sine(q)
        value = lw.vec2(real * scale, imaginary * scale)
        near = lw.min(kappa, 1.0 - kappa)
        if near <= NEAR:
            first = kappa < 0.5
            angle = lw.select(first, kappa, kappa - 1.0) * PI
            nearest = lw.select(first, x[before], -x[before + 1])
            value = lw.vec2(nearest.x - nearest.y * angle, nearest.y + nearest.x * angle)
        if k & 1 != 0:
            value = -value
        y = rotated(lw.f32(turns), value.x, value.y)
        return lw.vec4(sft.a * y.x, sft.a * y.y, sft.b * y.x, sft.b * y.y)

    return amplitudes


@cache
def interpolated_kernel(degree: int = DEGREE) -> Any:
    """The kernel that reads polynomials: `kernel(templates, sfts, table)` with `polynomials(bins,
    ...)` as its table.
    """
    quads, last = (degree + 1) // 2, (degree + 1) // 2 - 1

    @lw.segmentwise
    def amplitudes(template: Template, sft: Sft, table: lw.Row[lw.vec4]) -> lw.vec4:
        turns, place = arrival(template, sft)
        whole = lw.floor(place)
        u = lw.f32(place - whole) * 2.0 - 1.0
        c = lw.window(table, (lw.i32(whole) - sft.first_bin) * quads, quads)
        top = c[last]
        real, imaginary = top.z * u + top.x, top.w * u + top.y
        for i in range(1, quads):
            pair = c[last - i]
            real, imaginary = (
                (real * u + pair.z) * u + pair.x,
                (imaginary * u + pair.w) * u + pair.y,
            )
        y = rotated(lw.f32(turns), real, imaginary)
        return lw.vec4(sft.a * y.x, sft.a * y.y, sft.b * y.x, sft.b * y.y)

    return amplitudes


@cache
def _matrix(dterms: int, degree: int) -> np.ndarray[Any, Any]:
    """From 2 dterms bins to the coefficients of a polynomial in 2 kappa - 1: float64, shape (degree
    + 1, 2 dterms).
    """
    n = degree + 1
    # Chebyshev's, where interpolation is nearly the best there is
    nodes = np.cos(np.pi * (np.arange(n) + 0.5) / n)
    kappa = (nodes + 1.0) / 2.0
    k = np.arange(1 - dterms, dterms + 1)
    values = np.sin(np.pi * kappa)[:, None] / np.pi / (kappa[:, None] - k)
    return np.linalg.solve(np.vander(nodes, n, increasing=True), values)


def polynomials(
    sfts: lw.RaggedArray, bins: lw.RaggedArray, dterms: int, degree: int = DEGREE
) -> lw.RaggedArray:
    """The table of `interpolated_kernel`: for each bin k of an SFT that has dterms neighbours on
    both sides the polynomial in kappa.

    sfts: ragged `Sft`; bins: a row of complex bins (lw.vec2) for each. The result has as many rows,
    whose place 0 stands for the first bin of the band; bins without neighbours have no numbers
    there. It takes (degree + 1) times the memory of the bins. The arrays stay on their device.
    """
    if degree % 2 == 0 or not 1 <= degree <= 15:
        raise lw.ArgumentError(
            f"degree is odd and at most 15, because coefficients are read in pairs; found {degree}"
        )
    with on(bins.device):
        return _polynomials(sfts, bins, dterms, degree)


def _polynomials(
    sfts: lw.RaggedArray, bins: lw.RaggedArray, dterms: int, degree: int
) -> lw.RaggedArray:
    module = array_module(bins.device)
    data = bins.data
    # real and imaginary parts, as they lie in the bins
    values = module.full((len(data), 2 * (degree + 1)), np.nan, np.float32)
    weights = module.asarray(np.kron(_matrix(dterms, degree).T, np.eye(2)).astype(np.float32))
    count, part = max(0, len(data) - 2 * dterms + 1), HOST_PART if module is np else TABLE_PART
    for first in range(0, count, part):
        last = min(first + part, count)
        shape, (step, single) = (last - first, 4 * dterms), data.strides
        terms = module.lib.stride_tricks.as_strided(data[first:], shape, (step, single))
        values[dterms - 1 + first : dterms - 1 + last] = module.ascontiguousarray(terms) @ weights
    offsets = bins.offsets[-1]
    lengths = offsets[1:] - offsets[:-1]
    if len(lengths) != len(sfts.data):
        raise lw.ArgumentError(
            f"there are {len(sfts.data):,} SFTs, and {len(lengths):,} rows of bins; each has one"
        )
    row = module.repeat(module.arange(len(lengths)), lengths if module is np else lengths.tolist())
    place = module.arange(len(data)) - offsets[:-1][row]  # within its row
    crossing = (place < dterms - 1) | (place >= lengths[row] - dterms)
    values[crossing] = np.nan  # its terms lie in another row
    values *= (1 - 2 * ((place + sfts.data.first_bin[row]) & 1)).astype(np.float32)[:, None]
    return lw.ragged(
        values.reshape(-1, 4), counts=lengths * ((degree + 1) // 2), device=bins.device
    )


def demodulate(
    templates: lw.RecordArray,
    sfts: lw.RaggedArray,
    bins: lw.RaggedArray,
    *,
    dterms: int = 8,
    method: Method = "interpolated",
    plan: lw.Plan | None = None,
) -> Any:
    """Fa and Fb of every template, by stack and detector.

    templates: `Template` records. sfts: ragged `Sft`, nested as the statistic is wanted, such as
    [stack][detector][sft]. bins: one row of normalised complex bins for each SFT (`lw.ragged(x,
    counts=...)` of complex64), from its first_bin on. dterms: bins on each side.

    Gives float32 of shape (templates, stacks, detectors, 4): real and imaginary part of Fa, then of
    Fb; not numbers where a template needs bins that an SFT does not have. The phase is that at the
    reference time. Raises `ArgumentError` for arguments that do not fit.
    """
    if isinstance(dterms, bool) or not 1 <= dterms <= 128:
        raise lw.ArgumentError(f"dterms is a number of bins from 1 to 128, found {dterms!r}")
    if method == "dirichlet":
        return dirichlet_kernel(dterms)(templates, sfts, bins, plan=plan)
    if method != "interpolated":
        raise lw.ArgumentError(f"method is 'interpolated' or 'dirichlet', found {method!r}")
    return interpolated_kernel()(templates, sfts, polynomials(sfts, bins, dterms), plan=plan)


def two_f(amplitudes: Any, a: Any, b: Any, c: Any) -> Any:
    """2F of amplitudes (Fa and Fb as four numbers, shape (..., 4)) and the antenna-pattern sums A,
    B and C.

    2F = (2 / D) (B |Fa|^2 + A |Fb|^2 - 2 C Re(Fa conj Fb)) with D = A B - C^2 (Jaranowski, Krolak
    and Schutz, gr-qc/9804014), in float64.
    """
    fa_re, fa_im, fb_re, fb_im = (amplitudes[..., n].astype(np.float64) for n in range(4))
    mixed = fa_re * fb_re + fa_im * fb_im
    return (
        2.0
        / (a * b - c * c)
        * (b * (fa_re**2 + fa_im**2) + a * (fb_re**2 + fb_im**2) - 2.0 * c * mixed)
    )
