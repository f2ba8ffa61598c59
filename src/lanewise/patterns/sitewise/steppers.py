"""Steps of sites as tasks of a loop: what is observed, then what updates each of them.

They run in cycles of all phases of their streaming forms, inside graphs on a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property, partial
from typing import Any

from lanewise.launch.joined import Bound, Owned
from lanewise.launch.steps.loop import Counted, StepLoop, loop_of, sequence_of_task, take
from lanewise.launch.steps.task import Around, States, StepState, Task
from lanewise.launch.support import bind_record
from lanewise.launch.tasks import Role
from lanewise.launch.tasks import Sequence as Tasks
from lanewise.patterns.sitewise.calls import SiteCall
from lanewise.patterns.sitewise.function import Observed, in_order
from lanewise.patterns.sitewise.sites import Sites
from lanewise.profiling.profile import Profile
from lanewise.runtime.device import get_device
from lanewise.runtime.programs import NamedLaunch
from lanewise.support.errors import ArgumentError

# Updates of sites, a tenth of a second on an NVIDIA H200: from then on loading less gains more than
# asking for it costs, which are two calls of 0.2 ms and what follows them.
LONG_RUN = 1 << 31

Calls = Callable[[int, bool], Sequence[SiteCall]]
"""Those of a step, behind what is observed: by its number, and whether it is the first one of
populations that were set.
"""


class SiteStepper:
    """Steps of some sites with given values, bound once."""

    def __init__(
        self,
        name: str,
        sites: Sites,
        calls: Calls,
        observed: tuple[Observed, ...] = (),
        copied: tuple[str, ...] = (),
        profile: Profile | None = None,
    ) -> None:
        """name: of the kernel. observed: what is looked at before every step. copied: the values
        whose arrays were copied.
        """
        self.name, self.sites, self.calls = name, sites, calls
        self.observed, self.copied, self._profile = in_order(observed), copied, profile
        self.task = site_task(name, (sites,), self.observed, (calls,))

    def profiled(self, profile: Profile | None) -> SiteStepper:
        """The same steps, of which the profile is told where their time goes."""
        return SiteStepper(self.name, self.sites, self.calls, self.observed, self.copied, profile)

    def check_observed(self) -> None:
        """Refuse what is observed of sites that do not step along. Raises `ArgumentError`."""
        if elsewhere := [o for o in self.observed if o.sites is not self.sites]:
            raise ArgumentError(
                f"{self.name}: {elsewhere[0].name} is observed of other sites, "
                f"{elsewhere[0].sites!r}, which would stand still; "
                "wanted lw.couple(stepper, stepper of those sites), which steps both"
            )

    def calls_now(self) -> list[SiteCall]:
        """What the next step runs."""
        states = (self.sites.state, *(o.sites.state for o in self.observed))
        stand = {id(s): (s.fresh, s.step) for s in states}
        return step_calls((self.sites.state,), self.observed, (self.calls,), stand)

    def sequence(self, steps: int = 1) -> Tasks:
        """The next steps as tasks over named buffers."""
        self.check_observed()
        return sequence_of_task(
            self.task, steps, lambda: owned_by((self.sites,), self.observed, steps)
        )

    def prepare(self) -> None:
        """Compile all phases of steps, so that the first one costs no more than the others."""
        self._loop.make(1 + 2 * self.sites.cycle)

    def run(self, steps: int, counted: Counted | None = None) -> None:
        """Run, and wait for the result. `counted(n)` is called when n more steps are done.

        Ctrl-C ends it after whole steps, which are counted. Raises `StateError` after steps that
        were stopped in the middle.
        """
        self.check_observed()
        take(self._loop, steps, counted)

    @cached_property
    def _loop(self) -> StepLoop:
        return loop_of(self.task, self._profile)


def site_task(
    name: str, sites: Sequence[Sites], observed: Sequence[Observed], calls: Sequence[Calls]
) -> Task:
    """One step of several sites, all observed first."""
    states = tuple(s.state for s in sites)

    def launches(stand: States) -> list[NamedLaunch]:
        return [call.named for call in step_calls(states, observed, calls, stand)]

    def bound(stand: States) -> list[Bound]:
        return [
            Bound(call.executable.sequence, {n: b.data for n, b in call.arrays.items()})
            for call in step_calls(states, observed, calls, stand)
        ]

    around = tuple(a for s in sites for a in around_steps(s))
    device = sites[0].device
    return Task(name, "sitewise", launches, device, states, around=around, bound=bound)


def step_calls(
    states: Sequence[StepState],
    observed: Sequence[Observed],
    calls: Sequence[Calls],
    stand: States,
) -> list[SiteCall]:
    """What a step runs: all that is observed, then what updates each of the sites."""
    made: list[SiteCall] = []
    for o in observed:
        fresh, step = stand[id(o.sites.state)]
        made.append(o.look(step, fresh))
    for state, of_sites in zip(states, calls, strict=True):
        fresh, step = stand[id(state)]
        made += of_sites(step, fresh)
    return made


def owned_by(sites: Sequence[Sites], observed: Sequence[Observed], steps: int) -> list[Owned]:
    """What steps of these sites write.

    The populations that they begin with are an argument, which no task writes before all have read
    it; those that they leave are a result. What is observed lasts as long as a step.
    """
    owned = [o for s in sites for o in _owned(s, steps)]
    looks = [Owned(f"what {o.name} saw", _bytes(o.array), Role.TEMPORARY) for o in observed]
    return [*owned, *looks]


def _owned(sites: Sites, steps: int) -> list[Owned]:
    """What steps of these sites write."""
    count = len(sites.copies)
    first, last = sites.step % count, (sites.step + steps) % count
    found: list[Owned] = []
    for n, copy in enumerate(sites.copies):
        role = Role.ARGUMENT if n == first else Role.RESULT if n == last else Role.TEMPORARY
        # other steps read what the first one wrote, and may put theirs where it began
        changed = n == first and steps >= count
        found.append(Owned(f"populations, copy {n}", bind_record(copy).data, role, changed))
    found += [
        Owned(f"what left axis {axis} at {direction:+d}", _bytes(kept), Role.KEPT)
        for (axis, direction), kept in sites.outflow.items()
    ]
    return found


def _bytes(array: Any) -> Any:
    return array.reshape(-1).view("uint8")


def around_steps(sites: Sites) -> tuple[Around, ...]:
    """Memory is asked for as many bytes at a time as these sites want, if there are enough steps to
    be worth it.
    """
    nbytes = sites.fetched_bytes
    return () if nbytes is None else (partial(_fetching, sites.device, nbytes, sites.count),)


def _fetching(device: str, nbytes: int, count: int, steps: int) -> AbstractContextManager[None]:
    return nullcontext() if steps * count < LONG_RUN else get_device(device).fetching(nbytes)
