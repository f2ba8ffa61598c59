"""When a wave front that passes a detector passes the barycentre of the solar system.

t_SSB = t + Roemer (n . r_Earth) + rotation (n . r_site) + Einstein - Shapiro; all distances in
light-seconds. The steps and constants are those of LALPulsar (Cutler), to which results agree to 2
ns; its accuracy against better timing programs is some microseconds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lanewise.sims.waves.detectors import SPEED_OF_LIGHT, Detector
from lanewise.sims.waves.gps import Times
from lanewise.sims.waves.ranges import check_settings, numbers_of
from lanewise.sims.waves.timing.earth import OBLIQUITY, ROTATION, EarthState
from lanewise.sims.waves.timing.ephemeris import ASTRONOMICAL_UNIT
from lanewise.support.attributes import frozen
from lanewise.support.checks import checked
from lanewise.support.errors import InputError
from lanewise.support.numerals import numeral, numerals

Floats = NDArray[np.float64]
SHAPIRO = 9.852e-6  # 2 G M / c^3 of the Sun, seconds
SUN_RADIUS = 2.322  # light-seconds


@frozen
@dataclass(frozen=True, slots=True, eq=False)
class Arrival:
    """Arrivals at the barycentre (or emissions, with an orbit added) of p sky positions at n times.

    Attributes:
        time: (p, n) int64, TDB as GPS nanoseconds, rounded down to whole ones
        extra: (p, n) seconds to add: what an orbit adds, zero without one
        rate: (p, n) d time / dt at the detector
    """

    time: Times
    extra: Floats
    rate: Floats

    def since(self, reference: int) -> Floats:
        """(p, n) seconds since a reference time in GPS nanoseconds."""
        return (self.time - reference) * 1e-9 + self.extra


def sky_vectors(alpha: Floats, delta: Floats) -> Floats:
    """(p, 3) unit vectors to right ascensions and declinations in radians."""
    return np.stack(
        [np.cos(delta) * np.cos(alpha), np.cos(delta) * np.sin(alpha), np.sin(delta)], axis=-1
    )


@checked(InputError)
def barycentre(
    earth: EarthState,
    detector: Detector,
    alpha: ArrayLike,
    delta: ArrayLike,
    *,
    newtonian: bool = False,
) -> Arrival:
    """Times of arrival at the barycentre, for every sky position (radians) and every time of
    `earth`.

    newtonian: t + n . r_detector alone, some milliseconds off (for comparison, and as other
    programs have it). Raises InputError for declinations beyond the poles.
    """
    alpha, delta = sky_positions(alpha, delta)
    n = sky_vectors(alpha, delta)
    site = _Site.of(detector)
    if newtonian:
        position, velocity = site.orbiting(earth)
        delay, rate = n @ position.T, 1 + n @ velocity.T
    else:
        turned, turned_rate = site.rotation(earth, alpha[:, None], delta[:, None])
        delayed, delayed_rate = _shapiro(earth, n)
        delay = n @ earth.position.T + turned + earth.einstein - delayed
        rate = 1 + n @ earth.velocity.T + turned_rate + earth.einstein_rate - delayed_rate
    time = earth.times + np.floor(delay * 1e9).astype(np.int64)
    return Arrival(time, np.zeros(time.shape), rate)


def sky_positions(alpha: ArrayLike, delta: ArrayLike) -> tuple[Floats, Floats]:
    """Checked, float64, one-dimensional and of one length."""
    both = (
        np.atleast_1d(numbers_of(f"{n} of the sky positions", x))
        for n, x in (("alpha", alpha), ("delta", delta))
    )
    try:
        a, d = np.broadcast_arrays(*both)
    except ValueError as error:
        raise InputError(
            f"alpha and delta of the sky positions have no common length: {error}"
        ) from error
    if a.ndim != 1:
        raise InputError(f"sky positions have the shape {a.shape}; wanted one dimension")
    if not (np.isfinite(a).all() and np.isfinite(d).all() and (abs(d) <= np.pi / 2).all()):
        bad = int(np.flatnonzero(~(np.isfinite(a) & (abs(d) <= np.pi / 2)))[0])
        raise InputError(
            f"sky position {bad} is alpha = {a[bad]}, delta = {d[bad]}; wanted finite radians, "
            "delta within -pi/2 to pi/2"
        )
    return a, d


@dataclass(frozen=True, slots=True)
class _Site:
    """A detector in geocentric coordinates: light-seconds along the axis and across it, and
    longitude.
    """

    along: float
    across: float
    longitude: float

    @staticmethod
    def of(detector: Detector) -> _Site:
        x, y, z = (float(q) for q in detector.location / SPEED_OF_LIGHT)
        return _Site(z, float(np.hypot(x, y)), float(np.arctan2(y, x)))

    def rotation(self, earth: EarthState, alpha: Floats, delta: Floats) -> tuple[Floats, Floats]:
        """The delay n . r_site and its derivative.

        The source is precessed and nutated, not the axis (Suppl. 3.212-2, 3.225-2).
        """
        sine, cosine = np.sin(alpha + earth.zeta), np.cos(alpha + earth.zeta)
        y = sine * np.cos(delta)
        x = cosine * np.cos(earth.theta) * np.cos(delta) - np.sin(earth.theta) * np.sin(delta)
        z = cosine * np.sin(earth.theta) * np.cos(delta) + np.cos(earth.theta) * np.sin(delta)
        longitude, obliquity = earth.in_longitude, earth.in_obliquity
        equator = np.cos(delta) * np.cos(alpha), np.cos(delta) * np.sin(alpha), np.sin(delta)
        dx = -longitude * (equator[1] * np.cos(OBLIQUITY) + equator[2] * np.sin(OBLIQUITY))
        dy = equator[0] * np.cos(OBLIQUITY) * longitude - equator[2] * obliquity
        dz = equator[0] * np.sin(OBLIQUITY) * longitude + equator[1] * obliquity
        local = earth.apparent_sidereal + self.longitude
        precessed = local - earth.z
        to_source = (
            np.cos(precessed) * x + np.sin(precessed) * y + np.cos(local) * dx + np.sin(local) * dy
        )
        ahead = (
            -np.sin(precessed) * x + np.cos(precessed) * y - np.sin(local) * dx + np.cos(local) * dy
        )
        return self.along * (z + dz) + self.across * to_source, ROTATION * self.across * ahead

    def orbiting(self, earth: EarthState) -> tuple[Floats, Floats]:
        """Position and velocity of the detector, (n, 3) each; with apparent sidereal time, without
        precession and nutation.
        """
        local = earth.apparent_sidereal + self.longitude
        still = np.zeros_like(local)
        position = np.stack(
            [self.across * np.cos(local), self.across * np.sin(local), still + self.along], axis=-1
        )
        turning = np.stack([-np.sin(local), np.cos(local), still], axis=-1)
        return earth.position + position, earth.velocity + ROTATION * self.across * turning


def detector_motion(earth: EarthState, detector: Detector) -> tuple[Floats, Floats]:
    """Position and velocity of a detector, (n, 3) each, light-seconds and c; without precession and
    nutation (10 microseconds, 1e-9 c).
    """
    return _Site.of(detector).orbiting(earth)


def detector_vectors(earth: EarthState, detector: Detector) -> tuple[Floats, Floats]:
    """What a direction n is multiplied by: the delay is n . position but for Einstein's and
    Shapiro's, its derivative n . velocity; (n, 3).

    Other than `detector_motion` with precession and nutation, which are linear in n.
    """
    axes = np.array([0.0, np.pi / 2, 0.0])[:, None], np.array([0.0, 0.0, np.pi / 2])[:, None]
    turned, turned_rate = _Site.of(detector).rotation(earth, *axes)
    return earth.position + turned.T, earth.velocity + turned_rate.T


def _shapiro(earth: EarthState, n: Floats) -> tuple[Floats, Floats]:
    """The delay in the Sun's field and its derivative, (p, times) each: a ray at the centre of the
    Earth, or one through the Sun.
    """
    distance = np.linalg.norm(earth.from_sun, axis=1)
    distance_rate = np.sum(earth.from_sun * earth.from_sun_rate, axis=1) / distance
    along, along_rate = n @ earth.from_sun.T, n @ earth.from_sun_rate.T
    impact = np.sqrt(np.maximum(distance**2 - along**2, 0.0))
    through = (impact < SUN_RADIUS) & (along < 0)
    outside = np.where(through, 1.0, distance + along)
    delay = SHAPIRO * np.log(ASTRONOMICAL_UNIT / outside)
    rate = -SHAPIRO * (distance_rate + along_rate) / outside
    if through.any():
        inside = along + np.sqrt(SUN_RADIUS**2 + along**2)
        delay = np.where(
            through,
            SHAPIRO * np.log(ASTRONOMICAL_UNIT / inside) + 2 * SHAPIRO * (1 - impact / SUN_RADIUS),
            delay,
        )
        nonzero = np.where(impact > 0, impact, 1.0)
        impact_rate = np.where(
            impact > 0, (distance * distance_rate - along * along_rate) / nonzero, 0.0
        )
        rate = np.where(through, -2 * SHAPIRO * impact_rate / SUN_RADIUS, rate)
    return delay, rate


@frozen
@dataclass(frozen=True, slots=True)
class Orbit:
    """The orbit of a source round a companion (Kepler's), as LALPulsar parametrises it.

    Attributes:
        size: projected semi-major axis, light-seconds (a sin i)
        period: seconds
        periapsis: GPS nanoseconds at which it passed there, in its own time
        eccentricity: 0 to below 1
        argument: of periapsis, radians
    """

    size: float
    period: float
    periapsis: int
    eccentricity: float = 0.0
    argument: float = 0.0

    def __post_init__(self) -> None:
        """Raises InputError for values that no orbit has."""
        check_settings(self)
        if not 0 <= self.eccentricity < 1:
            eccentricity, _ = numerals(self.eccentricity, 1)
            raise InputError(f"eccentricity is {eccentricity}; wanted 0 to below 1")
        if 2 * np.pi / self.period * self.size >= 1 - self.eccentricity:
            raise InputError(
                f"an orbit of {numeral(self.size)} light-seconds in {numeral(self.period)} s is as "
                "fast as light; wanted 2 pi size / period < 1 - e"
            )


@checked(InputError)
def emission(arrival: Arrival, orbit: Orbit) -> Arrival:
    """From arrivals at the barycentre to emissions: t_SSB = t_em + R(t_em) (LIGO-T1600531).

    The eccentric anomaly E solves x = E + A sin E + B (cos E - 1), x = 2 pi (t_SSB - T_p) / P, and
    the rate is multiplied by (1 - e cos E) / (1 + A cos E - B sin E).
    """
    e, w = orbit.eccentricity, 2 * np.pi / orbit.period
    root = np.sqrt(1 - e**2)
    a = w * orbit.size * np.cos(orbit.argument) * root - e
    b = w * orbit.size * np.sin(orbit.argument)
    observed = orbit.size * np.sin(orbit.argument) * (1 - e)
    x = np.mod(w * (arrival.since(orbit.periapsis) - observed), 2 * np.pi)
    low, high = np.zeros_like(x), np.full_like(x, 2 * np.pi)
    anomaly = x.copy()
    # Newton's steps, which fall back on bisection where they leave the bracket: x grows with E.
    for _ in range(60):
        value = anomaly + a * np.sin(anomaly) + b * (np.cos(anomaly) - 1) - x
        low, high = np.where(value < 0, anomaly, low), np.where(value > 0, anomaly, high)
        step = anomaly - value / (1 + a * np.cos(anomaly) - b * np.sin(anomaly))
        new = np.where((step >= low) & (step <= high), step, (low + high) / 2)
        if np.allclose(new, anomaly, rtol=0, atol=1e-15):
            break
        anomaly = new
    sine, cosine = np.sin(anomaly), np.cos(anomaly)
    away = orbit.size * (
        np.sin(orbit.argument) * (cosine - e) + np.cos(orbit.argument) * sine * root
    )
    rate = arrival.rate * (1 - e * cosine) / (1 + a * cosine - b * sine)
    return replace(arrival, extra=arrival.extra - away, rate=rate)
