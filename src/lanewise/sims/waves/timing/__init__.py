"""Times and directions: ephemerides, the Earth's rotation, the barycentre, antenna patterns."""

from lanewise.sims.waves.timing.antenna import antenna_patterns
from lanewise.sims.waves.timing.arrival import Arrival, Orbit, barycentre, detector_motion, emission
from lanewise.sims.waves.timing.earth import EarthState, earth_state
from lanewise.sims.waves.timing.ephemeris import Ephemeris

__all__ = [
    "Arrival",
    "EarthState",
    "Ephemeris",
    "Orbit",
    "antenna_patterns",
    "barycentre",
    "detector_motion",
    "earth_state",
    "emission",
]
