"""What is searched, in a form that goes to other processes; with its data loaded; and what two
searches differ in.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from lanewise.io.documents import digest_of
from lanewise.profiling import stage
from lanewise.sims.common.devices import is_gpu
from lanewise.sims.waves.hierarchical_setup import METHODS, Grids, Search, search_cover, set_up
from lanewise.sims.waves.prepared import search_margin
from lanewise.sims.waves.ranges import check_values
from lanewise.sims.waves.sft import DetectorSfts, LeftOut
from lanewise.sims.waves.sft.reading import load_band
from lanewise.sims.waves.timing import Ephemeris
from lanewise.support.attributes import frozen, near
from lanewise.support.checks import check_fields
from lanewise.support.errors import InputError

Configuration = Mapping[str, Any]
METHOD = 1  # raised when the same configuration gives other candidates than before


@frozen
@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A search of files: everything that decides its candidates, and the device, which decides no
    more than float32 sums do.

    Attributes:
        sfts: patterns of SFT files, which all workers can read
        sky: directions: alpha and delta, radians
        ephemeris: by name
        most: length of the list of candidates
        skip_bad: whether damaged SFTs are left out
        method: "demod", or "resamp": F by Fourier transforms, on the host
        device: that computes, "numpy" being the definition in float64; checkpoints go from one to
          another
    """

    sfts: tuple[str, ...]
    search: Search
    sky: tuple[tuple[float, float], ...]
    ephemeris: str = "DE405"
    most: int = 100
    skip_bad: bool = False
    method: str = "demod"
    device: str = "numpy"

    def __post_init__(self) -> None:
        check_fields(self, InputError)

    @property
    def on_gpu(self) -> bool:
        """Whether a GPU computes it."""
        return self.device != "numpy" and is_gpu(self.device)

    @property
    def divides_bands(self) -> bool:
        """Whether its units may be parts of a band. Demodulation gives the same F in a part;
        transforms depend on the whole band.
        """
        return self.method == "demod"

    def load(self) -> Ready:
        """Read the data and set up the grids. Raises InputError for what does not fit together."""
        if not self.sky:
            raise InputError(
                "there are no directions to search; wanted at least one (alpha, delta)"
            )
        if self.method not in METHODS:
            raise InputError(
                f"method is {self.method!r}{near(self.method, METHODS) or ';'} wanted one of "
                f"{', '.join(METHODS)}"
            )
        for axis, name in enumerate(("alpha", "delta")):
            check_values("point", name, np.array(self.sky, np.float64)[:, axis])
        if self.most < 1:
            raise InputError(f"a list of {self.most} candidates is requested; wanted at least 1")
        with stage("input", name="SFTs"):
            sfts = load_band(
                list(self.sfts),
                partial(search_cover, self.search),  # the bins depend on the times
                margin=search_margin(self.search.dterms, self.search.window),
                skip_bad=self.skip_bad,
            )
        with stage("setup", name="noise and grids"):
            grids = set_up(sfts, self.search)
        configuration = {
            "method": METHOD,
            "f": self.method,
            "ephemeris": self.ephemeris,
            "candidates": self.most,
            **_plain(asdict(self.search)),
            "sky": f"{len(self.sky)} directions, {_sum(np.array(self.sky, '<f8').tobytes())}",
            "detectors": list(sfts.names),
            **{f"data of {d.detector}": _data(d) for d in sfts},
        }
        with stage("input", name="ephemeris"):
            ephemeris = Ephemeris.load(self.ephemeris)
        return Ready(self, grids, ephemeris, configuration, sfts.left_out)


@frozen
@dataclass(frozen=True, slots=True, eq=False)
class Ready:
    """A job with its data. configuration: what decides the candidates, as JSON has it; left_out:
    damaged SFTs.
    """

    job: Job
    grids: Grids
    ephemeris: Ephemeris
    configuration: Configuration
    left_out: tuple[LeftOut, ...]

    @property
    def digest(self) -> str:
        """SHA-256 of the configuration."""
        return digest_of(self.configuration)


def differences(here: Configuration, there: Configuration) -> str:
    """What two configurations differ in, in words."""
    names = [n for n in dict.fromkeys([*here, *there]) if here.get(n) != there.get(n)]
    return "; ".join(f"{n} is {_text(here, n)} here and {_text(there, n)} there" for n in names)


def _text(values: Configuration, name: str) -> str:
    return json.dumps(values[name]) if name in values else "absent"


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    return {n: list(v) if isinstance(v, tuple) else v for n, v in values.items()}  # pyright: ignore[reportUnknownArgumentType]


def _data(d: DetectorSfts) -> str:
    """The SFTs of a detector and the sum of what is read of them: times and bins, as they are in
    the files.
    """
    content = (
        d.start.astype("<i8").tobytes(),
        str(d.first_bin).encode(),
        d.data.astype("<c8").tobytes(),
    )
    return f"{len(d)} SFTs of {d.bins} bins, {_sum(*content)}"


def _sum(*content: bytes) -> str:
    digest = hashlib.sha256()
    for part in content:
        digest.update(part)
    return digest.hexdigest()[:16]
