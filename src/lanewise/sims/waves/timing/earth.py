"""The Earth at a time, whatever the source: its orbit, its rotation, its clocks.

Sidereal time is that of IAU 1982 with UTC for UT1, precession that of IAU 1976, nutation its two
largest terms: the Explanatory Supplement to the Astronomical Almanac (1992), p. 50, eq. 3.212 and
p. 120. TDB - TT is the series of Fairhead and Bretagnon, A&A 229, 240 (1990), as far as the
programs Tempo and LALPulsar take it: 40 terms, five of them in the derivative.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lanewise.sims.waves.gps import SECOND, Times, leap_seconds
from lanewise.sims.waves.timing.ephemeris import DAY, TT_MINUS_GPS, Ephemeris
from lanewise.support.attributes import frozen
from lanewise.support.checks import checked, shown
from lanewise.support.errors import InputError

Floats = NDArray[np.float64]
CENTURY = 36525.0  # days
GPS_2000 = 630_720_013  # GPS seconds of 2000-01-01 00:00:00 UTC
LEAPS_2000 = 13
ROTATION = 7.29211510e-5  # rad/s
OBLIQUITY = 0.40909280422232891  # of the ecliptic at J2000, radians
ARC_SECOND = np.pi / 648_000

# Amplitude in microseconds, radians a Julian millennium, phase in radians.
EINSTEIN = np.array([
    (1656.674564, 6283.075849991, 6.240054195), (22.417471, 5753.384884897, 4.296977442),
    (13.839792, 12566.151699983, 6.196904410), (4.676740, 6069.776754553, 4.021195093),
    (1.554905, 77713.771467920, 5.198467090),
    (4.770086, 529.690965095, 0.444401603), (2.256707, 213.299095438, 5.543113262),
    (1.694205, -3.523118349, 5.025132748), (1.276839, 7860.419392439, 5.988822341),
    (1.193379, 5223.693919802, 3.649823730), (1.115322, 3930.209696220, 1.422745069),
    (0.794185, 11506.769769794, 2.322313077), (0.447061, 26.298319800, 3.615796498),
    (0.435206, -398.149003408, 4.349338347), (0.600309, 1577.343542448, 2.678271909),
    (0.496817, 6208.294251424, 5.696701824), (0.486306, 5884.926846583, 0.520007179),
    (0.432392, 74.781598567, 2.435898309), (0.468597, 6244.942814354, 5.866398759),
    (0.375510, 5507.553238667, 4.103476804), (0.243085, -775.522611324, 3.651837925),
    (0.173435, 18849.227549974, 6.153743485), (0.230685, 5856.477659115, 4.773852582),
    (0.203747, 12036.460734888, 4.333987818), (0.143935, -796.298006816, 5.957517795),
    (0.159080, 10977.078804699, 1.890075226), (0.119979, 38.133035638, 4.551585768),
    (0.118971, 5486.777843175, 1.914547226), (0.116120, 1059.381930189, 0.873504123),
    (0.137927, 11790.629088659, 1.135934669), (0.098358, 2544.314419883, 0.092793886),
    (0.101868, -5573.142801634, 5.984503847), (0.080164, 206.185548437, 2.095377709),
    (0.079645, 4694.002954708, 2.949233637), (0.062617, 20.775395492, 2.654394814),
    (0.075019, 2942.463423292, 4.980931759), (0.064397, 5746.271337896, 1.280308748),
    (0.063814, 5760.498431898, 4.167901731), (0.048042, 2146.165416475, 1.495846011),
    (0.048373, 155.420399434, 2.251573730),
])  # fmt: skip
IN_THE_DERIVATIVE = 5  # of the terms, the first ones: the others are below 1e-12


@frozen
@dataclass(frozen=True, slots=True, eq=False)
class EarthState:
    """The Earth at n times.

    Attributes:
        times: (n,) GPS, int64 nanoseconds
        position: (n, 3) of its centre, light-seconds from the barycentre; velocity: (n, 3), c
        from_sun: (n, 3) from the Sun's centre, light-seconds; from_sun_rate: (n, 3), c
        mean_sidereal: (n,) Greenwich mean sidereal time, radians; apparent_sidereal: with the
          equation of the equinoxes
        zeta, z, theta: (n,) angles of precession since J2000, radians
        in_longitude: (n,) nutation, radians; in_obliquity: likewise
        einstein: (n,) TDB - TT, seconds; einstein_rate: its derivative
    """

    times: Times
    position: Floats
    velocity: Floats
    from_sun: Floats
    from_sun_rate: Floats
    mean_sidereal: Floats
    apparent_sidereal: Floats
    zeta: Floats
    z: Floats
    theta: Floats
    in_longitude: Floats
    in_obliquity: Floats
    einstein: Floats
    einstein_rate: Floats


@checked(InputError)
def earth_state(ephemeris: Ephemeris, times: Times) -> EarthState:
    """The Earth at (n,) GPS times in nanoseconds; raises InputError for times that the ephemeris
    does not cover.
    """
    if times.dtype != np.int64 or times.ndim != 1:
        raise InputError(
            f"times are {shown(times)}; wanted (n,) int64: GPS nanoseconds, see gps_time"
        )
    position, velocity = ephemeris.earth.at(times)
    sun, sun_velocity = ephemeris.sun.at(times)
    century, mean = mean_sidereal_time(times)
    longitude, obliquity = _nutation(times)
    einstein, einstein_rate = _einstein(times)
    return EarthState(
        times,
        position,
        velocity,
        position - sun,
        velocity - sun_velocity,
        mean,
        mean + longitude * np.cos(OBLIQUITY),
        century * (2306.2181 + (0.30188 + 0.017998 * century) * century) * ARC_SECOND,
        century * (2306.2181 + (1.09468 + 0.018203 * century) * century) * ARC_SECOND,
        century * (2004.3109 - (0.42665 + 0.041833 * century) * century) * ARC_SECOND,
        longitude,
        obliquity,
        einstein,
        einstein_rate,
    )


def mean_sidereal_time(times: Times) -> tuple[Floats, Floats]:
    """Julian centuries of UT1 since J2000 (2000-01-01 12:00), and Greenwich mean sidereal time in
    radians. UTC stands for UT1.
    """
    seconds = times // SECOND - GPS_2000 - (leap_seconds(times) - LEAPS_2000)
    now = (seconds + (times % SECOND) * 1e-9 - DAY / 2) / (DAY * CENTURY)
    midnight = (np.floor(seconds / DAY) - 0.5) / CENTURY
    at_midnight = 24110.54841 + midnight * (
        8640184.812866 + midnight * (0.093104 - 6.2e-6 * midnight)
    )
    rate = DAY * CENTURY + 8640184.812866 + 0.093104 * (now + midnight)
    rate -= 6.2e-6 * (now**2 + now * midnight + midnight**2)
    return now, (at_midnight + (now - midnight) * rate) * np.pi / 43200


def _nutation(times: Times) -> tuple[Floats, Floats]:
    """In longitude and in obliquity, radians."""
    days = (times // SECOND - GPS_2000 - DAY / 2) / DAY
    node, sun = np.radians(125.0 - 0.05295 * days), np.radians(200.9 + 1.97129 * days)
    longitude = -0.0048 * np.sin(node) - 0.0004 * np.sin(sun)
    return np.radians(longitude), np.radians(0.0026 * np.cos(node) + 0.0002 * np.cos(sun))


def _einstein(times: Times) -> tuple[Floats, Floats]:
    """TDB - TT in seconds, and its derivative."""
    millennia = (-7300.5 + (times // SECOND + TT_MINUS_GPS + (times % SECOND) * 1e-9) / DAY) / (
        10 * CENTURY
    )
    amplitude, rate, phase = EINSTEIN.T
    argument = millennia[:, None] * rate + phase
    some = slice(IN_THE_DERIVATIVE)
    derivative = (amplitude * rate)[some] * np.cos(argument[:, some])
    return 1e-6 * np.sin(argument) @ amplitude, 1e-6 * derivative.sum(axis=1) / (DAY * 10 * CENTURY)
