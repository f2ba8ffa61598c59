"""Where the Earth and the Sun are: tables of JPL's development ephemerides, or the analytical model
EPV00 of IAU SOFA.

Distances are in light-seconds, in the International Celestial Reference System, from the barycentre
of the solar system.
"""

from __future__ import annotations

import gzip
import io
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lanewise.io.source import FilePath
from lanewise.sims.waves.gps import SECOND, Times
from lanewise.support.attributes import frozen, near
from lanewise.support.checks import checked
from lanewise.support.errors import InputError
from lanewise.support.installation import install
from lanewise.support.numerals import numeral

Floats = NDArray[np.float64]
TABLES = ("DE200", "DE405", "DE421", "DE430", "DE435", "DE436", "DE440")
MODEL = "EPV00"
ASTRONOMICAL_UNIT = 499.00478383615643  # light-seconds: 149597870700 m / c
DAY = 86400.0
TT_MINUS_GPS = 51.184  # seconds


class MovingBody(Protocol):
    """Something that moves."""

    def at(self, times: Times) -> tuple[Floats, Floats]:
        """Positions and velocities at (n,) GPS times in nanoseconds: (n, 3) each, in light-seconds
        and c. Raises InputError.
        """
        ...


@frozen
@dataclass(frozen=True, slots=True, eq=False)
class EphemerisTable:
    """Positions, velocities and accelerations in equal steps, continued from the nearest row to
    second order.

    Attributes:
        source: what it was read from, for errors
        start: GPS seconds of the first row
        step: seconds
        rows: (n, 9): light-seconds, c, c a second
    """

    source: str
    start: float
    step: float
    rows: Floats

    def at(self, times: Times) -> tuple[Floats, Floats]:
        """See `MovingBody`. Raises InputError for times that the table does not cover."""
        since = times // SECOND - self.start
        row = np.floor(since / self.step + 0.5).astype(np.int64)
        if len(row) and (row.min() < 0 or row.max() >= len(self.rows)):
            end = self.start + self.step * (len(self.rows) - 1)
            raise InputError(
                f"{self.source} covers GPS {self.start:.0f} to {end:.0f}; "
                f"the data need {int(times.min()) // SECOND} to {-(-int(times.max()) // SECOND)}"
            )
        t = (since - row * self.step + (times % SECOND) * 1e-9)[:, None]
        x, v, a = self.rows[row, 0:3], self.rows[row, 3:6], self.rows[row, 6:9]
        return x + v * t + a * t**2 / 2, v + a * t


@lru_cache(maxsize=2)
def _epv00(days: bytes) -> tuple[Any, Any]:
    """Heliocentric and barycentric Earth at float64 days since J2000. The last two are kept: Earth
    and Sun ask for the same.
    """
    import erfa  # pyright: ignore[reportMissingImports]  # of the extra `waves`

    heliocentric, barycentric = erfa.epv00(2_451_545.0, np.frombuffer(days))
    return heliocentric, barycentric


@frozen
@dataclass(frozen=True, slots=True)
class Model:
    """EPV00 of IAU SOFA in the package pyerfa, 1900 to 2100. body: "earth" or "sun".

    Within 41 microseconds (12 km) and 4e-11 c of DE405 from 2000 to 2040, measured.
    """

    body: str

    def at(self, times: Times) -> tuple[Floats, Floats]:
        """See `MovingBody`."""
        day = -7300.5 + (times * 1e-9 + TT_MINUS_GPS) / DAY  # TT; TDB differs by 2 ms
        if len(day) and abs(day).max() > 36525.0:
            raise InputError(
                f"{MODEL} is a fit for the years 1900 to 2100; the data lie outside of it"
            )
        heliocentric, barycentric = _epv00(np.ascontiguousarray(day, np.float64).tobytes())
        x, v = (np.asarray(barycentric[k]) for k in ("p", "v"))
        if self.body == "sun":
            x, v = x - heliocentric["p"], v - heliocentric["v"]
        return x * ASTRONOMICAL_UNIT, v * (ASTRONOMICAL_UNIT / DAY)


@frozen
@dataclass(frozen=True, slots=True, eq=False)
class Ephemeris:
    """The Earth and the Sun. Two ephemerides must not be mixed in one search: DE440 and DE405
    differ by 0.4 ms.
    """

    name: str
    earth: MovingBody
    sun: MovingBody

    @staticmethod
    @checked(InputError)
    def load(name: str = "DE405") -> Ephemeris:
        """An ephemeris by its name.

        "DE405" and the others of `TABLES` are read from the package solar_system_ephemerides, which
        must be installed; they cover 2000 to 2040. "EPV00" needs only pyerfa and is less accurate:
        41 microseconds, which is 0.03 rad of phase at 100 Hz and 0.3 rad at 1 kHz. It is used only
        if you name it. Raises InputError for unknown names and missing packages.
        """
        if name == MODEL:
            if find_spec("erfa") is None:
                raise InputError(f"{MODEL} needs the package pyerfa: {install('waves')}")
            return Ephemeris(MODEL, Model("earth"), Model("sun"))
        if name not in TABLES:
            names = (*TABLES, MODEL)
            raise InputError(
                f"there is no ephemeris {name!r}{near(name, names) or ';'} wanted one of "
                f"{', '.join(names)}"
            )
        folder = _folder(name)
        years = "00-40"
        return Ephemeris.from_files(
            folder / "earth" / f"earth{years}-{name}.dat.gz",
            folder / "sun" / f"sun{years}-{name}.dat.gz",
            name,
        )

    @staticmethod
    @checked(InputError)
    def from_files(earth: FilePath, sun: FilePath, name: str = "") -> Ephemeris:
        """Tables in the text format of LALPulsar, packed by gzip or not: comments (#), "start step
        rows", rows of ten numbers.
        """
        return Ephemeris(name or Path(earth).name, *(read_table(Path(p)) for p in (earth, sun)))


def _folder(name: str) -> Path:
    spec = find_spec("solar_system_ephemerides")
    if spec is None or not spec.submodule_search_locations:
        raise InputError(
            f"{name} needs the tables of the package solar_system_ephemerides: {install('waves')}. "
            f"{MODEL} is there without them, within 41 microseconds of DE405"
        )
    return Path(next(iter(spec.submodule_search_locations))) / "ephemerides"


@lru_cache(maxsize=4)
def read_table(path: Path) -> EphemerisTable:
    """A table from a file; the last four are kept.

    Raises InputError for a file that is missing or no table.
    """
    try:
        raw = path.read_bytes()
        raw = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
    except (OSError, EOFError) as error:
        raise InputError(f"{path}: the table cannot be read: {error}") from error
    start = raw.rfind(b"\n#") + 1
    body = io.BytesIO(raw[start:])
    line = body.readline()
    while line.startswith(b"#"):
        line = body.readline()
    try:
        first, step, count = (float(x) for x in line.split())
        rows = np.loadtxt(body, ndmin=2)
    except ValueError as error:
        raise InputError(f"{path}: not a table of an ephemeris: {error}") from error
    steps = first + step * np.arange(len(rows))
    if rows.shape != (int(count), 10) or not np.array_equal(rows[:, 0], steps):
        raise InputError(
            f"{path}: not a table of an ephemeris: wanted {count:.0f} rows of ten numbers every "
            f"{numeral(step)} s"
        )
    return EphemerisTable(str(path), first, step, np.ascontiguousarray(rows[:, 1:]))
