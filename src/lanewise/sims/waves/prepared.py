"""What a search needs of its SFTs, in flat arrays that a device can take as they are.

SFTs are ordered by stack, then detector, then time. Data vectors hold what belongs to bins or SFTs,
one after another; offset vectors say where each SFT's bins and each (stack, detector)'s SFTs begin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lanewise.sims.waves import timing
from lanewise.sims.waves.detectors import detector
from lanewise.sims.waves.gps import SECOND, Times
from lanewise.sims.waves.noise import WINDOW, noise_floor, normalised, raw_weights
from lanewise.sims.waves.ranges import RANGES, check_setting
from lanewise.sims.waves.sft import DetectorSfts, SftSet, band_bins
from lanewise.support.attributes import frozen
from lanewise.support.checks import checked
from lanewise.support.errors import InputError
from lanewise.support.numerals import counted, numeral, numerals

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
DTERMS = 8


@checked(InputError)
def search_margin(dterms: int = DTERMS, window: int = WINDOW) -> int:
    """Bins that a search needs on both sides of the band that it covers: of the kernel, and of the
    running median.
    """
    check_setting("dterms", dterms)
    check_setting("window", window)
    return dterms + window // 2 + 1


@frozen
@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class SearchData:
    """Normalised SFTs of s stacks and d detectors; n SFTs in all.

    Attributes:
        detectors: the d names
        stacks: s
        duration: T of an SFT, seconds
        data: complex64, the normalised bins of all SFTs, one SFT after another; contiguous
        offset: (n + 1) int64: SFT i has data[offset[i] : offset[i + 1]]
        first_bin: (n) int64: the number of its first bin, which lies at first_bin / T Hz
        group: (s d + 1) int64: SFTs group[j] to group[j + 1] are those of stack j // d and detector
          j % d; groups may be empty
        middle: (n) int64, GPS nanoseconds of the middle of each SFT
        weight: (n) float64 noise weights, with the mean 1 over each stack
        sinv_tsft: (s) float64: T / S_n averaged over the stack's SFTs, which makes 2F of amplitudes
        span: (s, 2) int64, GPS nanoseconds: from the first sample of a stack to its last
        noise_bins: bins at each end of an SFT that are there for the running median alone
        dterms: bins on each side that a statistic takes where none are given
        weights_of_dterms: whether the weights are means over a band that `dterms` determines: a
          statistic then rejects another one
    """

    detectors: tuple[str, ...]
    stacks: int
    duration: float
    data: NDArray[np.complex64]
    offset: Ints
    first_bin: Ints
    group: Ints
    middle: Times
    weight: Floats
    sinv_tsft: Floats
    span: Times
    noise_bins: int
    dterms: int = DTERMS
    weights_of_dterms: bool = False

    def __len__(self) -> int:
        return len(self.middle)

    @property
    def middle_time(self) -> int:
        """Halfway from the first sample to the last, GPS nanoseconds."""
        return (int(self.span.min()) + int(self.span.max())) // 2

    def __repr__(self) -> str:
        return (
            f"SearchData({counted(len(self), 'SFT', 'SFTs')} of {numeral(self.duration)} s, "
            f"{', '.join(self.detectors)}, {counted(self.stacks, 'stack', 'stacks')}, "
            f"{self.data.nbytes / 2**20:.1f} MiB)"
        )


@checked(InputError)
def prepare(
    sfts: SftSet,
    cover: tuple[float, float] | None = None,
    *,
    stacks: Sequence[SftSet] | None = None,
    dterms: int = DTERMS,
    window: int = WINDOW,
    sqrt_s: Mapping[str, float] | None = None,
) -> SearchData:
    """Normalise SFTs by their noise and lay them out.

        cover: Hz that the templates' frequencies at the detectors lie in. Exactly these bins and
          `search_margin` more on both sides are used, so that 2F does not depend on what else is
          loaded: weights are means over bins. None takes what is loaded
        stacks: parts of the SFTs that are searched coherently; None for one stack of all
        dterms: bins of the kernel on each side; `f_statistic` and `f_statistic_band` then take them
        window: bins of the running median
        sqrt_s: assumed sqrt(S_n) in 1/sqrt(Hz) by detector, instead of the running median

    Raises InputError where the loaded bins do not suffice.
    """
    search_margin(dterms, window)
    parts = [sfts] if stacks is None else list(stacks)
    _check_given(sfts, parts, sqrt_s)
    if cover is not None:
        parts = _covering(parts, cover, sfts.duration, search_margin(dterms, window))
    names = sfts.names
    data: list[NDArray[np.complex64]] = []
    weights: list[Floats] = []
    counts: list[int] = []
    sinv: list[float] = []
    for part in parts:
        own = {d.detector: d for d in part}
        counts += [len(own[name]) if name in own else 0 for name in names]
        present = [own[name] for name in names if name in own]
        spectra, raws = zip(*(_normalised(d, window, sqrt_s) for d in present), strict=True)
        data += spectra
        raw = np.concatenate(raws)
        weights.append(raw / raw.mean())
        sinv.append(sfts.duration**2 * raw.mean() / 2)
    rows = [d for part in parts for name in names for d in part if d.detector == name]
    bins_each = np.concatenate([np.full(len(d), d.bins, np.int64) for d in rows])
    made = SearchData(
        names,
        len(parts),
        sfts.duration,
        np.concatenate(data),
        np.concatenate([[0], np.cumsum(bins_each)]),
        np.concatenate([np.full(len(d), d.first_bin, np.int64) for d in rows]),
        np.concatenate([[0], np.cumsum(np.array(counts, np.int64))]),
        np.concatenate([d.middle for d in rows]),
        np.concatenate(weights),
        np.array(sinv),
        np.array([(p.start, p.end) for p in parts], np.int64),
        0 if cover is None else window // 2 + 1,
        dterms,
        cover is not None and sqrt_s is None,
    )
    return unchanging(made)


@overload
def terms_of(data: SearchData, dterms: int | Literal["prepared"]) -> int: ...
@overload
def terms_of(data: SearchData, dterms: int | Literal["prepared"] | None) -> int | None: ...
def terms_of(data: SearchData, dterms: int | Literal["prepared"] | None) -> int | None:
    """The bins on each side to take: those that the data were prepared for, or others
    where the noise weights allow them. None stands for all bins.
    """
    if dterms == "prepared":
        return data.dterms
    if dterms is None:
        return None
    check_setting("dterms", dterms)
    if data.weights_of_dterms and dterms != data.dterms:
        raise InputError(
            f"dterms is {dterms}, and the data are prepared for {data.dterms}, which determines "
            f"the band of their noise weights; wanted the same: leave dterms out here, or prepare "
            f"the data with dterms={dterms}"
        )
    return dterms


def unchanging(made: SearchData) -> SearchData:
    """The same data with bins that cannot be written to: what is computed of them once holds for
    every search.
    """
    for array in (made.data, made.offset, made.first_bin):
        array.flags.writeable = False
    return made


def _covering(
    parts: Sequence[SftSet], cover: tuple[float, float], duration: float, margin: int
) -> list[SftSet]:
    """Their bins of these frequencies, and `margin` more on both sides."""
    if not 0 <= cover[0] <= cover[1] <= RANGES["freq"].high:
        low, high = numerals(*cover)
        raise InputError(f"cover is {low} to {high} Hz; wanted 0 or more, low <= high")
    first, bins = band_bins(*cover, duration, margin)
    return [p.band(first, bins) for p in parts]


def _normalised(
    d: DetectorSfts, window: int, sqrt_s: Mapping[str, float] | None
) -> tuple[NDArray[np.complex64], Floats]:
    """The SFTs of one detector in units of their noise, one after the other, and their weights
    before all have a mean of one.
    """
    floor = noise_floor(d.data, d.duration, window, None if sqrt_s is None else sqrt_s[d.detector])
    _check_floor(d, floor)
    with np.errstate(over="ignore", invalid="ignore"):
        spectra = normalised(d.data, floor)
    _check_spectra(d, spectra, sqrt_s)
    return spectra.ravel(), raw_weights(floor, window)


def _check_given(sfts: SftSet, parts: Sequence[SftSet], sqrt_s: Mapping[str, float] | None) -> None:
    """Refuse stacks without SFTs, unknown detectors, and noise that is missing or impossible."""
    if not len(sfts) or not parts or not all(len(p) for p in parts):
        raise InputError(
            "there are no SFTs to search, or a stack has none; wanted at least one in every stack"
        )
    if sqrt_s is not None and (missing := [n for n in sfts.names if n not in sqrt_s]):
        raise InputError(
            f"sqrt_s has no value for {', '.join(missing)}; wanted one for every detector"
        )
    for name in sfts.names:
        detector(name)  # it is known
        if sqrt_s is not None and not 0 < sqrt_s[name] < 1:
            raise InputError(
                f"sqrt_s of {name} is {numerals(sqrt_s[name], 1)[0]}; wanted above 0 and below "
                "1 / sqrt(Hz)"
            )


def _check_floor(sfts: DetectorSfts, floor: Floats) -> None:
    """A median of zero, or one that is not finite, has no noise to be divided by."""
    bad = ~(np.isfinite(floor) & (floor > 0)).all(axis=1)
    if bad.any():
        i = int(np.flatnonzero(bad)[0])
        raise InputError(
            f"{sfts.detector}: the noise of the SFT at GPS {int(sfts.start[i]) // SECOND} is zero "
            "or not finite somewhere in its band; "
            "leave it out, or give sqrt_s"
        )


def _check_spectra(
    sfts: DetectorSfts, spectra: NDArray[np.complex64], sqrt_s: Mapping[str, float] | None
) -> None:
    """What is not finite here gives no number of any template."""
    bad = ~np.isfinite(spectra).all(axis=1)
    if bad.any():
        i = int(np.flatnonzero(bad)[0])
        finite = bool(np.isfinite(sfts.data[i]).all())
        given = "" if sqrt_s is None else f", sqrt_s = {numerals(sqrt_s[sfts.detector], 1)[0]}"
        raise InputError(
            f"{sfts.detector}: the SFT at GPS {int(sfts.start[i]) // SECOND} "
            + (
                f"divided by its noise{given}, is beyond the numbers of float32; wanted a noise of "
                "its size"
                if finite
                else "holds values that are not finite; leave it out"
            )
        )


@checked(InputError)
def split(sfts: SftSet, duration: float, count: int | None = None) -> list[SftSet]:
    """Stacks of at most `duration` seconds, from the first SFT on; the next one begins with the
    first SFT that no longer fits.

    count: the most stacks. Gaps longer than a stack leave no empty stacks.
    """
    check_setting("stack", duration)
    if count is not None:
        check_setting("most_stacks", count)
    length, step = round(duration * SECOND), round(sfts.duration * SECOND)
    if length < step:
        stack, one = numerals(duration, sfts.duration)
        raise InputError(f"a stack lasts {stack} s, and an SFT {one} s; wanted at least as much")
    starts = np.unique(np.concatenate([d.start for d in sfts]))
    parts: list[SftSet] = []
    while len(starts) and (count is None or len(parts) < count):
        begin = int(starts[0])
        part = sfts.between(begin, begin + length - step + 1)
        parts.append(part)
        starts = starts[starts > begin + length - step]
    return parts


@frozen
@dataclass(frozen=True, slots=True, eq=False)
class Geometry:
    """The SFTs of a `SearchData` as seen from p directions: everything of a template but its
    frequency and spin-downs.

    Attributes:
        arrival: (p, n) times at the barycentre (or of emission), and their rates (Tdot)
        a, b: (p, n) antenna patterns times the square roots of the weights
    """

    alpha: Floats
    delta: Floats
    arrival: timing.Arrival
    a: Floats
    b: Floats


@checked(InputError)
def geometry(
    data: SearchData,
    ephemeris: timing.Ephemeris,
    alpha: ArrayLike,
    delta: ArrayLike,
    orbit: timing.Orbit | None = None,
    earths: Mapping[str, timing.EarthState] | None = None,
) -> Geometry:
    """Arrival times and antenna patterns of all SFTs for sky positions in radians; earths: of
    `earth_states`, if at hand.
    """
    alpha, delta = timing.sky_positions(alpha, delta)
    shape = (len(alpha), len(data))
    time, rate = np.empty(shape, np.int64), np.empty(shape)
    a, b = np.empty(shape), np.empty(shape)
    earths = earth_states(data, ephemeris) if earths is None else earths
    if missing := [n for n in data.detectors if n not in earths]:
        raise InputError(
            f"earths has no value for {', '.join(missing)}; wanted one for every detector"
        )
    for name, which in sfts_of(data).items():
        site = detector(name)
        arrival = timing.barycentre(earths[name], site, alpha, delta)
        time[:, which], rate[:, which] = arrival.time, arrival.rate
        a[:, which], b[:, which] = timing.antenna_patterns(earths[name], site, alpha, delta)
    root = np.sqrt(data.weight)
    arrival = timing.Arrival(time, np.zeros(shape), rate)
    return Geometry(
        alpha,
        delta,
        arrival if orbit is None else timing.emission(arrival, orbit),
        a * root,
        b * root,
    )


def earth_states(data: SearchData, ephemeris: timing.Ephemeris) -> dict[str, timing.EarthState]:
    """The Earth at the middles of each detector's SFTs; independent of directions."""
    return {
        name: timing.earth_state(ephemeris, data.middle[which])
        for name, which in sfts_of(data).items()
    }


def sfts_of(data: SearchData) -> dict[str, Ints]:
    """The numbers of each detector's SFTs."""
    count = len(data.detectors)
    owner = np.repeat(np.arange(len(data.group) - 1) % count, np.diff(data.group))
    return {name: np.flatnonzero(owner == i) for i, name in enumerate(data.detectors)}
