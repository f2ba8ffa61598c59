"""The step of a flow as it is compiled for a device, to be explained."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanewise.attributes import unknown
from lanewise.errors import InputError
from lanewise.explanation.offline import Offline, compile_offline
from lanewise.lattices import D2Q9, D3Q19
from lanewise.layouts import layout_by_name
from lanewise.patterns.sitewise.kernel import sitewise
from lanewise.sims.lbm.operators import find_operator

if TYPE_CHECKING:
    from collections.abc import Mapping

LATTICES, DIMENSION, COLLISION = {2.0: D2Q9, 3.0: D3Q19}, 3.0, "trt"
PRECISIONS = ("f32", "f64")


def explained(
    device: str, sites: int, precision: str, layout: str | None, arch: str | None, values: Mapping[str, float]
) -> tuple[str, tuple[Offline, ...]]:
    """The collision and streaming of about so many sites far from walls, by two relaxation times, on D3Q19 or D2Q9.

    `values`: dimension (2 or 3), and numbers of the collision such as omega. On "cuda" no GPU is needed. Raises `InputError`.
    """
    if precision not in PRECISIONS:
        raise InputError(unknown("precision", precision, PRECISIONS))
    numbers = dict(values)
    dimension = numbers.pop("dimension", DIMENSION)
    lattice = LATTICES.get(dimension)
    if lattice is None:
        raise InputError(f"--set dimension={dimension:g}: wanted 2 or 3")
    flow = sitewise(lattice)(find_operator(COLLISION).make(lattice, precision, forced=False, eddies=False))
    heading = (
        f"a flow: {COLLISION} on {lattice.name}; walls, openings and forces are kinds of sites and parameters besides"
    )
    return heading, (
        compile_offline(
            flow, sites, device, arch=arch, layout=layout_by_name(layout) if layout else None, values=numbers
        ),
    )
