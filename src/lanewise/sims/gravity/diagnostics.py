"""What is conserved, and how well: energies, momenta, virial ratio, and their drifts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """The state of a run at one time, in units with the run's gravitational constant. Vectors are NumPy float64 of shape (3,)."""

    step: int
    time: float
    kinetic: float
    potential: float
    momentum: Any
    angular_momentum: Any
    momentum_scale: float  # the sum of |m v|

    @property
    def total(self) -> float:
        return self.kinetic + self.potential

    @property
    def virial_ratio(self) -> float:
        """2 K / |W|: 1 in equilibrium. Not a number when there is no potential energy (a single body)."""
        return 2 * self.kinetic / abs(self.potential) if self.potential else float("nan")

    def energy_drift(self, start: Diagnostics) -> float:
        """(E - E0) / |E0|."""
        return (self.total - start.total) / abs(start.total) if start.total else self.total

    def momentum_drift(self, start: Diagnostics) -> float:
        """|P - P0| against the sum of |m v|, which does not vanish in the centre-of-mass frame."""
        scale = max(start.momentum_scale, self.momentum_scale)
        return math.hypot(*(self.momentum - start.momentum)) / scale if scale else 0.0

    def angular_momentum_drift(self, start: Diagnostics) -> float:
        """|L - L0| against |L0|, or against 1 where the start has none."""
        scale = math.hypot(*start.angular_momentum)
        return math.hypot(*(self.angular_momentum - start.angular_momentum)) / (scale if scale > 1e-12 else 1.0)


COLUMNS = ("step", "time", "kinetic", "potential", "px", "py", "pz", "lx", "ly", "lz", "momentum_scale")


def to_row(d: Diagnostics) -> list[float]:
    """The numbers of one measurement in the order of `COLUMNS`."""
    return [d.step, d.time, d.kinetic, d.potential, *d.momentum, *d.angular_momentum, d.momentum_scale]


def from_row(row: Any) -> Diagnostics:
    """The measurement that `to_row` wrote."""
    return Diagnostics(
        int(row[0]),
        float(row[1]),
        float(row[2]),
        float(row[3]),
        np.array(row[4:7]),
        np.array(row[7:10]),
        float(row[10]),
    )
