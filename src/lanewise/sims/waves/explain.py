"""The kernel of the F-statistic as it is compiled for a device, to be explained."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import lanewise as lw
from lanewise.attributes import near
from lanewise.errors import InputError
from lanewise.explanation.offline import DEFAULT_ARCH, Offline
from lanewise.explanation.subject import Subject
from lanewise.ir.pattern import Work
from lanewise.launch.arguments import name_arguments
from lanewise.launch.support import compile_kernel, index_type
from lanewise.layouts import default_layout, layout_by_name
from lanewise.models.devices import DeviceModel, device_model, table_model
from lanewise.patterns.segmentwise.kernel import WING, Segmentwise
from lanewise.patterns.segmentwise.pattern import SEGMENTWISE
from lanewise.plans import complete_plan
from lanewise.runtime.devices import missing_for_cuda
from lanewise.sims.waves.kernels import Sft, Template, dirichlet_kernel, interpolated_kernel, polynomials
from lanewise.sims.waves.prepared import DTERMS
from lanewise.target import CPU, Machine, is_gpu, target_of

if TYPE_CHECKING:
    from collections.abc import Mapping

SIZES = {"sfts": 90, "detectors": 1, "stacks": 1, "dterms": 0}
"""What can be set, with what it is by default; dterms 0: that of searches, read from a table."""
SPARE = 4  # bins of an SFT beside those that a template needs
MOST = {"sfts": 10_000, "detectors": 8, "stacks": 1_000, "dterms": 128}


def explained(
    device: str,
    templates: int,
    precision: str,
    layout: str | None,
    arch: str | None,
    values: Mapping[str, float],
) -> tuple[str, tuple[Offline, ...]]:
    """The kernel that sums the amplitudes of so many templates at one place of the sky over SFTs; on "cuda" no GPU is needed.

    `values`: sfts (of a stack and detector), detectors, stacks; with dterms (bins on each side) it is the kernel that adds the terms of
    Dirichlet's, without the one that reads polynomials. Raises `InputError`.
    """
    if precision != "f32":
        raise InputError(
            f"--precision {precision}: waves has phases in f64 and sums in f32 on every device; leave it out"
        )
    sizes = _sizes(values)
    dterms, rows = sizes["dterms"] or DTERMS, sizes["stacks"] * sizes["detectors"] * sizes["sfts"]
    template: Any = Template
    sft: Any = Sft
    chosen = layout_by_name(layout) if layout else default_layout(template.__record__, device)
    which = template.zeros(templates, layout=chosen, device="cpu")
    shape = (sizes["stacks"], sizes["detectors"], sizes["sfts"])
    sfts: Any = lw.ragged(sft.zeros(rows, layout=chosen, device="cpu"), counts=np.full(shape[:2], shape[2]))
    width = 2 * dterms + SPARE
    bins: Any = lw.ragged(np.zeros(rows * width, np.complex64), counts=np.full(rows, width))
    kernel: Segmentwise = dirichlet_kernel(dterms) if sizes["dterms"] else interpolated_kernel()
    heading = (
        f"the F-statistic of {templates:,} templates at one place: {' x '.join(map(str, shape))} SFTs (stacks x detectors x SFTs), "
        + (
            f"{2 * dterms} terms of Dirichlet's kernel each"
            if sizes["dterms"]
            else "their bins interpolated by polynomials"
        )
    )
    model = _model(device, arch)
    table = bins if sizes["dterms"] else polynomials(sfts, bins, dterms)
    return heading, (_offline(kernel, (which, sfts, table), templates, device, model),)


def _sizes(values: Mapping[str, float]) -> dict[str, int]:
    sizes = dict(SIZES)
    for name, value in values.items():
        if name not in SIZES:
            raise InputError(f"waves has no value {name!r} to set{near(name, SIZES) or ';'} it has {', '.join(SIZES)}")
        if not (value == int(value) and 1 <= value <= MOST[name]):
            raise InputError(f"--set {name}={value:g}: wanted a whole number from 1 to {MOST[name]:,}")
        sizes[name] = int(value)
    return sizes


def _model(device: str, arch: str | None) -> DeviceModel:
    if target_of(device) is CPU:
        return device_model("cpu")
    return table_model(arch or DEFAULT_ARCH) if arch or missing_for_cuda() else device_model("cuda")


def _offline(kernel: Segmentwise, given: tuple[Any, ...], templates: int, device: str, model: DeviceModel) -> Offline:
    """The kernel with its default plan, compiled and loaded nowhere."""
    named = name_arguments(kernel.signature, given, {})
    arguments = WING.arguments(kernel.signature, named)
    counts = WING.counts(kernel.__name__, arguments)
    cells, items = next(iter(counts.values())), [*counts.values()][-1]
    reference = WING.build(kernel.lowered, kernel.signature, arguments, index_type(device))
    work = Work(SEGMENTWISE, cells, alike=templates, items=items)
    machine = Machine(model.kind, model.multiprocessors, model.vector_bits or 256)
    executable = compile_kernel(
        reference, complete_plan(None, machine, work), device, arch=model.arch if is_gpu(device) else None
    )
    environment = {**counts, **{f"{row}.beyond": length for row, length in arguments.beyond.items()}}
    subject = Subject(
        kernel.__name__, reference, executable.program.plan, device, model, environment, {"cells": cells},
        {n: r.layout for n, r in arguments.records.items()}, work, tuple(c.resources for c in executable.cubins),
    )  # fmt: skip
    return Offline(subject, executable)
