"""Run over some layers of a box: a part of a mesh updates the layers at its faces before the
others, and its ghosts not at all.

    n = @block * 256 + @thread; if n < $count: ...
->  n = @block * 256 + @thread + $range.first; if n < $range.end: ...
Layers along the slowest axis follow each other in the numbers of sites, so two more numbers of a
launch are all that it takes. Kernels of sites that are no part of a mesh have none of this.

The reference kernel names the numbers and runs over all sites: what a range leaves out is ghosts
that nothing reads, or what another launch updates.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.language.types import Scalar

FIRST, END = own("range.first"), own("range.end")  # sites
LAYERS_FIRST, LAYERS_END = own("range.layers.first"), own("range.layers.end")
NAMES = (FIRST, END, LAYERS_FIRST, LAYERS_END)


def parameters(index: Scalar) -> tuple[ir.Parameter, ...]:
    """The numbers of a launch over some layers."""
    return tuple(ir.Parameter(name, index) for name in NAMES)


def numbers(layers: slice, plane: int) -> dict[str, Any]:
    """Their values, for layers of so many sites."""
    sites = layers.start * plane, layers.stop * plane
    return dict(zip(NAMES, (*sites, layers.start, layers.stop), strict=True))


def has_range(kernel: ir.Kernel) -> bool:
    """Whether its launches run over some layers."""
    return bool(set(NAMES) & {c.name for c in kernel.counts})


def layers(index: Scalar) -> tuple[ir.Local, ir.Local]:
    """The first layer, and one past the last."""
    return ir.Local(LAYERS_FIRST, index), ir.Local(LAYERS_END, index)


def apply(kernel: ir.Kernel, sites: int) -> ir.Kernel:
    """Of a kernel that is mapped to threads, each of which has so many neighbouring sites. A layer
    is a multiple of them.
    """
    place, guard = kernel.body
    assert isinstance(place, ir.Assign)
    assert isinstance(guard, ir.If)
    assert kernel.grid is not None
    index = kernel.counts[0].type
    first, end = ir.Local(FIRST, index), ir.Local(END, index)
    number = ir.Local(place.name, index)
    return replace(
        kernel,
        body=(
            replace(place, value=build.add(place.value, _groups(first, sites))),
            replace(guard, condition=build.less(number, _groups(end, sites))),
        ),
        grid=replace(kernel.grid, extent=build.subtract(end, first)),
        counts=tuple(c for c in kernel.counts if c.name not in NAMES[2:]),
    )


def _groups(count: ir.Local, sites: int) -> ir.Expression:
    return count if sites == 1 else build.divide(count, sites)
