"""The step of a flow, to be explained, and that of a case as a run takes it, to be tuned."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import lanewise as lw
from lanewise.layouts import layout_by_name
from lanewise.sims.common.checks import check_known
from lanewise.sims.common.devices import check_compiled
from lanewise.sims.common.shown import (
    ShownDivision,
    ShownSize,
    ShownWork,
    TunedCall,
    box_division,
    least_side,
    listed,
)
from lanewise.sims.lbm.cases import Case, find_case
from lanewise.sims.lbm.cases.registry import SMALLEST
from lanewise.sims.lbm.operators import find_operator
from lanewise.sims.lbm.options import End, Method, Output
from lanewise.sims.lbm.runner import start
from lanewise.support.attributes import near
from lanewise.support.errors import InputError

LATTICES, DIMENSION, COLLISION = {2.0: lw.D2Q9, 3.0: lw.D3Q19}, 3.0, "trt"
PRECISIONS = ("f32", "f64")


def explained(
    device: str,
    sites: int,
    precision: str,
    layout: str | None,
    values: Mapping[str, float],
) -> tuple[str, tuple[ShownSize, ...]]:
    """The collision and streaming of about so many sites far from walls, by two relaxation times,
    on D3Q19 or D2Q9.

    `values`: dimension (2 or 3), and numbers of the collision such as omega. On "cuda" no GPU is
    needed. Raises `InputError`.
    """
    check_known("precision", precision, PRECISIONS)
    numbers = dict(values)
    dimension = numbers.pop("dimension", DIMENSION)
    lattice = LATTICES.get(dimension)
    if lattice is None:
        raise InputError(f"--set dimension={dimension:g}: wanted 2 or 3")
    flow = lw.sitewise(lattice)(
        find_operator(COLLISION).make(lattice, precision, forced=False, eddies=False)
    )
    side = max(1, round(sites ** (1 / lattice.dimension)))
    heading = (
        f"a flow: {COLLISION} on {lattice.name}; walls, openings and forces are kinds of sites and "
        "parameters besides"
    )
    return heading, (
        ShownSize(
            flow,
            sites,
            layout_by_name(layout) if layout else None,
            numbers,
            shapes={"sites": (side,) * lattice.dimension},
        ),
    )


def divided(
    mesh: str,
    device: str,
    sites: int,
    precision: str,
    layout: str | None,
    values: Mapping[str, float],
) -> tuple[str, ShownDivision]:
    """The same of a step on a mesh, by its text; device: the kind of its devices."""
    heading, shown = explained(device, sites, precision, layout, values)
    (step,) = shown
    division = box_division(step.kernel.lattice, step.shapes["sites"], precision, device)
    parts = len(listed(mesh))
    if isinstance(found := division.on(parts), str):
        axes = step.kernel.lattice.dimension
        least = least_side(parts, axes) ** axes
        raise InputError(
            f"--bodies {sites:,}: a box of so many sites has too few layers for {mesh}, {found}; "
            f"wanted --bodies {least}, or more"
        )
    works = (ShownWork(step, near=True),)
    return heading, ShownDivision("sites", division.divide, found.grow, works)


CASE = "karman"


def tuned_call(
    device: str,
    sites: int,
    precision: str,
    layout: str | None,
    values: Mapping[str, float],
    case: str | None = None,
) -> TunedCall:
    """A step of a case with about so many sites, all else as `lanewise lbm run` has it by default.

    `values`: size, instead of the number of sites. Raises `InputError` and `DeviceError`.
    """
    check_compiled("lbm", device)  # before a flow is made
    chosen = find_case(case or CASE)
    for name in set(values) - {"size"}:
        raise InputError(
            f"lbm has no value {name!r} to set{near(name, ('size',)) or ';'} it has size"
        )
    size = values.get("size", _size_of(chosen, sites))
    if size != int(size):
        raise InputError(f"--set size={size:g}: wanted an integer")
    request = chosen.request(size=int(size))
    method = Method(precision=precision, layout=layout, device=device)
    run = start(chosen, request, method, End(steps=1), Output())
    note = f"for steps like those of: lanewise lbm run {chosen.name} --size {request.size}"
    return replace(run.state.simulation.engine.tuned_call(), note=note)


def _size_of(case: Case, sites: int) -> int:
    """The size of a case that has about so many sites."""
    shape = case.setup().shape
    return max(SMALLEST, round(case.size * (sites / math.prod(shape)) ** (1 / len(shape))))
