"""Several lattices in one step: everything is observed first, then all sites are updated.

So no part sees another one after its step: what a flow reads of a temperature and a temperature of
a flow belongs to the same moment.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextlib import ExitStack
from typing import Any

from lanewise.patterns.sitewise.calls import SiteStepper, check_steps, fetching, looks
from lanewise.patterns.sitewise.function import in_order
from lanewise.patterns.sitewise.sites import Sites
from lanewise.runtime.programs import NamedLaunch, Part
from lanewise.runtime.stepping import make_program
from lanewise.support.checks import shown
from lanewise.support.errors import ArgumentError, brief


class CoupledStepper:
    """Steps of several sites that read what is observed of each other."""

    def __init__(self, steppers: Sequence[SiteStepper]) -> None:
        self._steppers = tuple(steppers)
        self._name = f"couple({', '.join(s.name for s in steppers)})"
        self._cycle = max(s.cycle for s in steppers)
        # one that several read is looked at once
        self._observed = in_order(o for s in steppers for o in s.observed)
        self._parts: dict[Hashable, Part] = {}
        self._program = make_program(steppers[0].sites.device, self._parts)

    def __repr__(self) -> str:
        return f"<{self._name}>"

    @property
    def name(self) -> str:
        return self._name

    @property
    def copied(self) -> tuple[str, ...]:
        """The values whose arrays were copied."""
        return tuple(name for s in self._steppers for name in s.copied)

    @property
    def sites(self) -> tuple[Sites, ...]:
        """What it steps."""
        return tuple(s.sites for s in self._steppers)

    @brief
    def run(self, steps: int) -> None:
        """So many steps of all, inside graphs on a GPU; it returns when they are done.

        Ctrl-C ends it after whole steps, which are counted. Raises `StateError` after steps that
        were stopped in the middle.
        """
        check_steps(self._name, steps)
        for sites in self.sites:
            sites.whole.check()
        self._schedule(steps)  # compiles before anything has run
        with ExitStack() as stack:
            for sites in self.sites:
                stack.enter_context(fetching(sites, steps))
            self._take(steps, self.sites)

    def _take(self, steps: int, left: tuple[Sites, ...]) -> None:
        """The steps of all as steps of each: whoever is stopped in the middle knows."""
        first, *others = left

        def run(count: int) -> None:
            if others:
                self._take(count, tuple(others))
            else:
                self._run(count)

        first.whole.take(first.step, steps, run)

    def _run(self, count: int) -> None:
        self._program.run(self._schedule(count))
        for sites in self.sites:
            sites.step, sites.fresh = sites.step + count, False

    def _schedule(self, steps: int) -> list[tuple[Hashable, int]]:
        """Whole cycles where all are at the start of theirs, single steps elsewhere."""
        schedule: list[tuple[Hashable, int]] = []
        done = 0
        while done < steps:
            cycles = (
                0
                if done == 0 and any(s.fresh for s in self.sites)
                else (steps - done) // self._cycle
            )
            taken = self._cycle if cycles else 1
            schedule.append((self._part(done, taken), cycles or 1))
            done += (cycles or 1) * taken
        return schedule

    def _part(self, done: int, taken: int) -> Hashable:
        """The key of the launches of `taken` steps, after `done` more than have been counted."""
        states = tuple((s.fresh and done == 0, (s.step + done) % self._cycle) for s in self.sites)
        key = (states, taken)
        if key not in self._parts:
            calls = [
                call
                for n in range(taken)
                for call in self.launches([(f, at + n) for f, at in states])
            ]
            self._parts[key] = Part(calls, taken)
        return key

    def launches(self, states: Sequence[tuple[bool, int]]) -> list[NamedLaunch]:
        """Those of a step: `states` has what is fresh and at which step, for the sites of each
        stepper.
        """
        at = {
            id(sites): (step, fresh)
            for sites, (fresh, step) in zip(self.sites, states, strict=True)
        }
        seen = [call for o in self._observed for call in looks((o,), *at[id(o.sites)])]
        return [*seen, *(call for s in self._steppers for call in s.launches(*at[id(s.sites)]))]


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
