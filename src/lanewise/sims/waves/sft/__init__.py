"""SFT files: short Fourier transforms of detectors' data, versions 2 and 3 of LIGO-T040164."""

from lanewise.sims.waves.sft.names import SftName, parse_name
from lanewise.sims.waves.sft.reading import band_bins, load_sfts
from lanewise.sims.waves.sft.sets import DetectorSfts, LeftOut, SftSet
from lanewise.sims.waves.sft.windows import Window, window_of
from lanewise.sims.waves.sft.writing import padded_comment, write_file, write_sfts

__all__ = [
    "DetectorSfts",
    "LeftOut",
    "SftName",
    "SftSet",
    "Window",
    "band_bins",
    "load_sfts",
    "padded_comment",
    "parse_name",
    "window_of",
    "write_file",
    "write_sfts",
]
