"""The kernels of a flow: compiled once for every specialisation of its sites, and bound to their
memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from lanewise.ir import nodes as ir
from lanewise.ir.pattern import Work
from lanewise.language import types as t
from lanewise.language.types import Scalar
from lanewise.launch.executable import Executable
from lanewise.launch.programs import Programs
from lanewise.launch.support import index_type, machine_of
from lanewise.launch.tuned_plans import Key, has_entries, make_key, size_class, tuned_plans
from lanewise.layouts import Layout
from lanewise.patterns.call_tasks import site_tests
from lanewise.patterns.sitewise.build import build_sitewise
from lanewise.patterns.sitewise.builder import SitewiseArguments, Update
from lanewise.patterns.sitewise.call_kinds import SiteKinds
from lanewise.patterns.sitewise.calls import (
    STENCIL,
    STREAM,
    SiteCall,
    bind_interpolated_walls,
    bind_outflow,
    bind_phase,
    compile_phase,
)
from lanewise.patterns.sitewise.function import SiteFunction
from lanewise.patterns.sitewise.index_tests import only, prove
from lanewise.patterns.sitewise.interpolated_walls import build_interpolated_walls
from lanewise.patterns.sitewise.momentum_exchange import build_momentum_exchange
from lanewise.patterns.sitewise.outflow import Outlet, build_outflow
from lanewise.patterns.sitewise.passes import boxes
from lanewise.patterns.sitewise.pattern import LEAST_MERGED, SITEWISE, complete_site_plan
from lanewise.patterns.sitewise.site_records import arrival_array
from lanewise.patterns.sitewise.sites import Sites
from lanewise.patterns.sitewise.values import Observed, SiteValues, in_order
from lanewise.patterns.tables.arguments import table_lengths
from lanewise.patterns.tables.ranges import (
    TableTests,
    smallest,
)
from lanewise.planning.plan import CompletePlan, Plan, check_plan
from lanewise.records.arrays import RecordArray
from lanewise.runtime.memory import array_module, on, to_host
from lanewise.support.errors import ArgumentError


class SiteKernels:
    """What steps and looks of a flow run.

    Calls are bound to the memory of some sites before some step.
    """

    def __init__(self, kinds: SiteKinds) -> None:
        self.kinds = kinds
        self.programs = Programs()
        self.tuned = tuned_plans()
        # how often a plan was taken over: steps that were bound before are bound anew
        self.tunings = 0

    def step(
        self,
        sites: Sites,
        step: int,
        fresh: bool,
        values: SiteValues,
        plan: Plan | None,
        layers: slice | None = None,
    ) -> SiteCall:
        """One step, with the default or the tuned plan where none is given.

        The first step of populations is never tuned: it comes once. layers: those that are updated,
        of sites that `runs_over_layers`; without them all that a step has to.
        """
        check_plan(self.kinds.name, plan)
        if plan is None and not fresh:
            plan = self.tuned_plan(sites, values)
        phase = sites.form.phase(step, fresh=fresh)
        ranged = self.runs_over_layers(sites, fresh, values, plan)
        key = (phase.name, ranged, *self.specialisation(sites, values))

        def build(index: Scalar) -> ir.Kernel:
            arguments = replace(self.arguments(sites, step, fresh, values), ranged=ranged)
            # then there have to be classes of sites
            if plan is not None and plan.branches == "apart":
                arguments = replace(arguments, framed=False)
            return build_sitewise(arguments, index)

        executable = compile_phase(self.programs, key, build, sites, plan)
        stage = STENCIL if self.kinds.stencil else STREAM
        if ranged and layers is None:
            assert sites.block is not None
            layers = sites.block.spans[0].inner(sites.block.updated)
        return bind_phase(executable, sites, step, values, (), stage=stage, layers=layers)

    def runs_over_layers(
        self, sites: Sites, fresh: bool, values: SiteValues, plan: Plan | None
    ) -> bool:
        """Whether a step may update some layers and leave the others to another launch: not where
        a plan keeps classes of sites apart, whose lists are of all layers.
        """
        if not sites.ranged:
            return False
        if plan is None and not fresh:
            plan = self.tuned_plan(sites, values)
        return plan is None or plan.branches != "apart"

    def tuned_plan(self, sites: Sites, values: SiteValues) -> CompletePlan | None:
        """The plan that was tuned for steps like these, or None."""
        if not self.tunings and not has_entries(self.kinds.name):
            return None
        kind = self._tuned_kind(sites, values)
        return self.tuned.find(sites.device, kind, lambda: self.key(sites, values))

    def adopt(self, sites: Sites, values: SiteValues, best: CompletePlan) -> None:
        """Take a plan that was tuned just now for steps like these."""
        self.tunings += 1  # also where the store cannot be written
        self.tuned.adopt(self._tuned_kind(sites, values), best)

    def _tuned_kind(self, sites: Sites, values: SiteValues) -> tuple[Any, ...]:
        return (size_class(sites.count), *self.specialisation(sites, values))

    def key(self, sites: Sites, values: SiteValues) -> Key:
        """What tuned plans of steps are kept under: the reference kernel of the first phase of a
        cycle stands for all.
        """
        reference = build_sitewise(
            self.arguments(sites, 0, False, values), index_type(sites.device)
        )
        return key_of_step(reference, sites.layout, sites.device, sites.count)

    def default_plan(self, sites: Sites, values: SiteValues) -> CompletePlan:
        """The plan of steps without tuning.

        Where only some phases of a cycle have classes of sites to keep apart, theirs serves all.
        """
        machine, index = machine_of(sites.device), index_type(sites.device)
        plans = [
            complete_site_plan(
                None,
                machine,
                build_sitewise(self.arguments(sites, step, False, values), index),
                sites.count,
                sites.shape,
            )
            for step in range(len(sites.form.phases))
        ]
        return next((p for p in plans if p.branches == "apart"), plans[0])

    def observed(self, sites: Sites, values: SiteValues) -> tuple[Observed, ...]:
        """What is looked at before every step: the fields that this flow's own observers write, and
        what its values observe.
        """
        return (*self.own_fields(sites, values), *values.observed)

    def own_fields(self, sites: Sites, values: SiteValues) -> tuple[Observed, ...]:
        """The fields that this flow's own observers write."""
        fields = dict(values.fields_of)
        return tuple(
            Observed(
                f.name,
                sites,
                fields[n],
                sites.field(n, fields[n]),
                look=partial(self._write_field, sites, values, n, f),
                tests=partial(self.tests, sites, values, (f,)),
            )
            for n, f in self.kinds.fields.items()
            if n in fields
        )

    def _write_field(
        self,
        sites: Sites,
        values: SiteValues,
        name: str,
        function: SiteFunction,
        step: int,
        fresh: bool,
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
                f"{function.name} writes the field {name!r}: wanted one {kind} of populations and "
                f"values, found {found}"
            )
        if function.real != self.kinds.real:
            raise ArgumentError(
                f"{function.name} computes in {function.real}, and {self.kinds.name} in "
                f"{self.kinds.real}"
            )

        def build(index: Scalar) -> ir.Kernel:
            arguments = self.arguments(sites, step, fresh, values, (function.update,))
            return build_sitewise(replace(arguments, fields=()), index)

        executable = self._for(
            ("field", name, sites.form.phase(step, fresh=fresh).name), sites, values, build
        )
        result = (sites.field(name, kind), kind)
        return bind_phase(executable, sites, step, values, (result,), stage="observe")

    def tests(
        self,
        sites: Sites,
        values: SiteValues,
        functions: tuple[SiteFunction, ...],
        step: int,
        fresh: bool,
    ) -> list[SiteCall]:
        """What tests the indices of a step; running it raises `VerificationError` for the first
        site that is outside of a table.
        """
        tests = prove(sites, values, functions)

        def test(f: SiteFunction) -> SiteCall:
            lengths = {n: int(values.environment[n]) for n in table_lengths(f.tables)}
            table_tests = TableTests(
                f.name, f.update.lowered, tests[f], f.tables, lengths, sites.shape
            )
            updates = only(functions, f, table_tests.lowered)

            def build(index: Scalar) -> ir.Kernel:
                return smallest(
                    build_sitewise(self.arguments(sites, step, fresh, values, updates), index)
                )

            phase = sites.form.phase(step, fresh=fresh)
            key = ("indices", f.number, f.name, f.version, tests[f], len(functions), phase.name)
            executable = self._for(key, sites, values, build)
            tasks = site_tests(executable, table_tests, sites.device)
            return bind_phase(executable, sites, step, values, (), stage="checks", tasks=tasks)

        return [test(f) for f in functions if tests[f]]

    def step_tests(
        self, sites: Sites, values: SiteValues, functions: tuple[SiteFunction, ...]
    ) -> list[SiteCall]:
        """What tests the indices of the next step and of what is observed before it, which is
        looked at: indices may depend on it.
        """
        calls: list[SiteCall] = []
        for o in in_order(self.observed(sites, values)):
            o.sites.whole.check()
            stands = o.sites.step, o.sites.fresh
            calls += [*o.tests(*stands), o.look(*stands)]
        return [*calls, *self.tests(sites, values, functions, sites.step, sites.fresh)]

    def between(
        self, sites: Sites, step: int, values: SiteValues, *, first: bool
    ) -> list[SiteCall]:
        """What corrects populations before a step.

        Outflows look at what walls send back, so walls come first.
        """
        return [
            *self._interpolated(sites, step, values),
            *self._outflows(sites, step, values, first=first),
        ]

    def arriving(self, sites: Sites, values: SiteValues) -> tuple[SiteCall, RecordArray]:
        """What looks at the populations that arrive next, as the sites compute, and where it puts
        them; zeros at walls.
        """

        def build(index: Scalar) -> ir.Kernel:
            arguments = self._looking(sites, sites.step, values, fresh=sites.fresh)
            return build_sitewise(replace(arguments, collects=True), index)

        executable = self._for(("arriving", sites.phase.name), sites, values, build)
        array = arrival_array(self.kinds.lattice, sites.count, self.kinds.real, sites.device)
        return bind_phase(executable, sites, sites.step, values, (), array), array

    def force(
        self, sites: Sites, values: SiteValues, numbers: tuple[int, ...], *, weights: bool
    ) -> Any:
        """The momentum that walls take in this step, a float64 vector (see `Sitewise.force`)."""
        look, result = self.momentum(
            sites, sites.step, sites.fresh, values, numbers, weights=weights
        )
        look()
        with on(sites.device):
            return to_host(result.sum(axis=0))

    def prepare_force(
        self,
        sites: Sites,
        step: int,
        values: SiteValues,
        numbers: tuple[int, ...],
        *,
        weights: bool,
    ) -> None:
        """Compile what `force` runs after `step` steps, one at least."""
        self.momentum(sites, step, False, values, numbers, weights=weights)

    def momentum(
        self,
        sites: Sites,
        step: int,
        fresh: bool,
        values: SiteValues,
        numbers: tuple[int, ...],
        *,
        weights: bool,
    ) -> tuple[SiteCall, Any]:
        """What looks at the momentum that walls take, and the array of it by site."""
        phase = sites.form.phase(step, fresh=fresh)
        # Populations that were set arrive as they are: no wall has sent them back yet.
        curved = sites.interpolation is not None and not fresh

        def build(index: Scalar) -> ir.Kernel:
            arguments = self._looking(sites, step, values, fresh=fresh)
            plain = replace(arguments, placed=False, framed=False)
            return build_momentum_exchange(plain, index, numbers, weights, curved=curved)

        executable = self._for(
            ("force", numbers, weights, curved, phase.name), sites, values, build
        )
        dimension = self.kinds.lattice.dimension
        result = array_module(sites.device).zeros((len(sites.walled), dimension), np.float64)
        return bind_phase(
            executable, sites, step, values, ((result, t.Vector(t.F64, dimension)),)
        ), result

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

    def _outflows(
        self, sites: Sites, step: int, values: SiteValues, *, first: bool
    ) -> list[SiteCall]:
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
        self,
        key: tuple[Any, ...],
        sites: Sites,
        values: SiteValues,
        build: Callable[[Scalar], ir.Kernel],
    ) -> Executable:
        """The kernel of this name and specialisation, with the default plan."""
        whole_key = (*key, *self.specialisation(sites, values))
        return compile_phase(self.programs, whole_key, build, sites, None)

    def specialisation(self, sites: Sites, values: SiteValues) -> tuple[Any, ...]:
        """All that decides about kernels besides what they do."""
        return (
            sites.device,
            sites.count < LEAST_MERGED,
            sites.dense,
            sites.placed,
            sites.framed,
            sites.row_block,
            boxes.fitting(sites.shape),
            min(sites.shape) < 2,
            sites.layout,
            sites.storage,
            sites.form.name,
            sites.edges,
            sites.present,
            values.arrays_of,
            values.fields_of,
            values.tables_of,
            tuple(self.kinds.functions),
            self.kinds.versions,
            self.kinds.walls,
        )

    def arguments(
        self,
        sites: Sites,
        step: int,
        fresh: bool,
        values: SiteValues,
        functions: tuple[Update, ...] | None = None,
    ) -> SitewiseArguments:
        """What a kernel is specialised to: of a step, or with `functions` of a look at what
        arrives.
        """
        walls = self.kinds.walls_of(sites)
        return SitewiseArguments(
            lattice=self.kinds.lattice,
            edges=sites.edges,
            phase=sites.form.phase(step, fresh=fresh),
            storage=sites.storage,
            real=self.kinds.real,
            layout=sites.layout,
            updates=functions or tuple(f.update for f in self.kinds.updates(sites)),
            walls=walls,
            solids=any(w.number in sites.present for w in walls),
            two=len(sites.copies) > 1,
            arrays=values.arrays_of,
            uniforms=values.uniforms_of,
            puts=functions is None,
            marked=sites.marks is not None,
            dense=sites.dense,
            thin=min(sites.shape) < 2,
            placed=sites.placed,
            framed=sites.framed,
            row_block=sites.row_block,
            moving_sites=any(w.velocity is not None and w.number in sites.present for w in walls),
            fields=values.fields_of,
            state=tuple(self.kinds.state.items()),
            tables=values.tables_of,
        )

    def _looking(
        self, sites: Sites, step: int, values: SiteValues, *, fresh: bool
    ) -> SitewiseArguments:
        return replace(
            self.arguments(sites, step, fresh, values, (self.kinds.main.update,)), fields=()
        )

    def _plain(self, sites: Sites, step: int, values: SiteValues) -> SitewiseArguments:
        """Of kernels over lists of sites: these read their flags."""
        return replace(
            self._looking(sites, step, values, fresh=False), dense=False, placed=False, framed=False
        )


def key_of_step(reference: ir.Kernel, layout: Layout, device: str, count: int) -> Key:
    """What tuned plans of steps of so many sites are kept under. reference: of the first phase of a
    cycle.
    """
    work = Work(SITEWISE, count)
    return make_key(reference, {"populations": layout}, device, work, 0, Plan(), identical=False)
