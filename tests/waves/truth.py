"""Where the results of LALPulsar lie that the search for gravitational waves is compared with; tests skip what is not
there.

LANEWISE_TRUTH names a folder; else it is `shared/truth` beside the checkout.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from lanewise.sims.waves.timing.ephemeris import Ephemeris, EphemerisTable

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data" / "waves"
TRUTH = Path(os.environ.get("LANEWISE_TRUTH", ROOT.parent / "shared" / "truth")) / "fstat"

needs_truth = pytest.mark.skipif(
    not TRUTH.is_dir(), reason="needs results of LALPulsar: LANEWISE_TRUTH is their folder, with fstat/ in it"
)


def has_tables() -> bool:
    """Whether the tables of solar_system_ephemerides are installed."""
    from importlib.util import find_spec

    return find_spec("solar_system_ephemerides") is not None


needs_tables = pytest.mark.skipif(
    not has_tables(), reason="needs solar_system_ephemerides: pip install -e '.[waves]' in the checkout"
)


def excerpt(earth: Sequence[float], sun: Sequence[float]) -> Ephemeris:
    """An ephemeris of one row each of DE405: time, position, velocity, acceleration."""
    rows = (np.array([x[1:]]) for x in (earth, sun))
    tables = (
        EphemerisTable("an excerpt", x[0], step, row)
        for x, step, row in zip((earth, sun), (7200.0, 72000.0), rows, strict=True)
    )
    return Ephemeris("DE405", *tables)


def table(name: str | Path) -> dict[str, NDArray]:
    """A CSV file by columns: float64 where all are numbers, else text."""
    with (TRUTH / name).open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    return {k: _column([r[k] for r in rows]) for k in rows[0]}


def _column(texts: list[str]) -> NDArray:
    try:
        return np.array([float(t) for t in texts])
    except ValueError:
        return np.array(texts)
