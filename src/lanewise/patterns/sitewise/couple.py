"""Several lattices in one step: everything is observed first, then all sites are updated.

So no part sees another one after its step: what a flow reads of a temperature and a temperature of
a flow belongs to the same moment.
"""

from __future__ import annotations

from typing import Any

from lanewise.patterns.sitewise.split_sites import AnySites, SplitSites
from lanewise.patterns.sitewise.steppers import SiteStepper
from lanewise.support.checks import shown
from lanewise.support.errors import ArgumentError, brief


@brief
def couple(*steppers: SiteStepper) -> SiteStepper:
    """Step several sites together: `lw.couple(flow.stepper(air, warmth=warmth),
    heat.stepper(heat_sites, wind=wind)).run(1000)`.

    Every step first makes all observations among the steppers' values (`observer.of(sites)`), then
    updates all sites. Raises `ArgumentError` for sites on different devices, for sites that two
    steppers would update, and for observations of sites that none of them updates.
    """
    every: Any = steppers
    if not every or not all(isinstance(s, SiteStepper) for s in every):
        wrong = next((s for s in every if not isinstance(s, SiteStepper)), None)
        raise ArgumentError(
            "lw.couple takes steppers, for example flow.stepper(sites, omega=1.6); found "
            f"{'nothing' if wrong is None else shown(wrong)}"
        )
    devices = {_where(sites) for s in steppers for sites in s.sites}
    if len(devices) > 1:
        raise ArgumentError(
            f"lw.couple: wanted sites on one device, found {' and '.join(sorted(devices))}"
        )
    stepped = [id(sites) for s in steppers for sites in s.sites]
    if len(set(stepped)) < len(stepped):
        many = {n for n in stepped if stepped.count(n) > 1}
        again = next(s for s in reversed(steppers) if many & set(map(id, s.sites)))
        raise ArgumentError(
            f"lw.couple: {again.name} updates sites that another stepper updates: wanted sites for "
            "each"
        )
    for s in steppers:
        for o in s.observed:
            if id(o.sites) not in stepped:
                raise ArgumentError(
                    f"lw.couple: {s.name} reads what {o.name} observes of {o.sites!r}, which would "
                    "stand still; wanted a stepper of those sites as well"
                )
    return SiteStepper(
        f"couple({', '.join(s.name for s in steppers)})",
        tuple(update for s in steppers for update in s.updates),
        (o for s in steppers for o in s.observed),
        tuple(name for s in steppers for name in s.copied),
    )


def _where(sites: AnySites) -> str:
    """The device of sites, or their mesh."""
    return f"a mesh ({sites.mesh})" if isinstance(sites, SplitSites) else sites.device
