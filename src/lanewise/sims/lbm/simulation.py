"""A flow: sites with populations, collisions, boundaries, and steps.

simulation = Simulation(shape=(128, 128), viscosity=0.1, edges={"x": "wall", "y": ("wall", "lid")},
                        kinds={1: Wall("wall"), 2: Wall("lid", velocity=(0.1, 0.0))})
simulation.run(1000)
simulation.velocity[64, 64]

One class, and long, because what users read of a flow is documented here; what it does is done by
`engine`, `arguments`, `guard` and `watch`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

import lanewise as lw
from lanewise.io.source import FilePath
from lanewise.profiling.profile import Profile, span
from lanewise.profiling.progress import take_steps
from lanewise.sims.common.checks import check_every, check_steps
from lanewise.sims.common.devices import (
    array_module,
    first_of,
    module_of,
    on,
    place_of,
    read_only,
    target_of,
)
from lanewise.sims.common.meshes import available_on
from lanewise.sims.lbm.arguments import (
    asked_settings,
    check_geometry,
    check_initial,
    check_motion,
    check_outflow_speed,
    check_smagorinsky,
    chosen_force,
    chosen_lattice,
    chosen_parameters,
    chosen_rate,
    with_surfaces,
)
from lanewise.sims.lbm.checks import check_memory, warn_stiffness
from lanewise.sims.lbm.engine import FlowEngine
from lanewise.sims.lbm.guard import FlowGuard
from lanewise.sims.lbm.initial import deviations
from lanewise.sims.lbm.kinds import Edges, Kind, Wall
from lanewise.sims.lbm.obstacles.boxes import check_shape
from lanewise.sims.lbm.obstacles.surfaces import Surface
from lanewise.sims.lbm.settings import Settings, SiteGeometry
from lanewise.sims.lbm.watch import Stagger, find_stagger
from lanewise.support.attributes import near, sealed
from lanewise.support.checks import checked
from lanewise.support.errors import InputError
from lanewise.support.uncopied import uncopied
from lanewise.support.whole_steps import WholeSteps

if TYPE_CHECKING:
    from lanewise.live.scenes import Scene
    from lanewise.sims.common.shown import LoopExplanation

Callback = Callable[["Simulation"], None]

_INITIAL = (
    "it follows from the populations; a new Simulation takes it as its initial state, and force= "
    "drives a flow"
)
_FIXED = {
    "velocity": _INITIAL,
    "density": _INITIAL,
    "step": "it counts the steps that were taken",
    "settings": "assign the setting itself, as in simulation.viscosity = 0.02",
    "shape": "make a new Simulation with shape=...",
    "lattice": "make a new Simulation with lattice=...",
    "geometry": "make a new Simulation with mask=..., kinds=... and edges=...",
    "solid": "make a new Simulation with mask=...",
}
WALL = {1: Wall("wall")}
"""The kinds of a simulation that names none.

1, and true in a mask of booleans, is a wall at rest.
"""


@sealed(_FIXED)
class Simulation:
    """The flow of a nearly incompressible fluid, in lattice units: sites are 1 apart, a step takes
    1, the density is about 1.

    Parameters
    ----------
    shape: (ny, nx) or (nz, ny, nx) sites.
    lattice: "D2Q9", "D3Q19", "D3Q27" or another `Lattice`; by default D2Q9 or D3Q19.
    viscosity, omega or re: one of them; kinematic viscosity, its relaxation rate 1 / (3 viscosity +
    1/2), or the Reynolds number of `speed` and `length`.
    collision: the name of a collision operator (see `operators`), with `parameters` of it besides
    omega, for example {"magic": 1 / 4} for "trt"; smagorinsky: the constant of the turbulence
    model, 0 for none.
    force: a body force on every site, one component per dimension.
    mask: kinds of the sites, integers of the lattice's shape (0 is fluid), or booleans (true
    is kind 1).
    kinds: what the numbers are: {1: Wall("wall"), 2: Open("inlet", ...)}. By default 1 is a wall at
    rest.
    surfaces: of walls by their numbers, for example {1: obstacles.Round((20, 20), 5)}: such walls
    lie at this surface, by interpolated bounce-back, instead of half-way between fluid and solid
    sites. For sites on a surface the surface decides which are walls, not the mask.
    edges: the faces of the box by axis: "periodic" (default), "slip", "outflow", the name of a
    wall, or (low, high).
    outflow_speed: of convective outflow, above 0 and at most 1 site per step. Use about the speed
    of the flow there; 1 lets sound out best.
    density, velocity: the initial state, uniform or arrays with one value per site;
    gradient: d u_b / d x_a of the velocity in [..., a, b], whose stress then belongs to the initial
    state.
    precision: of the arithmetic, "f32" or "f64"; storage: of the populations, "f16" (on GPUs),
    "f32" or "f64", by default the precision. streaming: "in-place" (half the memory), "pull" or
    "push"; layout: by default SoA on a CPU, AoSoA on a GPU.
    device: of the populations; or a mesh (`lw.Mesh`, "cuda:*", "cpu*4"), whose parts have at least
    8 layers along every axis that is cut. Results have the same bits; fields that you read are
    copied to the first device. On a mesh of several processes all of them make the same calls; the
    first one writes files.
    profile: records where the time goes (`lw.Profile()`); results keep their bits.

    You may assign viscosity, omega, collision, parameters, smagorinsky, force, outflow_speed and
    profile: the next step is then that of a new simulation with the same populations. Other
    attributes cannot be assigned (`AttributeError`).

    Raises `InputError` for values out of range, among them tau <= 1/2 and velocities above Mach
    0.3, and `DeviceError` for sizes that do not fit the memory; both before anything is allocated
    on the device. Warns (`FlowWarning`) of tau just above 1/2.
    """

    __slots__ = (
        "__weakref__",
        "_absent",
        "_engine",
        "_fluid",
        "_geometry",
        "_guard",
        "_lattice",
        "_mesh",
        "_seen",
        "_settings",
        "_step",
    )

    def __reduce__(self) -> NoReturn:
        uncopied(
            "a simulation",
            "write simulation.checkpoint(path), and Simulation.resume(path) continues there",
        )

    @checked(InputError)
    def __init__(
        self,
        *,
        shape: Sequence[int],
        lattice: str | lw.Lattice | None = None,
        viscosity: float | None = None,
        omega: float | None = None,
        re: float | None = None,
        speed: float | None = None,
        length: float | None = None,
        collision: str = "trt",
        parameters: Mapping[str, float] | None = None,
        smagorinsky: float = 0.0,
        force: Sequence[float] | None = None,
        mask: Any = None,
        kinds: Mapping[int, Kind] | None = None,
        edges: Edges | None = None,
        density: Any = 1.0,
        velocity: Any = None,
        gradient: Any = None,
        precision: str | None = None,
        storage: str | None = None,
        streaming: str | None = None,
        layout: str | None = None,
        device: str | lw.Mesh | None = None,
        outflow_speed: float = 1.0,
        surfaces: Mapping[int, Surface] | None = None,
        profile: Profile | None = None,
    ) -> None:
        sizes = check_shape(shape)
        self._lattice = chosen_lattice(lattice, len(sizes))
        rate, place = chosen_rate(viscosity, omega, re, speed, length), place_of(device)
        settings = asked_settings(
            self._lattice, sizes, rate, collision=collision, parameters=parameters,
            smagorinsky=smagorinsky, force=force, precision=precision, storage=storage,
            streaming=streaming, layout=layout, device=first_of(place),
            outflow_speed=outflow_speed,
        )  # fmt: skip
        geometry = check_geometry(sizes, mask, WALL if kinds is None else kinds, edges or {})
        geometry = with_surfaces(self._lattice, geometry, surfaces or {})
        check_motion(self._lattice, geometry, sizes)
        check_initial(sizes, density, velocity, gradient)
        mesh = place if isinstance(place, lw.Mesh) else None
        self._begin(settings, geometry, FlowGuard(0), profile, mesh)
        fluid = ~geometry.solid(sizes)
        start = np.broadcast_to(np.asarray(density, np.float64), sizes)[fluid]
        self._guard.first_mass = float(start.sum())
        if (
            velocity is not None
            or gradient is not None
            or force is not None
            or np.any(np.asarray(density) != 1)
        ):
            with span(profile, "setup", name="initial state"):
                self._set(density, velocity, gradient)

    def _begin(
        self,
        settings: Settings,
        geometry: SiteGeometry,
        guard: FlowGuard,
        profile: Profile | None,
        mesh: lw.Mesh | None,
    ) -> None:
        """Compile and allocate; populations are at rest."""
        available = available_on(settings.device if mesh is None else mesh)
        s = settings
        check_memory(s.shape, self._lattice, s.storage, s.streaming, available)
        self._geometry, self._mesh = geometry, mesh
        self._absent: frozenset[str] | None = None  # walls, once a force was requested
        with span(profile, "setup", name="sites and kernels"):
            self._engine = FlowEngine(self._lattice, settings, geometry, profile, mesh)
        self._settings = replace(settings, layout=self._engine.layout)
        self._fluid = int(
            math.prod(settings.shape) - np.count_nonzero(geometry.solid(settings.shape))
        )
        self._step, self._guard = guard.step, guard
        self._seen: tuple[tuple[int, int], Any, Any] | None = None

    def _set(self, density: Any, velocity: Any, gradient: Any) -> None:
        s = self._settings
        at_rest = np.zeros(len(s.shape)) if velocity is None else velocity
        self._engine.set_arriving(
            deviations(
                self._lattice,
                s.shape,
                density,
                at_rest,
                gradient=gradient,
                tau=1 / s.omega,
                force=s.force,
                dtype=np.float64 if s.precision == "f64" else np.float32,
            )
        )

    # ------------------------------------------------------------ settings

    @property
    def viscosity(self) -> float:
        """Kinematic viscosity, in sites squared per step."""
        return self._settings.viscosity

    @viscosity.setter
    @checked(InputError)
    def viscosity(self, value: float) -> None:
        self._set_rate(chosen_rate(value, None, None, None, None))

    @property
    def omega(self) -> float:
        """The relaxation rate of the viscosity: 1 / (3 viscosity + 1/2)."""
        return self._settings.omega

    @omega.setter
    @checked(InputError)
    def omega(self, value: float) -> None:
        self._set_rate(chosen_rate(None, value, None, None, None))

    def _set_rate(self, rate: float) -> None:
        warn_stiffness(1 / rate, self.collision)
        self._change(omega=rate)

    @property
    def collision(self) -> str:
        """The name of the collision operator; another one begins with its own default
        parameters.
        """
        return self._settings.collision

    @collision.setter
    @checked(InputError)
    def collision(self, value: str) -> None:
        self._change(collision=value, parameters=chosen_parameters(value, None))

    @property
    def parameters(self) -> Mapping[str, float]:
        """The parameters of the collision operator besides omega, read-only. Assign some or all of
        them; the others get their defaults.
        """
        return MappingProxyType(dict(self._settings.parameters))

    @parameters.setter
    @checked(InputError)
    def parameters(self, value: Mapping[str, float]) -> None:
        self._change(parameters=chosen_parameters(self.collision, value))

    @property
    def smagorinsky(self) -> float:
        """The constant of the turbulence model, 0 for none."""
        return self._settings.smagorinsky

    @smagorinsky.setter
    @checked(InputError)
    def smagorinsky(self, value: float) -> None:
        self._change(smagorinsky=check_smagorinsky(value))

    @property
    def force(self) -> tuple[float, ...]:
        """The body force on every site, one component per dimension; () and None are no force."""
        return self._settings.force

    @force.setter
    @checked(InputError)
    def force(self, value: Sequence[float] | None) -> None:
        self._change(force=chosen_force(value or None, len(self.shape)))

    @property
    def outflow_speed(self) -> float:
        """Of convective outflow, in sites per step."""
        return self._settings.outflow_speed

    @outflow_speed.setter
    @checked(InputError)
    def outflow_speed(self, value: float) -> None:
        self._change(outflow_speed=check_outflow_speed(value))

    def _change(self, **settings: Any) -> None:
        """From the next step on."""
        self._engine.check_whole()
        changed = replace(self._settings, **settings)
        self._engine.change(changed)
        self._seen, self._settings = None, changed

    @property
    def profile(self) -> Profile | None:
        """The profile that records where the time goes."""
        return self._engine.profile

    @profile.setter
    @checked(InputError)
    def profile(self, value: Profile | None) -> None:
        self._engine.profile = value

    @property
    def settings(self) -> Settings:
        """All settings, as a checkpoint stores them."""
        return self._settings

    @property
    def geometry(self) -> SiteGeometry:
        """What the sites are."""
        return self._geometry

    @property
    def lattice(self) -> lw.Lattice:
        return self._lattice

    # ------------------------------------------------------------ advancing

    @property
    def step(self) -> int:
        """How many steps were taken."""
        return self._step

    @property
    def scene(self) -> Scene:
        """What a live view shows."""
        from lanewise.sims.lbm.live import scene

        return scene(self)

    @property
    def whole(self) -> WholeSteps:
        """Its steps as a unit; observers between them register as `watched`."""
        return self._engine.whole

    def prepare(self) -> None:
        """Compile what steps need, so that the first one costs no more than the others."""
        with span(self.profile, "setup", name="kernels of steps"):
            self._engine.prepare()

    @checked(InputError)
    def prepare_looks(self, steps: int, *walls: str) -> None:
        """Compile the kernels that read the flow after `steps` more steps, at least one, and the
        force on the walls of these names.
        """
        check_steps(steps)
        self._check_walls(walls)
        with span(self.profile, "setup", name="kernels of looks"):
            self._engine.prepare_looks(steps, walls)

    @checked(InputError)
    def advance(self, steps: int) -> None:
        """Take `steps` steps and wait for them, without checking the result.

        On CUDA they run as graphs.

        Ctrl-C ends it after whole steps, which are counted. Raises `StateError` after steps that
        were stopped in the middle.
        """
        check_steps(steps, least=0)
        self._engine.run(steps, self._count)

    def _count(self, steps: int) -> None:
        self._step += steps

    @checked(InputError)
    def explain(self) -> LoopExplanation:
        """All launches of the next step; on a mesh also the copies between its parts, their links,
        and the predicted speed of 2, 4 and 8 parts. Print it. On several GPUs it measures the rates
        of links, which takes some milliseconds.
        """
        self._engine.check_whole()
        return self._engine.explain()

    def check(self) -> None:
        """Raise `InputError` if the flow has diverged: it names the site, and the steps between
        which it happened.
        """
        with span(self.profile, "observe", name="check"), on(self.settings.device):
            self._guard.check(self, *self._moments())

    @checked(InputError)
    def run(
        self,
        steps: int,
        callback: Callback | None = None,
        every: int = 1,
        *,
        progress: bool = False,
    ) -> Simulation:
        """`steps` steps; `callback(simulation)` after every `every` of them and after the last.

        Checks periodically. progress: with a bar.

        Raises `InputError` if the flow diverges. Warns (`FlowWarning`), once, of a velocity that
        alternates from site to site (`stagger`); this is checked at the end, if there were 256
        steps since the last check. Warns, once, if the mass of a box without openings has changed,
        and if the mass of a box drifts because no opening fixes a density.
        """
        check_steps(steps)
        check_every(every)
        interval, left = self._guard.begin(self), steps

        def advance(count: int) -> None:
            nonlocal left
            self.advance(count)
            left -= count
            if self._guard.is_due(self) or not left:
                self.check()

        look = None if callback is None else partial(callback, self)
        take_steps("flow", steps, advance, look, every, shown=progress, most=interval)
        self._guard.end(self)
        return self

    # ------------------------------------------------------------ looking

    def __repr__(self) -> str:
        s = self.settings
        sizes, how = " x ".join(map(str, s.shape)), f"{s.collision}, {s.precision}"
        return f"<flow over {sizes} sites, {s.lattice}, step {self.step:,}, {how} on {self.place}>"

    @property
    def mesh(self) -> lw.Mesh | None:
        """The mesh of the sites, if there is one."""
        return self._mesh

    @property
    def place(self) -> str:
        """The device, or the mesh, in words."""
        return self.settings.device if self._mesh is None else f"a mesh ({self._mesh})"

    @property
    def shape(self) -> tuple[int, ...]:
        return self.settings.shape

    @property
    def sites(self) -> int:
        """The number of sites of the box, including walls."""
        return math.prod(self.settings.shape)

    @property
    def fluid_sites(self) -> int:
        """The number of sites that are updated: all but walls."""
        return self._fluid

    @property
    def solid(self) -> NDArray[np.bool_]:
        """The sites of walls, on the host."""
        return self.geometry.solid(self.settings.shape)

    @property
    def interpolated_links(self) -> int:
        """The number of links that are cut at a surface; all other links that walls cut are cut
        half-way.
        """
        return self._engine.interpolated_links

    @property
    def density(self) -> Any:
        """Of the lattice's shape, on the device; 1 in walls. The pressure is a third of it.

        Read-only on a CPU, a copy on a GPU.
        """
        excess = self._moments()[0]
        return read_only(module_of(excess).add(excess, 1).reshape(self.settings.shape))

    @property
    def velocity(self) -> Any:
        """Of the lattice's shape and an axis of components x, y(, z), in sites per step, on the
        device; 0 in walls.

        Read-only on a CPU, a copy on a GPU.
        """
        velocity = self._moments()[1].reshape(*self.settings.shape, len(self.settings.shape))
        return (
            read_only(velocity)
            if target_of(self.settings.device).host_memory
            else module_of(velocity).copy(velocity)
        )

    def _moments(self) -> tuple[Any, Any]:
        """Density less 1 and velocity after the last step, computed once."""
        self._engine.check_whole()
        state = (self._step, self._engine.version)
        if self._seen is None or self._seen[0] != state:
            name = "first look (compiles)" if self._seen is None else "density and velocity"
            with span(self.profile, "observe", name=name):
                self._seen = (state, *self._engine.moments())
        return self._seen[1], self._seen[2]

    def stagger(self) -> Stagger:
        """How much the velocity alternates from site to site, and where most. Flows do not
        alternate; this comes from waves that walls hardly damp.
        """
        with span(self.profile, "observe", name="stagger"):
            return find_stagger(self.velocity, self.solid, self.settings.device)

    @property
    def mass(self) -> float:
        """The density of all fluid sites together, summed in float64."""
        excess = self._moments()[0]
        return self._fluid + float(array_module(self.settings.device).sum(excess, dtype=np.float64))

    @property
    def first_mass(self) -> float | None:
        """The mass at the start of the run, even before any checkpoint; None before `run`, and
        after a checkpoint that does not have it.
        """
        return self._guard.first_mass

    @checked(InputError)
    def force_on(self, *names: str) -> NDArray[Any]:
        """The force of the fluid on the walls of these names, by momentum exchange: float64 of
        shape (D,), in lattice units.

        It is the momentum that the fluid lost to them in the last step. After a sudden start it
        alternates from step to step (Ladd 1994): the mean over two steps is the force. It is
        meaningless before the first step. Raises `InputError` for a name that no wall has, and for
        a wall that no site of the mask and no edge has.
        """
        self._check_walls(names)
        with span(self.profile, "observe", name="force"):
            return self._engine.force(names)

    def _check_walls(self, names: Sequence[str]) -> None:
        walls = {w.name for w in self.geometry.walls.values()}
        for name in names:
            if name not in walls:
                wanted = ", ".join(sorted(walls)) or "a simulation with walls"
                raise InputError(
                    f"no wall has the name {name!r}{near(name, walls) or ';'} wanted {wanted}"
                )
        if self._absent is None:
            self._absent = self.geometry.absent_walls()
        if absent := self._absent.intersection(names):
            raise InputError(
                f"the wall {min(absent)!r} is nowhere, so it has no force: no site of the mask is "
                "of its kind, and no edge has its name; wanted a body within the box"
            )

    @property
    def bytes_per_site(self) -> float:
        """The bytes that a step reads and writes for a fluid site."""
        return self._engine.bytes_per_site

    # ------------------------------------------------------------ keeping

    @checked(InputError)
    def checkpoint(self, path: FilePath, *, overwrite: bool = False) -> None:
        """Write everything that `resume` needs, and the fields, as HDF5: whole, or not at all."""
        from lanewise.sims.lbm.checkpoint import write_checkpoint

        write_checkpoint(Path(path), self, overwrite=overwrite)

    @staticmethod
    @checked(InputError)
    def resume(
        path: FilePath,
        *,
        device: str | lw.Mesh | None = None,
        streaming: str | None = None,
        layout: str | None = None,
        profile: Profile | None = None,
    ) -> Simulation:
        """Continue the simulation of a checkpoint, bitwise identical if no option changes, for any
        number of parts before and after; otherwise its populations are converted.
        """
        from lanewise.sims.lbm.checkpoint import read_checkpoint, restored

        saved = read_checkpoint(Path(path))
        return restored(
            Simulation, saved, device=device, streaming=streaming, layout=layout, profile=profile
        )

    @classmethod
    def _restored(
        cls,
        lattice: lw.Lattice,
        settings: Settings,
        geometry: SiteGeometry,
        step: int,
        profile: Profile | None = None,
        first_mass: float | None = None,
        mesh: lw.Mesh | None = None,
    ) -> Simulation:
        """At rest, for a checkpoint to fill."""
        simulation = cls.__new__(cls)
        simulation._lattice = lattice
        simulation._begin(settings, geometry, FlowGuard(step, first_mass), profile, mesh)
        return simulation

    @property
    def engine(self) -> FlowEngine:
        """The compiled kernels and the memory that they advance."""
        return self._engine
