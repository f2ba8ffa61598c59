"""A flock: agents, the rules that they follow, and time.

flock = Flock(agents=4096, world=50)
flock.run(600)
flock.polarisation(), flock.position
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lanewise as lw
from lanewise.arrays import RecordArray
from lanewise.checks import checked
from lanewise.errors import ArgumentError, InputError
from lanewise.io.source import FilePath
from lanewise.layouts import default_layout, layout_by_name
from lanewise.profiling.profile import Profile, span
from lanewise.runtime.devices import resolve
from lanewise.runtime.memory import bring, require_memory, to_host
from lanewise.runtime.programs import Part, Program
from lanewise.runtime.stepping import make_program
from lanewise.search import Nearest, Neighbors, Search
from lanewise.search.automatic import choose
from lanewise.search.base import Structure
from lanewise.search.points import Points, points_of
from lanewise.sims.boids.boundaries import find_boundary
from lanewise.sims.boids.choice import check_k, find_search, search_world
from lanewise.sims.boids.initial import make_state
from lanewise.sims.boids.obstacles import Obstacle, check_obstacle
from lanewise.sims.boids.parameters import THESIS_K, make_parameters
from lanewise.sims.boids.rules import FIELDS, SPHERE, record_class
from lanewise.sims.boids.semantics import Semantics, make_semantics
from lanewise.sims.boids.settings import (
    DT,
    Clock,
    Settings,
    check_precision,
    check_semantics_fit,
    check_steps,
    check_think_every,
    check_time_step,
    check_world,
)
from lanewise.sims.boids.state import State, check_state
from lanewise.sims.boids.statistics import Statistics, make_measures, observer_of, polarisation
from lanewise.sims.boids.storage import REORDER, make_storage
from lanewise.sims.boids.survival import check_survival

Callback = Callable[["Flock"], None]

ROUND, REORDERING = (
    "round",
    "reordering",
)  # parts of a flock's program, beside the single steps of a round by their numbers


class Flock:
    """Agents that fly together (Reynolds' boids), in OpenSteer's units.

    Parameters
    ----------
    agents: how many, placed by `start` ("ball", "world", "cube", "shell", "disc", "clusters") within `start_radius`, from `seed`;
    or `state`: where they are, (see `State`, `read_state`).
    world: its radius. boundary: what is at its end, and the scenes of OpenSteerDemo (see `BOUNDARIES`); obstacles: more of them.
    semantics: "sync" (all steer, then all move), "seq" (one after another, on a CPU) or "thesis".
    k: only so many of the nearest flockmates count (None: all within the radius; 7 in "thesis").
    search: "auto", "all-pairs", "static-grid", "dynamic-grid", or a search such as `lw.StaticGrid(...)`.
    think_every: an agent steers anew in every n-th step only.
    precision: "f32" or "f64"; layout: by default the device's best.
    profile: is told where the time goes (`lw.Profile()`); results keep their bits.
    constants: any number of `Parameters`, as `cohesion_weight=4`.

    Raises `InputError` for values out of range, `DeviceError` when the memory does not suffice.
    """

    @checked(InputError)
    def __init__(
        self, agents: int | None = None, *, state: State | None = None, world: float = 50.0, semantics: str = "sync",
        k: int | None = None, search: str | Search = "auto", boundary: str = "wrap", obstacles: Sequence[Obstacle] = (),
        think_every: int = 1, precision: str = "f32", layout: str | None = None, device: str | None = None,
        start: str = "ball", start_radius: float | None = None, seed: int = 0, profile: Profile | None = None,
        **constants: float,
    ) -> None:  # fmt: skip
        parameters = make_parameters(semantics, constants)
        check_world(world)
        check_precision(precision)
        check_think_every(think_every)
        find_boundary(boundary)
        for o in obstacles:
            check_obstacle(o)
        where = resolve(device)
        record = record_class(precision).__record__
        chosen = layout_by_name(layout) if layout else default_layout(record, where)
        settings = Settings(
            semantics, parameters, THESIS_K if k is None and semantics == "thesis" else k,
            search if isinstance(search, str) else "given", world, boundary, tuple(obstacles), think_every, precision,
            str(chosen).lower(), where,
        )  # fmt: skip
        check_semantics_fit(settings)
        if state is None:
            state = make_state(
                agents, start=start, radius=start_radius, world=world, max_speed=parameters.max_speed, seed=seed
            )
        elif agents is not None and agents != len(state):
            raise InputError(f"the state has {len(state)} agents, not {agents}; leave agents out")
        self.profile = profile
        with span(profile, "setup", name="flock"):
            self._begin(settings, state, search)

    def _begin(
        self, settings: Settings, state: State, search: str | Search, rows: NDArray[np.int32] | None = None
    ) -> None:
        """Allocate, compile and bind. `rows`: of the agent at each place in memory; None: as they are in the state."""
        check_k(settings.k, len(state), settings.think_every)
        check_state(state)
        self.settings, self.ids = settings, state.ids
        _check_places(settings, state)
        with span(self.profile, "transfer", name="agents to the device"):
            self.boids = make_boids(state if rows is None else placed(state, rows), settings)
        end = find_boundary(settings.boundary).end
        world = search_world(end, settings.world)
        radius = settings.parameters.radius
        try:
            asked = (
                lw.AllPairs(radius=radius)
                if settings.semantics == "seq"
                else find_search(search, radius, settings.k, world)
            )
            self.search, self.search_reason = _chosen(asked, points_of(self.boids, "position"))
            self._semantics: Semantics = make_semantics(settings, self.boids, self.search)
        except ArgumentError as error:  # of a search: its arguments come from the user of the flock
            raise InputError(str(error)) from error
        self._storage = make_storage(self.boids, self._semantics.structure, settings.think_every)
        if self._storage is not None and rows is not None:
            self._storage.rows[...] = bring(rows, settings.device)
        self.step = 0
        self.start_time, self.start_step, self._elapsed, self._dt = 0.0, 0, 0.0, 0.0
        self._program: Program | None = None

    # ------------------------------------------------------------ advancing

    @property
    def time(self) -> float:
        """Start time plus all steps; computed by multiplication, so it does not drift."""
        return self.start_time + self._elapsed + (self.step - self.start_step) * self._dt

    @checked(InputError)
    def prepare(self, dt: float = DT) -> None:
        """Compile what steps of `dt` need, so that the first one costs no more than the others."""
        check_time_step(dt)
        if dt != self._dt:
            self._elapsed += (self.step - self.start_step) * self._dt
            self.start_step, self._dt, self._program = self.step, dt, None
        if self._program is not None:
            return
        with span(self.profile, "setup", name="launches of a step"):
            period, device = self.settings.think_every, self.settings.device
            structure = self.structure
            graphs = structure is None or structure.in_graphs
            phases = [self._semantics.launches(dt, phase) for phase in range(period)]
            parts: dict[Hashable, Part] = {ROUND: Part([work for phase in phases for work in phase], period)}
            parts |= {number: Part(phase) for number, phase in enumerate(phases)}
            if self._storage is not None:
                parts[REORDERING] = Part(self._storage.launches(), 0)
            self._program = make_program(device, parts, self.profile, graphs=graphs)

    @checked(InputError)
    def advance(self, steps: int, dt: float = DT) -> None:
        """Take `steps` steps of `dt` and wait for them. On CUDA they run as graphs.

        Raises `InputError` when an agent is lost: it has left a bounded world, or the finite numbers.
        """
        check_steps(steps, least=0)
        self.prepare(dt)
        assert self._program is not None
        before = self.step
        self._program.run(self._schedule(before, before + steps))
        self.step += steps
        with span(self.profile, "check"):
            check_survival(self, before)

    def _schedule(self, step: int, end: int) -> list[tuple[Hashable, int]]:
        """Rounds in which everybody thinks once, single steps before and after them, and now and then the order in memory."""
        found: list[tuple[Hashable, int]] = []
        period = self.settings.think_every
        while step < end:
            stop = end
            if self._storage is not None:
                if step % REORDER == 0:
                    found.append((REORDERING, 1))
                stop = min(end, step + REORDER - step % REORDER)
            rounds = (stop - step) // period if step % period == 0 else 0
            found.append((ROUND, rounds) if rounds else (step % period, 1))
            step += rounds * period or 1
        return found

    @checked(InputError)
    def run(self, steps: int, dt: float = DT, callback: Callback | None = None, every: int = 1) -> Flock:
        """`steps` steps of `dt`; `callback(flock)` after every `every` of them and after the last."""
        check_steps(steps)
        if every < 1:
            raise InputError(f"every={every}: wanted a whole number of steps from 1 on")
        done = 0
        while done < steps:
            piece = steps if callback is None else min(every, steps - done)
            self.advance(piece, dt)
            done += piece
            if callback is not None:
                callback(self)
        return self

    @checked(InputError)
    def steps(self, dt: float = DT, every: int = 1) -> Iterator[Flock]:
        """Iterate without end: `for flock in flock.steps(every=10): ...`, each turn `every` steps on."""
        while True:
            yield self.run(every, dt)

    # ------------------------------------------------------------ looking

    def __len__(self) -> int:
        return len(self.boids)

    @property
    def position(self) -> Any:
        """(n, 3), on the device; a copy."""
        return self._by_row(self.boids.position)

    @property
    def forward(self) -> Any:
        """Headings: unit vectors, (n, 3), on the device; a copy."""
        return self._by_row(self.boids.forward)

    @property
    def speed(self) -> Any:
        """(n,), on the device; a copy."""
        return self._by_row(self.boids.speed)

    @property
    def rows(self) -> NDArray[np.int32]:
        """Of the agent at each place of `boids`, which are brought into the order of their search now and then."""
        return np.arange(len(self), dtype=np.int32) if self._storage is None else np.array(to_host(self._storage.rows))

    def _by_row(self, values: Any) -> Any:
        return values.copy() if self._storage is None else self._storage.by_row(values)

    @property
    def state(self) -> State:
        """A copy of the agents on the host, in the precision of the flock."""
        return State(**{n: to_host(self._by_row(getattr(self.boids, n))) for n in FIELDS}, ids=self.ids)

    def polarisation(self) -> float:
        """The length of the mean heading: 1 when all look the same way, about 1 / sqrt(n) when nobody follows anybody."""
        return polarisation(self.boids, make_measures(self.settings.precision))

    def statistics(self) -> Statistics:
        """Order, distances, speeds, and how full cells of the search radius are."""
        return observer_of(self).take(self.state.position)

    @property
    def structure(self) -> Structure | None:
        """What finds flockmates, as it was built; None where agents move one after another."""
        return self._semantics.structure

    def describe_search(self) -> str:
        """What finds the flockmates, in one line."""
        structure = self.structure
        return "all pairs, one agent after another" if structure is None else structure.describe()

    # ------------------------------------------------------------ keeping

    @checked(InputError)
    def checkpoint(self, path: FilePath, *, overwrite: bool = False) -> None:
        """Write everything that `resume` needs as HDF5: whole, or not at all."""
        from lanewise.sims.boids.checkpoint import write_checkpoint

        write_checkpoint(Path(path), self, overwrite=overwrite)

    @staticmethod
    @checked(InputError)
    def resume(path: FilePath, *, device: str | None = None) -> Flock:
        """The flock of a checkpoint; on the same kind of device with the bits of an uninterrupted one."""
        from lanewise.sims.boids.checkpoint import read_checkpoint, restored

        return restored(read_checkpoint(Path(path)), device=device)

    @property
    def clock(self) -> Clock:
        """What the time follows from, for a resumed flock to go on with the same times."""
        return Clock(self.step, self.start_time, self.start_step, self._elapsed, self._dt)

    @classmethod
    def _restored(
        cls, settings: Settings, state: State, search: str | Search, clock: Clock, urges: Sequence[Any],
        rows: NDArray[np.int32], profile: Profile | None = None,
    ) -> Flock:  # fmt: skip
        """At the step of a checkpoint."""
        flock = cls.__new__(cls)
        flock.profile = profile
        with span(profile, "setup", name="flock"):
            flock._begin(settings, state, search, rows)
        flock.step, flock.start_time, flock.start_step = clock.step, clock.start_time, clock.start_step
        flock._elapsed, flock._dt = clock.elapsed, clock.dt
        for mine, kept in zip(flock._semantics.urges, urges, strict=False):
            mine[...] = bring(kept, settings.device)
        return flock

    @property
    def urges(self) -> tuple[Any, ...]:
        """The sums over pairs of the last step, which agents follow who do not think in every step; (n, 3) each, on the device."""
        return tuple(self._by_row(u) for u in self._semantics.urges)


def _chosen(asked: Search, points: Points) -> tuple[Search, str]:
    """The search with a structure of its own, and why it is that one."""
    if isinstance(asked, Neighbors | Nearest):
        return choose(asked, points)
    return asked, "asked for"


def make_boids(state: State, settings: Settings) -> RecordArray:
    """The record array of a state, in the precision, layout and place of the settings."""
    cls = record_class(settings.precision)
    layout, record, count = layout_by_name(settings.layout), cls.__record__, len(state)
    scalar = np.float64 if settings.precision == "f64" else np.float32
    nbytes = layout.arrange(record.leaves).nbytes(count) + 2 * 9 * np.dtype(scalar).itemsize * count
    require_memory(settings.device, nbytes, f"a flock of {count:,} agents")
    with np.errstate(over="ignore"):
        fields = {n: np.asarray(getattr(state, n)).astype(scalar) for n in FIELDS}
    for name, values in fields.items():
        if not np.isfinite(values).all():
            raise InputError(f"{name} holds more than float32 can; use precision f64")
    boids: RecordArray = cls.array(**fields, layout=layout, device=settings.device)
    return boids


def placed(state: State, rows: NDArray[np.int32]) -> State:
    """The agents in the order of their places."""
    return State(**{n: getattr(state, n)[rows] for n in FIELDS}, ids=state.ids[rows])


def _check_places(settings: Settings, state: State) -> None:
    """Refuse agents outside of a world that has an end."""
    end = find_boundary(settings.boundary).end
    distance = np.sqrt((state.position.astype(np.float64) ** 2).sum(axis=1))
    sphere = settings.boundary == "bounded" or end == SPHERE
    if sphere and distance.max() > settings.world:
        row = int(np.argmax(distance > settings.world))
        raise InputError(
            f"agent {state.ids[row]} starts {distance[row]:g} from the centre, outside of the world of radius {settings.world:g}; "
            "a larger --world holds it, or --boundary open"
        )
