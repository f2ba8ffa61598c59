"""A flock: agents, the rules that they follow, and time.

flock = Flock(agents=4096, world=50)
flock.run(600)
flock.polarisation(), flock.position

One class, and long, because what users read of a flock is documented here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

import lanewise as lw
from lanewise.io.source import FilePath
from lanewise.profiling.profile import Profile, span
from lanewise.sims.boids.boundaries import find_boundary
from lanewise.sims.boids.choice import Chosen
from lanewise.sims.boids.constants import ANEW, FIXED, Constant, check_names
from lanewise.sims.boids.engine import FlockEngine
from lanewise.sims.boids.initial import make_state
from lanewise.sims.boids.obstacles import Obstacle, check_obstacle
from lanewise.sims.boids.options import DT
from lanewise.sims.boids.placing import check_placed
from lanewise.sims.boids.semantics import check_survival
from lanewise.sims.boids.settings import (
    Settings,
    asked_settings,
    check_stride,
    check_world,
    spelled_search,
    usual_k,
)
from lanewise.sims.boids.state import State
from lanewise.sims.boids.statistics import Statistics, make_measures, observer_of, polarisation
from lanewise.sims.common.checks import check_steps, check_time_step
from lanewise.sims.common.clock import Clock
from lanewise.sims.common.devices import place_of, read_only
from lanewise.sims.common.meshes import lies_on
from lanewise.sims.common.searches import Structure
from lanewise.sims.common.timed_steps import TimedSteps, run_steps
from lanewise.support.attributes import sealed
from lanewise.support.checks import checked
from lanewise.support.errors import InputError
from lanewise.support.numerals import counted
from lanewise.support.uncopied import uncopied
from lanewise.support.whole_steps import WholeSteps

if TYPE_CHECKING:
    from lanewise.live.scenes import Scene
    from lanewise.sims.boids.explained import FlockExplanation

Callback = Callable[["Flock"], None]


@sealed(FIXED, made=ANEW)
class Flock:
    """Agents that fly together (Reynolds' boids), in OpenSteer's units.

    Parameters
    ----------
    agents: their number, placed by `start` ("ball", "world", "cube", "shell", "disc", "clusters")
    within `start_radius`, from `seed`. Or pass a `state` (see `State`, `read_state`).
    world: the radius of the world. boundary: what happens at its end, or a scene of OpenSteerDemo
    (see `BOUNDARIES`); obstacles: additional obstacles.
    semantics: "sync" (all steer, then all move), "seq" (one after another, on a CPU) or "thesis".
    k: the number of nearest flockmates that count (None: all within the radius; 7 in "thesis").
    search: "auto", "all-pairs", "static-grid", "cell-array", "dynamic-grid", or a search such as
    `lw.StaticGrid(...)`.
    think_every: an agent updates its steering only in every n-th step.
    dimension: 3, or 2: all agents are in the plane y = 0, and the world is a disc or a square.
    collide: agents nearer than twice `agent_radius` are moved apart at the end of a step.
    precision: "f32" or "f64"; layout: by default the one that was measured to be best for the
    device. device: a device or a mesh; a flock has the same bits for any number of parts.
    profile: records where the time goes (`lw.Profile()`); results keep their bits.
    constants: fields of `Parameters`, such as `cohesion_weight=4`.

    You may assign these constants, world, boundary, obstacles, search, k and profile, as in
    `flock.cohesion_weight = 4`: the next step is then that of a new flock of these agents. You may
    also write the fields of `boids` between steps. Other attributes cannot be assigned
    (`AttributeError`).

    Raises `InputError` for values out of range, `DeviceError` when the memory does not suffice.
    """

    __slots__ = ("__weakref__", "_checked", "_engine", "_steps")

    def __reduce__(self) -> NoReturn:
        uncopied("a flock", "write flock.checkpoint(path), and Flock.resume(path) continues there")

    @checked(InputError)
    def __init__(
        self,
        agents: int | None = None,
        *,
        state: State | None = None,
        world: float = 50.0,
        semantics: str = "sync",
        k: int | None = None,
        search: str | lw.Search = "auto",
        boundary: str = "wrap",
        obstacles: Sequence[Obstacle] = (),
        think_every: int = 1,
        precision: str = "f32",
        layout: str | None = None,
        device: str | lw.Mesh | None = None,
        start: str = "ball",
        start_radius: float | None = None,
        seed: int = 0,
        dimension: int = 3,
        collide: bool = False,
        profile: Profile | None = None,
        **constants: float,
    ) -> None:
        check_names(Flock, constants)
        settings = asked_settings(
            semantics=semantics, constants=constants, k=k, search=search, world=world,
            boundary=boundary, obstacles=obstacles, think_every=think_every, precision=precision,
            layout=layout, device=device, dimension=dimension, collide=collide,
        )  # fmt: skip
        if state is None:
            speed = settings.parameters.max_speed
            state = make_state(
                agents, start=start, radius=start_radius, world=world, max_speed=speed, seed=seed,
                dimension=dimension,
            )  # fmt: skip
        elif agents is not None and agents != len(state):
            raise InputError(f"the state has {len(state)} agents, not {agents}; leave agents out")
        else:
            check_placed(start=start, start_radius=start_radius, seed=seed)
        with span(profile, "setup", name="flock"):
            engine = FlockEngine(settings, state, search, profile, place=place_of(device))
        self._begin(engine, Clock(0, 0.0, 0, 0.0, 0.0), profile)

    def _begin(self, engine: FlockEngine, clock: Clock, profile: Profile | None) -> None:
        self._engine, self._checked = engine, clock.step
        remedy = "start again from a checkpoint, or from the first state of the agents"
        self._steps = TimedSteps(clock, profile, "the flock", remedy)

    # ------------------------------------------------------------ settings

    def _change(self, *, search: str | lw.Search | None = None, **changed: Any) -> None:
        """Continue with other settings, from the next step on."""
        self._steps.whole.check()
        if search is not None:
            changed["search"] = spelled_search(search)
        self._engine.change(replace(self.settings, **changed), search)
        self._steps.end()

    radius, near_radius = Constant(), Constant()
    separation_radius, separation_cosine, separation_weight = Constant(), Constant(), Constant()
    alignment_radius, alignment_cosine, alignment_weight = Constant(), Constant(), Constant()
    cohesion_radius, cohesion_cosine, cohesion_weight = Constant(), Constant(), Constant()
    max_force, max_speed, mass = Constant(), Constant(), Constant()
    agent_radius, avoid_time = Constant(), Constant()

    @property
    def world(self) -> float:
        """Its radius."""
        return self.settings.world

    @world.setter
    @checked(InputError)
    def world(self, value: float) -> None:
        check_world(value)
        self._change(world=value)

    @property
    def boundary(self) -> str:
        """What happens at the end of the world."""
        return self.settings.boundary

    @boundary.setter
    @checked(InputError)
    def boundary(self, value: str) -> None:
        find_boundary(value)
        self._change(boundary=value)

    @property
    def obstacles(self) -> tuple[Obstacle, ...]:
        """The obstacles besides those of the boundary."""
        return self.settings.obstacles

    @obstacles.setter
    @checked(InputError)
    def obstacles(self, value: Sequence[Obstacle]) -> None:
        for o in value:
            check_obstacle(o)
        self._change(obstacles=tuple(value))

    @property
    def k(self) -> int | None:
        """The number of nearest flockmates that count; None: all within the radius."""
        return self.settings.k

    @k.setter
    @checked(InputError)
    def k(self, value: int | None) -> None:
        self._change(k=usual_k(value, self.settings.semantics))

    @property
    def search(self) -> lw.Search:
        """The search that finds flockmates. Assign a search or its name."""
        return self._engine.choice.search

    @search.setter
    @checked(InputError)
    def search(self, value: str | lw.Search) -> None:
        self._change(search=value)

    @property
    def search_reason(self) -> str:
        """The reason for the search."""
        return self._engine.choice.why

    @property
    def choice(self) -> Chosen:
        """The search, the reason for it, and its tuned plan, as a checkpoint stores them."""
        return self._engine.choice

    @property
    def laid(self) -> lw.Search:
        """The search with the positions of its cells, as a checkpoint stores it: the order of sums
        depends on them.
        """
        return self._engine.laid

    @property
    def settings(self) -> Settings:
        """All settings, as a checkpoint stores them."""
        return self._engine.settings

    @property
    def boids(self) -> lw.RecordArray:
        """The agents in the order of memory (see `rows`). They are advanced in place; you may write
        to them between steps.
        """
        return self._engine.boids

    @property
    def ids(self) -> NDArray[np.int64]:
        """The ids of the agents in the caller's order: a copy."""
        return read_only(self._engine.ids.copy())

    @property
    def profile(self) -> Profile | None:
        """The profile that records where the time goes."""
        return self._steps.profile

    @profile.setter
    @checked(InputError)
    def profile(self, value: Profile | None) -> None:
        self._steps.end()
        self._steps.profile = value

    # ------------------------------------------------------------ advancing

    @property
    def step(self) -> int:
        """How many steps were taken."""
        return self._steps.clock.step

    @property
    def scene(self) -> Scene:
        """What a live view shows."""
        from lanewise.sims.boids.live import scene

        return scene(self)

    @property
    def whole(self) -> WholeSteps:
        """Its steps as a unit; observers between them register as `watched`."""
        return self._steps.whole

    @property
    def time(self) -> float:
        """Start time plus all steps; computed by multiplication, so it does not drift."""
        return self._steps.clock.time

    @checked(InputError)
    def prepare(self, dt: float = DT) -> None:
        """Compile what steps of `dt` need, so that the first one costs no more than the others."""
        check_time_step(dt)
        check_stride(self.settings, dt)
        self._steps.prepare(dt, lambda: self._engine.make_loop(dt, self.step, self._steps.profile))

    @checked(InputError)
    def advance(self, steps: int, dt: float = DT) -> None:
        """Take `steps` steps of `dt` and wait for them. On CUDA they run as graphs.

        Ctrl-C ends it after whole steps, which are counted. Raises `InputError` when an agent is
        lost: it has left a bounded world, or the finite numbers; `StateError` after steps that were
        stopped in the middle (see `WholeSteps`).
        """
        check_steps(steps, least=0)
        self._steps.whole.check()
        self.prepare(dt)
        self._engine.begin()
        self._steps.take(steps)
        with span(self._steps.profile, "check"):
            check_survival(self, self._checked)
        self._checked = self.step

    @checked(InputError)
    def sequence(self, steps: int = 1) -> Any:
        """The next steps as tasks over named buffers, with the previous or the default `dt`."""
        check_steps(steps)
        self.prepare(self.clock.dt or DT)
        loop = self._steps.loop
        assert loop is not None, "it is prepared"
        engine = self._engine
        return loop.sequence(steps, changed=engine.changed, kept=engine.semantics.kept)

    @checked(InputError)
    def run(
        self,
        steps: int,
        dt: float = DT,
        callback: Callback | None = None,
        every: int = 1,
        *,
        progress: bool = False,
    ) -> Flock:
        """`steps` steps of `dt`; `callback(flock)` after every `every` of them and after the last.

        progress: with a bar.
        """
        return run_steps("flock", self, steps, dt, callback, every, progress=progress)

    @checked(InputError)
    def steps(self, dt: float = DT, every: int = 1) -> Iterator[Flock]:
        """Iterate without end: `for flock in flock.steps(every=10): ...` advances by `every` steps
        each time.
        """
        while True:
            yield self.run(every, dt)

    # ------------------------------------------------------------ looking

    def __repr__(self) -> str:
        return (
            f"<flock of {counted(len(self), 'agent', 'agents')}, step {self.step:,}, "
            f"time {self.time:g}, on {lies_on(self.boids)}>"
        )

    def __len__(self) -> int:
        return len(self.boids)

    @property
    def position(self) -> Any:
        """(n, 3), on the device; a copy, read-only on a CPU."""
        return self._seen(self.boids.position)

    @property
    def forward(self) -> Any:
        """Headings: unit vectors, (n, 3), on the device; a copy, read-only on a CPU."""
        return self._seen(self.boids.forward)

    @property
    def speed(self) -> Any:
        """(n,), on the device; a copy, read-only on a CPU."""
        return self._seen(self.boids.speed)

    @property
    def rows(self) -> NDArray[np.int32]:
        """The caller's index of the agent at each index of `boids`, which are periodically sorted
        into the order of their search.
        """
        return self._engine.rows

    @property
    def places(self) -> Any:
        """`rows` on the device; None if agents keep the caller's order."""
        storage = self._engine.storage
        return None if storage is None else storage.rows

    def _seen(self, values: Any) -> Any:
        self._steps.whole.check()
        return read_only(self._engine.by_row(values))

    @property
    def state(self) -> State:
        """A copy of the agents on the host, in the precision of the flock."""
        self._steps.whole.check()
        return self._engine.state()

    def check_whole(self) -> None:
        """Raise `StateError` after steps that were stopped in the middle."""
        self._steps.whole.check()

    def polarisation(self) -> float:
        """The length of the mean heading: 1 if all agents head the same way, about 1 / sqrt(n) if
        headings are random.
        """
        self._steps.whole.check()
        return polarisation(self.boids, make_measures(self.settings.precision))

    def statistics(self) -> Statistics:
        """Order, distances, speeds, and the population of cells as large as the search radius."""
        return observer_of(self).take(self.state.position)

    @property
    def structure(self) -> Structure | None:
        """The structure that finds flockmates; None if agents move one after another."""
        return self._engine.semantics.structure

    def describe_search(self) -> str:
        """The search for flockmates, in one line."""
        structure = self.structure
        return "all pairs, one agent after another" if structure is None else structure.describe()

    @checked(InputError)
    def explain(self) -> FlockExplanation:
        """How flockmates are found, and all launches of the next step; on a mesh also the copies
        between its parts, their links, and the predicted speed of 2, 4 and 8 parts. Print it. On
        several GPUs it measures the rates of links, which takes some milliseconds.
        """
        from lanewise.sims.boids.explained import explain

        dt = self.clock.dt or DT
        self.prepare(dt)
        loop = self._steps.loop
        assert loop is not None, "it is prepared"
        return explain(self, loop, dt)

    # ------------------------------------------------------------ keeping

    @checked(InputError)
    def checkpoint(self, path: FilePath, *, overwrite: bool = False) -> None:
        """Write everything that `resume` needs as HDF5: whole, or not at all."""
        from lanewise.sims.boids.checkpoint import write_checkpoint

        write_checkpoint(Path(path), self, overwrite=overwrite)

    @staticmethod
    @checked(InputError)
    def resume(path: FilePath, *, device: str | lw.Mesh | None = None) -> Flock:
        """Continue the flock of a checkpoint; on the same kind of device with the bits of an
        uninterrupted flock.

        Warns (`ResumeWarning`) if the file is older and lacks some of the data that determine the
        bits.
        """
        from lanewise.sims.boids.checkpoint import resumed

        return resumed(Flock, Path(path), device=device)

    @property
    def clock(self) -> Clock:
        """The data from which the time is computed, so that a resumed flock continues with the same
        times.
        """
        return self._steps.clock

    @classmethod
    def _restored(cls, engine: FlockEngine, clock: Clock, profile: Profile | None) -> Flock:
        """At the step of a checkpoint."""
        flock = cls.__new__(cls)
        flock._begin(engine, clock, profile)
        return flock

    @property
    def urges(self) -> tuple[Any, ...]:
        """The sums of separation, alignment and cohesion over the flockmates, which agents follow
        until they update their steering; (n, 3) each, on the device.
        """
        return tuple(self._engine.by_row(u) for u in self._engine.semantics.urges)
