"""Where the detectors stand and how they answer: location in the Earth's frame and response tensor
d = (u u - v v) / 2.

Vertices by geodetic latitude, longitude and height above the ellipsoid WGS-84; arms by azimuth
(from north through east) and altitude. LIGO: W. E. Althouse, L. Jones, A. Lazzarini, LIGO-T980044,
and Rev. Sci. Instrum. 72, 3086 (2001). Virgo: VIR-023A-98.
GEO: GEO 600 survey, listed in Anderson et al., Phys. Rev. D 63, 042003 (2001). KAGRA: JGW-G1503824.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from lanewise.support.attributes import frozen, near
from lanewise.support.checks import checked
from lanewise.support.errors import InputError

SPEED_OF_LIGHT = 299_792_458.0  # m/s
_MAJOR, _FLATTENING = 6_378_137.0, 1 / 298.257223563  # WGS-84
Floats = NDArray[np.float64]


@frozen
@dataclass(frozen=True)
class Detector:
    """An interferometer. Angles in radians, height in metres.

    Attributes:
        name: two characters, as in SFT files
        latitude: geodetic, of the vertex
        longitude: positive to the east
        height: above WGS-84
        arms: azimuth from north through east and altitude of the first arm, then of the second
    """

    name: str
    latitude: float
    longitude: float
    height: float
    arms: tuple[tuple[float, float], tuple[float, float]]

    @cached_property
    def location(self) -> Floats:
        """(3,) metres from the centre of the Earth: x to longitude 0 on the equator, z to the north
        pole.
        """
        e2 = _FLATTENING * (2 - _FLATTENING)
        sine, cosine = np.sin(self.latitude), np.cos(self.latitude)
        prime = _MAJOR / np.sqrt(1 - e2 * sine**2)
        across = (prime + self.height) * cosine
        return np.array(
            [
                across * np.cos(self.longitude),
                across * np.sin(self.longitude),
                (prime * (1 - e2) + self.height) * sine,
            ]
        )

    @cached_property
    def response(self) -> Floats:
        """(3, 3) of the long-wavelength limit: the strain is sum d_ij h_ij."""
        u, v = (self._arm(*arm) for arm in self.arms)
        return (np.outer(u, u) - np.outer(v, v)) / 2

    def _arm(self, azimuth: float, altitude: float) -> Floats:
        (sb, sl), (cb, cl) = ((f(self.latitude), f(self.longitude)) for f in (np.sin, np.cos))
        east, north = np.array([-sl, cl, 0.0]), np.array([-sb * cl, -sb * sl, cb])
        up = np.array([cb * cl, cb * sl, sb])
        return (
            np.cos(altitude) * (np.sin(azimuth) * east + np.cos(azimuth) * north)
            + np.sin(altitude) * up
        )


def _made(
    name: str, latitude: float, longitude: float, height: float, *arms: tuple[float, float]
) -> Detector:
    return Detector(name, latitude, longitude, height, (arms[0], arms[1]))


DETECTORS = MappingProxyType(
    {
        d.name: d
        for d in (
            _made(
                "H1",
                0.81079526383,
                -2.08405676917,
                142.554,
                (5.65487724844, -0.0006195),
                (4.08408092164, 0.0000125),
            ),
            _made(
                "L1",
                0.53342313506,
                -1.58430937078,
                -6.574,
                (4.40317772346, -0.0003121),
                (2.83238139666, -0.0006107),
            ),
            _made(
                "V1",
                0.76151183984,
                0.18333805213,
                51.884,
                (0.33916285222, 0.0),
                (5.05155183261, 0.0),
            ),
            _made(
                "K1",
                0.6355068497,
                2.396441015,
                414.181,
                (1.054113, 0.0031414),
                (-0.5166798, -0.0036270),
            ),
            _made(
                "G1",
                0.91184982752,
                0.17116780435,
                114.425,
                (1.19360100484, 0.0),
                (5.83039279401, 0.0),
            ),
        )
    }
)
"""The detectors by their names in SFT files: LIGO Hanford and Livingston, Virgo, KAGRA, GEO 600."""


@checked(InputError)
def detector(name: str) -> Detector:
    """The detector of that name; raises InputError for a name that is not known."""
    if name not in DETECTORS:
        raise InputError(
            f"there is no detector {name!r} here{near(name, DETECTORS) or ';'} wanted one of "
            f"{', '.join(DETECTORS)}"
        )
    return DETECTORS[name]
