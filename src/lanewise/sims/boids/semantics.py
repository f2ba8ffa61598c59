"""What a step does, in launches: all steer and then all move, or one agent after another; and
whether all agents stay in the world.

Who has left it is looked for on the device when steps are done. Who is lost stays lost, so none is
missed in between.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

import lanewise as lw
from lanewise.patterns.sequential.kernel import Step, bind_in_turn
from lanewise.profiling.staged_call import Staged
from lanewise.records.arrays import class_of
from lanewise.sims.boids.avoidance import kernel_of, make_avoidance
from lanewise.sims.boids.boundaries import find_boundary
from lanewise.sims.boids.choice import collision_search
from lanewise.sims.boids.collisions import make_collisions
from lanewise.sims.boids.mesh_steering import MeshSteering
from lanewise.sims.boids.parameters import move_values, pair_values
from lanewise.sims.boids.rules import Rules, make_rules
from lanewise.sims.boids.settings import FLAT, Settings
from lanewise.sims.common.devices import array_module, on
from lanewise.sims.common.loops import Task, device_call
from lanewise.sims.common.meshes import parts_of, transport_of, values_on_host
from lanewise.sims.common.searches import (
    Rooms,
    Structure,
    over_parts,
    structure_of,
    structures_over,
    without_look,
)
from lanewise.support.errors import InputError

if TYPE_CHECKING:
    from lanewise.sims.boids.flock import Flock


URGES = ("separation", "alignment", "cohesion")


class Semantics(Protocol):
    """What a flock asks of one of the semantics."""

    def calls(self, dt: float) -> Sequence[Sequence[Task | Staged]]:
        """The calls of a step of `dt`, for each of `think_every` steps after the other."""
        ...

    @property
    def kept(self) -> Mapping[str, Any]:
        """What steps read that earlier ones wrote, besides the agents."""
        ...

    @property
    def structure(self) -> Structure | None:
        """What finds flockmates; None where every agent looks at all others by itself."""
        ...

    @property
    def structures(self) -> tuple[Structure, ...]:
        """Of every part of a mesh one over all agents."""
        ...

    @property
    def urges(self) -> tuple[Any, ...]:
        """The sums over pairs of the last step, (n, 3) each on the device; nothing where they are
        never in memory.
        """
        ...

    def forget(self) -> None:
        """Agents may be anywhere now: what follows from where they are is found out anew."""
        ...


def rules_of(settings: Settings) -> Rules:
    """The kernels of a flock."""
    return make_rules(
        settings.precision,
        find_boundary(settings.boundary).end,
        settings.parameters.unit_side,
        settings.dimension == FLAT,
    )


def make_semantics(
    settings: Settings,
    boids: lw.RecordArray,
    search: lw.Search,
    plan: lw.Plan | None = None,
    rooms: Rooms | None = None,
) -> Semantics:
    """Compile and bind everything that does not depend on the time step. plan: of the search, if
    not its default one. rooms: of agents on a mesh.
    """
    if settings.semantics == "seq":
        return InTurn(settings, boids)
    return Synchronous(settings, boids, search, plan, rooms)


class Synchronous:
    """All steering from the old state, then all updates: the two substages of the thesis.

    Where agents think in every m-th step only, agent i does in those steps whose number has the
    remainder i % m; in the others it follows its last wish. The thinkers of a step are copied
    together, so that their search costs what that many agents cost.
    """

    def __init__(
        self,
        settings: Settings,
        boids: lw.RecordArray,
        search: lw.Search,
        plan: lw.Plan | None,
        rooms: Rooms | None,
    ) -> None:
        self._settings, self._boids, self._rules = settings, boids, rules_of(settings)
        if settings.think_every > 1 and search.k is not None:
            # Thinkers are copies, so each finds itself as well: at distance 0, where it adds
            # nothing.
            search = replace(search, k=min(search.k + 1, len(boids)))
        self._search = search
        # what steering reads of a thinker, and where the search looks from
        looks = () if search.sees is None else (search.sees.heading,)
        self._copied = tuple(dict.fromkeys(("position", "forward", *looks)))
        steer = self._rules.steer.using(search)
        values: dict[str, Any] = pair_values(settings.parameters)
        self._thinkers: lw.RecordArray | None = None
        self._steer: lw.Call
        self._urges: tuple[Any, ...]
        over_all = () if rooms is None else structures_over(search, rooms)
        self.structures: tuple[Structure, ...] = over_all
        self._near: MeshSteering | None = None
        if rooms is not None and (over := over_parts(search, rooms)) is not None:
            self._near = MeshSteering(settings, rooms, self._rules.steer, over, plan, values)
            self._urges = self._near.urges
            return
        if settings.think_every == 1:
            self._steer = steer.bind(boids, boids, plan=plan, **values)
            self._urges = self._steer.results
            return
        module, count = array_module(boids.device), len(boids)
        shape, kind = (count, 3), boids.position.dtype
        self._urges = tuple(module.zeros(shape, kind) for _ in URGES)
        self._thinkers = type(boids).zeros(
            boids.record,
            -(-count // settings.think_every),
            layout=boids.layout,
            device=boids.device,
            python_class=class_of(boids),
        )
        self._gather(0)
        self._steer = steer.bind(self._thinkers, boids, plan=plan, **values)

    def calls(self, dt: float) -> Sequence[Sequence[Task | Staged]]:
        moves = [*self._moves(dt), *self._collisions()]
        if self._near is not None:
            return [[self._near.task(dt), *moves]]
        steer = Staged("search", without_look(self._steer))
        if self._thinkers is None:
            return [[steer, *moves]]
        device, boids, thinkers = self._boids.device, [self._boids], [self._thinkers]
        thoughts, urges = self._steer.results, self._urges
        phases: list[Sequence[Task | Staged]] = []
        for phase in range(self._settings.think_every):
            gather, scatter = partial(self._gather, phase), partial(self._scatter, phase)
            before = device_call("build", "thinkers", gather, device, reads=boids, writes=thinkers)
            behind = device_call(
                "search", "urges of thinkers", scatter, device, reads=thoughts, writes=urges
            )
            phases.append([before, steer, behind, *moves])
        return phases

    def _moves(self, dt: float) -> list[Staged]:
        """What steps have after the steering: obstacles, and the update."""
        s, boids = self._settings, self._boids
        values: dict[str, Any] = {**move_values(s.parameters, dt), "world": s.world}
        if not s.all_obstacles:
            return [Staged("update", self._rules.move.bind(boids, *self._urges, **values))]
        kernels = make_avoidance(s.precision)
        clear = kernels.clear.bind(boids)
        ahead = clear.results[0]
        calls = [Staged("avoid", clear)]
        if s.is_periodic:  # agents may have been put outside of the box, where no images are
            calls.append(Staged("avoid", self._rules.settle.bind(boids, world=s.world)))
        for o in s.met:
            kernel, numbers = kernel_of(kernels, o, s.parameters.agent_radius)
            calls.append(Staged("avoid", kernel.bind(boids, ahead, out=ahead, **numbers)))
        around = self._rules.move_around.bind(
            boids, *self._urges, ahead, avoid_time=s.parameters.avoid_time, **values
        )
        return [*calls, Staged("update", around)]

    def _collisions(self) -> list[Staged]:
        """What comes last, where agents collide: who touches whom, and both move apart."""
        s, boids = self._settings, self._boids
        if not s.collide:
            return []
        kernels = make_collisions(s.precision, find_boundary(s.boundary).end)
        reach = s.touching
        search = collision_search(self._search, s.parameters.agent_radius)
        bump = kernels.bump.using(search).bind(boids, boids, reach=reach)
        apart = kernels.apart.bind(boids, *bump.results, world=s.world)
        return [Staged("collide", without_look(bump)), Staged("collide", apart)]

    def _gather(self, phase: int) -> None:
        """Copy what steering reads of the agents that think now."""
        assert self._thinkers is not None
        with on(self._boids.device):
            for name in self._copied:
                mine = getattr(self._boids, name)[phase :: self._settings.think_every]
                getattr(self._thinkers, name)[: len(mine)] = mine

    def _scatter(self, phase: int) -> None:
        with on(self._boids.device):
            for urge, thought in zip(self._urges, self._steer.results, strict=True):
                place = urge[phase :: self._settings.think_every]
                place[...] = thought[: len(place)]

    @property
    def kept(self) -> Mapping[str, Any]:
        return {} if self._thinkers is None else dict(zip(URGES, self._urges, strict=True))

    @property
    def structure(self) -> Structure | None:
        return structure_of(self._steer) if self._near is None else self.structures[0]

    @property
    def urges(self) -> tuple[Any, ...]:
        return self._urges

    def forget(self) -> None:
        if self._near is not None:
            self._near.forget()


class InTurn:
    """OpenSteer's own way: each agent steers by what the others have become, and moves before the
    next one looks.
    """

    def __init__(self, settings: Settings, boids: lw.RecordArray) -> None:
        self._settings, self._boids, self._rules = settings, boids, rules_of(settings)

    def calls(self, dt: float) -> Sequence[Sequence[Task | Staged]]:
        s, device = self._settings, self._boids.device
        values: dict[str, Any] = {**move_values(s.parameters, dt), "world": s.world}
        takes = {name: (0, number) for number, name in enumerate(URGES)}
        steps: list[Step] = []
        if s.all_obstacles:
            kernels = make_avoidance(s.precision)
            steps.append(Step(kernels.clear))
            for o in s.all_obstacles:
                kernel, numbers = kernel_of(kernels, o, s.parameters.agent_radius)
                steps.append(Step(kernel, {"ahead": (len(steps), 0)}, numbers))
            takes["ahead"] = (len(steps), 0)
            steps.append(
                Step(
                    self._rules.move_around,
                    takes,
                    {**values, "avoid_time": s.parameters.avoid_time},
                )
            )
        else:
            steps.append(Step(self._rules.move, takes, values))
        within = {**pair_values(s.parameters), "reach2": s.parameters.radius**2}
        launch = bind_in_turn(self._rules.steer_within, within, steps, self._boids)
        boids = [self._boids]
        return [[device_call("steps", "in turn", launch, device, reads=boids, writes=boids)]]

    @property
    def kept(self) -> Mapping[str, Any]:
        return {}

    @property
    def structure(self) -> Structure | None:
        return None

    @property
    def structures(self) -> tuple[Structure, ...]:
        return ()

    @property
    def urges(self) -> tuple[Any, ...]:
        return ()

    def forget(self) -> None:
        """Nothing follows from where agents are."""


def check_survival(flock: Flock, before: int) -> None:
    """Raise `InputError` when an agent has left a bounded world or the finite numbers since step
    `before`; it names the first one.
    """
    s, unsound = flock.settings, rules_of(flock.settings).unsound
    own = sum(int(unsound.sum(part, s.world)) for part in parts_of(flock.boids))
    lost = sum(transport_of(flock.boids).agree(own))
    if not lost:
        return
    rows = flock.rows
    places = np.flatnonzero(values_on_host(unsound(flock.boids, s.world)))
    place = int(places[np.argmin(rows[places])])
    position = values_on_host(flock.boids.position)[place].astype(np.float64)
    speed = float(values_on_host(flock.boids.speed)[place])
    who = f"between step {before:,} and step {flock.step:,} agent {flock.ids[rows[place]]}"
    others = f" ({lost:,} agents did)" if lost > 1 else ""
    if not np.isfinite([*position, speed]).all():
        raise InputError(
            f"{who} lost its finite position or velocity{others}; a smaller dt or smaller weights "
            "keep it"
        )
    distance = float(np.linalg.norm(position))
    raise InputError(
        f"{who} left the world of radius {s.world:g}, and is {distance:g} from its centre{others}; "
        "a larger --world, --boundary wrap, or "
        "an obstacle that is seen from inside keeps it"
    )
