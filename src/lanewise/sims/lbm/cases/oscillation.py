"""What a periodic signal is like: its mean, its largest value, and its frequency from crossings of
the mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

LEAST_PERIODS = 3  # fewer say nothing of a frequency
HARMONICS = 5


@dataclass(frozen=True, slots=True, eq=False)
class Oscillation:
    """A settled, periodic signal.

    `start` and `stop` are the times of its first and last crossing that were used.
    """

    frequency: float
    periods: int
    spread: float  # of the periods: their largest deviation from the mean, relative to it
    start: float
    stop: float
    crossings: NDArray[np.float64]

    def extremes(self, times: Any, values: Any) -> tuple[float, float]:
        """The lowest and the highest value of what repeats with the oscillation, without what does
        not, such as sound.

        A Fourier series up to the fifth harmonic, fitted to the samples of all periods; with too
        few samples the raw extremes.
        """
        t, v = np.asarray(times, np.float64), np.asarray(values, np.float64)
        within = (t >= self.start) & (t <= self.stop)
        if np.count_nonzero(within) < 2 * HARMONICS * self.periods:
            return float(v[within].min()), float(v[within].max())
        phase = np.interp(t[within], self.crossings, np.arange(len(self.crossings)))
        coefficients, *_ = np.linalg.lstsq(_harmonics(phase), v[within], rcond=None)
        repeated = _harmonics(np.linspace(0, 1, 1000)) @ coefficients
        return float(repeated.min()), float(repeated.max())


def oscillation(times: Any, values: Any) -> Oscillation | None:
    """The oscillation in the second half of a signal (the first is its beginning); None if it has
    too few periods.

    A period is the time between two upward crossings of the mean, each interpolated linearly
    between two samples.
    """
    t, v = second_half(times, values)
    if len(t) < 2 * LEAST_PERIODS:
        return None
    crossings = upward_crossings(t, v - (v.max() + v.min()) / 2)
    if len(crossings) <= LEAST_PERIODS:
        return None
    periods = np.diff(crossings)
    mean = float(periods.mean())
    spread = float(np.max(np.abs(periods - mean)) / mean)
    return Oscillation(
        1 / mean, len(periods), spread, float(crossings[0]), float(crossings[-1]), crossings
    )


def _harmonics(phase: NDArray[np.float64]) -> NDArray[np.float64]:
    angles = 2 * np.pi * np.outer(phase, np.arange(HARMONICS + 1))
    return np.concatenate([np.cos(angles), np.sin(angles[:, 1:])], axis=1)


def second_half(times: Any, values: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The samples after the middle of the time."""
    t, v = np.asarray(times, np.float64), np.asarray(values, np.float64)
    later = t >= (t[0] + t[-1]) / 2 if len(t) else np.zeros(0, bool)
    return t[later], v[later]


def upward_crossings(
    times: NDArray[np.float64], values: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The times at which values go from below zero to zero or above."""
    (i,) = np.nonzero((values[:-1] < 0) & (values[1:] >= 0))
    share = -values[i] / (values[i + 1] - values[i])
    return times[i] + share * (times[i + 1] - times[i])
