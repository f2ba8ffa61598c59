"""The explanation of a kernel of which nothing but the kernel is at hand: no arrays, and for CUDA
no GPU.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from lanewise.compiler.default_plans import complete_plan
from lanewise.compiler.work import describe_work
from lanewise.explanation.build import explain
from lanewise.explanation.report import Explanation, LaunchRow
from lanewise.explanation.samples import Kernel, Roles, sample_roles, sample_values
from lanewise.explanation.sites import subject_of_step, traffic_of
from lanewise.explanation.subject import OPEN, Subject
from lanewise.ir import nodes as ir
from lanewise.ir.names import COUNT, count_of
from lanewise.ir.pattern import Work
from lanewise.language.target import CPU, target_of
from lanewise.launch.arguments import flatten_uniforms
from lanewise.launch.executable import Executable
from lanewise.launch.resources import kernel_resources
from lanewise.launch.support import compile_kernel, index_type
from lanewise.layouts import AoSoA, Layout, SoA, default_layout
from lanewise.models.devices import DeviceModel, device_model, table_model
from lanewise.patterns.elementwise.build import ElementwiseArguments, build_elementwise
from lanewise.patterns.pairwise.build import PairwiseArguments, build_pairwise
from lanewise.patterns.pairwise.kernel import Pairwise
from lanewise.patterns.sitewise.build import build_sitewise
from lanewise.patterns.sitewise.builder import SitewiseArguments
from lanewise.patterns.sitewise.kernel import Sitewise
from lanewise.patterns.sitewise.kinds import read_edges
from lanewise.patterns.sitewise.pattern import complete_site_plan
from lanewise.patterns.sitewise.streaming import Form, form_by_name
from lanewise.planning.plan import Plan
from lanewise.runtime.devices import missing_for_cuda
from lanewise.support.errors import InputError

_NOTHING: Mapping[str, Any] = MappingProxyType({})
DEFAULT_ARCH = "sm_90"  # of the device to plan for where there is no GPU


@dataclass(frozen=True, slots=True)
class Offline:
    """A kernel compiled for a device and loaded nowhere."""

    subject: Subject
    executable: Executable
    # of a call: its launches, made of the rows of the kernel
    launches: Callable[[tuple[LaunchRow, ...]], tuple[LaunchRow, ...]] = lambda rows: rows

    def explain(self, *, measure_resources: bool = True) -> Explanation:
        """The explanation, with predictions for the subject's device model."""
        model = self.subject.model
        assert model is not None
        resources = kernel_resources(self.executable, model.arch)
        return explain(
            self.subject,
            resources=resources,
            measure_resources=measure_resources,
            launches=self.launches,
        )


def compile_offline(
    kernel: Kernel | Sitewise,
    count: int,
    device: str,
    *,
    arch: str | None = None,
    layout: Layout | None = None,
    values: Mapping[str, float] | None = None,
    requested: Plan | None = None,
) -> Offline:
    """`kernel` for `count` elements on "cpu" or "cuda", for all records in one layout (default: the
    device's).

    On "cuda" `arch` names a typical device of that architecture; without it the GPU of this machine
    is meant, or an NVIDIA H200 where there is none. Raises `DeviceError` for an unknown
    architecture, `InputError` for wrong values.
    """
    if count < 1:
        raise InputError(f"{count} elements asked for; wanted at least 1")
    model = find_model(device, arch)
    if isinstance(kernel, Sitewise):
        return _of_flow(kernel, count, device, model, layout, values)
    roles = sample_roles(kernel, values)
    uniforms, invented = sample_values(kernel, values)
    layouts = {n: layout or default_layout(r, device) for n, r in roles.records.items()}
    reference = _reference(kernel, roles, layouts, device)
    work = describe_work(reference, count, target_of(device))
    pairwise = isinstance(kernel, Pairwise)
    counts = dict.fromkeys(roles.records if pairwise else ("elements",), count)
    sizes = {count_of(n): count for n in counts} if pairwise else {COUNT: count}
    environment = {**flatten_uniforms(kernel.signature, uniforms), **sizes}
    made_up = {n: _plain(uniforms[n]) for n in invented}
    return compiled(
        subject_for(
            model,
            kernel.__name__,
            reference,
            device,
            environment,
            counts,
            layouts,
            work,
            requested,
            made_up,
        )
    )


def subject_for(
    model: DeviceModel,
    name: str,
    reference: ir.Kernel,
    device: str,
    environment: Mapping[str, Any],
    counts: Mapping[str, int],
    layouts: Mapping[str, Layout],
    work: Work,
    requested: Plan | None = None,
    invented: Mapping[str, Any] = _NOTHING,
) -> Subject:
    """A kernel with its default plan, or what is requested of one, for the device of a model (see
    `Subject`); nothing is compiled.
    """
    plan = complete_plan(requested, model.machine, work)
    return Subject(
        name, reference, plan, device, model, environment, counts, layouts, work,
        invented=invented, requested=requested or OPEN,
    )  # fmt: skip


def compiled(subject: Subject) -> Offline:
    """A subject compiled for the device of its model, which says what its kernels take."""
    assert subject.model is not None
    executable = compile_kernel(
        subject.reference,
        subject.plan,
        subject.device,
        requested=subject.requested,
        arch=subject.model.compiled_for,
    )
    found = replace(
        subject,
        plan=executable.program.plan,
        taken=tuple(c.resources for c in executable.cubins),
        capped=executable.capped,
    )
    return Offline(found, executable)


def _plain(value: Any) -> Any:
    """A number, or a list of the numbers of a vector."""
    return value.item() if hasattr(value, "item") else [x.item() for x in value]


def find_model(device: str, arch: str | None) -> DeviceModel:
    """Of the CPU or the GPU here, or of a typical GPU of an architecture."""
    if target_of(device) is CPU:
        return device_model("cpu")
    return table_model(arch or DEFAULT_ARCH) if arch or missing_for_cuda() else device_model("cuda")


def _reference(kernel: Kernel, roles: Roles, layouts: dict[str, Layout], device: str) -> ir.Kernel:
    if not isinstance(kernel, Pairwise):
        records = {n: (r, layouts[n]) for n, r in roles.records.items()}
        arguments = ElementwiseArguments(records, roles.arrays, roles.uniforms)
        return build_elementwise(kernel.lowered, arguments, index_type(device))
    (target, source), uniforms = list(roles.records.items()), dict[str, Any](roles.uniforms)
    pair = PairwiseArguments(
        (*target, layouts[target[0]]),
        (*source, layouts[source[0]]),
        uniforms,
        target[1] == source[1],
    )
    return build_pairwise(kernel.lowered, pair, index_type(device))


def _of_flow(
    flow: Sitewise,
    count: int,
    device: str,
    model: DeviceModel,
    layout: Layout | None,
    values: Mapping[str, float] | None,
) -> Offline:
    """A flow compiled for a periodic box of about `count` sites of kind 0, and loaded nowhere."""
    function = flow.main
    if unknown := [n for n in values or {} if n not in function.parameters]:
        names = ", ".join(function.parameters) or "no value"
        raise InputError(f"{flow.__name__} has no value {unknown[0]!r} to set; it has {names}")
    side = max(1, round(count ** (1 / flow.lattice.dimension)))
    shape = (side,) * flow.lattice.dimension
    form = form_by_name(target_of(device).streaming)
    arranged = layout or (AoSoA(32) if target_of(device).has_blocks else SoA())
    reference = build_sitewise(_of_sites(flow, form, arranged), index_type(device))
    total = math.prod(shape)
    plan = complete_site_plan(None, model.machine, reference, total)
    inner = math.prod(max(0, n - 2) for n in shape)
    traffic = traffic_of(reference, total, total, total - inner, form.buffers)
    box = (
        f"{' x '.join(map(str, shape))} sites of {flow.lattice.name}, {form.name}, all of kind 0, "
        "without walls, periodic"
    )
    made = compiled(subject_of_step(reference, plan, device, model, arranged, traffic, box))
    folded = made.executable.program.reference  # as explanations of a compiled step have it
    return replace(made, subject=replace(made.subject, reference=folded))


def _of_sites(flow: Sitewise, form: Form, layout: Layout) -> SitewiseArguments:
    """Of a step that follows links, as most do."""
    function = flow.main
    phase = next(
        p for p in (form.phase(step, fresh=False) for step in (0, 1)) if p.load_links or p.put_links
    )
    return SitewiseArguments(
        lattice=flow.lattice,
        edges=read_edges(None, flow.lattice.dimension, {}),
        phase=phase,
        storage=flow.real,
        real=flow.real,
        layout=layout,
        updates=(function.update,),
        two=form.buffers > 1,
        uniforms=tuple(function.parameters.items()),
        marked=form.buffers > 1,
        fields=tuple(function.fields.items()),
    )
