"""The options of `lanewise waves`.

Those of `fstat` and `run` that mean the same are declared once.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lanewise.sims.common.completion import DEVICES
from lanewise.sims.common.options import (
    JSON,
    METHOD,
    OUTPUT,
    OVERWRITE,
    PROFILE,
    PROFILE_TRACE,
    Option,
    setting,
)
from lanewise.sims.waves.commands.arguments import gps, low_and_width, number, pair
from lanewise.sims.waves.units import SECONDS

DATA, BAND, UNITS = "Data", "Band instead of --templates", "Work units"
EPHEMERIS = Option(
    METHOD,
    "NAME",
    "DE405 and others with the tables installed, or EPV00 (default {default})",
    values=("DE405", "EPV00"),
)
SQRT_S = Option(
    DATA, "X,...", "assumed sqrt(S) in 1/sqrt(Hz), one per detector in the order of their names"
)
PLOT = Option(OUTPUT, "FILE.png", "a picture of the results")


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """Which SFTs are read, and what is needed to understand them."""

    sfts: list[str] | None = setting(
        None, Option(DATA, "PATTERN", "SFT files, such as 'dir/*.sft'; may be repeated (required)")
    )
    skip_bad: bool = setting(False, Option(DATA, "", "leave damaged SFTs out and list them"))
    ref_time: int = setting(
        0,
        Option(
            METHOD,
            "GPS",
            "reference time of frequencies, seconds (required)",
            parse=lambda text: gps(text, "--ref-time"),
        ),
    )
    ephemeris: str = setting("DE405", EPHEMERIS)
    dterms: int = setting(
        8, Option(METHOD, "N", "terms of the kernel on each side (default {default})")
    )
    device: str = setting(
        "cpu",
        Option(
            METHOD,
            "NAME",
            "cpu, cuda, cuda:1, ...; of run cuda:*, cuda:0,2 or cpu*2, a worker on each; or numpy: "
            "the definition in float64 (default {default})",
            values=(*DEVICES, "numpy"),
        ),
    )


# ------------------------------------------------------------ make-data


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What `make-data` makes."""

    out: Path | None = setting(
        None,
        Option(
            OUTPUT,
            "FOLDER",
            "where the files go, one per detector; created if needed (required)",
        ),
    )
    band: tuple[float, float] = setting(
        (0.0, 0.0),
        Option(
            DATA, "LOW,HIGH", "of the SFTs, Hz (required)", parse=lambda text: pair(text, "--band")
        ),
    )
    start: int = setting(
        0,
        Option(
            DATA,
            "GPS",
            "start of the first SFT, seconds (required)",
            parse=lambda text: gps(text, "--start"),
        ),
    )
    sfts: int = setting(0, Option(DATA, "N", "consecutive SFTs per detector (required)"))
    detectors: str = setting(
        "H1,L1", Option(DATA, "NAMES", "with commas between (default {default})")
    )
    duration: float = setting(1800.0, Option(DATA, "X", "of an SFT, seconds (default {default})"))
    sqrt_s: str | None = setting(None, SQRT_S)
    signal: list[str] | None = setting(
        None,
        Option(
            DATA,
            "K=V,...",
            "h0, cosi, psi, phi0, freq, alpha, delta, f1dot, f2dot, f3dot; may be repeated",
        ),
    )
    ref_time: int | None = setting(
        None,
        Option(
            DATA,
            "GPS",
            "of the signals (default --start)",
            parse=lambda text: gps(text, "--ref-time"),
        ),
    )
    ephemeris: str = setting("DE405", EPHEMERIS)
    seed: int = setting(0, Option(DATA, "N", "of the noise (default {default})"))
    label: str = setting("", Option(OUTPUT, "TEXT", "letters and digits in the files' names"))
    overwrite: bool = setting(False, OVERWRITE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForPrograms:
    """What is always there: a summary for programs."""

    json: bool = JSON


# ------------------------------------------------------------ fstat


@dataclass(frozen=True, slots=True, kw_only=True)
class SoughtTemplates:
    """The templates of `fstat`: of a file, or a band of frequencies."""

    templates: Path | None = setting(
        None,
        Option(METHOD, "FILE", "CSV: freq, alpha, delta, f1dot, f2dot; other columns are kept"),
    )
    freq: float | None = setting(None, Option(BAND, "HZ", "lowest frequency"))
    band: float | None = setting(None, Option(BAND, "HZ", "width"))
    step: float | None = setting(None, Option(BAND, "HZ", "from one frequency to the next"))
    sky: tuple[float, float] | None = setting(
        None,
        Option(BAND, "ALPHA,DELTA", "direction, radians", parse=lambda text: pair(text, "--sky")),
    )
    f1dot: float = setting(0.0, Option(BAND, "X", "Hz/s (default {default})"))
    f2dot: float = setting(0.0, Option(BAND, "X", "Hz/s^2 (default {default})"))
    method: str = setting(
        "auto",
        Option(
            METHOD,
            "NAME",
            "demod, resamp (of a band, on the host), or auto: resamp where cheaper (default "
            "{default})",
            values="lanewise.sims.waves.commands.statistic.METHODS",
        ),
    )
    cover: tuple[float, float] | None = setting(
        None,
        Option(
            DATA,
            "LOW,HIGH",
            "band in Hz that frequencies at the detectors lie in (default all there is)",
            parse=lambda text: pair(text, "--cover"),
        ),
    )
    sqrt_s: str | None = setting(None, SQRT_S)
    out: Path | None = setting(None, Option(OUTPUT, "FILE", "CSV with the results (required)"))
    plot: Path | None = setting(None, PLOT)
    overwrite: bool = setting(False, OVERWRITE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profiled:
    """What programs and the curious get."""

    profile: bool = PROFILE
    profile_trace: Path | None = PROFILE_TRACE
    json: bool = JSON


# ------------------------------------------------------------ run


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchGrid:
    """What `run` searches: fields of `Search`, by their names there. `Search` has the defaults."""

    freq: float = setting(
        0.0, Option(METHOD, "HZ", "lowest frequency at the reference time (required)")
    )
    freq_band: float = setting(
        0.0, Option(METHOD, "HZ", "width of the band (required)", ("--band",))
    )
    f1dot: tuple[float, float] = setting(
        (0.0, 0.0),
        Option(
            METHOD,
            "LOW[,WIDTH]",
            "spin-downs, Hz/s (default 0)",
            parse=lambda text: low_and_width(text, "--f1dot"),
        ),
    )
    stack: float = setting(0.0, Option(METHOD, "X", "seconds of a stack (required)"))
    most_stacks: int | None = setting(
        None, Option(METHOD, "N", "stacks at most (default all)", ("--stacks",))
    )
    resolution: float | None = setting(None, Option(METHOD, "HZ", "of F (default 1 / stack)"))
    f1dot_step: float | None = setting(
        None, Option(METHOD, "X", "of the coarse grid (default 1 / stack^2)")
    )
    residuals: int | None = setting(
        None,
        Option(
            METHOD, "N", "spin-downs around each of the coarse grid (default the number of stacks)"
        ),
    )
    threshold: float = setting(
        2.6, Option(METHOD, "X", "of F = 2F / 2, for a peak (default {default})")
    )
    patch: tuple[float, float] | None = setting(
        None,
        Option(
            METHOD,
            "X",
            "size of the patch about a direction, radians",
            parse=lambda text: (number(text, "--patch"),) * 2,
        ),
    )
    weighted: bool = setting(False, Option(METHOD, "", "weight stacks by noise and response"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Directions:
    """Where `run` searches, and how."""

    sky: list[str] | None = setting(
        None,
        Option(
            METHOD,
            "ALPHA,DELTA|FILE|GRID",
            "directions in radians, a file of them, isotropic:STEP or uniform:STEP,STEP; may be "
            "repeated (required)",
        ),
    )
    method: str = setting(
        "demod",
        Option(
            METHOD,
            "NAME",
            "demod, or resamp: F by Fourier transforms, on the host (default {default})",
            values="lanewise.sims.waves.hierarchical_setup.METHODS",
        ),
    )
    most: int = setting(
        100, Option(OUTPUT, "N", "candidates in the list (default {default})", ("--candidates",))
    )
    follow_up: int = setting(
        0,
        Option(
            METHOD,
            "N",
            "refine the best N candidates by coherent 2F, in OUT.follow-up.csv (default none)",
        ),
    )
    out: Path | None = setting(None, Option(OUTPUT, "FILE", "CSV with the candidates (required)"))
    plot: Path | None = setting(None, PLOT)
    overwrite: bool = setting(False, OVERWRITE)


@dataclass(frozen=True, slots=True, kw_only=True)
class InUnits:
    """Work units of `run`, and their checkpoints."""

    units: int | None = setting(
        None, Option(UNITS, "N", "work units at least (default 1, or 4 a worker)")
    )
    workers: int | None = setting(
        None,
        Option(
            UNITS,
            "N",
            "processes of this machine that compute, each with a GPU on cuda (default this one)",
        ),
    )
    scheduler: str | None = setting(
        None,
        Option(UNITS, "ADDRESS", "Dask scheduler whose workers compute, such as tcp://host:8786"),
    )
    checkpoint_folder: Path | None = setting(
        None,
        Option(
            UNITS,
            "FOLDER",
            "where units keep their checkpoints (default OUT.units, deleted at the end)",
        ),
    )
    checkpoint_every: float = setting(
        SECONDS,
        Option(UNITS, "X", "seconds from one checkpoint of a unit to the next (default {default})"),
    )
    resume: bool = setting(
        False, Option(UNITS, "", "continue from the checkpoints of a search that was stopped")
    )
