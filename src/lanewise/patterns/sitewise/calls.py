"""Sitewise kernels made runnable: compiled for a phase, and bound to the memory of some sites."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lanewise.ir import nodes as ir
from lanewise.ir.names import COUNT, own, view_of
from lanewise.language import types as t
from lanewise.language.types import U32
from lanewise.launch.arguments import bind_value_array
from lanewise.launch.compiled import Inspectable
from lanewise.launch.executable import Executable, Launch
from lanewise.launch.joined import Bound
from lanewise.launch.programs import Programs
from lanewise.launch.slots import NOTHING
from lanewise.launch.support import bind_record, index_type, machine_of
from lanewise.launch.task_list import BoundArray, TaskList
from lanewise.launch.tuned_plans import Key
from lanewise.layouts import AoS
from lanewise.patterns.sitewise.builder import ARRIVED, MARKS, NEXT, SOLIDS
from lanewise.patterns.sitewise.interpolated_walls import CURVED, CURVED_COUNT, WEIGHTS
from lanewise.patterns.sitewise.links import FLAGS, box_counts
from lanewise.patterns.sitewise.momentum_exchange import WALLED, WALLED_COUNT
from lanewise.patterns.sitewise.outflow import (
    BEFORE,
    OUTLET,
    OUTLET_COUNT,
    WEIGHT,
    Outlet,
    before_leaves,
)
from lanewise.patterns.sitewise.passes import boxes, ranges
from lanewise.patterns.sitewise.passes import runs as site_runs
from lanewise.patterns.sitewise.passes import splitting as site_splitting
from lanewise.patterns.sitewise.pattern import complete_site_plan
from lanewise.patterns.sitewise.sites import Sites
from lanewise.patterns.sitewise.values import SiteValues
from lanewise.planning.plan import CompletePlan, Plan
from lanewise.records.arrays import RecordArray
from lanewise.runtime.memory import on
from lanewise.runtime.programs import NamedLaunch
from lanewise.support.checks import refuse_given
from lanewise.support.errors import ArgumentError

if TYPE_CHECKING:
    from lanewise.facade import Explanation


Results = tuple[tuple[Any, t.ValueType], ...]
STENCIL, STREAM = "stencil", "collide-stream"
"""The stages of what updates sites: a stencil of fields, or populations that collide and stream."""


@dataclass(frozen=True, slots=True)
class Step:
    """A step of some sites, to be explained. calls: all that it runs. plan: that was requested;
    tuned: where the store has what tune() measured, if it found the one that the step has.
    """

    calls: Callable[[], Sequence[SiteCall]]
    plan: Plan | None = None
    tuned: Key | None = None


@dataclass(frozen=True, slots=True)
class SiteCall(Inspectable):
    """A kernel over some sites, bound. Calling it runs it on that memory; it counts no steps.

    arrays, environment: what it is bound to, and its counts and values. tasks: all that it runs;
    its kernel is one of them. sites: those that it runs over. stage: what it does in a step, for
    profiles.
    """

    launch: Launch
    executable: Executable
    arrays: Mapping[str, BoundArray]
    environment: Mapping[str, Any]
    tasks: TaskList
    sites: Sites
    stage: str = ""
    step: Step | None = None

    def __call__(self, *given: Any, **named: Any) -> None:
        if given or named:
            refuse_given(self.name, given, named)
        self.launch()

    @property
    def name(self) -> str:
        """Of its kernel."""
        return self.executable.program.reference.name

    @property
    def bound(self) -> Bound:
        """Itself as tasks."""
        memory = {n: b.data for n, b in self.arrays.items()}
        return Bound(self.tasks.sequence, memory, self)

    @property
    def named(self) -> NamedLaunch:
        """Itself as a launch of its stage."""
        return NamedLaunch(self.stage, self.name, self.launch)

    def explain(self, *, measure_resources: bool = True) -> Explanation:
        """A row for each optimisation, what a site reads, writes and computes, what bounds the
        step, the time to expect, and all that a step launches.

        Print it, show it in a notebook, or take `.json()`. `measure_resources` compiles the plans
        that are compared, for their registers (CUDA). Raises `ArgumentError` for a call that is not
        `flow.compile`'s.
        """
        from lanewise.facade import explain_step

        if self.step is None:
            raise ArgumentError(f"{self.name}: explained is what flow.compile(sites, ...) gives")
        return explain_step(self, self.step, measure_resources=measure_resources)


def run_calls(sites: Sites, calls: Iterable[SiteCall]) -> None:
    """Run calls, one after the other, on the device of their sites."""
    with on(sites.device):
        for call in calls:
            call()


def compile_phase(
    programs: Programs,
    key: Hashable,
    build: Callable[[t.Scalar], ir.Kernel],
    sites: Sites,
    plan: Plan | None,
) -> Executable:
    """The kernels of a phase on the sites' device, compiled once for a key.

    `build` makes the reference kernel for a type of indices.
    """
    device = sites.device

    def decide(reference: ir.Kernel) -> CompletePlan:
        plans = plan, machine_of(device), reference
        complete = complete_site_plan(*plans, sites.count, sites.shape)
        boxes.check_extents(complete, sites.shape)
        return complete

    return programs.decided(key, lambda: build(index_type(device)), decide, device, requested=plan)


def result_names(count: int) -> tuple[str, ...]:
    """The arrays of so many results, in the IR."""
    return tuple(own("result" if count == 1 else f"result{number}") for number in range(count))


def bind_phase(
    executable: Executable,
    sites: Sites,
    step: int,
    values: SiteValues,
    results: Results,
    arrived: RecordArray | None = None,
    stage: str = "",
    tasks: TaskList | None = None,
    layers: slice | None = None,
) -> SiteCall:
    """Give a compiled phase the sites' memory at this step, and the arrays that take its
    results. tasks: what runs, where the kernel is not all. layers: that it runs over, where it runs
    over some.
    """
    reference = executable.program.reference
    copies = sites.copies
    populations = reference.arrays[0].name
    bound = {
        populations: bind_record(copies[step % len(copies)]),
        NEXT: bind_record(copies[(step + 1) % len(copies)]),
    }
    bound |= {FLAGS: bind_value_array(sites.flags, U32), **values.arrays}
    if sites.marks is not None:
        bound[MARKS] = bind_value_array(sites.marks, U32)
    if sites.solids is not None:
        bound[SOLIDS] = bind_value_array(sites.solids, U32)
    for name, (array, kind) in zip(result_names(len(results)), results, strict=True):
        bound[name] = bind_value_array(array, kind)
    if arrived is not None:
        bound[ARRIVED] = bind_record(arrived)
    environment = dict(values.environment)
    if layers is not None:
        environment |= ranges.numbers(layers, sites.count // sites.shape[0])
    _bind_parts(executable, sites, bound, environment)
    _bind_runs(executable, sites, step, bound, environment)
    return _bound(executable, sites, bound, environment, stage, tasks)


def _bound(
    executable: Executable,
    sites: Sites,
    bound: Mapping[str, BoundArray],
    environment: Mapping[str, Any],
    stage: str,
    tasks: TaskList | None = None,
) -> SiteCall:
    """A call of those of these arrays that its kernels have."""
    environment = {**environment, COUNT: sites.count, **box_counts(sites.shape, sites.row_block)}
    kernels = (executable.program.reference, *executable.program.kernels)
    used = {a.name for k in kernels for a in k.arrays}
    arrays = {n: b for n, b in bound.items() if n in used}
    tasks = executable.tasks if tasks is None else tasks
    launch = tasks.bound(arrays, environment)
    return SiteCall(launch, executable, arrays, environment, tasks, sites, stage)


def bind_listed(
    executable: Executable,
    sites: Sites,
    step: int,
    values: SiteValues,
    listed: tuple[str, str, Any],
    beside: Mapping[str, BoundArray],
    numbers: Mapping[str, Any] = NOTHING,
) -> SiteCall:
    """Give a compiled correction of a list of sites the memory before this step.

    listed: what its kernel calls the list and its length, and the sites. beside, numbers: arrays
    and values besides.
    """
    array, count, places = listed
    arrays = executable.program.reference.arrays
    name = next(a.name for a in arrays if a.written and a.name not in beside)
    bound = {
        name: bind_record(sites.copies[step % len(sites.copies)]),
        FLAGS: bind_value_array(sites.flags, U32),
        array: bind_value_array(places, index_type(sites.device)),
        **beside,
    }
    environment = {**values.environment, count: len(places), **numbers}
    return _bound(executable, sites, bound, environment, "boundaries")


def bind_outflow(
    executable: Executable,
    sites: Sites,
    step: int,
    outlet: Outlet,
    values: SiteValues,
    weight: float,
) -> SiteCall:
    """Give a compiled outflow the sites' memory before this step; `weight` is U / (1 + U)."""
    real = next(a for a in executable.program.reference.arrays if a.name == BEFORE).leaves[0].type
    before = sites.before(outlet.axis, outlet.step, real)
    lies = AoS().arrange(before_leaves(sites.lattice, outlet, real))
    kept = BoundArray(before.reshape(-1).view("uint8"), lies, len(before))
    listed = OUTLET, OUTLET_COUNT, sites.outlet(outlet.axis, outlet.step)
    return bind_listed(executable, sites, step, values, listed, {BEFORE: kept}, {WEIGHT: weight})


def bind_interpolated_walls(
    executable: Executable, sites: Sites, step: int, values: SiteValues
) -> SiteCall:
    """Give compiled interpolated walls the sites' memory before this step."""
    interpolation = sites.interpolation
    assert interpolation is not None
    listed = CURVED, CURVED_COUNT, interpolation.places
    weights = {WEIGHTS: bind_record(interpolation.weights)}
    return bind_listed(executable, sites, step, values, listed, weights)


def _bind_parts(
    executable: Executable, sites: Sites, bound: dict[str, Any], environment: dict[str, Any]
) -> None:
    """Spans and lists of sites, for kernels that run over some of them."""
    index = index_type(sites.device)
    kernels = (executable.program.reference, *executable.program.kernels)
    names = {a.name for k in kernels for a in k.arrays}
    if WALLED in names:
        bound[WALLED], environment[WALLED_COUNT] = (
            bind_value_array(sites.walled, index),
            len(sites.walled),
        )
    if WEIGHTS in names:
        bound[WEIGHTS] = bind_record(sites.walled_weights)
    for part in site_splitting.PARTS:
        if part.array in names:
            array = sites.part(part.kind)
            bound[part.array] = bind_value_array(
                array, t.Vector(index, 2) if part.kind is None else index
            )
            environment[part.count] = len(array)


def _bind_runs(
    executable: Executable,
    sites: Sites,
    step: int,
    bound: dict[str, Any],
    environment: dict[str, Any],
) -> None:
    """Runs of sites, the places of their populations, and views of the memory these lie in; what is
    left is listed.
    """
    arrays = {a.name: a for k in executable.program.kernels for a in k.arrays}
    if site_runs.RUNS not in arrays:
        return
    index = index_type(sites.device)
    runs = sites.runs()
    bound[site_runs.RUNS], environment[site_runs.RUN_COUNT] = (
        bind_value_array(runs, t.Vector(index, 3)),
        len(runs),
    )
    places = sites.places(sites.form.phase(step, fresh=False)).reshape(-1)
    bound[site_runs.PLACES] = bind_value_array(places, index)
    populations = executable.program.reference.arrays[0].name
    memory = bound[populations].data
    scalars = memory[: len(memory) // sites.storage.size * sites.storage.size].view(
        sites.storage.dtype
    )
    for q in range(sites.lattice.size):
        bound[view_of(populations, q)] = bind_value_array(scalars, sites.storage)
    for kind in (site_splitting.ANY, 0):
        part = site_splitting.Part(kind)
        if part.array in arrays:
            left = sites.unclassed(kind)
            bound[part.array], environment[part.count] = bind_value_array(left, index), len(left)
