"""What is lost of 2F where SFTs are too long: within each one, the phase of a signal is taken to be
linear in time.

A detector turns with the Earth, and a source may turn round a companion: on a circle of A
light-seconds with the angular speed W a signal's frequency changes by f A W^2 a second at most. The
quadratic phase that this adds within T has the variance

    mu = (pi (f A W^2 + |f1dot|))^2 T^4 / 180 = (pi f A W^2 T^2 / 6)^2 / 5  (without a spin-down),

which is the fraction of the squared signal-to-noise ratio that is lost; it is LALPulsar's rule for
also the largest T, which allows 0.05.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Generator
from contextlib import contextmanager

from lanewise.sims.waves.detectors import SPEED_OF_LIGHT
from lanewise.sims.waves.timing import Orbit
from lanewise.support.errors import LanewiseWarning
from lanewise.support.numerals import numeral
from lanewise.support.warned import warn_user

ALLOWED = 0.05  # of 2F - 4
# A W^2 on the equator, 1/s
EARTH = 6_378_136.6 / SPEED_OF_LIGHT * (2 * math.pi / 86_164.09053) ** 2


class SignalLossWarning(LanewiseWarning):
    """2F can be computed, but may be lower than that of the signal by the stated amount."""


def mismatch(freq: float, duration: float, orbit: Orbit | None = None, f1dot: float = 0.0) -> float:
    """The largest fraction of 2F - 4 that SFTs of `duration` seconds lose at this frequency (Hz)
    and spin-down (Hz/s), at most 1.
    """
    return min(1.0, _bend(freq, orbit, f1dot) * duration**4)


def _bend(freq: float, orbit: Orbit | None, f1dot: float) -> float:
    """The mismatch over T^4. An orbit is the most curved at periapsis."""
    about = EARTH
    if orbit is not None:
        about += orbit.size * (2 * math.pi / orbit.period) ** 2 / (1 - orbit.eccentricity) ** 2
    return (math.pi * (freq * about + abs(f1dot))) ** 2 / 180


def warn_of_loss(
    freq: float, duration: float, orbit: Orbit | None = None, f1dot: float = 0.0
) -> None:
    """Warn (SignalLossWarning) where more than 5 % of 2F may be lost, with what is and how long
    SFTs may be.
    """
    lost = mismatch(freq, duration, orbit, f1dot)
    if lost <= ALLOWED:
        return
    longest = (ALLOWED / _bend(freq, orbit, f1dot)) ** 0.25
    motion = (
        "the rotation of the Earth" if orbit is None else "this orbit and the rotation of the Earth"
    )
    warn_user(
        f"SFTs of {numeral(duration)} s are too long for {motion} at {freq:.4g} Hz: up to "
        f"{lost:.0%} of 2F is lost, because the phase within "
        f"an SFT is taken to be linear in time; SFTs of {longest:.0f} s lose {ALLOWED:.0%}",
        SignalLossWarning,
    )


@contextmanager
def said() -> Generator[None]:
    """Within the block, losses are said on standard error, each once: what commands do.

    Other warnings continue behind it.
    """
    warned: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always", SignalLossWarning)
            yield
    finally:
        losses = [w for w in warned if issubclass(w.category, SignalLossWarning)]
        for text in dict.fromkeys(str(w.message) for w in losses):
            print(f"warning: {text}", file=sys.stderr)
        for w in warned:
            if w not in losses:
                warnings.warn_explicit(w.message, w.category, w.filename, w.lineno, source=w.source)
