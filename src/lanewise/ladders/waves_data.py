"""The data of the ladder `waves`: SFTs of stacks and detectors at one direction, and F's amplitudes
of some templates in float64.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.ladders.waves_thesis import DETECTORS, FREQUENCIES, SFTS, SPINS, STACKS
from lanewise.sims.waves.kernels import NEAR
from lanewise.support.numerals import counted

Floats = NDArray[np.float64]
DTERMS = 8
DURATION, FIRST, LOW = 1800.0, 100.0, 30  # s of an SFT; Hz; bins below the first frequency
SPARE = 60  # bins of an SFT besides those of the band
CHECKED = 48  # templates that are compared with float64


@dataclass(frozen=True, slots=True)
class Size:
    """Stacks, SFTs of a stack and detector, detectors, frequencies, and spin-downs of a
    direction.
    """

    stacks: int
    sfts: int
    detectors: int
    frequencies: int
    spins: int

    @property
    def cells(self) -> int:
        """Amplitudes of one spin-down: a stack, a detector and a frequency each."""
        return self.stacks * self.detectors * self.frequencies

    def __str__(self) -> str:
        return (
            f"{counted(self.stacks, 'stack', 'stacks')} x {counted(self.sfts, 'SFT', 'SFTs')} x "
            f"{counted(self.detectors, 'detector', 'detectors')} x "
            f"{counted(self.frequencies, 'frequency', 'frequencies')}"
        )


THESIS = Size(STACKS, SFTS, DETECTORS, FREQUENCIES, SPINS)


def size_of(cells: int) -> Size:
    """The thesis's data with as many stacks as give that many cells of (stack, detector,
    frequency); fewer frequencies below one stack.
    """
    a_stack = THESIS.detectors * THESIS.frequencies
    stacks = max(1, round(cells / a_stack))
    frequencies = THESIS.frequencies if cells >= a_stack else max(1, cells // THESIS.detectors)
    return Size(stacks, THESIS.sfts, THESIS.detectors, frequencies, THESIS.spins)


class Data:
    """Random SFTs at one direction. Arrays of (stack, detector, SFT) in this order; `bins` (n,
    width) complex64.
    """

    def __init__(self, size: Size, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.size = size
        n = size.stacks * size.detectors * size.sfts
        times = np.arange(size.stacks * size.sfts).reshape(size.stacks, 1, size.sfts) * DURATION
        self.delay: Floats = (
            np.broadcast_to(times, (size.stacks, size.detectors, size.sfts)).reshape(-1)
            - times.mean()
        )
        self.rate: Floats = DURATION * (1 + 1e-5 * np.sin(self.delay / 86_400))
        self.a, self.b = rng.uniform(-1, 1, (2, n)).astype(np.float32)
        self.frequencies: Floats = FIRST + np.arange(size.frequencies) / (DURATION * size.sfts)
        self.f1dots: Floats = -1e-9 + 1e-11 * np.arange(size.spins, dtype=np.float64)
        lowest = np.floor(self.rate * (FIRST + self.delay * self.f1dots[0])).astype(np.int32)
        self.first_bin = (lowest - LOW).astype(np.int32)
        width = size.frequencies // size.sfts + SPARE
        noise = rng.normal(size=(2, n, width)).astype(np.float32)
        self.bins: NDArray[np.complex64] = noise[0] + np.complex64(1j) * noise[1]

    @property
    def groups(self) -> int:
        """Stacks times detectors."""
        return self.size.stacks * self.size.detectors

    @cached_property
    def checked(self) -> NDArray[np.intp]:
        """The frequencies that are compared: both ends, and others evenly between."""
        return np.unique(
            np.linspace(0, self.size.frequencies - 1, min(CHECKED, self.size.frequencies)).round()
        ).astype(np.intp)

    @cached_property
    def amplitudes(self) -> Floats:
        """(checked, stacks, detectors, 4): Fa and Fb of the first spin-down by the sum over 2
        DTERMS bins, all in float64.
        """
        amplitudes = np.empty((len(self.checked), self.groups, 4))
        x, offsets = self.bins.astype(np.complex128), np.arange(2 * DTERMS)
        f1dot, dt = self.f1dots[0], self.delay
        for row, f in enumerate(self.frequencies[self.checked]):
            phase, place = dt * (f + 0.5 * f1dot * dt), self.rate * (f + f1dot * dt)
            k = np.floor(place)
            low = k.astype(np.int64) - DTERMS + 1 - self.first_bin
            terms = np.take_along_axis(x, low[:, None] + offsets, axis=1)
            y = _dirichlet(place - k, terms) * np.where(k % 2 == 0, 1.0, -1.0)
            y *= np.exp(-2j * np.pi * (phase - np.round(phase)))
            for n, weight in enumerate((self.a, self.b)):
                total = (weight * y).reshape(self.groups, -1).sum(axis=1)
                amplitudes[row, :, 2 * n], amplitudes[row, :, 2 * n + 1] = total.real, total.imag
        return amplitudes.reshape(len(self.checked), self.size.stacks, self.size.detectors, 4)

    def error(self, amplitudes: Any) -> float:
        """Of amplitudes (frequencies, stacks, detectors, 4) of the first spin-down: the largest
        deviation over the largest amplitude.
        """
        seen = np.asarray(amplitudes, np.float64)[self.checked]
        return float(np.max(abs(seen - self.amplitudes)) / np.max(abs(self.amplitudes)))


def _dirichlet(kappa: Floats, terms: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """sin(pi kappa) / pi times the sum of the bins over their distances; so near to a bin that the
    kernel takes it alone, that bin.
    """
    last = DTERMS - 1
    below, above = kappa <= NEAR, kappa >= 1 - NEAR
    with np.errstate(divide="ignore", invalid="ignore"):
        summed = (
            np.sin(np.pi * kappa)
            / np.pi
            * (terms / (kappa[:, None] + last - np.arange(2 * DTERMS))).sum(axis=1)
        )
    nearest = np.where(below, terms[:, last], -terms[:, DTERMS]) * np.exp(
        1j * np.pi * np.where(below, kappa, kappa - 1)
    )
    return np.where(below | above, nearest, summed)
