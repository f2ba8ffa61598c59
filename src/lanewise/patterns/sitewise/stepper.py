"""Many steps of some sites: in cycles of all phases of their streaming form, inside graphs on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from lanewise.errors import ArgumentError
from lanewise.launch.arguments import describe
from lanewise.patterns.sitewise.sites import Sites
from lanewise.profiling.profile import Profile
from lanewise.runtime import cuda
from lanewise.runtime.programs import NamedLaunch, Part, ScheduleRunner
from lanewise.runtime.stepping import make_program

# Updates of sites, a tenth of a second on an NVIDIA H200: from then on loading less gains more than asking for it costs, which
# are two calls of 0.2 ms and what follows them.
LONG_RUN = 1 << 31
MOST_STEPS = 10**12  # far more than anybody waits for


def fetching(sites: Sites, steps: int) -> AbstractContextManager[None]:
    """Memory is asked for as many bytes at a time as these sites want, if so many steps are worth it."""
    if sites.fetched_bytes is None or steps * sites.count < LONG_RUN:
        return nullcontext()
    return cuda.fetching(sites.device, sites.fetched_bytes)


@dataclass(frozen=True, slots=True, eq=False)
class BoundSteps:
    """Steps that are bound to the memory of some sites, by where they stand in a cycle, and what runs them. The sites may keep it."""

    parts: dict[Hashable, Part]
    program: ScheduleRunner


class SiteStepper:
    """Steps of some sites with given values, bound once."""

    def __init__(
        self, name: str, sites: Sites, calls: Callable[[int, bool], Sequence[NamedLaunch]], profile: Profile | None = None,
        bound: BoundSteps | None = None,
    ) -> None:  # fmt: skip
        """`calls(step, fresh)` gives the launches of a step; `bound`: those of an earlier stepper of the same."""
        self._name, self._sites, self._calls, self._profile = name, sites, calls, profile
        self._cycle = max(len(sites.form.phases), len(sites.copies))
        if bound is None:
            parts: dict[Hashable, Part] = {}
            bound = BoundSteps(parts, make_program(sites.device, parts, profile))
        self.bound = bound

    def profiled(self, profile: Profile | None) -> SiteStepper:
        """The same steps, of which the profile is told where their time goes."""
        return SiteStepper(self._name, self._sites, self._calls, profile)

    def prepare(self) -> None:
        """Compile all phases of steps, so that the first one costs no more than the others."""
        for step, fresh in ((0, True), (1, False), (2, False)):
            self._calls(step, fresh)

    def run(self, steps: int, counted: Callable[[int], None] | None = None) -> None:
        """Run, and wait for the result. `counted(n)` is called when n more steps are done.

        Ctrl-C ends it after whole steps, which are counted. Raises `StateError` after steps that were stopped in the middle.
        """
        given = cast(Any, steps)
        if isinstance(given, bool) or not isinstance(given, int | np.integer):
            raise ArgumentError(f"{self._name}: the number of steps is whole, found {describe(given)}")
        if steps < 0:
            raise ArgumentError(f"{self._name}: {steps} steps asked for; wanted 0 or more")
        if steps > MOST_STEPS:
            raise ArgumentError(f"{self._name}: {steps} steps asked for; wanted at most {MOST_STEPS:,}")
        sites = self._sites
        sites.whole.check()
        self._schedule(sites.step, sites.step + steps)  # compiles before anything has run

        def run(count: int) -> None:
            self.bound.program.run(self._schedule(sites.step, sites.step + count))
            sites.step, sites.fresh = sites.step + count, False
            if counted is not None:
                counted(count)

        with fetching(sites, steps):
            sites.whole.take(sites.step, steps, run)

    def _schedule(self, step: int, end: int) -> list[tuple[Hashable, int]]:
        """Whole cycles, and single steps before the first and after the last one; a first step of populations stands alone."""
        found: list[tuple[Hashable, int]] = []
        fresh = self._sites.fresh
        while step < end:
            cycles = (end - step) // self._cycle if not fresh and step % self._cycle == 0 else 0
            taken = self._cycle if cycles else 1
            found.append((self._part(range(step, step + taken), fresh), cycles or 1))
            step, fresh = step + (cycles or 1) * taken, False
        return found

    def _part(self, steps: range, fresh: bool) -> Hashable:
        """The key of these steps; they stand for all at the same place of a cycle."""
        key = (fresh, steps.start % self._cycle, len(steps))
        if key not in self.bound.parts:
            self.bound.parts[key] = Part([call for step in steps for call in self._calls(step, fresh)], len(steps))
        return key
