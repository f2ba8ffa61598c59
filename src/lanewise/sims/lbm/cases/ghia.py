"""The cavity's centre lines against the tables of Ghia, Ghia and Shin, J. Comput. Phys. 48, 387 (1982)."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.sims.lbm.cases.interpolation import between_walls, interpolate, middle
from lanewise.sims.lbm.data import read_table

SUSPECT = {("v", 400, 0.9063)}
"""Entries that are left out: v = -0.23827 breaks the curve between its neighbours -0.22847 and -0.44993, a misprint."""

REYNOLDS = (100, 400, 1000, 3200, 5000)


@cache
def table(component: str, re: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Places in 0..1 and the velocity there over the lid's: "u" on the vertical, "v" on the horizontal centre line."""
    columns = read_table(f"ghia_{component}")
    places = np.array(columns["y" if component == "u" else "x"])
    values = np.array(columns[f"{component}_Re{re}"])
    kept = np.array([(component, re, round(float(p), 4)) not in SUSPECT for p in places])
    order = np.argsort(places[kept])
    return places[kept][order], values[kept][order]


def deviations(velocity: Any, lid: float, re: float) -> dict[str, float]:
    """The largest deviations of both centre lines from the tables, as shares of the lid's speed; {} without a table.

    velocity: (n, n, 2) in lattice units between walls half a link outside; the lid is at the high end of y.
    """
    if re not in REYNOLDS:
        return {}
    lines = {
        "u": between_walls(middle(velocity[..., 0], 1) / lid, high=1.0),
        "v": between_walls(middle(velocity[..., 1], 0) / lid),
    }
    result: dict[str, float] = {}
    for component, (places, values) in lines.items():
        wanted_places, wanted = table(component, int(re))
        found = interpolate(places, values, wanted_places)
        result[f"ghia_{component}_deviation"] = float(np.max(np.abs(found - wanted)))
    return result
