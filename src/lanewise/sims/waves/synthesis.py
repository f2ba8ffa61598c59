"""Synthetic SFTs: Gaussian noise plus signals, made in the frequency domain, band by band.

A signal is h = F+ A+ cos phi + Fx Ax sin phi with A+ = h0 (1 + cos^2 iota) / 2, Ax = h0 cos iota,
F+ = a cos 2 psi + b sin 2 psi, Fx = b cos 2 psi - a sin 2 psi and phi = phi0 + 2 pi sum_s f_s
Delta^(s+1) / (s+1)! (Jaranowski, Krolak and Schutz 1998), with a, b and the time at the barycentre
taken along the SFT. Its transform is that of continuous time under a rectangular window; what leaks
from its negative frequency, 1 / (2 pi f T) of it, is left out.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lanewise.sims.common.devices import require_memory
from lanewise.sims.waves.detectors import detector
from lanewise.sims.waves.gps import SECOND, Times
from lanewise.sims.waves.ranges import FASTEST, check_setting, check_settings
from lanewise.sims.waves.reference_time import moved_spins
from lanewise.sims.waves.sft import DetectorSfts, SftSet, Window, band_bins, padded_comment
from lanewise.sims.waves.timing import (
    Ephemeris,
    Orbit,
    antenna_patterns,
    barycentre,
    earth_state,
    emission,
)
from lanewise.support.attributes import frozen
from lanewise.support.checks import checked
from lanewise.support.errors import InputError
from lanewise.support.numerals import numeral, numerals

Floats = NDArray[np.float64]
NODES = 9  # of the polynomials that phase and amplitude are within an SFT
PART = 1 << 21  # complex numbers at a time
MOST_SAMPLES = 1 << 21


@frozen
@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """A continuous wave. Frequencies in Hz, Hz/s, ...; angles in radians; reference: GPS
    nanoseconds at the barycentre (the source).
    """

    h0: float
    cosi: float
    freq: float
    alpha: float
    delta: float
    reference: int
    psi: float = 0.0
    phi0: float = 0.0
    f1dot: float = 0.0
    f2dot: float = 0.0
    f3dot: float = 0.0
    orbit: Orbit | None = None

    def __post_init__(self) -> None:
        """Raises InputError for values that no signal has."""
        check_settings(self)


@checked(InputError)
def make_data(
    starts: Mapping[str, ArrayLike],
    band: tuple[float, float],
    *,
    duration: float = 1800.0,
    sqrt_s: Mapping[str, ArrayLike] | None = None,
    signals: Sequence[Signal] = (),
    ephemeris: Ephemeris | None = None,
    seed: int = 0,
    comment: str = "made by lanewise",
) -> SftSet:
    """SFTs of noise and signals.

        starts: GPS seconds of the SFTs' first samples, by detector; integers or floats
        band: low <= f < high, Hz
        sqrt_s: sqrt(S_n) of the noise in 1/sqrt(Hz) by detector, one number or one per SFT; None
          for no noise
        signals: what is added; needs an ephemeris
        seed: of the noise. An SFT's noise depends on seed, detector, start, and band, and on
          nothing else

    Raises InputError for SFTs that overlap, detectors without noise where others have it, signals
    far outside of the band, and signals without ephemeris.
    """
    if signals and ephemeris is None:
        raise InputError(
            "signals need an ephemeris: make_data(..., ephemeris=Ephemeris.load('DE405'))"
        )
    if not starts:
        raise InputError("there are no detectors; wanted starts = {'H1': [GPS seconds, ...]}")
    check_setting("duration", duration)
    if not 0 <= band[0] < band[1] <= FASTEST:
        raise InputError(
            f"the band is {' to '.join(numerals(*band))} Hz; wanted 0 or more, low < high"
        )
    first, bins = band_bins(*band, duration)
    sets: list[DetectorSfts] = []
    for name in sorted(starts):
        detector(name)  # it is known
        times = _times(name, starts[name], duration)
        require_memory("cpu", 32 * len(times) * bins, f"{len(times)} SFTs of {bins} bins")
        data = np.zeros((len(times), bins), np.complex128)
        if sqrt_s is not None:
            data += _noise(name, times, first, bins, duration, sqrt_s, seed)
        for signal in signals:
            assert ephemeris is not None
            data += signal_spectra(signal, name, times, first, bins, duration, ephemeris)
        sets.append(
            DetectorSfts(
                name,
                times,
                duration,
                first,
                data.astype(np.complex64),
                np.full(len(times), 3, np.uint8),
                np.full(len(times), Window("rectangular").code, np.uint16),
                (padded_comment(comment),) * len(times),
            )
        )
    return SftSet(tuple(sets))


def _times(name: str, starts: ArrayLike, duration: float) -> Times:
    seconds = np.atleast_1d(np.asarray(starts))
    if seconds.ndim != 1 or seconds.dtype.kind not in "iuf" or not len(seconds):
        raise InputError(
            f"the starts of {name} have shape {seconds.shape} and dtype {seconds.dtype}; wanted "
            "GPS seconds, one an SFT"
        )
    whole = np.floor(seconds).astype(np.int64)
    times = whole * SECOND + np.round((seconds - whole) * SECOND).astype(np.int64)
    short = np.diff(times) < round(duration * SECOND)
    if short.any():
        i = int(np.flatnonzero(short)[0])
        raise InputError(
            f"the SFTs of {name} at GPS {seconds[i]} and {seconds[i + 1]} overlap; wanted starts "
            f"in order, at least {numeral(duration)} s apart"
        )
    return times


def _noise(
    name: str,
    times: Times,
    first: int,
    bins: int,
    duration: float,
    sqrt_s: Mapping[str, ArrayLike],
    seed: int,
) -> NDArray[np.complex128]:
    if name not in sqrt_s:
        raise InputError(
            f"sqrt_s has no value for {name}; wanted one for every detector, or None for no noise"
        )
    level = np.asarray(sqrt_s[name], np.float64)
    if level.shape not in ((), times.shape) or not (np.isfinite(level) & (level >= 0)).all():
        raise InputError(
            f"sqrt_s of {name} has shape {level.shape}; wanted one finite number of zero or more, "
            f"or {len(times)}"
        )
    root = np.broadcast_to(level, times.shape) * math.sqrt(duration) / 2  # E |X|^2 = T S / 2
    data = np.empty((len(times), bins), np.complex128)
    for row, time in zip(data, times, strict=True):
        key = hashlib.sha256(f"{seed} {name} {time} {first} {bins}".encode()).digest()
        rng = np.random.default_rng(np.frombuffer(key, np.uint32))
        row.real, row.imag = rng.standard_normal((2, bins))
    return data * root[:, None]


def signal_spectra(
    signal: Signal,
    name: str,
    times: Times,
    first: int,
    bins: int,
    duration: float,
    ephemeris: Ephemeris,
) -> NDArray[np.complex128]:
    """The transforms of a signal in the SFTs of a detector that start at `times` (GPS nanoseconds):
    (n, bins), 1/Hz.

    Within 1e-6 of the largest bin of the sum over dense samples. LALPulsar, which samples a narrow
    band coarsely and interpolates phases, is within 4e-3 of the largest bin (2 mrad in phase).
    Raises InputError for a signal too far outside of the band.
    """
    # Phase and amplitudes at Chebyshev nodes of each SFT, x from -1 to 1.
    nodes = np.cos(np.pi * (np.arange(NODES) + 0.5) / NODES)
    middle = times + round(duration * SECOND / 2)
    at = middle[:, None] + np.round(nodes * duration / 2 * SECOND).astype(np.int64)
    earth, site = earth_state(ephemeris, np.concatenate([middle, at.ravel()])), detector(name)
    arrival = barycentre(earth, site, signal.alpha, signal.delta)
    arrival = arrival if signal.orbit is None else emission(arrival, signal.orbit)
    reference = int(times[0]) // 2 + int(times[-1]) // 2
    spins, before = moved_spins(
        [np.array([x]) for x in (signal.freq, signal.f1dot, signal.f2dot, signal.f3dot)],
        reference - signal.reference,
    )
    since = arrival.since(reference)[0]
    cycles = np.full_like(since, before[0])
    frequency = np.zeros_like(since)
    power = np.ones_like(since)
    for s, spin in enumerate(float(x[0]) for x in spins):
        frequency += spin * power
        power = power * since / (s + 1)
        cycles += spin * power
    n = len(times)
    local = (frequency * arrival.rate[0])[:n]
    if not (ordinary := abs(local) <= FASTEST).all():
        at_time = middle[~ordinary][0] / SECOND
        raise InputError(
            f"the signal has {local[~ordinary][0]:.3g} Hz at GPS {at_time:.0f}; wanted at most "
            f"{FASTEST:.0f} Hz in all SFTs: are its spin-downs and its reference time right?"
        )
    slow = (cycles[n:] - np.repeat(cycles[:n], NODES)).reshape(n, NODES) - local[
        :, None
    ] * nodes * duration / 2
    a, b = (
        p[0, n:].reshape(n, NODES)
        for p in antenna_patterns(earth, site, signal.alpha, signal.delta)
    )
    cosine, sine = np.cos(2 * signal.psi), np.sin(2 * signal.psi)
    plus = (a * cosine + b * sine) * signal.h0 * (1 + signal.cosi**2) / 2
    cross = (b * cosine - a * sine) * signal.h0 * signal.cosi
    amplitude = (plus - 1j * cross) / 2
    return _transforms(
        slow, amplitude, local * duration, cycles[:n], signal.phi0, first, bins, duration
    )


def _transforms(
    slow: Floats, amplitude: NDArray[np.complex128], k_real: Floats, cycles: Floats, phi0: float,
    first: int, bins: int, duration: float,
) -> NDArray[np.complex128]:  # fmt: skip
    """From what varies slowly about a tone at the real bin `k_real`: the integral over the SFT, by
    the midpoint rule.

    The rule's kernel for a tone that is d bins off is sin(pi d) / (N sin(pi d / N)) where the
    integral has sin(pi d) / (pi d): it is multiplied by their quotient.
    """
    k_near = np.round(k_real).astype(np.int64)
    farthest = int(max(abs(first - k_near).max(), abs(first + bins - 1 - k_near).max()))
    samples = 1 << max(10, (16 * farthest).bit_length())
    if samples > MOST_SAMPLES:
        raise InputError(
            f"the signal at {k_real[0] / duration:.3f} Hz is far outside of the band from "
            f"{first / duration:.3f} to "
            f"{(first + bins - 1) / duration:.3f} Hz; wanted it within "
            f"{MOST_SAMPLES / 32 / duration:.0f} Hz of every bin"
        )
    x = (2 * np.arange(samples) + 1) / samples - 1
    # Polynomials through the nodes, by Chebyshev coefficients.
    angle = np.pi * (np.arange(NODES) + 0.5) / NODES
    fit = np.cos(np.outer(np.arange(NODES), angle)) * 2 / NODES
    fit[0] /= 2
    matrix = np.polynomial.chebyshev.chebvander(x, NODES - 1) @ fit
    result = np.empty((len(slow), bins), np.complex128)
    step = max(1, PART // samples)
    for i in range(0, len(slow), step):
        part = slice(i, i + step)
        fraction = (k_real - k_near)[part, None]
        tone = np.exp(2j * np.pi * (slow[part] @ matrix.T + fraction * x / 2))
        spectrum = np.fft.fft((amplitude[part] @ matrix.T) * tone, axis=1) * (duration / samples)
        k = first + np.arange(bins) - k_near[part, None]
        # Samples lie half a step after the points of the transform; x = 0, where the phase is
        # counted from, is half an SFT on.
        late = np.exp(-1j * np.pi * k / samples)
        begin = np.exp(2j * np.pi * np.mod(cycles[part] - k_near[part] / 2, 1.0))[:, None] * np.exp(
            1j * phi0
        )
        lines = np.take_along_axis(spectrum, k % samples, axis=1)
        result[part] = lines * late * begin * np.sinc((k - fraction) / samples)
    return result
