"""`@sitewise(lattice)`: the update of one site of a lattice, site kinds, walls, and what is observed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from lanewise import types as t
from lanewise.errors import ArgumentError
from lanewise.field_values import brought, check_fits
from lanewise.kernels.arguments import describe
from lanewise.kernels.site_calls import SiteCall, bind_interpolated_walls, bind_outflow, bind_phase, compile_phase
from lanewise.kernels.site_function import CALL_ARGUMENTS, SiteFunction
from lanewise.kernels.site_stepper import SiteStepper
from lanewise.kernels.site_values import SiteValues, sort_values
from lanewise.lattices.base import Lattice
from lanewise.layouts import Layout
from lanewise.patterns.interpolated_walls import build_interpolated_walls
from lanewise.patterns.momentum_exchange import build_momentum_exchange
from lanewise.patterns.outflow import Outlet, build_outflow
from lanewise.patterns.site_arguments import SitewiseArguments, Update, check_uniforms
from lanewise.patterns.sitewise import build_sitewise
from lanewise.plan import Plan
from lanewise.plans import LEAST_MERGED
from lanewise.runtime.launches import NamedLaunch
from lanewise.runtime.memory import array_module, to_host
from lanewise.sites.array import Sites, arrival_array, make_sites
from lanewise.sites.edges import Rule
from lanewise.sites.fractions import WallFractions
from lanewise.sites.kinds import OUTFLOW, Wall, check_new
from lanewise.types import Scalar


class Sitewise:
    """A lattice, the function of its sites of kind 0, and the other kinds. Calling it runs one step."""

    def __init__(self, lattice: Lattice, function: Callable[..., Any]) -> None:
        self.lattice, self.python = lattice, function
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self._functions: dict[int, tuple[str, SiteFunction]] = {0: (function.__name__, SiteFunction(function, lattice))}
        self._walls: dict[int, Wall] = {}
        self._compiled: dict[Any, Any] = {}

    def __repr__(self) -> str:
        return f"<lanewise sitewise kernel {self.__name__} on {self.lattice.name}>"

    # ------------------------------------------------------------ kinds

    def kind(self, number: int, name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Give sites of another kind their function: `@flow.kind(1, "inlet")`. The function itself is returned."""
        check_new(number, name, self._taken())

        def add(function: Callable[..., Any]) -> Callable[..., Any]:
            self._functions[number] = (name, SiteFunction(function, self.lattice, number))
            return function

        return add

    def wall(self, number: int, name: str, velocity: str | None = None) -> None:
        """Make a kind of walls: half-way bounce-back, moving with the uniform called `velocity` when there is one."""
        check_new(number, name, self._taken())
        if velocity in CALL_ARGUMENTS:
            raise ArgumentError(
                f"kind {number} ({name!r}): the velocity {velocity!r} is an argument of the call itself; choose another name"
            )
        self._walls[number] = Wall(number, name, velocity)

    def _taken(self) -> list[tuple[int, str]]:
        return [(n, name) for n, (name, _) in self._functions.items()] + [(w.number, w.name) for w in self.walls]

    @property
    def walls(self) -> tuple[Wall, ...]:
        return tuple(self._walls.values())

    @property
    def main(self) -> SiteFunction:
        """The function of the sites of kind 0."""
        return self._functions[0][1]

    @property
    def real(self) -> Scalar:
        """The type that sites compute in."""
        return self._functions[0][1].real

    # ------------------------------------------------------------ sites

    def sites(
        self,
        shape: tuple[int, ...],
        *,
        mask: Any = None,
        edges: Mapping[str, Rule] | None = None,
        storage: str | None = None,
        streaming: str | None = None,
        layout: Layout | None = None,
        device: str | None = None,
        fractions: WallFractions | None = None,
    ) -> Sites:
        """The sites of a box, all populations zero.

        shape: (ny, nx) or (nz, ny, nx). mask: the kind of every site, whole numbers of that shape. edges: the rule of an
        axis, or of its (low, high) face: "periodic", "slip" or the name of a wall. storage: "f16" (GPU), "f32" or "f64".
        streaming: "pull" or "push" with two copies of the populations, or "in-place" with one. fractions: where walls cut
        links, if not half-way: bounce-back is then interpolated (`sites/fractions.py`). Raises `ArgumentError`
        for what does not fit, `DeviceError` when it does not fit the memory, before anything is allocated.
        """
        return make_sites(
            self.lattice, shape, known=frozenset(self._functions) | frozenset(self._walls), walls=self.walls,
            real=self.real, mask=mask, edges=edges, storage=storage, streaming=streaming, layout=layout, device=device,
            fractions=fractions,
        )  # fmt: skip

    def set_populations(self, sites: Sites, populations: Any) -> None:
        """Set the populations that arrive next, an array of shape (Q, *shape); the count of steps starts again.

        Raises `ArgumentError`, with the sites as they were, for another shape and for finite numbers that the storage
        type does not hold (float16 ends at 65,504).
        """
        shape = (self.lattice.size, *sites.shape)
        if np.shape(populations) != shape:
            raise ArgumentError(f"populations have the shape {shape}, found {np.shape(populations)}")

        def each() -> Iterator[Any]:  # one at a time: a second copy of all might not fit the device
            return (brought("populations", populations[q], sites.device) for q in range(self.lattice.size))

        check_fits("populations", each(), sites.storage)
        sites.step, sites.fresh = 0, True
        for q, values in enumerate(each()):
            setattr(sites.current, f"q{q}", values.astype(sites.storage.dtype).reshape(-1))

    def populations(self, sites: Sites, **values: Any) -> npt.NDArray[Any]:
        """The populations that arrive next, a NumPy array of shape (Q, *shape); zeros at walls.

        `values` are the velocities of moving walls, which add to what they send back.
        """
        given = self._values(sites, values | self._unneeded(sites, values))
        key = ("arriving", sites.phase.name, *self._situation(sites, given))
        if key not in self._compiled:
            arguments = self._arguments(sites, sites.step, sites.fresh, given, (self._functions[0][1].update,))
            arguments = replace(arguments, collects=True)
            self._compiled[key] = compile_phase(lambda index: build_sitewise(arguments, index), sites, None)
        array = arrival_array(sites, self.real)
        bind_phase(self._compiled[key], sites, sites.step, given, (), array)()
        found = array.numpy()
        return np.stack([found[f"q{q}"] for q in range(self.lattice.size)]).reshape(self.lattice.size, *sites.shape)

    # ------------------------------------------------------------ steps

    def __call__(self, sites: Sites, *, plan: Plan | None = None, **values: Any) -> None:
        """One step."""
        self.run(sites, 1, plan=plan, **values)

    def run(self, sites: Sites, steps: int, *, plan: Plan | None = None, **values: Any) -> None:
        """So many steps, inside graphs on a GPU; it returns when they are done."""
        self.stepper(sites, plan=plan, **values).run(steps)

    def stepper(self, sites: Sites, *, plan: Plan | None = None, **values: Any) -> SiteStepper:
        """What `run` makes for given values: bound once, to run again and again."""
        given = self._values(sites, values)

        def calls(step: int, fresh: bool) -> list[NamedLaunch]:
            return [
                self._call(sites, step, fresh, given, plan).named("collide-stream"),
                *(c.named("boundaries") for c in self._between(sites, step + 1, given, first=fresh)),
            ]

        return SiteStepper(self.__name__, sites, calls)

    def compile(self, sites: Sites, *, plan: Plan | None = None, **values: Any) -> SiteCall:
        """The kernel of the next step, without running it: its plan, source, resources, explanation."""
        return replace(self._call(sites, sites.step, sites.fresh, self._values(sites, values), plan), sites=sites)

    def _check_sites(self, sites: Sites) -> None:
        """Refuse sites of another lattice, with kinds that are not this flow's, or functions that do not fit together."""
        name, given = self.__name__, cast(Any, sites)
        if not isinstance(given, Sites):
            raise ArgumentError(f"{name} runs on sites, made by {name}.sites(...); found {describe(given)}")
        if sites.lattice != self.lattice:
            raise ArgumentError(f"{name} is a flow on {self.lattice.name}, and the sites are of {sites.lattice.name}")
        walls = sites.edges.walls - {OUTFLOW}
        unknown = sorted((sites.present | walls) - self._functions.keys() - self._walls.keys())
        if unknown or not walls <= self._walls.keys():
            raise ArgumentError(
                f"{name} has no {'wall' if not unknown else 'kind'} {(unknown or sorted(walls))[0]}, which the sites have: "
                "they were made for another flow"
            )
        for function in self._updates(sites):
            if function.real != self.real:
                raise ArgumentError(
                    f"{function.name} computes in {function.real}, and {name} in {self.real}: wanted one precision for all kinds"
                )
            if function.update.lowered.results:
                raise ArgumentError(
                    f"{function.name} returns a value, and sites are updated by what is left in their populations; "
                    f"{name}.observer(function) looks at values"
                )
            if sites.storage.size > function.real.size:
                raise ArgumentError(
                    f"the sites hold {sites.storage}, more than the {function.real} that {name} computes"
                )

    def _values(self, sites: Sites, given: Mapping[str, Any]) -> SiteValues:
        self._check_sites(sites)
        return sort_values(
            self.__name__, sites, given, self._parameters(sites), self.known_values(), self._wall_velocities(sites)
        )

    def _updates(self, sites: Sites) -> tuple[SiteFunction, ...]:
        """The functions of the kinds that occur, kind 0 first."""
        return tuple(f for n, (_, f) in sorted(self._functions.items()) if n == 0 or n in sites.present)

    def _walls_of(self, sites: Sites) -> tuple[Wall, ...]:
        met = sites.present | sites.edges.walls
        return tuple(w for w in self.walls if w.number in met)

    def _parameters(self, sites: Sites) -> dict[str, t.ValueType]:
        return check_uniforms([(f.name, f.parameters) for f in self._updates(sites)])

    def known_values(self) -> frozenset[str]:
        """Names of values that some kind takes, whether it occurs or not."""
        names = {n for _, f in self._functions.values() for n in f.parameters}
        return frozenset(names | {w.velocity for w in self.walls if w.velocity is not None})

    def _wall_velocities(self, sites: Sites) -> dict[str, t.ValueType]:
        vector = t.Vector(self.real, self.lattice.dimension)
        return {w.velocity: vector for w in self._walls_of(sites) if w.velocity is not None}

    def _call(self, sites: Sites, step: int, fresh: bool, values: SiteValues, plan: Plan | None) -> SiteCall:
        """One step of these sites, bound to their memory."""
        phase = sites.form.phase(step, fresh=fresh)
        key = (phase.name, plan, *self._situation(sites, values))
        if key not in self._compiled:
            arguments = self._arguments(sites, step, fresh, values)
            if plan is not None and plan.branches == "apart":  # then there have to be classes of sites
                arguments = replace(arguments, framed=False)
            self._compiled[key] = compile_phase(lambda index: build_sitewise(arguments, index), sites, plan)
        return bind_phase(self._compiled[key], sites, step, values, ())

    def compile_between(self, sites: Sites, *, step: int, **values: Any) -> list[SiteCall]:
        """The kernels that run before this step, beside the steps themselves, without running them: walls, then outflows."""
        return self._between(sites, step, self._values(sites, values), first=False)

    def _between(self, sites: Sites, step: int, values: SiteValues, *, first: bool) -> list[SiteCall]:
        """What corrects populations before a step. Outflows look at what walls send back, so walls come first."""
        return [*self._interpolated(sites, step, values), *self._outflows(sites, step, values, first=first)]

    def _interpolated(self, sites: Sites, step: int, values: SiteValues) -> list[SiteCall]:
        """What moves walls from half-way to where they are, before a step."""
        if sites.interpolation is None:
            return []
        phase = sites.form.phase(step, fresh=False)
        key = ("interpolated walls", phase.name, *self._situation(sites, values))
        if key not in self._compiled:
            main = (self._functions[0][1].update,)
            arguments = replace(
                self._arguments(sites, step, False, values, main), dense=False, placed=False, framed=False
            )
            self._compiled[key] = compile_phase(partial(build_interpolated_walls, arguments), sites, None)
        return [bind_interpolated_walls(self._compiled[key], sites, step, values)]

    def _outflows(self, sites: Sites, step: int, values: SiteValues, *, first: bool) -> list[SiteCall]:
        """What fills outflow faces before a step; the `first` time there is nothing from before."""
        calls: list[SiteCall] = []
        for axis, direction in sites.edges.outlets:
            outlet, phase = Outlet(axis, direction), sites.form.phase(step, fresh=False)
            key = ("outflow", outlet, phase.name, *self._situation(sites, values))
            if key not in self._compiled:
                main = (self._functions[0][1].update,)
                arguments = replace(
                    self._arguments(sites, step, False, values, main), dense=False, placed=False, framed=False
                )
                self._compiled[key] = compile_phase(partial(build_outflow, arguments, outlet=outlet), sites, None)
            speed = values.outflow_speed
            weight = 1.0 if first else speed / (1 + speed)
            calls.append(bind_outflow(self._compiled[key], sites, step, outlet, values, weight))
        return calls

    def _situation(self, sites: Sites, values: SiteValues) -> tuple[Any, ...]:
        return (
            sites.device, sites.count < LEAST_MERGED, sites.dense, sites.placed, sites.framed, sites.row_block,
            min(sites.shape) < 2, sites.layout, sites.storage, sites.form.name, sites.edges, sites.present,
            values.arrays_of, tuple(self._functions), self.walls,
        )  # fmt: skip

    def _arguments(
        self, sites: Sites, step: int, fresh: bool, values: SiteValues, functions: tuple[Update, ...] | None = None
    ) -> SitewiseArguments:
        walls = self._walls_of(sites)
        return SitewiseArguments(
            lattice=self.lattice, edges=sites.edges, phase=sites.form.phase(step, fresh=fresh), storage=sites.storage,
            real=self.real, layout=sites.layout, updates=functions or tuple(f.update for f in self._updates(sites)),
            walls=walls, solids=any(w.number in sites.present for w in walls), two=len(sites.copies) > 1,
            arrays=values.arrays_of, uniforms=values.uniforms_of, puts=functions is None, marked=sites.marks is not None, dense=sites.dense,
            thin=min(sites.shape) < 2, placed=sites.placed, framed=sites.framed, row_block=sites.row_block,
            moving_sites=any(w.velocity is not None and w.number in sites.present for w in walls),
        )  # fmt: skip

    # ------------------------------------------------------------ looking

    def observer(self, function: Callable[..., Any]) -> Observer:
        """A sitewise function that returns values of the populations that arrive next, for sites of every kind but walls."""
        return Observer(self, SiteFunction(function, self.lattice))

    def force(self, sites: Sites, walls: list[str] | tuple[str, ...], *, weights: bool = False, **values: Any) -> Any:
        """The momentum that walls of these kinds take from the fluid in this step, a float64 vector (x, y[, z]).

        Momentum exchange over the links that they cut, in the form that is right for moving walls, too: B. Wen, C. Zhang,
        Y. Tu, C. Wang, H. Fang, Galilean invariant fluid-solid interfacial dynamics in lattice Boltzmann simulations,
        Journal of Computational Physics 266 (2014), 161-170. `weights` adds the lattice's weights, for populations that
        are deviations from them. Links at edges and corners of the box where two different walls meet belong to neither.
        Raises `ArgumentError` for a name that is no wall.
        """
        if isinstance(walls, str) or not walls:
            raise ArgumentError(f"{self.__name__}.force takes a list of names of walls, found {walls!r}")
        numbers = tuple(sorted(self._wall_number(name) for name in walls))
        sorted_values = self._values(sites, values | self._unneeded(sites, values))
        # Populations that were set arrive as they are: no wall has sent them back yet.
        curved = sites.interpolation is not None and not sites.fresh
        key = ("force", numbers, weights, curved, sites.phase.name, *self._situation(sites, sorted_values))
        if key not in self._compiled:
            main = (self._functions[0][1].update,)
            arguments = self._arguments(sites, sites.step, sites.fresh, sorted_values, main)
            arguments = replace(arguments, placed=False, framed=False)
            self._compiled[key] = compile_phase(
                lambda index: build_momentum_exchange(arguments, index, numbers, weights, curved=curved), sites, None
            )
        module = array_module(sites.device)
        result = module.zeros((len(sites.walled), self.lattice.dimension), np.float64)
        call = bind_phase(
            self._compiled[key], sites, sites.step, sorted_values, ((result, t.Vector(t.F64, self.lattice.dimension)),)
        )
        call()
        return to_host(result.sum(axis=0))

    def _unneeded(self, sites: Sites, given: Mapping[str, Any]) -> dict[str, Any]:
        """Zeros for the parameters of functions that looking does not apply."""
        return {
            n: np.zeros(k.length if isinstance(k, t.Vector) else (), t.scalar_of(k).dtype)
            for n, k in self._parameters(sites).items()
            if n not in given
        }

    def _wall_number(self, name: str) -> int:
        for wall in self.walls:
            if wall.name == name:
                return wall.number
        raise ArgumentError(
            f"{name!r} is no kind of walls; they are {', '.join(repr(w.name) for w in self.walls) or 'none'}"
        )


@dataclass(eq=False)
class Observer:
    """A function that looks at the populations that arrive, and returns a value or several for each site."""

    flow: Sitewise
    function: SiteFunction
    compiled: dict[Any, Any] = field(default_factory=dict[Any, Any])

    def __call__(self, sites: Sites, *, plan: Plan | None = None, **values: Any) -> Any:
        """Arrays of shape (count,) or (count, components) on the sites' device: one, or a tuple of them; zeros at walls."""
        flow, f = self.flow, self.function
        if f.real != flow.real:
            raise ArgumentError(f"{f.name} computes in {f.real}, and {flow.__name__} in {flow.real}")
        given = sort_values(
            f.name,
            sites,
            values,
            f.parameters,
            flow.known_values(),
            flow._wall_velocities(sites),  # pyright: ignore[reportPrivateUsage]
        )
        key = (sites.phase.name, plan, *flow._situation(sites, given))  # pyright: ignore[reportPrivateUsage]
        if key not in self.compiled:
            arguments = flow._arguments(sites, sites.step, sites.fresh, given, (f.update,))  # pyright: ignore[reportPrivateUsage]
            self.compiled[key] = compile_phase(lambda index: build_sitewise(arguments, index), sites, plan)
        module = array_module(sites.device)
        results = tuple(
            (module.zeros((sites.count, k.length) if isinstance(k, t.Vector) else sites.count, t.scalar_of(k).dtype), k)
            for k in f.update.lowered.results
        )
        if not results:
            raise ArgumentError(f"{f.name} returns nothing to observe")
        bind_phase(self.compiled[key], sites, sites.step, given, results)()
        arrays = tuple(r for r, _ in results)
        return arrays[0] if len(arrays) == 1 else arrays


def sitewise(lattice: Lattice) -> Callable[[Callable[..., Any]], Sitewise]:
    """Make a kernel of a function of one site: `@sitewise(D2Q9) def flow(f: populations, omega: f32): ...`."""
    given: Any = lattice
    if not isinstance(given, Lattice):
        raise ArgumentError(f"@lw.sitewise takes a lattice, for example @lw.sitewise(lw.D2Q9); found {given!r}")
    return lambda function: Sitewise(lattice, function)
