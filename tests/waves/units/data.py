"""Files with a signal, and a search of them that takes a second, for the tests of work units."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from lanewise.sims import waves
from lanewise.sims.waves.units import Job

SOURCE = Path(__file__).parents[3] / "src"
START = 1238166018
SIGNAL = waves.Signal(
    h0=8e-25, cosi=0.8, psi=0.2, phi0=1.0, freq=60.0101, alpha=2.0, delta=0.3, f1dot=-2e-10,
    reference=waves.gps_time(START + 90_000),
)  # fmt: skip
SKY = ((2.0, 0.3), (1.2, -0.7), (0.4, 0.9), (-2.0, 0.1), (2.1, 0.31))


def environment() -> dict[str, str]:
    """That of a process of its own, which finds the source first."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(SOURCE), *filter(None, [os.environ.get("PYTHONPATH")])])}


def make_files(folder: Path, seed: int = 8) -> str:
    """SFTs of two days; the pattern that finds them."""
    starts = [START + 1800 * i for i in range(60)]
    sfts = waves.make_data(
        {"H1": starts, "L1": starts}, (59.85, 60.17), sqrt_s={"H1": 1e-23, "L1": 1e-23}, signals=[SIGNAL],
        ephemeris=waves.Ephemeris.load("EPV00"), seed=seed,
    )  # fmt: skip
    waves.write_sfts(folder, sfts, "made")
    return str(folder / "*.sft")


def a_search(**changes: Any) -> waves.Search:
    """Ten frequencies, two spin-downs and three residual ones, in stacks of ten hours."""
    given: dict[str, Any] = {
        "freq": 60.0099, "freq_band": 0.00025, "f1dot": -2e-10, "f1dot_band": 8e-10, "reference": waves.gps_time(START + 90_000),
        "stack": 36000.0, "residuals": 3, "patch": (0.02, 0.02), "threshold": 4.0,
    }  # fmt: skip
    return waves.Search(**{**given, **changes})


def a_job(pattern: str, **changes: Any) -> Job:
    return Job(**{"sfts": (pattern,), "search": a_search(), "sky": SKY, "ephemeris": "EPV00", "most": 40, **changes})


def start_search(
    pattern: str, sky: Path, out: Path, *more: object, device: str = "numpy", quiet: bool = True
) -> subprocess.Popen[str]:
    """The same search by the command line, in a process of its own."""
    arguments = (
        "waves", "run", "--device", device, "--sfts", pattern, "--freq", 60.0099, "--band", 0.00025, "--f1dot", "-2e-10,8e-10", "--ref-time", START + 90_000,
        "--stack", 36000, "--residuals", 3, "--patch", 0.02, "--threshold", 4, "--ephemeris", "EPV00", "--candidates", 40, "--sky", sky,
        "--out", out, *(("--quiet",) if quiet else ()), *more,
    )  # fmt: skip
    return subprocess.Popen(
        [sys.executable, "-m", "lanewise", *(str(a) for a in arguments)], env=environment(),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
