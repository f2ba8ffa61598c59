"""Many steps of some sites: in cycles of all phases of their streaming form, inside graphs on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from lanewise.errors import ArgumentError
from lanewise.kernels.arguments import describe
from lanewise.profiling.profile import Profile
from lanewise.runtime.launches import NamedLaunch
from lanewise.runtime.stepping import make_stepper
from lanewise.sites.array import Sites


class SiteStepper:
    """Steps of some sites with given values, bound once."""

    def __init__(
        self, name: str, sites: Sites, calls: Callable[[int, bool], Sequence[NamedLaunch]], profile: Profile | None = None,
    ) -> None:  # fmt: skip
        """`calls(step, fresh)` gives the launches of a step."""
        self._name, self._sites, self._calls, self._profile = name, sites, calls, profile
        self._cycle = max(len(sites.form.phases), len(sites.copies))
        self._steppers: dict[Any, Any] = {}

    def profiled(self, profile: Profile | None) -> SiteStepper:
        """The same steps, of which the profile is told where their time goes."""
        return SiteStepper(self._name, self._sites, self._calls, profile)

    def run(self, steps: int) -> None:
        """Run, and wait for the result."""
        given = cast(Any, steps)
        if isinstance(given, bool) or not isinstance(given, int | np.integer):
            raise ArgumentError(f"{self._name}: the number of steps is whole, found {describe(given)}")
        if steps < 0:
            raise ArgumentError(f"{self._name}: {steps} steps asked for; wanted 0 or more")
        while steps:
            many = steps // self._cycle if not self._sites.fresh and self._sites.step % self._cycle == 0 else 0
            if many:
                self._stepper(range(self._sites.step, self._sites.step + self._cycle)).run(many)
                self._sites.step += many * self._cycle
                steps -= many * self._cycle
            else:
                self._stepper(range(self._sites.step, self._sites.step + 1)).run(1)
                self._sites.step, self._sites.fresh = self._sites.step + 1, False
                steps -= 1

    def _stepper(self, steps: range) -> Any:
        s = self._sites
        key = (s.fresh, steps.start % self._cycle, len(steps))
        if key not in self._steppers:
            calls = [call for step in steps for call in self._calls(step, s.fresh)]
            self._steppers[key] = make_stepper(s.device, calls, self._profile, len(steps))
        return self._steppers[key]
