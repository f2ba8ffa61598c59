"""A step over the sites of a lattice, explained without sites: of a periodic box, all of kind 0."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from lanewise.explanation.compiled import Offline, compiled
from lanewise.explanation.measure import Times, stored_under
from lanewise.explanation.shapes import Shape
from lanewise.explanation.site_shapes import (
    SITES,
    SiteParameters,
    check_values,
    shape_of_box,
    taken_by,
)
from lanewise.explanation.sites import box_text, subject_of_step, traffic_of
from lanewise.language import types as t
from lanewise.language.target import target_of
from lanewise.launch.support import index_type
from lanewise.launch.tuned_plans import has_entries
from lanewise.layouts import Layout, SoA
from lanewise.models.devices import DeviceModel
from lanewise.patterns.sitewise.build import build_sitewise
from lanewise.patterns.sitewise.builder import SitewiseArguments
from lanewise.patterns.sitewise.kernels import key_of_step
from lanewise.patterns.sitewise.kinds import read_edges
from lanewise.patterns.sitewise.lattice_kernel import LatticeKernel
from lanewise.patterns.sitewise.making import site_layout
from lanewise.patterns.sitewise.pattern import complete_site_plan
from lanewise.patterns.sitewise.sites import row_block_of
from lanewise.patterns.sitewise.streaming import TWO_COPIES, Form, form_by_name
from lanewise.patterns.tables.arguments import table_lengths


def compile_sites(
    kernel: LatticeKernel,
    count: int,
    device: str,
    model: DeviceModel,
    layout: Layout | None,
    values: Mapping[str, float] | None,
    shapes: Mapping[str, Shape] | None,
    *,
    recalled: bool = False,
) -> Offline:
    """A step of `kernel` compiled for about `count` sites on the device of a model, and loaded
    nowhere.

    shapes: that of the box as "sites", of each value that is one per site, and of tables. recalled:
    with what tune() found for such steps, the device being this machine's. Raises `InputError`.
    """
    taken, asked = taken_by(kernel), dict(shapes or {})
    check_values(kernel, taken, values or {}, asked)
    shape = shape_of_box(kernel, count, asked)
    total = math.prod(shape)
    target = target_of(device)
    stencil = kernel.kinds.stencil
    form = TWO_COPIES if stencil else form_by_name(target.streaming)
    real = kernel.kinds.real
    default = SoA() if stencil else site_layout(None, device, real, shape[-1])
    arranged = layout or default
    placed = target.has_blocks  # as the sites of a call are
    arguments = replace(
        _arguments(kernel, form, arranged, taken, frozenset(asked) - {SITES}),
        placed=placed,
        framed=placed,
        thin=min(shape) < 2,
        row_block=row_block_of(arranged, shape[-1], plain=stencil) if placed else 0,
    )
    times = _stored(kernel.__name__, arguments, form, device, total) if recalled else Times()
    if times.tuned is not None and times.tuned.branches == "apart":
        arguments = replace(arguments, framed=False)  # then there have to be classes of sites
    reference = build_sitewise(arguments, index_type(device))
    plan = times.tuned or complete_site_plan(None, model.machine, reference, total, shape)
    inner = math.prod(max(0, n - 2) for n in shape)
    traffic = traffic_of(reference, total, total, 0 if placed else total - inner, form.buffers)
    box = f"{box_text(shape, kernel.lattice, form)}, all of kind 0, without walls, periodic"
    made = compiled(subject_of_step(reference, plan, device, model, arranged, traffic, box))
    subject = replace(
        made.subject,
        reference=made.executable.program.reference,  # as explanations of a compiled step have it
        shapes={} if SITES in asked else {SITES: shape},
    )
    tuned = None if times.tuned is None else subject.chosen
    return replace(made, subject=subject, times=replace(times, tuned=tuned))


def _stored(name: str, arguments: SitewiseArguments, form: Form, device: str, count: int) -> Times:
    """What tune() measured of such steps."""
    if not has_entries(name):
        return Times()
    first = replace(arguments, phase=form.phase(0, fresh=False))
    reference = build_sitewise(first, index_type(device))
    return stored_under(key_of_step(reference, arguments.layout, device, count))


def _arguments(
    kernel: LatticeKernel, form: Form, layout: Layout, taken: SiteParameters, each: frozenset[str]
) -> SitewiseArguments:
    """Of a step that follows links, as most do. each: the values that are one per site."""
    kinds = kernel.kinds
    phases = [form.phase(step, fresh=False) for step in (0, 1)]
    phase = next((p for p in phases if p.load_links or p.put_links), phases[0])
    lengths: dict[str, t.ValueType] = table_lengths(taken.tables)
    return SitewiseArguments(
        lattice=kernel.lattice,
        edges=read_edges(None, kernel.lattice.dimension, {}),
        phase=phase,
        storage=kinds.real,
        real=kinds.real,
        layout=layout,
        updates=(kinds.main.update,),
        two=form.buffers > 1,
        arrays=tuple((n, k) for n, k in taken.values.items() if n in each),
        uniforms=(
            *((n, k) for n, k in taken.values.items() if n not in each),
            *lengths.items(),
        ),
        marked=form.buffers > 1,
        moving_sites=False,
        fields=tuple(taken.fields.items()),
        state=tuple(kinds.state.items()),
        tables=tuple(taken.tables.items()),
    )
