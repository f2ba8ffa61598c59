"""The explanation of a compiled step over the sites of a lattice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lanewise.explanation.build import explain
from lanewise.explanation.launches import grid_of
from lanewise.explanation.measure import Times, stored_under
from lanewise.explanation.report import Explanation, LaunchRow
from lanewise.explanation.site_facts import predicted_step
from lanewise.explanation.subject import OPEN, Subject
from lanewise.ir import nodes as ir
from lanewise.ir.names import COUNT, own
from lanewise.ir.pattern import Work
from lanewise.language.lattices.base import Lattice
from lanewise.language.target import is_compiled
from lanewise.launch.resources import kernel_resources
from lanewise.launch.tasks import Launch
from lanewise.layouts import Layout
from lanewise.models.devices import DeviceModel, device_model
from lanewise.models.roofline import SiteTraffic
from lanewise.patterns.sitewise.builder import FIELDS
from lanewise.patterns.sitewise.calls import STENCIL, STREAM, SiteCall, Step
from lanewise.patterns.sitewise.interpolated_walls import CURVED
from lanewise.patterns.sitewise.outflow import OUTLET
from lanewise.patterns.sitewise.passes import boxes, ranges
from lanewise.patterns.sitewise.passes.runs import RUNS
from lanewise.patterns.sitewise.passes.splitting import PARTS
from lanewise.patterns.sitewise.pattern import SITEWISE
from lanewise.patterns.sitewise.sites import Sites
from lanewise.patterns.sitewise.streaming import Form
from lanewise.planning.plan import CompletePlan, Plan
from lanewise.runtime.memory import to_host
from lanewise.support.errors import ArgumentError

FLAGS, MARKS, SOLIDS = own("flags"), own("marks"), own("solids")


def explain_step(call: SiteCall, step: Step, *, measure_resources: bool = True) -> Explanation:
    """The explanation of a compiled step of these sites."""
    executable, sites = call.executable, call.sites
    device = executable.device
    model = None if not is_compiled(device) else device_model(device)
    traffic, box = _traffic(call), box_of(sites)
    program = executable.program
    subject = replace(
        subject_of_step(
            program.reference, program.plan, device, model, sites.layout, traffic, box, step.plan
        ),
        taken=tuple(c.resources for c in executable.cubins),
        capped=executable.capped,
    )
    times = Times()
    if step.tuned is not None:
        times = replace(stored_under(step.tuned), tuned=subject.chosen)

    def launches(rows: tuple[LaunchRow, ...]) -> tuple[LaunchRow, ...]:
        if model is None:
            return rows
        calls = step.calls()
        rates = rates_of(calls, model)
        return tuple(row for c in calls for row in rows_of_call(c, rates[id(c)], model))

    return explain(
        subject,
        resources=kernel_resources(executable),
        measure_resources=measure_resources,
        times=lambda _: times,
        launches=launches,
    )


def box_of(sites: Sites) -> str:
    """Which sites they are, in words."""
    return box_text(sites.shape, sites.lattice, sites.form)


def box_text(shape: tuple[int, ...], lattice: Lattice, form: Form) -> str:
    """The same of sites with this shape; the axes as people name them, x first."""
    sizes = " x ".join(str(n) for n in reversed(shape))
    return f"{sizes} sites of {lattice.name}, {form.name}"


def _traffic(call: SiteCall) -> SiteTraffic:
    return traffic_of_sites(call.executable.program.reference, call.sites)


def traffic_of_sites(reference: ir.Kernel, sites: Sites) -> SiteTraffic:
    """What an update of sites by this kernel moves."""
    return traffic_of(
        reference,
        sites.count,
        sites.count - sites.wall_sites,
        sites.special,
        len(sites.copies),
        dense=sites.dense,
    )


def traffic_of(
    reference: ir.Kernel, count: int, fluid: int, special: int, copies: int, *, dense: bool = False
) -> SiteTraffic:
    """What a step of this kernel moves; raises `ArgumentError` for a kernel that only looks."""
    arrays = {a.name: a for a in reference.arrays}
    populations = reference.arrays[0]
    if not (populations.written or own("next") in arrays):
        raise ArgumentError(f"{reference.name} only looks at populations; a step is explained")
    values = sum(
        x.type.size
        for a in reference.arrays
        if a.name not in (populations.name, own("next"), FLAGS, MARKS, SOLIDS)
        for x in a.leaves
    )
    bits = sum(n in arrays for n in (MARKS, SOLIDS))
    return SiteTraffic(
        count, fluid, special, len(populations.leaves), populations.leaves[0].type.size, copies,
        flags=FLAGS in arrays and not bits, bits=bits, values=values, dense=dense,
        axes=boxes.rank(reference) if populations.name == FIELDS else 0,
    )  # fmt: skip


def subject_of_step(
    reference: ir.Kernel,
    plan: CompletePlan,
    device: str,
    model: DeviceModel | None,
    layout: Layout,
    traffic: SiteTraffic,
    box: str,
    requested: Plan | None = None,
) -> Subject:
    """A step over sites: what it moves, and in what box; nothing is compiled."""
    return Subject(
        reference.name,
        reference,
        plan,
        device,
        model,
        {},
        {"sites": traffic.sites},
        {reference.arrays[0].name: layout},
        Work(SITEWISE, traffic.sites),
        traffic=traffic,
        box=box,
        requested=requested or OPEN,
    )


# ---------------------------------------------------------------- what a step launches

# Each launch moves the bytes of the sites that it covers. Its time is that of its bytes at the rate
# of the update, whose time is predicted (`models.roofline.step_time`), and on a GPU at least that
# of a launch.

LISTS = (RUNS, *(part.array for part in PARTS), CURVED, OUTLET)
"""Arrays of the sites that a kernel runs over: numbers of sites, or where rows of them begin and
end.
"""


def rates_of(calls: Sequence[SiteCall], device: DeviceModel) -> dict[int, float | None]:
    """The seconds a byte of the calls of a step, by `id`; None where they are not known.

    They are those of the update that a call comes before: of the same sites, or of any where its
    own are only looked at.
    """
    own = {id(c): _rate(c, device) for c in calls if c.stage in (STENCIL, STREAM)}
    coming, last = dict[int, float | None](), next(reversed(own.values()), None)
    rates: dict[int, float | None] = {}
    for c in reversed(calls):
        if id(c) in own:
            coming[id(c.sites)] = last = own[id(c)]
        rates[id(c)] = coming.get(id(c.sites), last)
    return rates


def _rate(update: SiteCall, device: DeviceModel) -> float | None:
    program = update.executable.program
    moved = sum(_bytes(update, launch)[1] for launch in update.executable.sequence.launches)
    if not moved:
        return None
    where = update.executable.device
    step = predicted_step(program.reference, program.plan, _traffic(update), where, device)
    return None if step is None else step[2] / moved


def rows_of_call(call: SiteCall, rate: float | None, device: DeviceModel) -> list[LaunchRow]:
    """A row for each launch of a call. rate: seconds a byte, if they are known."""
    rows: list[LaunchRow] = []
    least = device.graph_launch_seconds if device.target.has_blocks else 0.0
    for launch in call.executable.sequence.launches:
        touched, moved = _bytes(call, launch)
        over, times = grid_of(launch, call.environment)
        time = None if rate is None else max(least, rate * moved)
        rows.append(LaunchRow(launch.name, times, over, touched, time))
    return rows


def _bytes(call: SiteCall, launch: Launch) -> tuple[int, int]:
    """Of the arrays that a launch touches for the sites that it covers, each once; and of what it
    reads and writes.
    """
    arrays = {a.name: a for a in launch.kernel.arrays}
    sites, touched, moved = _covered(call, launch), 0, 0
    for access in launch.accesses:
        if (bound := call.arrays.get(access.buffer)) is None:
            continue
        size = sum(leaf.type.size for leaf in arrays[access.buffer].leaves)
        nbytes = size * min(bound.count, sites)
        touched, moved = touched + nbytes, moved + nbytes * (access.reads + access.writes)
    return touched, moved


def _covered(call: SiteCall, launch: Launch) -> int:
    """How many sites a launch runs over."""
    names = {a.name for a in launch.kernel.arrays}
    listed = next((call.arrays[n] for n in LISTS if n in names), None)
    if ranges.has_range(launch.kernel):
        return int(call.environment[ranges.END] - call.environment[ranges.FIRST])
    if listed is None:
        return int(call.environment[COUNT])
    columns = len(listed.arrangement.slots)
    if columns == 1:
        return listed.count
    kind = listed.arrangement.slots[0].type.dtype
    begins = to_host(listed.data).view(kind)[: columns * listed.count].reshape(-1, columns)
    return int((begins[:, 1] - begins[:, 0]).sum())


# ---------------------------------------------------------------- what a step does
