"""What a hierarchical search is set up with: its grids, its maps, how they fit the data."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lanewise.sims.common.devices import require_memory
from lanewise.sims.waves.gps import SECOND
from lanewise.sims.waves.hough import ROTATION_SPEED, Patch
from lanewise.sims.waves.lost import warn_of_loss
from lanewise.sims.waves.noise import WINDOW
from lanewise.sims.waves.prepared import DTERMS, SearchData, prepare, split
from lanewise.sims.waves.ranges import FASTEST, RANGES, check_setting, check_settings
from lanewise.sims.waves.sft import SftSet
from lanewise.support.attributes import frozen
from lanewise.support.checks import checked
from lanewise.support.errors import InputError
from lanewise.support.numerals import numeral, numerals

Floats = NDArray[np.float64]


DOPPLER = 1.05e-4  # the largest shift of frequencies at a detector


METHODS = ("demod", "resamp")


SPARE_BINS = 50  # of SFTs, on both sides of the band


FREQUENCY_BYTES, SPIN_BYTES = 16, 128  # of lists, whatever is computed


MOST_CELLS = 1e12  # of a direction: years
MOST_BINS = 1e12  # a bin's number: float64 tells its thousandth part from the next


THREADS = 3  # that prepare directions for a device


TOGETHER = 48  # directions that one of them prepares at a time: fewer steps of Python for each


@frozen
@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What is searched. Frequencies in Hz and spin-downs in Hz/s at `reference` (GPS nanoseconds),
    each from a lowest value over a band.

    Attributes:
        stack: seconds that a stack lasts; most_stacks: how many at most
        resolution: of frequencies, Hz; None for 1 / stack
        f1dot_step: of the coarse grid, Hz/s; None for 1 / stack^2
        residuals: spin-downs about each one of the coarse grid, f1dot_step / residuals apart; None
          for the number of stacks. Even numbers are those of the next odd one
        threshold: of F = 2F / 2: above it is a peak
        patch: sizes of the patch in radians; None for 1 / (stack freq v), v being the speed of the
          Earth's surface over c
        weighted: whether stacks count by their noise and the detectors' response
    """

    freq: float
    freq_band: float
    f1dot: float
    f1dot_band: float
    reference: int
    stack: float
    most_stacks: int | None = None
    resolution: float | None = None
    f1dot_step: float | None = None
    residuals: int | None = None
    threshold: float = 2.6
    patch: tuple[float, float] | None = None
    weighted: bool = False
    dterms: int = DTERMS
    window: int = WINDOW

    def __post_init__(self) -> None:
        """Raises InputError for values that no search has."""
        check_settings(self)
        if self.patch is not None and not all(0 < side <= math.pi for side in self.patch):
            raise InputError(f"patch is {self.patch}; wanted two sizes above 0, at most pi radians")
        if (last := self.freq + self.freq_band) > FASTEST:
            raise InputError(f"the search ends at {RANGES['freq'].refusal(last, ' Hz')}")
        resolution, step = self.steps
        if not last / resolution <= MOST_BINS:
            raise InputError(
                f"resolution is {numeral(resolution)} Hz, which makes the search end at bin "
                f"{last / resolution:.3g}; wanted at most {MOST_BINS:.0e}: a larger resolution"
            )
        cells = self.freq_band / resolution + 1, self.f1dot_band / step + 1, self.residuals or 1
        check_cells(*cells)

    @property
    def steps(self) -> tuple[float, float]:
        """Of frequencies, Hz, and of the coarse grid of spin-downs, Hz/s."""
        return self.resolution or 1 / self.stack, self.f1dot_step or 1 / self.stack**2


def check_cells(frequencies: float, spins: float, many: int) -> None:
    """Refuse a search that would take years."""
    if not spins * frequencies * many <= MOST_CELLS:
        raise InputError(
            f"the search has {frequencies:.3g} frequencies, {spins:.3g} spin-downs and {many} "
            "about each; wanted at most "
            f"{MOST_CELLS:.0e} of all: a narrower band, or larger steps"
        )


@frozen
@dataclass(frozen=True, slots=True, eq=False)
class Maps:
    """The Hough maps of one direction and one spin-down of the coarse grid.

    Attributes:
        frequencies: (f) Hz, at the middle of the observation
        f1dot: (r) Hz/s
        counts: (r, f, rows, columns) number counts; significance: of them; two_f: the mean 2F of
          the stacks
    """

    patch: Patch
    frequencies: Floats
    f1dot: Floats
    counts: Floats
    significance: Floats
    two_f: Floats


@frozen
@dataclass(frozen=True, slots=True, eq=False)
class Grids:
    """A search on data: the grids at the middle of the observation (GPS nanoseconds)."""

    search: Search
    data: SearchData
    middle: int
    resolution: float
    first: float
    frequencies: int
    f1dot: Floats
    residuals: Floats

    @property
    def first_bin(self) -> int:
        """The bin of `first`; Hough maps know multiples of the resolution alone."""
        return math.floor(self.first / self.resolution + 0.5)

    @property
    def patch(self) -> tuple[float, float]:
        """Sizes of patches in radians."""
        side = 1 / (self.search.stack * self.first * ROTATION_SPEED)
        return self.search.patch or (side, side)

    @property
    def correction(self) -> float:
        """What candidates' frequencies get because of that, Hz: by how much the frequency requested
        misses a bin (LALPulsar's bug 147).
        """
        asked = self.search.freq / self.resolution
        return self.search.freq - self.resolution * math.floor(asked + 0.5)


@checked(InputError)
def set_up(sfts: SftSet, search: Search) -> Grids:
    """Stacks, noise and grids.

    Warns (SignalLossWarning) where SFTs are too long for the frequency. Raises InputError where the
    SFTs' band does not suffice.
    """
    if search.stack > (whole := (sfts.end - sfts.start) / SECOND):
        stack, data = numerals(search.stack, whole)
        raise InputError(
            f"a stack lasts {stack} s, and the data {data} s; wanted at most that (--stack)"
        )
    stacks = split(sfts, search.stack, search.most_stacks)
    start, end = stacks[0].start, max(s.end for s in stacks)
    middle = (start + end) // 2
    cover = search_cover(search, start, end, sfts.duration)
    data = prepare(sfts, cover, stacks=stacks, dterms=search.dterms, window=search.window)
    low, high = _range_at(search, middle)
    if not RANGES["freq"].holds(low):
        raise InputError(
            f"at the middle of the observation, GPS {middle / SECOND:.0f}, the search begins at "
            f"{RANGES['freq'].refusal(low, ' Hz')}: is the reference time right?"
        )
    resolution, step = search.steps
    if not low / resolution + 0.5 >= 1:
        raise InputError(
            f"resolution is {numeral(resolution)} Hz, and the search begins at {numeral(low)} Hz, "
            "which is bin 0; wanted at most twice that frequency"
        )
    many = search.residuals or len(stacks)
    fastest = max(abs(search.f1dot), abs(search.f1dot + search.f1dot_band))
    warn_of_loss(max(high, low), sfts.duration, None, fastest)
    half = many // 2
    spins = search.f1dot_band / step + 1
    frequencies = (high - low) / resolution + 1
    check_cells(frequencies, spins, many)
    require_memory(
        "cpu",
        round(FREQUENCY_BYTES * frequencies + SPIN_BYTES * spins),
        f"a search of {frequencies:.3g} frequencies and {spins:.3g} spin-downs",
    )
    return Grids(
        search,
        data,
        middle,
        resolution,
        low,
        int((high - low) / resolution + 1e-6) + 1,
        steps_from(search.f1dot, step, int(search.f1dot_band / step + 1e-6) + 1),
        steps_from(-half * (step / many), step / many, 2 * half + 1),
    )


@checked(InputError)
def search_cover(search: Search, start: int, end: int, duration: float) -> tuple[float, float]:
    """The band in Hz that a search of data from `start` to `end` (GPS nanoseconds) covers;
    duration: of an SFT, seconds.

    Frequencies at both ends, the largest Doppler shift, and 50 bins for the offsets of pixels and
    spin-downs.
    """
    for name, value in (("reference", start), ("reference", end), ("duration", duration)):
        check_setting(name, value)
    lows, highs = zip(*(_range_at(search, t) for t in (start, end)), strict=True)
    wings = max(highs) * DOPPLER + SPARE_BINS / duration
    return min(lows) - wings, max(highs) + wings


def steps_from(first: float, step: float, count: int) -> Floats:
    """So many values with this step."""
    return np.asarray(first + step * np.arange(count), np.float64)


def _range_at(search: Search, time: int) -> tuple[float, float]:
    """The lowest and highest frequency at a time."""
    since = (time - search.reference) * 1e-9
    drifts = sorted((search.f1dot * since, (search.f1dot + search.f1dot_band) * since))
    return search.freq + drifts[0], search.freq + search.freq_band + drifts[1]
