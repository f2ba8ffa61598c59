"""Several lattices in one step: everything is observed first, then all sites are updated.

So no part sees another one after its step: what a flow reads of a temperature and a temperature of
a flow belongs to the same moment.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lanewise.launch.steps.loop import loop_of, sequence_of_task, take
from lanewise.launch.tasks import Sequence as Tasks
from lanewise.patterns.sitewise.function import in_order
from lanewise.patterns.sitewise.steppers import SiteStepper, owned_by, site_task
from lanewise.support.checks import shown
from lanewise.support.errors import ArgumentError, brief


class CoupledStepper:
    """Steps of several sites that read what is observed of each other."""

    def __init__(self, steppers: Sequence[SiteStepper]) -> None:
        self.name = f"couple({', '.join(s.name for s in steppers)})"
        self.sites = tuple(s.sites for s in steppers)
        # values whose arrays were copied
        self.copied = tuple(name for s in steppers for name in s.copied)
        # one that several read is looked at once
        self.observed = in_order(o for s in steppers for o in s.observed)
        calls = [s.calls for s in steppers]
        self.task = site_task(self.name, self.sites, self.observed, calls)
        self._loop = loop_of(self.task)

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def sequence(self, steps: int = 1) -> Tasks:
        """The next steps as tasks over named buffers."""
        return sequence_of_task(
            self.task, steps, lambda: owned_by(self.sites, self.observed, steps)
        )

    @brief
    def run(self, steps: int) -> None:
        """So many steps of all, inside graphs on a GPU; it returns when they are done.

        Ctrl-C ends it after whole steps, which are counted. Raises `StateError` after steps that
        were stopped in the middle.
        """
        take(self._loop, steps)


@brief
def couple(*steppers: SiteStepper) -> CoupledStepper:
    """Step several sites together: `lw.couple(flow.stepper(air, warmth=warmth),
    heat.stepper(heat_sites, wind=wind)).run(1000)`.

    Every step first observes what the steppers' values observe (`observer.of(sites)`), then updates
    all sites. Raises `ArgumentError` for sites on different devices, for sites that two steppers
    would update, and for what is observed of sites that do not step along.
    """
    every: Any = steppers
    if not every or not all(isinstance(s, SiteStepper) for s in every):
        wrong = next((s for s in every if not isinstance(s, SiteStepper)), None)
        raise ArgumentError(
            "lw.couple takes steppers, for example flow.stepper(sites, omega=1.6); found "
            f"{'nothing' if wrong is None else shown(wrong)}"
        )
    devices = {s.sites.device for s in steppers}
    if len(devices) > 1:
        raise ArgumentError(
            f"lw.couple: wanted sites on one device, found {' and '.join(sorted(devices))}"
        )
    stepped = [id(s.sites) for s in steppers]
    if len(set(stepped)) < len(stepped):
        again = next(s for n, s in enumerate(steppers) if id(s.sites) in stepped[:n])
        raise ArgumentError(
            f"lw.couple: {again.name} updates sites that another stepper updates: wanted sites for "
            "each"
        )
    for s in steppers:
        for o in s.observed:
            if id(o.sites) not in stepped:
                raise ArgumentError(
                    f"lw.couple: {s.name} reads what {o.name} observes of {o.sites!r}, which would "
                    "stand still; "
                    "wanted a stepper of those sites, too"
                )
    return CoupledStepper(steppers)
