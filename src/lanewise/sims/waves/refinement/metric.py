"""How much of the F-statistic is lost next to a signal: the metric of its parameters."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lanewise.sims.waves.detectors import detector
from lanewise.sims.waves.prepared import SearchData, earth_states, geometry, sfts_of
from lanewise.sims.waves.timing import Ephemeris
from lanewise.sims.waves.timing.arrival import detector_motion

Floats = NDArray[np.float64]


def tangents(alpha: float, delta: float) -> Floats:
    """(3, 3): the direction, and the unit vectors to the east and to the north of it."""
    sa, ca, sd, cd = math.sin(alpha), math.cos(alpha), math.sin(delta), math.cos(delta)
    return np.array([[cd * ca, cd * sa, sd], [-sa, ca, 0.0], [-sd * ca, -sd * sa, cd]])


def phase_metric(
    data: SearchData, ephemeris: Ephemeris, freq: float, alpha: float, delta: float, reference: int
) -> Floats:
    """(4, 4), of frequency (Hz), spin-down (Hz/s), and steps to the east and to the north (radians
    of the sky).

    A template at the offset x from a signal has about 1 - x g x of its squared signal-to-noise
    ratio: g is the covariance of the phase's derivatives over the SFTs of a stack, with their noise
    weights, and its mean over the stacks. Brady, Creighton, Cutler and Schutz, Phys. Rev. D 57,
    2101 (1998); Brady and Creighton, Phys. Rev. D 61, 082001 (2000) for stacks; the response of the
    detectors is left out, as in the phase metric of Prix, Phys. Rev. D 75, 023004 (2007).
    reference: GPS nanoseconds, of frequency and spin-down.
    """
    earths = earth_states(data, ephemeris)
    since = geometry(data, ephemeris, alpha, delta, earths=earths).arrival.since(reference)[0]
    place = np.empty((len(data), 3))
    for name, which in sfts_of(data).items():
        place[which] = detector_motion(earths[name], detector(name))[0]
    _, east, north = tangents(alpha, delta)
    slopes = (
        2 * np.pi * np.stack([since, since**2 / 2, freq * (place @ east), freq * (place @ north)])
    )
    bounds = data.group[:: len(data.detectors)]
    total = np.zeros((4, 4))
    for low, high in pairwise(bounds.tolist()):
        total += np.cov(slopes[:, low:high], aweights=data.weight[low:high], bias=True)
    return total / data.stacks
