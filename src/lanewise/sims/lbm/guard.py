"""What a flow that runs is guarded against: that it blows up, that its velocity goes up and down
from site to site, and that its mass drifts away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lanewise.sims.lbm.checks import FlowWarning
from lanewise.sims.lbm.watch import (
    LEAST_STEPS,
    check_fields,
    check_interval,
    drift_warning,
    unheld_warning,
)
from lanewise.support.warned import warn_user

if TYPE_CHECKING:
    from lanewise.sims.lbm.simulation import Simulation


class FlowGuard:
    """Remembers what was looked at of one flow, and warns once of each.

    first_mass: that at the start of the run; None where nothing tells it. step: of the last check.
    """

    __slots__ = ("_drifted", "_looked", "_staggered", "first_mass", "step")

    def __init__(self, step: int, first_mass: float | None = None) -> None:
        self.step = self._looked = step
        self._staggered = self._drifted = False
        self.first_mass = first_mass

    def begin(self, flow: Simulation) -> int:
        """Before a run: the steps between two looks."""
        if self.first_mass is None and not flow.geometry.holds_density:
            self.first_mass = flow.mass  # of a checkpoint that does not tell it
        return check_interval(flow.sites)

    def is_due(self, flow: Simulation) -> bool:
        """Whether it is time to check."""
        return flow.step - self.step >= check_interval(flow.sites)

    def check(self, flow: Simulation, excess: Any, velocity: Any) -> None:
        """Raise `InputError` when the flow has blown up since the last check."""
        s = flow.settings
        check_fields(excess, velocity, s.shape, s.device, self.step, flow.step)
        self.step = flow.step

    def end(self, flow: Simulation) -> None:
        """After a run: warn of what makes it one that is not to be trusted."""
        if flow.step - self._looked >= LEAST_STEPS and not self._staggered:
            self._looked = flow.step
            if (stagger := flow.stagger()).warned:
                self._staggered = True
                warn_user(stagger.warning, FlowWarning)
        self._warn_of_drift(flow)

    def _warn_of_drift(self, flow: Simulation) -> None:
        """Once, of a box that nothing holds the mass of, where it is not that of the start."""
        first, geometry = self.first_mass, flow.geometry
        if self._drifted or not first or geometry.holds_density:
            return
        drift = (
            drift_warning(flow.mass, first, flow.settings.storage, flow.interpolated_links)
            if geometry.closed
            else unheld_warning(flow.mass, first)
        )
        if drift is not None:
            self._drifted = True
            warn_user(drift, FlowWarning)
