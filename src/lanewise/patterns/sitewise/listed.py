"""Kernels over a list of sites: those that a wall cuts links of, or those of a face."""

from __future__ import annotations

from dataclasses import replace

from lanewise.ir import nodes as ir
from lanewise.ir.names import COUNT, own
from lanewise.ir.traverse import statements
from lanewise.ir.values import value_array
from lanewise.language.types import Scalar
from lanewise.patterns.sitewise.builder import SiteBuilder
from lanewise.patterns.sitewise.pattern import SITEWISE


def place_of(index: Scalar) -> ir.Local:
    """The place in the list."""
    return ir.Local(own("i"), index)


def over_list(
    name: str,
    builder: SiteBuilder,
    place: ir.Local,
    listed: tuple[str, str],
    body: ir.Block,
    beside: tuple[ir.ArrayArgument, ...],
    uniforms: tuple[ir.Parameter, ...] = (),
    *,
    corrects: bool = False,
) -> ir.Kernel:
    """The kernel that runs `body` for every place.

    listed: the array of sites, and how many there are. beside: arrays that it may use besides.
    corrects: whether it writes populations, and no other array of the sites.
    """
    used = {s.array for s in statements(body) if isinstance(s, ir.LoadRecord | ir.StoreRecord)}
    sites = builder.arrays()
    if corrects:
        sites = tuple(replace(a, written=a.name == builder.populations) for a in sites)
    array, count = listed
    declared = (*sites, value_array(array, place.type, written=False), *beside)
    return ir.Kernel(
        name,
        SITEWISE,
        tuple(a for a in declared if a.name in used),
        (*builder.velocities(), *uniforms),
        (*(ir.Parameter(n, place.type) for n in (count, COUNT)), *builder.counts()),
        (ir.Parallel(place.name, ir.Local(count, place.type), body),),
    )
