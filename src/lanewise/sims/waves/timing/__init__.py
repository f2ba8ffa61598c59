"""Times and directions: ephemerides, the Earth's rotation, the barycentre, antenna patterns."""

from lanewise.sims.waves.timing.antenna import antenna_patterns, patterns_of, turned_response
from lanewise.sims.waves.timing.arrival import (
    Arrival,
    Orbit,
    barycentre,
    detector_motion,
    detector_vectors,
    emission,
    sky_positions,
)
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
    "detector_vectors",
    "earth_state",
    "emission",
    "patterns_of",
    "sky_positions",
    "turned_response",
]
