"""Made-up sites for a kernel over a lattice, for commands that run it: a periodic box, all of kind
0, as explanations without sites have it (`explanation/offline_sites.py`).

Populations begin as the weights of the lattice, a fluid at rest. Fields, tables and what is one a
site are random, as the arrays of other made-up calls are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, assert_never, cast

import numpy as np

from lanewise.explanation.samples import (
    WHOLE_NUMBERS,
    Samples,
    random_values,
    refused,
    typed_values,
)
from lanewise.explanation.shapes import Shape, Shapes, shapes_of_arrays
from lanewise.explanation.site_shapes import (
    SITES,
    SiteParameters,
    check_values,
    shape_of_box,
    taken_by,
)
from lanewise.explanation.sites import box_of
from lanewise.layouts import Layout
from lanewise.patterns.sitewise.kernel import Sitewise
from lanewise.patterns.sitewise.lattice_kernel import LatticeKernel
from lanewise.patterns.sitewise.stencil import Stencil
from lanewise.patterns.sitewise.tuning import SiteJob
from lanewise.records.field_values import brought
from lanewise.runtime.devices import resolve
from lanewise.support.errors import InputError, LanewiseError


def site_job(
    kernel: Sitewise | Stencil,
    count: int,
    device: str,
    *,
    layout: Layout | None = None,
    values: Mapping[str, float] | None = None,
    shapes: Mapping[str, Shape] | None = None,
) -> SiteJob:
    """What tuning measures for about `count` made-up sites. A kernel with tables makes a step with
    tests of all indices beforehand, because made-up numbers may lead out of them.

    shapes: that of the box as "sites", and those of values that are one per site and of tables.
    Raises `InputError` for what does not fit, `DeviceError` for a device that is not there or has
    no plans.
    """
    if count < 1:
        raise InputError(f"{count} sites requested; wanted at least 1")
    where, taken, asked = resolve(device), taken_by(kernel), dict(shapes or {})
    check_values(kernel, taken, values or {}, asked)
    shape = shape_of_box(kernel, count, asked)
    samples = _samples(kernel, taken, count, shape, values or {}, asked)
    uniform = taken.values.keys() - asked
    named = {n: v if n in uniform else brought(n, v, where) for n, v in samples.named.items()}
    sites: Any = kernel.sites(shape, layout=layout, device=where)
    _fill(kernel, sites)
    try:
        job = kernel.tuning_job(sites, **named)
        if taken.tables:
            kernel.run(sites, 1, checks=True, **named)
            _fill(kernel, sites)
    except LanewiseError as error:
        raise refused(error, samples) from error
    note = (
        f"for steps of {box_of(sites)}, periodic and without walls; others are tuned in "
        f"Python: {kernel.__name__}.tune(sites, ...)"
    )
    return replace(job, note=note)


def _samples(
    kernel: LatticeKernel,
    taken: SiteParameters,
    count: int,
    shape: Shape,
    values: Mapping[str, float],
    asked: Mapping[str, Shape],
) -> Samples:
    """The values of a step: numbers, and arrays on the host."""
    rng = np.random.default_rng(0)
    uniform = {n: k for n, k in taken.values.items() if n not in asked}
    named, invented = typed_values(kernel.__name__, uniform, values)
    each = {n: k for n, k in taken.values.items() if n in asked}
    written = kernel.kinds.fields  # by the flow's own observers: no call brings them
    each |= {n: k for n, k in taken.fields.items() if n not in written}
    named |= {n: random_values(rng, shape, k) for n, k in each.items()}
    given = {n: s for n, s in asked.items() if n in taken.tables}
    tables = shapes_of_arrays(taken.tables, given, count)
    below = min((n for s in tables.values() for n in s), default=WHOLE_NUMBERS)
    for n, kind in taken.tables.items():
        named[n] = random_values(rng, tables[n], kind.element, min(WHOLE_NUMBERS, below))
    made_up = tuple(n for n in (SITES, *taken.tables) if n not in asked)
    return Samples(named, invented, Shapes({SITES: shape, **tables}, made_up))


def _fill(kernel: Sitewise | Stencil, sites: Any) -> None:
    """Give sites what a step can begin with."""
    match kernel:
        case Sitewise():
            lattice = cast(Any, kernel.lattice)
            weights = np.array([q.weight for q in lattice], kernel.real.dtype)
            axes = (1,) * len(sites.shape)
            populations = np.broadcast_to(weights.reshape(-1, *axes), (len(weights), *sites.shape))
            kernel.set_populations(sites, populations)
        case Stencil():
            rng = np.random.default_rng(1)
            held = kernel.kinds.state.items()
            kernel.set_fields(sites, **{n: random_values(rng, sites.shape, k) for n, k in held})
        case _:
            assert_never(kernel)
