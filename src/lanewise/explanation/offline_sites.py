"""A step over the sites of a lattice, explained without sites: of a periodic box, all of kind 0."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from lanewise.explanation.compiled import Offline, compiled
from lanewise.explanation.shapes import Shape, text_of
from lanewise.explanation.sites import box_text, subject_of_step, traffic_of
from lanewise.language import types as t
from lanewise.language.array_types import ArrayType
from lanewise.language.target import target_of
from lanewise.launch.support import index_type
from lanewise.layouts import Layout, SoA
from lanewise.models.devices import DeviceModel
from lanewise.patterns.sitewise.build import build_sitewise
from lanewise.patterns.sitewise.builder import SitewiseArguments, agreed
from lanewise.patterns.sitewise.kinds import read_edges
from lanewise.patterns.sitewise.lattice_kernel import LatticeKernel
from lanewise.patterns.sitewise.making import site_layout
from lanewise.patterns.sitewise.pattern import complete_site_plan
from lanewise.patterns.sitewise.sites import row_block_of
from lanewise.patterns.sitewise.streaming import TWO_COPIES, Form, form_by_name
from lanewise.patterns.tables.arguments import table_lengths
from lanewise.support.attributes import near
from lanewise.support.errors import InputError

SITES = "sites"  # the argument of a call that the sites are
AXES = ("nz", "ny", "nx")


@dataclass(frozen=True, slots=True)
class _Taken:
    """What the function of kind 0 takes, and what writes the fields that it reads."""

    values: Mapping[str, t.ValueType]
    fields: Mapping[str, t.Scalar]
    tables: Mapping[str, ArrayType]


def compile_sites(
    kernel: LatticeKernel,
    count: int,
    device: str,
    model: DeviceModel,
    layout: Layout | None,
    values: Mapping[str, float] | None,
    shapes: Mapping[str, Shape] | None,
) -> Offline:
    """A step of `kernel` compiled for about `count` sites on the device of a model, and loaded
    nowhere.

    shapes: that of the box as "sites", and of each value that is one a site. Raises `InputError`.
    """
    taken, asked = _taken(kernel), dict(shapes or {})
    _check_values(kernel, taken, values or {}, asked)
    shape = _box(kernel, count, asked)
    total = math.prod(shape)
    target = target_of(device)
    stencil = kernel.kinds.stencil
    form = TWO_COPIES if stencil else form_by_name(target.streaming)
    real = kernel.kinds.real
    default = SoA() if stencil else site_layout(None, device, real, shape[-1])
    arranged = layout or default
    placed = target.has_blocks  # as the sites of a call are
    arguments = _arguments(kernel, form, arranged, taken, frozenset(asked) - {SITES})
    reference = build_sitewise(
        replace(
            arguments,
            placed=placed,
            framed=placed,
            thin=min(shape) < 2,
            row_block=row_block_of(arranged, shape[-1], plain=stencil) if placed else 0,
        ),
        index_type(device),
    )
    plan = complete_site_plan(None, model.machine, reference, total, shape)
    inner = math.prod(max(0, n - 2) for n in shape)
    traffic = traffic_of(reference, total, total, 0 if placed else total - inner, form.buffers)
    box = f"{box_text(shape, kernel.lattice, form)}, all of kind 0, without walls, periodic"
    made = compiled(subject_of_step(reference, plan, device, model, arranged, traffic, box))
    subject = replace(
        made.subject,
        reference=made.executable.program.reference,  # as explanations of a compiled step have it
        shapes={} if SITES in asked else {SITES: shape},
    )
    return replace(made, subject=subject)


def _taken(kernel: LatticeKernel) -> _Taken:
    kinds = kernel.kinds
    main = kinds.main
    functions = (main, *kinds.writers(main.fields))
    return _Taken(
        agreed((f.name, f.parameters) for f in functions),
        {n: k for n, k in main.fields.items() if n not in kinds.state},
        agreed((f.name, f.tables) for f in functions),
    )


def _arguments(
    kernel: LatticeKernel, form: Form, layout: Layout, taken: _Taken, each: frozenset[str]
) -> SitewiseArguments:
    """Of a step that follows links, as most do. each: the values that are one a site."""
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


def _check_values(
    kernel: LatticeKernel, taken: _Taken, values: Mapping[str, float], asked: Mapping[str, Shape]
) -> None:
    name = kernel.__name__
    if unknown := [n for n in values if n not in taken.values]:
        names = ", ".join(taken.values) or "no value"
        raise InputError(f"{name} has no value {unknown[0]!r} to set; it has {names}")
    if both := [n for n in values if n in asked]:
        raise InputError(
            f"{name}: {both[0]!r} has a value and a shape; wanted one of them: a value for all, or "
            "one a site"
        )


def _box(kernel: LatticeKernel, count: int, asked: Mapping[str, Shape]) -> Shape:
    """The shape of the box; raises `InputError` for shapes that do not fit it."""
    taken, dimension = _taken(kernel), kernel.lattice.dimension
    side = max(1, round(count ** (1 / dimension)))
    shape = asked.get(SITES, (side,) * dimension)
    axes, known = AXES[-dimension:], (SITES, *taken.values)
    if len(shape) != dimension:
        example = text_of((512,) * dimension)
        raise InputError(
            f"--shape {SITES}={text_of(shape)}: sites of {kernel.lattice.name} have the shape "
            f"({', '.join(axes)}): wanted --shape {SITES}={example}"
        )
    for name, own in asked.items():
        if name in taken.tables or name in taken.fields:
            what = "a field of the sites" if name in taken.fields else "a table"
            raise InputError(
                f"--shape {name}={text_of(own)}: {name} is {what}, on whose size nothing that is "
                "explained depends: leave it out"
            )
        if name not in known:
            raise InputError(
                f"{kernel.__name__} has no array {name!r} to give a shape{near(name, known) or ';'}"
                f" it has {', '.join(known)}"
            )
        if name != SITES and own != shape:
            raise InputError(
                f"--shape {name}={text_of(own)}: a value that is one a site has the shape of the "
                f"sites: wanted --shape {name}={text_of(shape)}"
            )
    return shape
