"""The F-statistic of a band of frequencies by resampling: one Fourier transform instead of a sum
over SFTs for every frequency.

The SFTs of a detector become a time series about a heterodyne frequency, which is interpolated at
times that are uniform at the barycentre (sinc with a Hamming window, 2 Dterms + 1 terms);
spin-downs are taken out, and a Fourier transform gives F_a and F_b. Jaranowski, Krolak and Schutz,
Phys. Rev. D 58, 063001 (1998), section III; Patel et al., Phys. Rev. D 81, 084032 (2010). Within an
SFT the barycentre's time is linear in the detector's, as in demodulation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lanewise.profiling import stage, staged
from lanewise.sims.common.devices import is_gpu, resolve
from lanewise.sims.waves.definition import FStatistic, antenna_matrices, assembled
from lanewise.sims.waves.lost import warn_of_loss
from lanewise.sims.waves.prepared import DTERMS, Geometry, SearchData, geometry, terms_of
from lanewise.sims.waves.ranges import RANGES, check_settings
from lanewise.sims.waves.reference_time import moved_spins
from lanewise.sims.waves.sft.reading import ROUNDING
from lanewise.sims.waves.timing import Ephemeris, Orbit
from lanewise.support.attributes import frozen
from lanewise.support.checks import checked
from lanewise.support.errors import InputError
from lanewise.support.numerals import numeral

Floats = NDArray[np.float64]
Complexes = NDArray[np.complex128]
MOST_SAMPLES = 1 << 27  # 2 GiB for each of two series
# ns: what every call takes, and what it takes for an SFT; measured on one core, as are the next
CALL = 4e6
SFT = 1e4
# ns for a term, a frequency and an SFT; and for a frequency and an SFT
NUMPY_TERM, KERNEL_CELL = 27.0, 12.0
# ns for a sample and a term of the interpolation; and for N log2 N of a transform
SAMPLE_TERM, BUTTERFLY = 25.0, 0.6
AT_AN_END = 1e-6  # of a sample: rounding moves places by 1e-11 of one


@frozen
@dataclass(frozen=True, slots=True)
class Band:
    """Frequencies freq + k step, k = 0 to count - 1 (Hz), of one direction (radians) and one set of
    spin-downs (Hz/s, ...).

    reference: GPS nanoseconds.
    """

    freq: float
    step: float
    count: int
    alpha: float
    delta: float
    reference: int
    f1dot: float = 0.0
    f2dot: float = 0.0
    f3dot: float = 0.0
    orbit: Orbit | None = None

    def __post_init__(self) -> None:
        """Raises InputError for values that no band has."""
        check_settings(self)
        if self.step < math.ulp(self.freq):
            raise InputError(
                f"step is {numeral(self.step)} Hz; wanted at least {math.ulp(self.freq):.2g} Hz: "
                f"float64 has no frequencies closer together at {numeral(self.freq)} Hz"
            )
        last = self.freq + self.step * (self.count - 1)
        if not RANGES["freq"].holds(last):
            raise InputError(f"the last frequency of the band is {RANGES['freq'].refusal(last)}")

    @property
    def frequencies(self) -> Floats:
        """(count) Hz."""
        return np.asarray(self.freq + self.step * np.arange(self.count), np.float64)


@dataclass(frozen=True, slots=True)
class _Grid:
    """Samples of the two series. bins, first: of the spectra with zeros at both ends; middle: the
    bin that becomes frequency zero.

    length: of the Fourier transform; every: its bins from one frequency to the next.
    """

    first: int
    bins: int
    duration: float
    length: int
    every: int
    step: float

    @property
    def middle(self) -> int:
        return (self.bins - 1) // 2

    @property
    def heterodyne(self) -> float:
        """Hz, a whole number of bins."""
        return (self.first + self.middle) / self.duration

    @property
    def detector_step(self) -> float:
        """Seconds between samples at the detector."""
        return self.duration / self.bins


def _grid(data: SearchData, step: float, dterms: int) -> _Grid:
    lengths = np.diff(data.offset)
    if (lengths != lengths[0]).any() or (data.first_bin != data.first_bin[0]).any():
        raise InputError("resampling needs the same bins of all SFTs; load one band")
    t = data.duration
    first, held = _held(data)
    # The window's transition band, half of it on each side, is filled with zeros.
    extra = math.ceil(2 * held / (2 * dterms + 1) - ROUNDING)
    first, bins = first - extra, held + 2 * extra + 1
    longest = float(np.max(data.span[:, 1] - data.span[:, 0])) * 1e-9
    every = max(1, math.ceil(longest * step))
    span = every / step
    if not span * bins / t <= MOST_SAMPLES:
        raise InputError(
            f"frequencies {numeral(step)} Hz apart ask for a Fourier transform of "
            f"{span * bins / t:.2g} samples; wanted at most "
            f"{MOST_SAMPLES:,}: a larger step, or a narrower band to cover"
        )
    length = 1 << (math.ceil(span * bins / t) - 1).bit_length()
    return _Grid(first, bins, t, length, every, span / length)


def _held(data: SearchData) -> tuple[int, int]:
    """The first bin that is transformed, and how many are: both ends of the covered band, without
    what noise alone needs.
    """
    bins = int(data.offset[1] - data.offset[0])
    spare = data.noise_bins
    return int(data.first_bin[0]) + spare, min(bins - 2 * spare + 1, bins - spare)


@checked(InputError)
def f_statistic_band(
    data: SearchData,
    band: Band,
    ephemeris: Ephemeris,
    *,
    dterms: int | Literal["prepared"] = "prepared",
) -> FStatistic:
    """2F of all frequencies of a band, for every stack, by resampling.

    dterms: terms of the interpolation on each side; "prepared" takes those of `prepare`. From
    LALPulsar's ResampGeneric 2F differed by at most 1.2e-3 in 7,800 templates of noise at 100 Hz,
    and by 1.1e-2 at 1400 Hz, since LALPulsar rounds arrivals to 120 ns; from demodulation it
    differs by what the kernel there leaves out. 2F does not depend on the band's reference time.
    Warns (SignalLossWarning) where SFTs are too long for the frequency or the orbit. Raises
    InputError for frequencies that some SFT receives beyond the bins of `data`, and for a number of
    terms that the noise weights of `data` are not for.
    """
    terms = terms_of(data, dterms)
    last = float(band.frequencies[-1])
    warn_of_loss(last, data.duration, band.orbit)  # spin-downs are taken out without a loss
    return resampled(data, band, ephemeris, dterms=terms)


def resampled(
    data: SearchData, band: Band, ephemeris: Ephemeris, *, dterms: int = DTERMS
) -> FStatistic:
    """`f_statistic_band` of checked arguments, without a warning: for searches, which warn once."""
    there, turns = _at_the_middle(data, band)
    found = _resampled(data, there, ephemeris, dterms)
    return replace(found, fa=found.fa * turns, fb=found.fb * turns)


def _at_the_middle(data: SearchData, band: Band) -> tuple[Band, Complexes]:
    """The band with the spins that it has at the middle of the data, and the factors (count) that
    turn amplitudes back.
    """
    spins = [
        band.frequencies,
        *(np.full(band.count, x) for x in (band.f1dot, band.f2dot, band.f3dot)),
    ]
    moved, cycles = moved_spins(spins, data.middle_time - band.reference)
    freq, f1dot, f2dot, f3dot = (float(x[0]) for x in moved)
    there = replace(
        band, freq=freq, f1dot=f1dot, f2dot=f2dot, f3dot=f3dot, reference=data.middle_time
    )
    return there, np.exp(-2j * np.pi * cycles)


def _resampled(data: SearchData, band: Band, ephemeris: Ephemeris, dterms: int) -> FStatistic:
    grid = _grid(data, band.step, dterms)
    with stage("barycentring", name="times and patterns"):
        seen = geometry(data, ephemeris, band.alpha, band.delta, band.orbit)
    _check_frequencies(data, band, seen, dterms)
    shape = (2, data.stacks, len(data.detectors), band.count)
    sums = np.zeros(shape, np.complex128)
    for group in range(len(data.group) - 1):
        which = np.arange(data.group[group], data.group[group + 1])
        if len(which):
            series, start = _at_the_barycentre(data, seen, which, band, grid, dterms)
            sums[:, group // shape[2], group % shape[2]] = _transformed(series, start, band, grid)
    with stage("statistic", name="2F of sums"):
        return assembled(sums, np.repeat(antenna_matrices(data, seen), band.count, axis=-1))


def _check_frequencies(data: SearchData, band: Band, seen: Geometry, dterms: int) -> None:
    """Refuse a band whose ends, as a detector receives them in some SFT, have not `dterms` bins of
    the data next to them: what lies beyond is cut off, and the signal with it.
    """
    since, t = seen.arrival.since(band.reference)[0], data.duration
    drift = since * (band.f1dot + since * (band.f2dot / 2 + since * band.f3dot / 6))
    ends = (band.frequencies[[0, -1], None] + drift) * seen.arrival.rate[0]
    low = np.floor(ends[0] * t + ROUNDING) - dterms
    high = np.ceil(ends[1] * t - ROUNDING) + dterms
    first, held = _held(data)
    beyond = (low < first - 1) | (
        high > first + held
    )  # a bin of grace: the data's ends are rounded
    if beyond.any():
        sft = int(np.argmax(beyond))
        raise InputError(
            f"the band from {band.freq:.6f} to {band.frequencies[-1]:.6f} Hz needs "
            f"{low[sft] / t:.6f} to {high[sft] / t:.6f} Hz of the SFT at GPS "
            f"{int(data.middle[sft]) // 10**9}, and the data have {first / t:.6f} to "
            f"{(first + held - 1) / t:.6f} Hz: cover a wider band"
        )


@staged("resampling", name="at the detector")
def _at_the_detector(data: SearchData, which: NDArray[np.int64], grid: _Grid) -> Complexes:
    """The time series of SFTs about the heterodyne frequency, zero in gaps; it starts with the
    first of them.
    """
    first, held = _held(data)
    at = data.offset[which] + data.noise_bins
    spectra = np.zeros((len(which), grid.bins), np.complex128)
    low = first - grid.first
    spectra[:, low : low + held] = data.data[at[:, None] + np.arange(held)]
    offset = (data.middle[which] - data.middle[which[0]]) * 1e-9
    begin = np.round(offset / grid.detector_step).astype(np.int64)
    # To start at a sample, an SFT is moved by less than half of one.
    moved = begin * grid.detector_step - offset
    frequency = (grid.first + np.arange(grid.bins)) / grid.duration
    spectra *= np.exp(2j * np.pi * np.mod(moved[:, None] * frequency, 1.0))
    short = (
        np.fft.ifft(np.roll(spectra, -grid.middle, axis=1), axis=1, norm="forward") / grid.duration
    )
    short *= np.exp(-2j * np.pi * np.mod(grid.heterodyne * (begin * grid.detector_step), 1.0))[
        :, None
    ]
    samples = round((offset[-1] + grid.duration) / grid.detector_step)
    series = np.zeros(samples + grid.bins, np.complex128)
    series[begin[:, None] + np.arange(grid.bins)] = short
    return series[:samples]


@staged("resampling", name="at the barycentre")
def _at_the_barycentre(
    data: SearchData, seen: Geometry, which: NDArray[np.int64], band: Band, grid: _Grid, dterms: int
) -> tuple[Complexes, float]:
    """The series times a(t) and b(t), (2, samples), uniform at the barycentre; and its start in
    seconds since the reference.
    """
    series = _at_the_detector(data, which, grid)
    rate, middle = seen.arrival.rate[0, which], seen.arrival.since(band.reference)[0, which]
    half = grid.duration / 2
    start = float(middle[0] - half * rate[0])
    samples = math.ceil(len(series) * grid.detector_step / grid.step)
    ends = [
        np.round((middle + sign * half * rate - start) / grid.step).astype(np.int64)
        for sign in (-1, 1)
    ]
    low, high = (np.minimum(e, samples - 1) for e in ends)
    counts = high - low + 1
    owner = np.repeat(np.arange(len(which)), counts)
    sample = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts) + low[owner]
    # Where two SFTs claim a sample, the later one has it.
    mine = np.full(samples, -1)
    mine[sample] = owner
    sample = np.flatnonzero(mine >= 0)
    owner = mine[sample]
    own_middle = (data.middle[which] - data.middle[which[0]]) * 1e-9 + half
    time = own_middle[owner] + (start + sample * grid.step - middle[owner]) / rate[owner]
    values = interpolated(series, time / grid.detector_step, dterms)
    values *= np.exp(-2j * np.pi * np.mod(grid.heterodyne * (sample * grid.step - time), 1.0))
    result = np.zeros((2, samples), np.complex128)
    result[:, sample] = values * np.stack([seen.a[0, which][owner], seen.b[0, which][owner]])
    return result, start


def interpolated(series: Complexes, at: Floats, dterms: int) -> Complexes:
    """A series at non-integer places: 2 dterms + 1 terms of a sinc, with a Hamming window.

    Zero outside of the series.

    A place next to one of the ends is the end: the first sample of a detector lies there but for
    rounding, on either side.
    """
    padded = np.concatenate([np.zeros(dterms), series, np.zeros(dterms + 1)])
    inside = (at >= -AT_AN_END) & (at <= len(series) - 1 + AT_AN_END)
    at = np.where(inside, at, 0.0)
    nearest = np.round(at)
    first, distance = nearest.astype(np.int64), at - nearest
    # sinc(d - k) = (-1)^k sin(pi d) / (pi (d - k)): one sine for all terms.
    wave, window = np.sin(np.pi * distance) / np.pi, np.hamming(2 * dterms + 1)
    total: Complexes = np.asarray(padded.take(first + dterms) * np.sinc(distance), np.complex128)
    for k in (*range(-dterms, 0), *range(1, dterms + 1)):
        weight = wave / (distance - k)
        weight *= (-1) ** k * window[k + dterms]
        total += padded.take(first + (dterms + k)) * weight
    total[~inside] = 0
    return total


@staged("resampling", name="Fourier transform")
def _transformed(series: Complexes, start: float, band: Band, grid: _Grid) -> Complexes:
    """F_a and F_b, (2, count), of one detector: spin-downs taken out, the first frequency shifted
    to zero, transformed.
    """
    local = np.arange(series.shape[1]) * grid.step
    since = start + local
    cycles = np.mod((band.freq - grid.heterodyne) * local, 1.0)
    spins = [
        spin / math.factorial(s) for s, spin in enumerate((band.f1dot, band.f2dot, band.f3dot), 2)
    ]
    if any(spins):
        cycles += since * since * (spins[0] + since * (spins[1] + since * spins[2]))
    shifted = series * np.exp(-2j * np.pi * cycles)
    spectrum = np.fft.fft(shifted, n=grid.length, axis=1)
    lines = spectrum[:, (np.arange(band.count) * grid.every) % grid.length]
    return grid.step * lines * np.exp(-2j * np.pi * np.mod(band.frequencies * start, 1.0))


@frozen
@dataclass(frozen=True, slots=True)
class Choice:
    """A method and the reason for it."""

    method: Literal["demod", "resamp"]
    reason: str


@checked(InputError)
def choose_method(
    data: SearchData,
    band: Band,
    dterms: int | Literal["prepared"] = "prepared",
    *,
    device: str = "numpy",
) -> Choice:
    """Which of the two takes less time for a band, on one core.

    device: of demodulation, as `f_statistic` has it; "numpy" or a CPU's kernels, which resampling,
    on the host, is compared with. Times are those of a model, whose constants were measured once:
    the choice is the same every time. Raises InputError for a GPU's.
    """
    terms = terms_of(data, dterms)
    if device != "numpy" and is_gpu(resolve(device)):
        raise InputError(
            f"resampling is computed on the host alone, found {device!r}; wanted 'numpy' or 'cpu'"
        )
    grid = _grid(data, band.step, terms)
    groups = int(np.count_nonzero(np.diff(data.group)))
    cell = 2 * terms * NUMPY_TERM if device == "numpy" else KERNEL_CELL
    demod = CALL + len(data) * (SFT + cell * band.count)
    transforms = 2 * groups * grid.length * math.log2(grid.length)
    resamp = CALL + len(data) * grid.bins * (2 * terms + 1) * SAMPLE_TERM + transforms * BUTTERFLY
    method: Literal["demod", "resamp"] = "demod" if demod <= resamp else "resamp"
    where = "NumPy" if device == "numpy" else "kernels"
    return Choice(
        method,
        f"{band.count} frequencies of {len(data)} SFTs take about {demod * 1e-6:.2g} ms of one "
        f"core by demodulation ({where}), and "
        f"{resamp * 1e-6:.2g} ms by resampling, with transforms of {grid.length} samples",
    )
