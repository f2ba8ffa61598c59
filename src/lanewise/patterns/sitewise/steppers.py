"""Steps of sites as tasks of a loop: what is observed, then what updates each of them.

They run in cycles of all phases of their streaming forms, inside graphs on a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property, partial
from typing import TYPE_CHECKING, NoReturn

from lanewise.launch.joined import Bound, Owned, joined, memory_of
from lanewise.launch.steps.loop import Counted, StepLoop, bound_in, loop_of, rhythm_of, take
from lanewise.launch.steps.task import Around, InPiece, States, Task
from lanewise.launch.tasks import Role
from lanewise.launch.tasks import Sequence as Tasks
from lanewise.patterns.sitewise.calls import SiteCall
from lanewise.patterns.sitewise.sites import Sites
from lanewise.patterns.sitewise.split_calls import SplitCall, refuse_split
from lanewise.patterns.sitewise.split_sites import AnySites, SplitSites
from lanewise.patterns.sitewise.split_steps import alone_on
from lanewise.patterns.sitewise.values import Observed, in_order
from lanewise.profiling.profile import Profile
from lanewise.runtime.device import get_device
from lanewise.support.errors import ArgumentError, brief
from lanewise.support.uncopied import uncopied

if TYPE_CHECKING:
    from lanewise.facade import LoopExplanation
    from lanewise.runtime.mesh import Mesh

# Updates of sites, a tenth of a second on an NVIDIA H200: from then on loading less gains more than
# asking for it costs, which are two calls of 0.2 ms and what follows them.
LONG_RUN = 1 << 31

Calls = Callable[[int, bool], Sequence[SiteCall | SplitCall]]
"""Those of a step, behind what is observed: by its number, and whether it is the first one of
populations that were set.
"""
Many = Sequence[SiteCall | SplitCall]
Updates = tuple[tuple[AnySites, Calls], ...]


class SiteStepper:
    """Steps of some sites with given values, bound once, as `kernel.stepper(sites, ...)` makes
    it; of several sites where they are coupled (`lw.couple`). `run(n)` takes n steps.
    """

    def __init__(
        self,
        name: str,
        updates: Updates,
        observed: Iterable[Observed] = (),
        copied: tuple[str, ...] = (),
        profile: Profile | None = None,
    ) -> None:
        """name: of the kernel. observed: what is looked at before every step, each once, though
        several may read it. copied: the values whose arrays were copied.
        """
        self.name, self.updates, self.copied, self._profile = name, updates, copied, profile
        self.observed, self.sites = in_order(observed), tuple(sites for sites, _ in updates)
        calls = self.calls = partial(step_calls, updates, self.observed)
        stepped = self.sites  # and not the stepper, which would keep itself
        self.task = Task(
            name,
            "sitewise",
            lambda stand: [call.named for call in calls(stand)],
            self.sites[0].device,
            tuple(s.state for s in self.sites),
            around=tuple(a for s in self.sites for a in around_steps(s)),
            pieces=pieces_of(self.sites),
            bound=lambda stand: _bound(stepped, calls, stand),
            alone=alone_on(self.sites),
            split=lambda stand: [c for c in calls(stand) if isinstance(c, SplitCall)],
        )

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def __reduce__(self) -> NoReturn:
        uncopied("a stepper of sites", "make another one of the same sites")

    @property
    def mesh(self) -> Mesh | None:
        """Where its sites lie, if that is a mesh."""
        return next((s.mesh for s in self.sites if isinstance(s, SplitSites)), None)

    def profiled(self, profile: Profile | None) -> SiteStepper:
        """The same steps; the profile records where their time goes."""
        return SiteStepper(self.name, self.updates, self.observed, self.copied, profile)

    def check_observed(self) -> None:
        """Raise `ArgumentError` for observations of sites that do not step along."""
        stepped = set(map(id, self.sites))
        if elsewhere := [o for o in self.observed if id(o.sites) not in stepped]:
            raise ArgumentError(
                f"{self.name}: {elsewhere[0].name} is observed of other sites, "
                f"{elsewhere[0].sites!r}, which would stand still; "
                "wanted lw.couple(stepper, stepper of those sites), which steps both"
            )

    def calls_now(self) -> list[SiteCall | SplitCall]:
        """The calls of the next step."""
        states = (s.state for s in (*self.sites, *(o.sites for o in self.observed)))
        return self.calls({id(s): (s.fresh, s.step) for s in states})

    def sequence(self, steps: int = 1) -> Tasks:
        """The next steps as tasks over named buffers."""
        self.check_observed()
        one = [s for s in self.sites if isinstance(s, Sites)]
        if split := [s for s in self.sites if isinstance(s, SplitSites)]:
            raise refuse_split(self.name, split[0], "tasks of steps are read")
        bound = bound_in(rhythm_of(self.task), 0, steps)
        return joined(self.name, bound, [o for s in one for o in owned_by(s, steps)])

    def explain(self) -> LoopExplanation:
        """All launches of a step; on a mesh also the copies between its parts, their links, and the
        predicted speed of 2, 4 and 8 parts. Print it.
        """
        from lanewise.facade import explain_steps

        step, device = self.sites[0].step, self.sites[0].device
        return explain_steps(rhythm_of(self.task), step, device)

    def prepare(self) -> None:
        """Compile all phases of steps, so that the first one costs no more than the others."""
        self._loop.make(1 + 2 * max(s.cycle for s in self.sites))

    @brief
    def run(self, steps: int, counted: Counted | None = None) -> None:
        """Run this many steps, as graphs on a GPU; it returns when they are done. `counted(n)` is
        called when n more are done.

        Ctrl-C ends it after whole steps, which are counted. Raises `StateError` after steps that
        were stopped in the middle.
        """
        self.check_observed()
        take(self._loop, steps, counted)

    @cached_property
    def _loop(self) -> StepLoop:
        return loop_of(self.task, self._profile)


def step_calls(
    updates: Updates, observed: Sequence[Observed], stand: States
) -> list[SiteCall | SplitCall]:
    """What a step runs: all that is observed, then what updates each of the sites."""
    made: list[SiteCall | SplitCall] = []
    for o in observed:
        fresh, step = stand[id(o.sites.state)]
        made.append(o.look(step, fresh))
    for sites, calls in updates:
        fresh, step = stand[id(sites.state)]
        made += calls(step, fresh)
    return made


def _bound(
    sites: Sequence[AnySites], calls: Callable[[States], Many], stand: States
) -> list[Bound]:
    """What a step runs as tasks over memory, where that is of one device."""
    if any(isinstance(s, SplitSites) for s in sites):
        return []
    return [call.bound for call in calls(stand) if isinstance(call, SiteCall)]


def owned_by(sites: Sites, steps: int) -> list[Owned]:
    """What steps of these sites write.

    The populations that they begin with are an argument, which no task writes before all have read
    it; those that they leave are a result.
    """
    count = len(sites.copies)
    first, last = sites.step % count, (sites.step + steps) % count
    found: list[Owned] = []
    for n, copy in enumerate(sites.copies):
        role = Role.ARGUMENT if n == first else Role.RESULT if n == last else Role.TEMPORARY
        # other steps read what the first one wrote, and may put theirs where it began
        changed = n == first and steps >= count
        found.append(Owned(f"populations, copy {n}", memory_of(copy), role, changed))
    found += [
        Owned(f"what left axis {axis} at {direction:+d}", memory_of(kept), Role.KEPT)
        for (axis, direction), kept in sites.outflow.items()
    ]
    return found


def around_steps(sites: AnySites) -> tuple[Around, ...]:
    """Memory is requested as many bytes at a time as these sites want, if there are enough steps to
    be worth it.
    """
    if isinstance(sites, SplitSites):
        return tuple(a for part in sites.parts for a in around_steps(part))
    nbytes = sites.fetched_bytes
    return () if nbytes is None else (partial(_fetching, sites.device, nbytes, sites.count),)


def pieces_of(sites: Iterable[AnySites]) -> tuple[InPiece, ...]:
    """In what pieces of their steps run."""
    return tuple(s.ghosts.running for s in sites if isinstance(s, SplitSites))


def _fetching(device: str, nbytes: int, count: int, steps: int) -> AbstractContextManager[None]:
    return nullcontext() if steps * count < LONG_RUN else get_device(device).fetching(nbytes)
