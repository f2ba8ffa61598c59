"""What is conserved, and how well: energies, momenta, virial ratio, and their drifts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lanewise.support.attributes import frozen
from lanewise.support.checks import checked
from lanewise.support.errors import InputError

ENERGY_TOLERANCE = 1e-3
"""From this energy error on a run warns.

Some close encounter was not resolved, or dt is too long throughout.
"""


@frozen
@dataclass(frozen=True, slots=True)
class Diagnostics:
    """The state of a run at one time, in units with the run's gravitational constant.

    Vectors are NumPy float64 of shape (3,).
    """

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
        """2 K / |W|: 1 in equilibrium.

        Not a number when there is no potential energy (a single body).
        """
        return 2 * self.kinetic / abs(self.potential) if self.potential else float("nan")

    @checked(InputError)
    def energy_drift(self, start: Diagnostics) -> float:
        """(E - E0) / |E0|."""
        return (self.total - start.total) / abs(start.total) if start.total else self.total

    @property
    def energy_scale(self) -> float:
        """The scale of energy errors: |E|, or a tenth of K + |W| if that is larger, as in parabolic
        orbits.
        """
        return max(abs(self.total), (self.kinetic + abs(self.potential)) / 10)

    @checked(InputError)
    def energy_error(self, start: Diagnostics) -> float:
        """|E - E0| against the `energy_scale` of the start; infinite when an energy is not
        finite.
        """
        change = abs(self.total - start.total)
        if not math.isfinite(change):
            return math.inf
        if change == 0:
            return 0.0
        return change / start.energy_scale if start.energy_scale else math.inf

    @checked(InputError)
    def momentum_drift(self, start: Diagnostics) -> float:
        """|P - P0| against the sum of |m v|, which does not vanish in the centre-of-mass frame."""
        scale = max(start.momentum_scale, self.momentum_scale)
        return math.hypot(*(self.momentum - start.momentum)) / scale if scale else 0.0

    @checked(InputError)
    def angular_momentum_drift(self, start: Diagnostics) -> float:
        """|L - L0| relative to |L0|, or to 1 if |L0| is 0."""
        scale = math.hypot(*start.angular_momentum)
        return math.hypot(*(self.angular_momentum - start.angular_momentum)) / (
            scale if scale > 1e-12 else 1.0
        )


COLUMNS = (
    "step",
    "time",
    "kinetic",
    "potential",
    "px",
    "py",
    "pz",
    "lx",
    "ly",
    "lz",
    "momentum_scale",
)


def to_row(d: Diagnostics) -> list[float]:
    """The numbers of one measurement in the order of `COLUMNS`."""
    return [
        d.step,
        d.time,
        d.kinetic,
        d.potential,
        *d.momentum,
        *d.angular_momentum,
        d.momentum_scale,
    ]


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


def energy_warning(
    history: Sequence[Diagnostics], *, dt: float, softening: float, integrator: str
) -> str:
    """What to say of a run whose worst measured energy error is above the tolerance, and "" of
    another one.
    """
    start = history[0]
    worst = max(history, key=lambda d: d.energy_error(start))
    if not worst.energy_error(start) > ENERGY_TOLERANCE:
        return ""
    better = "" if integrator == "yoshida4" else ", or integrator yoshida4 for smooth orbits"
    remedy = (
        f"a smaller dt (now {dt:g}) or more softening (now {softening:g}) resolves close "
        f"encounters{better}"
    )
    when = f"at step {worst.step:,} (t = {worst.time:g})"
    if not math.isfinite(worst.energy_error(start)):
        return f"the energy {when} is {worst.total:g}, after {start.total:g} at the start: {remedy}"
    scale = (
        "|E0|" if start.energy_scale == abs(start.total) else "(K0 + |W0|) / 10, as |E0| is small"
    )
    error = f"{worst.energy_error(start):.2g} of {scale}"
    return (
        f"the energy error {when} is {error}, above {ENERGY_TOLERANCE:g}; these orbits are not to "
        f"be trusted: {remedy}"
    )
