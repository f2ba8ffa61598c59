"""What a direction changes of the SFTs, as a kernel: arrival times, their rates, and antenna
patterns.

Everything but the Shapiro delay is linear in the direction n, or in the tensors that it makes (see
`timing/arrival.py` and `timing/antenna.py`); the vectors and tensors of each SFT are brought to the
device once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

import lanewise as lw
from lanewise.sims.waves.detectors import detector
from lanewise.sims.waves.kernels import Sft
from lanewise.sims.waves.prepared import SearchData, sfts_of
from lanewise.sims.waves.timing import EarthState, detector_vectors, turned_response
from lanewise.sims.waves.timing.arrival import SHAPIRO, SUN_RADIUS
from lanewise.sims.waves.timing.ephemeris import ASTRONOMICAL_UNIT


@lw.record
class SftState:
    """An SFT at its middle, from no direction in particular.

    time: nanoseconds since the reference time. position, velocity: of `detector_vectors`,
    light-seconds and c. einstein: TDB - TT in seconds; einstein_rate. from_sun: of the Earth,
    light-seconds; from_sun_rate; distance; distance_rate. diagonal, beside: xx, yy, zz and yz, xz,
    xy of the response tensor in celestial coordinates, times the root of the noise weight.
    """

    time: lw.f64
    position: lw.dvec3
    velocity: lw.dvec3
    einstein: lw.f64
    einstein_rate: lw.f64
    from_sun: lw.dvec3
    from_sun_rate: lw.dvec3
    distance: lw.f64
    distance_rate: lw.f64
    diagonal: lw.dvec3
    beside: lw.dvec3


STATE_BYTES = 27 * 8


@lw.function
def shapiro(s: SftState, n: lw.dvec3) -> tuple[lw.f64, lw.f64]:
    """The delay in the Sun's field and its derivative."""
    along, along_rate = lw.dot(n, s.from_sun), lw.dot(n, s.from_sun_rate)
    impact = lw.sqrt(lw.max(s.distance * s.distance - along * along, 0.0))
    if impact < SUN_RADIUS and along < 0.0:  # through the Sun
        inside = along + lw.sqrt(SUN_RADIUS * SUN_RADIUS + along * along)
        rate = lw.f64(0.0)
        if impact > 0.0:
            rate = (s.distance * s.distance_rate - along * along_rate) / impact
        delay = SHAPIRO * lw.log(ASTRONOMICAL_UNIT / inside) + 2.0 * SHAPIRO * (
            1.0 - impact / SUN_RADIUS
        )
        return delay, -2.0 * SHAPIRO * rate / SUN_RADIUS
    outside = s.distance + along
    return SHAPIRO * lw.log(ASTRONOMICAL_UNIT / outside), -SHAPIRO * (
        s.distance_rate + along_rate
    ) / outside


@lw.function
def contracted(s: SftState, v: lw.dvec3, w: lw.dvec3) -> lw.f64:
    """The product v . D . w for a symmetric D."""
    mixed = lw.dvec3(v.y * w.z + v.z * w.y, v.x * w.z + v.z * w.x, v.x * w.y + v.y * w.x)
    return lw.dot(s.diagonal, v * w) + lw.dot(s.beside, mixed)


@lw.elementwise
def look(
    sft: Sft, s: SftState, directions: lw.Array2[lw.f64], number: lw.i32, duration: lw.f64
) -> None:
    """directions: sines and cosines of alpha and delta of each, which `turned` gives; number: of
    the one to look into; the duration of an SFT in seconds.

    Times are whole nanoseconds, as the definition's.
    """
    sa, ca = directions[number, 0], directions[number, 1]
    sd, cd = directions[number, 2], directions[number, 3]
    n, xi, eta = (
        lw.dvec3(cd * ca, cd * sa, sd),
        lw.dvec3(-sa, ca, 0.0),
        lw.dvec3(sd * ca, sd * sa, -cd),
    )
    delayed, delayed_rate = shapiro(s, n)
    delay = lw.dot(n, s.position) + s.einstein - delayed
    sft.delay = (s.time + lw.floor(delay * 1e9)) * 1e-9
    sft.bins_per_hertz = duration * (1.0 + lw.dot(n, s.velocity) + s.einstein_rate - delayed_rate)
    sft.a = lw.f32(contracted(s, xi, xi) - contracted(s, eta, eta))
    sft.b = lw.f32(2.0 * contracted(s, xi, eta))


def turned(alpha: float, delta: float) -> tuple[float, float, float, float]:
    """A direction in radians as `look` reads it."""
    return math.sin(alpha), math.cos(alpha), math.sin(delta), math.cos(delta)


TURNED = 4  # numbers of a direction


def states(data: SearchData, earths: Mapping[str, EarthState], reference: int) -> dict[str, Any]:
    """The fields of `SftState` for all SFTs; the reference time in GPS nanoseconds."""
    fields = {
        name: np.empty((len(data), size) if size > 1 else len(data))
        for name, size in _SIZES.items()
    }
    root = np.sqrt(data.weight)
    for name, which in sfts_of(data).items():
        earth, site = earths[name], detector(name)
        d = turned_response(earth, site) * root[which, None, None]
        distance = np.linalg.norm(earth.from_sun, axis=1)
        position, velocity = detector_vectors(earth, site)
        own = {
            "time": (earth.times - reference).astype(np.float64),
            "position": position,
            "velocity": velocity,
            "einstein": earth.einstein,
            "einstein_rate": earth.einstein_rate,
            "from_sun": earth.from_sun,
            "from_sun_rate": earth.from_sun_rate,
            "distance": distance,
            "distance_rate": np.sum(earth.from_sun * earth.from_sun_rate, axis=1) / distance,
            "diagonal": np.stack([d[:, i, i] for i in range(3)], axis=1),
            "beside": np.stack([d[:, 1, 2], d[:, 0, 2], d[:, 0, 1]], axis=1),
        }
        for field, values in own.items():
            fields[field][which] = values
    return fields


_SIZES = {
    "time": 1,
    "position": 3,
    "velocity": 3,
    "einstein": 1,
    "einstein_rate": 1,
    "from_sun": 3,
    "from_sun_rate": 3,
    "distance": 1,
    "distance_rate": 1,
    "diagonal": 3,
    "beside": 3,
}
