"""A flock: agents, the rules that they follow, and time.

flock = Flock(agents=4096, world=50)
flock.run(600)
flock.polarisation(), flock.position
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lanewise as lw
from lanewise.io.source import FilePath
from lanewise.layouts import default_layout, layout_by_name
from lanewise.profiling.profile import Profile, span
from lanewise.profiling.progress import take_steps
from lanewise.sims.boids.boundaries import find_boundary
from lanewise.sims.boids.choice import Chosen
from lanewise.sims.boids.choosing import choose_search, looks_for
from lanewise.sims.boids.initial import make_state
from lanewise.sims.boids.obstacles import Obstacle, check_obstacle
from lanewise.sims.boids.options import DT
from lanewise.sims.boids.parameters import NUMBERS, THESIS_K, make_parameters
from lanewise.sims.boids.placing import check_placed, check_places, make_boids, placed
from lanewise.sims.boids.rules import FIELDS, record_class
from lanewise.sims.boids.semantics import Semantics, check_survival, make_semantics
from lanewise.sims.boids.settings import (
    Settings,
    check_extent,
    check_fit,
    check_precision,
    check_stride,
    check_think_every,
    check_world,
)
from lanewise.sims.boids.state import State, check_state
from lanewise.sims.boids.statistics import Statistics, make_measures, observer_of, polarisation
from lanewise.sims.boids.storage import REORDER, AgentStorage, make_storage
from lanewise.sims.common.checks import check_every, check_steps, check_time_step
from lanewise.sims.common.clock import Clock
from lanewise.sims.common.devices import (
    bring,
    first_of,
    is_mesh,
    on,
    place_of,
    read_only,
    to_host,
)
from lanewise.sims.common.loops import product_loop
from lanewise.sims.common.meshes import (
    copied,
    in_one_place,
    lies_on,
    mesh_of,
    one_process,
    parts_of,
    spelled,
    values_on_host,
)
from lanewise.sims.common.searches import Structure, laid
from lanewise.support.attributes import near, sealed
from lanewise.support.checks import checked
from lanewise.support.errors import ArgumentError, InputError
from lanewise.support.warned import warn_user
from lanewise.support.whole_steps import WholeSteps

Callback = Callable[["Flock"], None]


class Constant:
    """One of the `Parameters` of the rules as an attribute of a flock."""

    def __set_name__(self, owner: type[Flock], name: str) -> None:
        self._name = name

    def __get__(self, flock: Flock | None, owner: type[Flock]) -> Any:
        return self if flock is None else getattr(flock.settings.parameters, self._name)

    def __set__(self, flock: Flock, value: float) -> None:
        s = flock.settings
        parameters = make_parameters(s.semantics, {self._name: value}, s.parameters)
        flock._change(parameters=parameters)  # pyright: ignore[reportPrivateUsage]


_FIXED = {
    "boids": "write to its fields, flock.boids.position[...] = ..., or make a new Flock with "
    "state=...",
    "step": "it counts the steps that were taken",
    "time": "it follows from the steps",
    "settings": "assign the setting itself, as in flock.cohesion_weight = 4",
    "state": "write to flock.boids, or make a new Flock with state=...",
    "position": "write to flock.boids.position (rows in the order of flock.rows), or make a new "
    "Flock with state=...",
    "forward": "write to flock.boids.forward (rows in the order of flock.rows), or make a new "
    "Flock with state=...",
    "speed": "write to flock.boids.speed (rows in the order of flock.rows), or make a new Flock "
    "with state=...",
}
_ANEW = "it is chosen when a flock is made: Flock(state=flock.state, ...) goes on with another one"


@sealed(_FIXED, made=_ANEW)
class Flock:
    """Agents that fly together (Reynolds' boids), in OpenSteer's units.

    Parameters
    ----------
    agents: how many, or none, placed by `start` ("ball", "world", "cube", "shell", "disc",
    "clusters") within `start_radius`, from `seed`; or `state`: where they are, (see `State`,
    `read_state`).
    world: its radius. boundary: what is at its end, and the scenes of OpenSteerDemo (see
    `BOUNDARIES`); obstacles: more of them.
    semantics: "sync" (all steer, then all move), "seq" (one after another, on a CPU) or "thesis".
    k: only that many of the nearest flockmates count (None: all within the radius; 7 in "thesis").
    search: "auto", "all-pairs", "static-grid", "dynamic-grid", or a search such as
    `lw.StaticGrid(...)`.
    think_every: an agent steers anew in every n-th step only.
    precision: "f32" or "f64"; layout: by default the device's best. device: or a mesh, on which a
    flock has the same bits whatever its parts are.
    profile: records where the time goes (`lw.Profile()`); results keep their bits.
    constants: any number of `Parameters`, as `cohesion_weight=4`.

    Those constants, world, boundary, obstacles, search, k and profile may be assigned, as in
    `flock.cohesion_weight = 4`: the next step is then that of a new flock of these agents. Fields
    of `boids` may be written between steps, too. Other attributes cannot be assigned
    (`AttributeError`).

    Raises `InputError` for values out of range, `DeviceError` when the memory does not suffice.
    """

    __slots__ = (
        "__weakref__",
        "_boids",
        "_checked",
        "_choice",
        "_clock",
        "_ids",
        "_laid",
        "_loop",
        "_profile",
        "_semantics",
        "_settings",
        "_storage",
        "_whole",
    )

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
        profile: Profile | None = None,
        **constants: float,
    ) -> None:
        _check_names(constants)
        parameters = make_parameters(semantics, constants)
        check_world(world)
        check_precision(precision)
        check_think_every(think_every)
        find_boundary(boundary)
        for o in obstacles:
            check_obstacle(o)
        where = place_of(device)
        one_process("agents", where if isinstance(where, lw.Mesh) else None)
        record = record_class(precision).__record__
        chosen = layout_by_name(layout) if layout else default_layout(record, first_of(where))
        settings = Settings(
            semantics,
            parameters,
            THESIS_K if k is None and semantics == "thesis" else k,
            search if isinstance(search, str) else "given",
            world,
            boundary,
            tuple(obstacles),
            think_every,
            precision,
            str(chosen).lower(),
            spelled(where),
        )
        check_fit(settings)
        check_extent(settings)
        if state is None:
            state = make_state(
                agents,
                start=start,
                radius=start_radius,
                world=world,
                max_speed=parameters.max_speed,
                seed=seed,
            )
        elif agents is not None and agents != len(state):
            raise InputError(f"the state has {len(state)} agents, not {agents}; leave agents out")
        else:
            check_placed(start=start, start_radius=start_radius, seed=seed)
        self._profile = profile
        with span(profile, "setup", name="flock"):
            self._begin(settings, state, search)

    def _begin(
        self,
        settings: Settings,
        state: State,
        search: str | lw.Search | Chosen,
        rows: NDArray[np.int32] | None = None,
        laid_before: lw.Search | None = None,
    ) -> None:
        """Allocate, compile and bind. search: as it was asked for, or chosen before.

        rows: of the agent at each place in memory; None: as they are in the state. laid_before: see
        `_bind`.
        """
        check_state(state)
        self._ids = state.ids.copy()
        check_places(settings, state.position, state.ids)
        with span(self._profile, "transfer", name="agents to the device"):
            if is_mesh(settings.device):  # agents keep the caller's order there
                rows = None
            self._boids = make_boids(state if rows is None else placed(state, rows), settings)
        self._storage: AgentStorage | None = None
        chosen = choose_search(settings, in_one_place(self._boids), search)
        self._bind(settings, chosen, rows, laid_before)
        self._clock, self._checked = Clock(0, 0.0, 0, 0.0, 0.0), 0
        self._whole = WholeSteps(
            "the flock", "start again from a checkpoint, or from the first state of the agents"
        )

    def _bind(
        self,
        settings: Settings,
        chosen: Chosen,
        rows: NDArray[np.int32] | None = None,
        laid_before: lw.Search | None = None,
    ) -> None:
        """Compile, and bind to the memory of the agents. `rows`: of the agent at each place in
        memory, where that is known.

        laid_before: the search with its cells where they were laid for earlier positions, which a
        resumed flock goes on with.
        """
        here = self._boids if laid_before else in_one_place(self._boids)
        search = laid_before or laid(chosen.search, here)
        try:
            semantics = make_semantics(settings, self._boids, search, chosen.plan)
        except ArgumentError as error:
            raise InputError(str(error)) from error
        storage = None
        if not is_mesh(settings.device):
            storage = make_storage(self._boids, semantics.structure, settings.think_every)
        if storage is not None and rows is not None:
            with on(settings.device):
                storage.rows[...] = bring(rows, settings.device)
        # from now on agents lie in the caller's order
        if storage is None and self._storage is not None:
            for name in FIELDS:
                setattr(self._boids, name, self._storage.by_row(getattr(self._boids, name)))
        self._loop: lw.Steps | None = None
        self._settings, self._choice, self._laid = settings, chosen, search
        self._semantics: Semantics = semantics
        self._storage = storage

    # ------------------------------------------------------------ settings

    def _change(self, *, search: str | lw.Search | None = None, **changed: Any) -> None:
        """Go on by other settings, from the next step on."""
        self._whole.check()
        settings = replace(self._settings, **changed)
        if search is not None:
            settings = replace(settings, search=search if isinstance(search, str) else "given")
        check_fit(settings)
        check_places(settings, values_on_host(self._by_row(self._boids.position)), self._ids)
        if search is None and looks_for(settings) == looks_for(self._settings):
            chosen = self._choice
        else:
            check_extent(settings)
            asked: str | lw.Search = self.search if settings.search == "given" else settings.search
            boids = in_one_place(self._boids)
            chosen = choose_search(settings, boids, asked if search is None else search)
        if mesh_of(self._boids) is not None:  # where no step reads the urges of the one before
            self._bind(settings, chosen)
            return
        with on(settings.device):
            urges = [u.copy() for u in self._semantics.urges]
            self._bind(settings, chosen, self.rows)
            for mine, kept in zip(self._semantics.urges, urges, strict=True):
                mine[...] = kept

    radius, near_radius = Constant(), Constant()
    separation_radius, separation_cosine, separation_weight = Constant(), Constant(), Constant()
    alignment_radius, alignment_cosine, alignment_weight = Constant(), Constant(), Constant()
    cohesion_radius, cohesion_cosine, cohesion_weight = Constant(), Constant(), Constant()
    max_force = Constant()
    max_speed = Constant()
    mass = Constant()
    agent_radius = Constant()
    avoid_time = Constant()

    @property
    def world(self) -> float:
        """Its radius."""
        return self._settings.world

    @world.setter
    @checked(InputError)
    def world(self, value: float) -> None:
        check_world(value)
        self._change(world=value)

    @property
    def boundary(self) -> str:
        """What is at the end of the world."""
        return self._settings.boundary

    @boundary.setter
    @checked(InputError)
    def boundary(self, value: str) -> None:
        find_boundary(value)
        self._change(boundary=value)

    @property
    def obstacles(self) -> tuple[Obstacle, ...]:
        """Those besides the boundary's."""
        return self._settings.obstacles

    @obstacles.setter
    @checked(InputError)
    def obstacles(self, value: Sequence[Obstacle]) -> None:
        for o in value:
            check_obstacle(o)
        self._change(obstacles=tuple(value))

    @property
    def k(self) -> int | None:
        """Only that many of the nearest flockmates count; None: all within the radius."""
        return self._settings.k

    @k.setter
    @checked(InputError)
    def k(self, value: int | None) -> None:
        self._change(
            k=THESIS_K if value is None and self._settings.semantics == "thesis" else value
        )

    @property
    def search(self) -> lw.Search:
        """The search that finds flockmates; assigned is it, or its name."""
        return self._choice.search

    @search.setter
    @checked(InputError)
    def search(self, value: str | lw.Search) -> None:
        self._change(search=value)

    @property
    def search_reason(self) -> str:
        """Why it is that search."""
        return self._choice.why

    @property
    def choice(self) -> Chosen:
        """The search, why it is that one, and its tuned plan, as a checkpoint keeps them."""
        return self._choice

    @property
    def laid(self) -> lw.Search:
        """The search with its cells where they lie, as a checkpoint keeps it: the order of sums
        follows from them.
        """
        return self._laid

    @property
    def settings(self) -> Settings:
        """All of them, as a checkpoint keeps them."""
        return self._settings

    @property
    def boids(self) -> lw.RecordArray:
        """The agents in the order of memory (see `rows`); they are advanced in place, and may be
        written to between steps.
        """
        return self._boids

    @property
    def ids(self) -> NDArray[np.int64]:
        """Of the agents in the caller's order: a copy."""
        return read_only(self._ids.copy())

    @property
    def profile(self) -> Profile | None:
        """What records where the time goes."""
        return self._profile

    @profile.setter
    @checked(InputError)
    def profile(self, value: Profile | None) -> None:
        self._loop, self._profile = None, value

    # ------------------------------------------------------------ advancing

    @property
    def step(self) -> int:
        """How many steps were taken."""
        return self._clock.step

    @property
    def time(self) -> float:
        """Start time plus all steps; computed by multiplication, so it does not drift."""
        return self._clock.time

    @checked(InputError)
    def prepare(self, dt: float = DT) -> None:
        """Compile what steps of `dt` need, so that the first one costs no more than the others."""
        check_time_step(dt)
        check_stride(self._settings, dt)
        if dt != self._clock.dt:
            self._loop = None
            self._clock = self._clock.with_dt(dt)
        if self._loop is not None:
            return
        with span(self._profile, "setup", name="launches of a step"):
            calls: list[list[Any]] = [list(phase) for phase in self._semantics.calls(dt)]
            if self._storage is not None:
                calls[0].insert(0, lw.every(REORDER, self._storage.call()))
            self._loop = product_loop(calls, len(calls), self._profile, of="flock")
            self._loop.step = self.step

    @checked(InputError)
    def advance(self, steps: int, dt: float = DT) -> None:
        """Take `steps` steps of `dt` and wait for them. On CUDA they run as graphs.

        Ctrl-C ends it after whole steps, which are counted. Raises `InputError` when an agent is
        lost: it has left a bounded world, or the finite numbers; `StateError` after steps that were
        stopped in the middle (see `WholeSteps`).
        """
        check_steps(steps, least=0)
        self._whole.check()
        self.prepare(dt)
        loop = self._loop
        assert loop is not None

        def run(count: int) -> None:
            loop.run(count)
            self._clock = self._clock.after(count)

        self._whole.take(self.step, steps, run)
        with span(self._profile, "check"):
            check_survival(self, self._checked)
        self._checked = self.step

    @checked(InputError)
    def sequence(self, steps: int = 1) -> Any:
        """The next steps as tasks over named buffers: of `dt` as before, or by default."""
        check_steps(steps)
        self.prepare(self._clock.dt or DT)
        assert self._loop is not None
        parts = parts_of(self._boids)
        changed: dict[str, Any] = {"agents": parts[0]}
        changed |= {f"agents of part {n}": part for n, part in enumerate(parts[1:], 1)}
        if self._storage is not None:
            changed["rows"] = self._storage.rows
        return self._loop.sequence(steps, changed=changed, kept=self._semantics.kept)

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
        check_steps(steps)
        check_every(every)
        look = None if callback is None else partial(callback, self)
        take_steps(
            "flock", steps, lambda count: self.advance(count, dt), look, every, shown=progress
        )
        return self

    @checked(InputError)
    def steps(self, dt: float = DT, every: int = 1) -> Iterator[Flock]:
        """Iterate without end: `for flock in flock.steps(every=10): ...`, each turn `every` steps
        on.
        """
        while True:
            yield self.run(every, dt)

    # ------------------------------------------------------------ looking

    def __repr__(self) -> str:
        return (
            f"<flock of {len(self):,} agents, step {self.step:,}, time {self.time:g}, on "
            f"{lies_on(self._boids)}>"
        )

    def __len__(self) -> int:
        return len(self._boids)

    @property
    def position(self) -> Any:
        """(n, 3), on the device; a copy, read-only on a CPU."""
        return self._seen(self._boids.position)

    @property
    def forward(self) -> Any:
        """Headings: unit vectors, (n, 3), on the device; a copy, read-only on a CPU."""
        return self._seen(self._boids.forward)

    @property
    def speed(self) -> Any:
        """(n,), on the device; a copy, read-only on a CPU."""
        return self._seen(self._boids.speed)

    @property
    def rows(self) -> NDArray[np.int32]:
        """Of the agent at each place of `boids`, which are brought into the order of their search
        now and then.
        """
        return (
            np.arange(len(self), dtype=np.int32)
            if self._storage is None
            else np.array(to_host(self._storage.rows))
        )

    def _seen(self, values: Any) -> Any:
        self._whole.check()
        return read_only(self._by_row(values))

    def _by_row(self, values: Any) -> Any:
        return copied(values) if self._storage is None else self._storage.by_row(values)

    @property
    def state(self) -> State:
        """A copy of the agents on the host, in the precision of the flock."""
        self._whole.check()
        return State(
            **{n: values_on_host(self._by_row(getattr(self._boids, n))) for n in FIELDS},
            ids=self._ids.copy(),
        )

    def check_whole(self) -> None:
        """Raise `StateError` after steps that were stopped in the middle."""
        self._whole.check()

    def polarisation(self) -> float:
        """The length of the mean heading: 1 when all look the same way, about 1 / sqrt(n) when
        nobody follows anybody.
        """
        self._whole.check()
        return polarisation(self._boids, make_measures(self._settings.precision))

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
        """The flock of a checkpoint; on the same kind of device with the bits of an uninterrupted
        one.

        Warns (`ResumeWarning`) of an older file that does not keep all that decides them.
        """
        from lanewise.sims.boids.checkpoint import (
            ResumeWarning,
            other_cells,
            read_checkpoint,
            restored,
        )

        saved = read_checkpoint(Path(path))
        if note := other_cells(saved):
            warn_user(note, ResumeWarning)
        return restored(Flock, saved, device=device)

    @property
    def clock(self) -> Clock:
        """What the time follows from, for a resumed flock to go on with the same times."""
        return self._clock

    @classmethod
    def _restored(
        cls, settings: Settings, state: State, chosen: Chosen, clock: Clock, urges: Sequence[Any],
        rows: NDArray[np.int32], laid_before: lw.Search | None, profile: Profile | None = None,
    ) -> Flock:  # fmt: skip
        """At the step of a checkpoint."""
        flock = cls.__new__(cls)
        flock._profile = profile
        with span(profile, "setup", name="flock"):
            flock._begin(settings, state, chosen, rows, laid_before)
        flock._clock, flock._checked = clock, clock.step
        device = flock._boids.device
        with on(device):
            for mine, kept in zip(flock._semantics.urges, urges, strict=False):
                mine[...] = bring(kept, device)
        return flock

    @property
    def urges(self) -> tuple[Any, ...]:
        """The sums over pairs of the last step, which agents follow who do not think in every step;
        (n, 3) each, on the device.
        """
        return tuple(self._by_row(u) for u in self._semantics.urges)


def _check_names(constants: Mapping[str, float]) -> None:
    """Refuse a name that is neither a constant of the rules nor another setting of a flock."""
    named = [n for n in inspect.signature(Flock).parameters if n != "constants"]
    known = (*named, *NUMBERS)
    for name in constants:
        if name not in NUMBERS:
            raise InputError(
                f"Flock has no setting {name!r}{near(name, known) or ';'} wanted some of "
                f"{', '.join(known)}"
            )
