"""What the quantities of a search may be: one range for each name, wherever a user says it."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lanewise.sims.waves.gps import LATEST, SECOND
from lanewise.support.checks import check_fields, host_array, shown
from lanewise.support.errors import InputError
from lanewise.support.numerals import numerals

Floats = NDArray[np.float64]
FASTEST = 1e6  # Hz: beyond every detector
LONGEST = LATEST / SECOND  # seconds
MOST_FREQUENCIES = 1 << 28  # 2 GiB of 2F for each stack
FINEST = 1e-25  # Hz/s: less than a cycle in the longest time that there is
MOST_TERMS = 128  # on each side
# of F: there float64 holds the probabilities that noise is above and that it is not
QUIETEST, LOUDEST = 1e-4, 700.0


@dataclass(frozen=True, slots=True)
class Range:
    """From low to high, both included, but for a low that is `above`."""

    low: float
    high: float
    unit: str
    above: bool = False

    def holds(self, values: Any) -> Any:
        """Whether numbers lie in it; not what is not a number."""
        return ((values > self.low) if self.above else (values >= self.low)) & (values <= self.high)

    def __str__(self) -> str:
        return self._text(*numerals(self.low, self.high))

    def refusal(self, value: Any, unit: str = "") -> str:
        """A number outside it, and what is wanted: `-1; wanted above 0, at most 1000000 Hz`."""
        found, *ends = numerals(value, self.low, self.high)
        return f"{found}{unit}; wanted {self._text(*ends)}"

    def _text(self, low: str, high: str) -> str:
        return f"{f'above {low}, at most' if self.above else f'{low} to'} {high}{self.unit}"


_HZ = Range(0.0, FASTEST, " Hz", above=True)
_TIME = Range(-LATEST, LATEST, " nanoseconds: GPS, see gps_time")
RANGES = MappingProxyType(
    {
        "freq": _HZ,
        "step": _HZ,
        "resolution": _HZ,
        "freq_band": Range(0.0, FASTEST, " Hz"),
        **{
            f"f{k}dot": Range(-1.0, 1.0, f" Hz/s{power}")
            for k, power in ((1, ""), (2, "^2"), (3, "^3"))
        },
        "f1dot_band": Range(0.0, 1.0, " Hz/s"),
        "f1dot_step": Range(FINEST, 1.0, " Hz/s"),
        "alpha": Range(-4 * math.pi, 4 * math.pi, " radians"),
        "delta": Range(-math.pi / 2, math.pi / 2, " radians"),
        "psi": Range(-100.0, 100.0, " radians"),
        "phi0": Range(-1e6, 1e6, " radians"),
        "h0": Range(0.0, 1.0, ""),
        "cosi": Range(-1.0, 1.0, ""),
        "reference": _TIME,
        "periapsis": _TIME,
        "size": Range(0.0, 1e6, " light-seconds"),
        "period": Range(1e-6, LONGEST, " seconds"),
        "argument": Range(-4 * math.pi, 4 * math.pi, " radians"),
        "stack": Range(1 / SECOND, LONGEST, " seconds"),
        "threshold": Range(QUIETEST, LOUDEST, " of F = 2F / 2"),
        "duration": Range(0.0, 1e7, " seconds", above=True),
        "count": Range(1, MOST_FREQUENCIES, " frequencies"),
        "most_stacks": Range(1, 1 << 31, " stacks"),
        "residuals": Range(1, 1 << 20, " spin-downs"),
        "dterms": Range(1, MOST_TERMS, " bins on each side"),
        "window": Range(3, 1 << 20, " bins"),
    }
)
"""By names of arguments and fields."""


def check_setting(name: str, value: Any) -> None:
    """Refuse a number out of its range: `freq is -1; wanted above 0, at most 1000000 Hz`."""
    if not RANGES[name].holds(value):
        raise InputError(f"{name} is {RANGES[name].refusal(value)}")


def check_settings(instance: Any) -> None:
    """Check the fields of a frozen dataclass by their types and by their ranges, in its
    `__post_init__`; None is none.
    """
    check_fields(instance, InputError)
    for f in fields(instance):
        value = getattr(instance, f.name)
        if f.name in RANGES and value is not None:
            check_setting(f.name, value)


def numbers_of(place: str, value: ArrayLike) -> Floats:
    """An array of real numbers as float64; raises InputError for anything else."""
    array = host_array(place, value, InputError)
    if array.dtype.kind not in "iuf":
        raise InputError(f"{place} is {shown(value)}; wanted numbers")
    return array.astype(np.float64)


def check_values(place: str, name: str, values: Floats) -> None:
    """Refuse numbers out of their range, the first of them by its place in the array."""
    bad = ~RANGES[name].holds(values)
    if bad.any():
        i = int(np.flatnonzero(bad)[0])
        refusal = RANGES[name].refusal(values.reshape(-1)[i])
        raise InputError(f"{name} of {place} {i} is {refusal}")
