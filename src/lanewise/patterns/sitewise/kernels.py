"""The kernels of a flow: compiled once for every specialisation of its sites, and bound to their memory.

An observer is one of them: a function that looks at the populations that arrive, and returns values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from lanewise import types as t
from lanewise.arrays import RecordArray
from lanewise.errors import ArgumentError
from lanewise.ir import nodes as ir
from lanewise.launch.executable import Executable
from lanewise.patterns.sitewise.build import build_sitewise
from lanewise.patterns.sitewise.builder import SitewiseArguments, Update, check_uniforms
from lanewise.patterns.sitewise.call_kinds import SiteKinds
from lanewise.patterns.sitewise.calls import SiteCall, bind_interpolated_walls, bind_outflow, bind_phase, compile_phase
from lanewise.patterns.sitewise.function import Observed, SiteFunction, SiteValues, classify_values, in_order
from lanewise.patterns.sitewise.interpolated_walls import build_interpolated_walls
from lanewise.patterns.sitewise.momentum_exchange import build_momentum_exchange
from lanewise.patterns.sitewise.outflow import Outlet, build_outflow
from lanewise.patterns.sitewise.pattern import LEAST_MERGED
from lanewise.patterns.sitewise.sites import Sites, arrival_array
from lanewise.plan import Plan, check_plan
from lanewise.runtime.memory import array_module, to_host
from lanewise.types import Scalar


class SiteKernels:
    """What steps and looks of a flow run. Calls are bound to the memory of some sites before some step."""

    def __init__(self, kinds: SiteKinds) -> None:
        self.kinds = kinds
        self._compiled: dict[Any, Executable] = {}

    def step(self, sites: Sites, step: int, fresh: bool, values: SiteValues, plan: Plan | None) -> SiteCall:
        """One step."""
        check_plan(self.kinds.name, plan)
        phase = sites.form.phase(step, fresh=fresh)
        key = (phase.name, plan, *self.specialisation(sites, values))
        if key not in self._compiled:
            arguments = self.arguments(sites, step, fresh, values)
            if plan is not None and plan.branches == "apart":  # then there have to be classes of sites
                arguments = replace(arguments, framed=False)
            self._compiled[key] = compile_phase(partial(build_sitewise, arguments), sites, plan)
        return bind_phase(self._compiled[key], sites, step, values, ())

    def observed(self, sites: Sites, values: SiteValues) -> tuple[Observed, ...]:
        """What is looked at before every step: the fields that this flow's own observers write, and what its values observe."""
        fields = dict(values.fields_of)
        own_fields = (
            Observed(
                f.name, sites, fields[n], sites.field(n, fields[n]), partial(self._write_field, sites, values, n, f)
            )
            for n, f in self.kinds.fields.items()
            if n in fields
        )
        return (*own_fields, *values.observed)

    def _write_field(
        self, sites: Sites, values: SiteValues, name: str, function: SiteFunction, step: int, fresh: bool
    ) -> SiteCall:
        """What writes a field before a step."""
        kind, results = dict(values.fields_of)[name], tuple(function.update.lowered.results)
        if function.fields or results != (kind,):
            found = (
                f"the fields {', '.join(function.fields)}"
                if function.fields
                else ", ".join(map(str, results)) or "no result"
            )
            raise ArgumentError(
                f"{function.name} writes the field {name!r}: wanted one {kind} of populations and values, found {found}"
            )
        if function.real != self.kinds.real:
            raise ArgumentError(
                f"{function.name} computes in {function.real}, and {self.kinds.name} in {self.kinds.real}"
            )

        def build(index: Scalar) -> ir.Kernel:
            arguments = self.arguments(sites, step, fresh, values, (function.update,))
            return build_sitewise(replace(arguments, fields=()), index)

        executable = self._for(("field", name, sites.form.phase(step, fresh=fresh).name), sites, values, build)
        return bind_phase(executable, sites, step, values, ((sites.field(name, kind), kind),))

    def between(self, sites: Sites, step: int, values: SiteValues, *, first: bool) -> list[SiteCall]:
        """What corrects populations before a step. Outflows look at what walls send back, so walls come first."""
        return [*self._interpolated(sites, step, values), *self._outflows(sites, step, values, first=first)]

    def arriving(self, sites: Sites, values: SiteValues) -> RecordArray:
        """The populations that arrive next, as the sites compute; zeros at walls."""

        def build(index: Scalar) -> ir.Kernel:
            arguments = self._looking(sites, sites.step, values, fresh=sites.fresh)
            return build_sitewise(replace(arguments, collects=True), index)

        executable = self._for(("arriving", sites.phase.name), sites, values, build)
        array = arrival_array(sites, self.kinds.real)
        bind_phase(executable, sites, sites.step, values, (), array)()
        return array

    def force(self, sites: Sites, values: SiteValues, numbers: tuple[int, ...], *, weights: bool) -> Any:
        """The momentum that walls take in this step, a float64 vector (see `Sitewise.force`)."""
        look, result = self._momentum(sites, sites.step, sites.fresh, values, numbers, weights=weights)
        look()
        return to_host(result.sum(axis=0))

    def prepare_force(
        self, sites: Sites, step: int, values: SiteValues, numbers: tuple[int, ...], *, weights: bool
    ) -> None:
        """Compile what `force` runs after `step` steps, one at least."""
        self._momentum(sites, step, False, values, numbers, weights=weights)

    def _momentum(
        self, sites: Sites, step: int, fresh: bool, values: SiteValues, numbers: tuple[int, ...], *, weights: bool
    ) -> tuple[SiteCall, Any]:
        """What looks at the momentum that walls take, and the array of it by site."""
        phase = sites.form.phase(step, fresh=fresh)
        # Populations that were set arrive as they are: no wall has sent them back yet.
        curved = sites.interpolation is not None and not fresh

        def build(index: Scalar) -> ir.Kernel:
            arguments = self._looking(sites, step, values, fresh=fresh)
            plain = replace(arguments, placed=False, framed=False)
            return build_momentum_exchange(plain, index, numbers, weights, curved=curved)

        executable = self._for(("force", numbers, weights, curved, phase.name), sites, values, build)
        dimension = self.kinds.lattice.dimension
        result = array_module(sites.device).zeros((len(sites.walled), dimension), np.float64)
        return bind_phase(executable, sites, step, values, ((result, t.Vector(t.F64, dimension)),)), result

    # ------------------------------------------------------------ between steps

    def _interpolated(self, sites: Sites, step: int, values: SiteValues) -> list[SiteCall]:
        """What moves walls from half-way to where they are, before a step."""
        if sites.interpolation is None:
            return []
        phase = sites.form.phase(step, fresh=False)

        def build(index: Scalar) -> ir.Kernel:
            return build_interpolated_walls(self._plain(sites, step, values), index)

        executable = self._for(("interpolated walls", phase.name), sites, values, build)
        return [bind_interpolated_walls(executable, sites, step, values)]

    def _outflows(self, sites: Sites, step: int, values: SiteValues, *, first: bool) -> list[SiteCall]:
        """What fills outflow faces before a step; the `first` time there is nothing from before."""
        calls: list[SiteCall] = []
        for axis, direction in sites.edges.outlets:
            outlet, phase = Outlet(axis, direction), sites.form.phase(step, fresh=False)

            def build(index: Scalar, outlet: Outlet = outlet) -> ir.Kernel:
                return build_outflow(self._plain(sites, step, values), index, outlet=outlet)

            executable = self._for(("outflow", outlet, phase.name), sites, values, build)
            speed = values.outflow_speed
            weight = 1.0 if first else speed / (1 + speed)
            calls.append(bind_outflow(executable, sites, step, outlet, values, weight))
        return calls

    # ------------------------------------------------------------ compiling

    def _for(
        self, key: tuple[Any, ...], sites: Sites, values: SiteValues, build: Callable[[Scalar], ir.Kernel]
    ) -> Executable:
        """The kernel of this name and specialisation, with the default plan."""
        whole_key = (*key, *self.specialisation(sites, values))
        if whole_key not in self._compiled:
            self._compiled[whole_key] = compile_phase(build, sites, None)
        return self._compiled[whole_key]

    def specialisation(self, sites: Sites, values: SiteValues) -> tuple[Any, ...]:
        """All that decides about kernels beside what they do."""
        return (
            sites.device, sites.count < LEAST_MERGED, sites.dense, sites.placed, sites.framed, sites.row_block,
            min(sites.shape) < 2, sites.layout, sites.storage, sites.form.name, sites.edges, sites.present,
            values.arrays_of, values.fields_of, tuple(self.kinds.functions), self.kinds.versions, self.kinds.walls,
        )  # fmt: skip

    def arguments(
        self, sites: Sites, step: int, fresh: bool, values: SiteValues, functions: tuple[Update, ...] | None = None
    ) -> SitewiseArguments:
        """What a kernel is specialised to: of a step, or with `functions` of a look at what arrives."""
        walls = self.kinds.walls_of(sites)
        return SitewiseArguments(
            lattice=self.kinds.lattice, edges=sites.edges, phase=sites.form.phase(step, fresh=fresh), storage=sites.storage,
            real=self.kinds.real, layout=sites.layout, updates=functions or tuple(f.update for f in self.kinds.updates(sites)),
            walls=walls, solids=any(w.number in sites.present for w in walls), two=len(sites.copies) > 1,
            arrays=values.arrays_of, uniforms=values.uniforms_of, puts=functions is None, marked=sites.marks is not None, dense=sites.dense,
            thin=min(sites.shape) < 2, placed=sites.placed, framed=sites.framed, row_block=sites.row_block,
            moving_sites=any(w.velocity is not None and w.number in sites.present for w in walls),
            fields=values.fields_of, state=tuple(self.kinds.state.items()),
        )  # fmt: skip

    def _looking(self, sites: Sites, step: int, values: SiteValues, *, fresh: bool) -> SitewiseArguments:
        return replace(self.arguments(sites, step, fresh, values, (self.kinds.main.update,)), fields=())

    def _plain(self, sites: Sites, step: int, values: SiteValues) -> SitewiseArguments:
        """Of kernels over lists of sites: these read their flags."""
        return replace(self._looking(sites, step, values, fresh=False), dense=False, placed=False, framed=False)


@dataclass(eq=False)
class Observer:
    """A function that looks at the populations that arrive, and returns a value or several for each site."""

    kernels: SiteKernels
    function: SiteFunction
    compiled: dict[Any, Executable] = field(default_factory=dict[Any, Executable])

    def __call__(self, sites: Sites, *, plan: Plan | None = None, **values: Any) -> Any:
        """Arrays of shape (count,) or (count, components) on the sites' device: one, or a tuple of them; zeros at walls."""
        check_plan(self.function.name, plan)
        self.kernels.kinds.check_sites(sites)
        sites.whole.check()
        look, arrays, needs = self._bound(sites, sites.step, sites.fresh, plan, values)
        for o in in_order(needs):
            o.sites.whole.check()
            o.look(o.sites.step, o.sites.fresh)()
        look()
        return arrays[0] if len(arrays) == 1 else arrays

    def of(self, sites: Sites, **values: Any) -> Observed:
        """What it sees of these sites at the beginning of every step, as a value of another call: see `lw.couple`.

        Raises `ArgumentError` unless it returns one value.
        """
        self.kernels.kinds.check_sites(sites)
        classified = self._values(sites, values)
        results = self.function.update.lowered.results
        if len(results) != 1:
            raise ArgumentError(
                f"{self.function.name} returns {len(results)} values; observed is one: wanted an observer for each"
            )
        (array,) = self._room(sites)

        def look(step: int, fresh: bool) -> SiteCall:
            return self._call(sites, step, fresh, None, classified, (array,))

        needs = self.kernels.observed(sites, classified)
        return Observed(self.function.name, sites, results[0], array, look, needs)

    def prepare(self, sites: Sites, step: int, **values: Any) -> None:
        """Compile what looks at the sites after `step` steps, one at least."""
        self._bound(sites, step, False, None, values)

    def _bound(
        self, sites: Sites, step: int, fresh: bool, plan: Plan | None, values: dict[str, Any]
    ) -> tuple[SiteCall, tuple[Any, ...], tuple[Observed, ...]]:
        """What looks, the arrays that it fills, and what is observed before it."""
        classified = self._values(sites, values)
        arrays = self._room(sites)
        call = self._call(sites, step, fresh, plan, classified, arrays)
        return call, arrays, self.kernels.observed(sites, classified)

    def _values(self, sites: Sites, values: dict[str, Any]) -> SiteValues:
        """What a call gives, for the function itself and for what writes the fields that it reads."""
        kinds, f = self.kernels.kinds, self.function
        f.notice()
        if f.real != kinds.real:
            raise ArgumentError(f"{f.name} computes in {f.real}, and {kinds.name} in {kinds.real}")
        writers = [w for n, w in kinds.fields.items() if n in f.fields]
        parameters = check_uniforms([(x.name, x.parameters) for x in (f, *writers)]) if writers else f.parameters
        read = {n: k for n, k in f.fields.items() if n not in kinds.state}
        needed = {value for w in kinds.walls_of(sites) for field, value in w.fields if field in f.fields}
        of_walls = {n: k for n, k in kinds.wall_velocities(sites).items() if isinstance(k, t.Vector) or n in needed}
        classified = classify_values(
            f.name, sites, values, parameters, kinds.known_values(), of_walls, read, frozenset(kinds.fields)
        )
        if not f.update.lowered.results:
            raise ArgumentError(f"{f.name} returns nothing to observe")
        return classified

    def _room(self, sites: Sites) -> tuple[Any, ...]:
        """An array for each result, on the sites' device."""
        module = array_module(sites.device)
        return tuple(
            module.zeros((sites.count, k.length) if isinstance(k, t.Vector) else sites.count, t.scalar_of(k).dtype)
            for k in self.function.update.lowered.results
        )

    def _call(
        self, sites: Sites, step: int, fresh: bool, plan: Plan | None, values: SiteValues, arrays: tuple[Any, ...]
    ) -> SiteCall:
        """The look itself, which fills the arrays."""
        kernels, f = self.kernels, self.function
        key = (f.version, sites.form.phase(step, fresh=fresh).name, plan, *kernels.specialisation(sites, values))
        if key not in self.compiled:
            arguments = kernels.arguments(sites, step, fresh, values, (f.update,))
            self.compiled[key] = compile_phase(partial(build_sitewise, arguments), sites, plan)
        return bind_phase(
            self.compiled[key], sites, step, values, tuple(zip(arrays, f.update.lowered.results, strict=True))
        )
