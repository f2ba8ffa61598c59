"""SFTs in memory: the same band of every SFT, one array a detector."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lanewise.sims.waves.sft.blocks import SECOND, gps_text
from lanewise.sims.waves.sft.windows import Window, window_of
from lanewise.support.attributes import frozen
from lanewise.support.errors import InputError
from lanewise.support.numerals import numeral


@frozen
@dataclass(frozen=True, slots=True)
class LeftOut:
    """An SFT that was not used, and why. number: which SFT of the file, from 0."""

    path: Path
    number: int
    reason: str

    def __str__(self) -> str:
        return f"{self.path}, SFT {self.number}: {self.reason}"


@frozen
@dataclass(frozen=True, slots=True, eq=False)
class DetectorSfts:
    """The SFTs of one detector, ordered by time.

    Attributes:
        detector: its two characters, for example H1
        start: (n,) int64, GPS times of the first samples in nanoseconds
        duration: T, seconds
        first_bin: the number of the first bin; bin j lies at j / T Hz
        data: (n, bins) complex64, contiguous: X_k = dt sum_j x_j w_j exp(-2 pi i j k / N), 1/Hz
        version: 2 or 3, for each SFT (uint8)
        window: the number in the header, for each SFT (uint16); in version 2 padding
        comments: the comments with their padding
    """

    detector: str
    start: NDArray[np.int64]
    duration: float
    first_bin: int
    data: NDArray[np.complex64]
    version: NDArray[np.uint8]
    window: NDArray[np.uint16]
    comments: tuple[bytes, ...]

    def __len__(self) -> int:
        return len(self.start)

    @property
    def bins(self) -> int:
        """Bins of an SFT."""
        return self.data.shape[1]

    @property
    def middle(self) -> NDArray[np.int64]:
        """(n,) GPS times of the middle of each SFT, nanoseconds."""
        return self.start + round(self.duration * SECOND / 2)

    @property
    def end(self) -> NDArray[np.int64]:
        """(n,) GPS times of the ends, nanoseconds."""
        return self.start + round(self.duration * SECOND)

    @property
    def windows(self) -> tuple[Window, ...]:
        """The window of each SFT; version 2 does not say."""
        return tuple(
            window_of(int(w)) if v > 2 else Window("unknown")
            for v, w in zip(self.version, self.window, strict=True)
        )

    def chosen(self, which: NDArray[np.bool_] | slice) -> DetectorSfts:
        """Some of the SFTs. Slices share memory."""
        comments = tuple(np.array(self.comments, object)[which])
        return replace(
            self, start=self.start[which], data=self.data[which], version=self.version[which],
            window=self.window[which], comments=comments,
        )  # fmt: skip

    def band(self, first: int, bins: int) -> DetectorSfts:
        """Bins `first` to `first + bins`, copied to be contiguous; raises InputError where they are
        not all there.
        """
        low = first - self.first_bin
        if low < 0 or low + bins > self.bins:
            raise InputError(
                f"{self.detector}: the bins {self.first_bin} to {self.first_bin + self.bins - 1} "
                f"are loaded; wanted {first} to {first + bins - 1}: load a wider band"
            )
        return replace(
            self, first_bin=first, data=np.ascontiguousarray(self.data[:, low : low + bins])
        )

    def __repr__(self) -> str:
        span = (
            f"GPS {gps_text(int(self.start[0]))} to {gps_text(int(self.end[-1]))}"
            if len(self)
            else "none"
        )
        low, high = self.first_bin / self.duration, (self.first_bin + self.bins - 1) / self.duration
        return (
            f"DetectorSfts({self.detector}: {len(self)} of {numeral(self.duration)} s, {span}, "
            f"{low:.6f} to {high:.6f} Hz)"
        )


@frozen
@dataclass(frozen=True, slots=True, eq=False)
class SftSet:
    """SFTs of several detectors, ordered by the detectors' names, all of one duration and one band;
    and what was left out.
    """

    detectors: tuple[DetectorSfts, ...]
    left_out: tuple[LeftOut, ...] = ()

    def __iter__(self) -> Iterator[DetectorSfts]:
        return iter(self.detectors)

    def __len__(self) -> int:
        return sum(map(len, self.detectors))

    def __getitem__(self, detector: str) -> DetectorSfts:
        for d in self.detectors:
            if d.detector == detector:
                return d
        raise KeyError(
            f"there are no SFTs of {detector}; there are {', '.join(self.names) or 'none at all'}"
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The detectors."""
        return tuple(d.detector for d in self.detectors)

    @property
    def duration(self) -> float:
        """T of all SFTs, seconds."""
        return self.detectors[0].duration

    @property
    def start(self) -> int:
        """GPS time of the first sample of all, nanoseconds."""
        return min(int(d.start[0]) for d in self.detectors)

    @property
    def end(self) -> int:
        """GPS time of the end of the last SFT, nanoseconds."""
        return max(int(d.end[-1]) for d in self.detectors)

    def between(self, start: int, end: int) -> SftSet:
        """The SFTs whose starts lie in start <= t < end, GPS nanoseconds; detectors without SFTs
        are dropped.
        """
        parts = (d.chosen((d.start >= start) & (d.start < end)) for d in self.detectors)
        return replace(self, detectors=tuple(p for p in parts if len(p)))

    def band(self, first: int, bins: int) -> SftSet:
        """The same SFTs with some of their bins; see `DetectorSfts.band`."""
        return replace(self, detectors=tuple(d.band(first, bins) for d in self.detectors))
