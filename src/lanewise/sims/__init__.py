"""Simulations that people use as they are. Each lives in its own folder: its physics, files,
views, and its command.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanewise.support.interrupts import imported

if TYPE_CHECKING:  # for type checkers: what `__getattr__` imports
    from lanewise.sims import boids as boids
    from lanewise.sims import gravity as gravity
    from lanewise.sims import lbm as lbm
    from lanewise.sims import waves as waves

PRODUCTS = {
    "boids": "Flocks: Reynolds' boids, as in OpenSteer.",
    "gravity": "Gravity: star clusters and galaxies, by direct summation or trees.",
    "lbm": "Flow by the lattice Boltzmann method.",
    "waves": "Continuous gravitational waves: F-statistic, Hough search, data.",
}
"""The folders, and what their commands are about.

`command.py` of each has an `app`, which is `lanewise NAME`.
"""


def __getattr__(name: str) -> object:
    """`lw.sims.boids`, `lw.sims.gravity`, `lw.sims.lbm` and `lw.sims.waves` are imported when they
    are first used.
    """
    if name in PRODUCTS:
        return imported(f"lanewise.sims.{name}")
    raise AttributeError(f"module 'lanewise.sims' has no attribute {name!r}")
