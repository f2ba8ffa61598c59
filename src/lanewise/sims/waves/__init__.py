"""The search for continuous gravitational waves: SFT files, noise, barycentring, F-statistic, Hough
maps, and synthetic data.

What takes `device` runs kernels there; "numpy", the default, is float64 in NumPy: what kernels are
compared with. Frequencies are in Hz, angles in radians, durations in seconds; times are GPS in
int64 nanoseconds (`gps_time`), unless a name says seconds.
"""

from lanewise.sims.waves.definition import FStatistic
from lanewise.sims.waves.demodulation import Atoms, atoms, f_statistic
from lanewise.sims.waves.detectors import DETECTORS, Detector, detector
from lanewise.sims.waves.gps import gps_time, leap_seconds
from lanewise.sims.waves.hierarchical import MapSearch, hierarchical_search, hough_maps, search_maps
from lanewise.sims.waves.hierarchical_setup import Maps, Search, search_cover, set_up
from lanewise.sims.waves.kernels import Method as KernelMethod
from lanewise.sims.waves.lost import SignalLossWarning
from lanewise.sims.waves.prepared import (
    Geometry,
    SearchData,
    geometry,
    prepare,
    search_margin,
    split,
)
from lanewise.sims.waves.refinement import follow_up
from lanewise.sims.waves.resampling import Band, Choice, choose_method, f_statistic_band
from lanewise.sims.waves.sft import (
    DetectorSfts,
    LeftOut,
    SftName,
    SftSet,
    Window,
    load_sfts,
    parse_name,
    write_file,
    write_sfts,
)
from lanewise.sims.waves.sky import Cap, Rectangle, isotropic_sky, uniform_sky
from lanewise.sims.waves.synthesis import Signal, make_data
from lanewise.sims.waves.templates import Templates
from lanewise.sims.waves.timing import (
    Arrival,
    EarthState,
    Ephemeris,
    Orbit,
    antenna_patterns,
    barycentre,
    earth_state,
    emission,
)

__all__ = [
    "DETECTORS",
    "Arrival",
    "Atoms",
    "Band",
    "Cap",
    "Choice",
    "Detector",
    "DetectorSfts",
    "EarthState",
    "Ephemeris",
    "FStatistic",
    "Geometry",
    "KernelMethod",
    "LeftOut",
    "MapSearch",
    "Maps",
    "Orbit",
    "Rectangle",
    "Search",
    "SearchData",
    "SftName",
    "SftSet",
    "Signal",
    "SignalLossWarning",
    "Templates",
    "Window",
    "antenna_patterns",
    "atoms",
    "barycentre",
    "choose_method",
    "detector",
    "earth_state",
    "emission",
    "f_statistic",
    "f_statistic_band",
    "follow_up",
    "geometry",
    "gps_time",
    "hierarchical_search",
    "hough_maps",
    "isotropic_sky",
    "leap_seconds",
    "load_sfts",
    "make_data",
    "parse_name",
    "prepare",
    "search_cover",
    "search_maps",
    "search_margin",
    "set_up",
    "split",
    "uniform_sky",
    "write_file",
    "write_sfts",
]
