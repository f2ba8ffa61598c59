"""The step and the time of a simulation."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Clock:
    """The step, and what the time follows from.

    elapsed: the time of the steps before `start_step`, which had another dt.
    """

    step: int
    start_time: float
    start_step: int
    elapsed: float
    dt: float

    @property
    def time(self) -> float:
        """Computed by multiplication, so it does not drift."""
        return self.start_time + self.elapsed + (self.step - self.start_step) * self.dt

    def after(self, steps: int) -> Clock:
        """So many steps on."""
        return replace(self, step=self.step + steps)

    def with_dt(self, dt: float) -> Clock:
        """The same moment, from which steps of `dt` follow."""
        if dt == self.dt:
            return self
        elapsed = self.elapsed + (self.step - self.start_step) * self.dt
        return replace(self, start_step=self.step, elapsed=elapsed, dt=dt)
