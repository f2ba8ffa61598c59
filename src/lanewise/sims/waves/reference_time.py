"""The same signals at another reference time, without a digit lost: 2F is computed with spins at
the middle of the data.

A reference time years before the data means phases of 1e11 cycles, of which float64 keeps 1e-5, and
times a spin-down that is not rounded where the frequency is. So a template's spins are moved to the
middle of the data first, by Taylor's series

    f^(s)(t) = sum_k f^(s+k) t^k / k!,    cycles = sum_s f^(s) t^(s+1) / (s+1)!

in numbers of two float64 each (Dekker, Numer. Math. 18, 224 (1971)); every spin is rounded once, at
the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from lanewise.sims.waves.gps import SECOND
from lanewise.sims.waves.prepared import SearchData
from lanewise.sims.waves.templates import SPINS, Templates

Floats = NDArray[np.float64]
Double = tuple[Floats, Floats]  # the number, rounded, and what was rounded away
SPLITTER = float(2**27 + 1)


def at_the_middle(
    data: SearchData, templates: Templates
) -> tuple[Templates, NDArray[np.complex128]]:
    """Templates with the spins that they have at the middle of the data, and the factors (n) that
    turn amplitudes back.
    """
    middle = data.middle_time
    if templates.reference == middle:
        return templates, np.ones(len(templates), np.complex128)
    spins, cycles = moved_spins(
        [getattr(templates, s) for s in SPINS], middle - templates.reference
    )
    there = Templates(
        spins[0],
        templates.alpha,
        templates.delta,
        *spins[1:],
        reference=middle,
        orbit=templates.orbit,
    )
    return there, np.exp(-2j * np.pi * cycles)


def _sum(a: Double, b: Double) -> Double:
    high = a[0] + b[0]
    back = high - a[0]
    low = (a[0] - (high - back)) + (b[0] - back) + a[1] + b[1]
    return _normal(high, low)


def _product(a: Double, b: tuple[float, float]) -> Double:
    high = a[0] * b[0]
    x, y = _halves(a[0]), _halves(np.float64(b[0]))
    low = ((x[0] * y[0] - high) + x[0] * y[1] + x[1] * y[0]) + x[1] * y[1]
    return _normal(high, low + a[0] * b[1] + a[1] * b[0])


def _halves(x: Floats | np.float64) -> tuple[Floats, Floats]:
    """Two numbers of 26 bits, whose products are exact."""
    wide = x * SPLITTER
    top = np.asarray(wide - (wide - x), np.float64)
    return top, np.asarray(x - top, np.float64)


def _normal(high: Floats, low: Floats) -> Double:
    total = high + low
    return total, low - (total - high)


def _double(x: Fraction) -> tuple[float, float]:
    high = float(x)
    return high, float(x - Fraction(high))


def moved_spins(spins: Sequence[Floats], nanoseconds: int) -> tuple[list[Floats], Floats]:
    """Frequency and derivatives later by so many nanoseconds, and the cycles until then, from -1/2
    to 1/2.

    spins: (n) each, Hz, Hz/s, ...; those that come back are rounded to the nearest float64 each.
    Cycles are right to 1e-12 for a frequency of 1 kHz and a hundred years.
    """
    used = 1 + max((k for k, x in enumerate(spins) if x.any()), default=0)
    seconds = Fraction(nanoseconds, SECOND)
    steps = [_double(seconds / (k + 1)) for k in range(used)]
    double: list[Double] = [(x, np.zeros_like(x)) for x in spins[:used]]
    moved = [_series(double[s:], steps)[0] for s in range(used)]
    high, low = _product(_series(double, steps[1:]), steps[0])
    whole = np.round(high)
    cycles = (high - whole) + low
    return [*moved, *spins[used:]], cycles - np.round(cycles)


def _series(terms: Sequence[Double], steps: Sequence[tuple[float, float]]) -> Double:
    """The first + step (the second + step (...)), by Horner's rule."""
    total = terms[-1]
    for term, step in zip(terms[-2::-1], steps[: len(terms) - 1][::-1], strict=True):
        total = _sum(term, _product(total, step))
    return total
