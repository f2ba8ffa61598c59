"""A pairwise kernel over a search or a tree, explained without arrays: places are made up.

The shape of a tree follows from the number of its elements, wherever they are. What other searches
cost follows from how many sources lie within the radius: in a world with borders that is known, in
an open one it is made up, unless the user says it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from lanewise.explanation.calls import compile_call
from lanewise.explanation.compiled import Offline
from lanewise.explanation.samples import Samples, plain_values, sample_arguments
from lanewise.explanation.shapes import Shape, sample_roles
from lanewise.language import types as t
from lanewise.language.record import Record
from lanewise.language.target import CPU
from lanewise.layouts import Layout, default_layout
from lanewise.patterns.pairwise.far_field import far_field
from lanewise.patterns.pairwise.kernel import Pairwise
from lanewise.patterns.search.base import Search
from lanewise.patterns.search.cell_array import CellArray
from lanewise.patterns.search.static_grid import StaticGrid
from lanewise.patterns.search.tree.search import Tree
from lanewise.patterns.search.worlds import Bounded, Open, Periodic, World
from lanewise.support.errors import InputError

NEAR = 32.0  # sources within the radius of a search, where the number is not given

Ranges = tuple[tuple[float, float], ...]


def compile_over_search(
    kernel: Pairwise,
    count: int,
    device: str,
    *,
    arch: str | None = None,
    layout: Layout | None = None,
    values: Mapping[str, float] | None = None,
    shapes: Mapping[str, Shape] | None = None,
    near: float | None = None,
    recalled: bool = False,
) -> tuple[str, tuple[Offline, ...]]:
    """What is known of the search of a kernel, and its call of `count` elements on "cpu" or "cuda",
    which needs no GPU. values, shapes: see `explanation/shapes.py`. near: how many sources lie
    within the radius on average. recalled: see `compile_call`.

    Raises `CompileError`, with the line, for a function that has no far field, `InputError` for a
    number of neighbours that the search itself decides.
    """
    record = next(iter(sample_roles(kernel, values, shapes).records.values()))
    samples, heading = placed_arguments(
        kernel,
        count,
        CPU.name,
        values=values,
        shapes=shapes,
        layout=layout or default_layout(record, device),
        near=near,
    )
    made = compile_call(kernel, device=device, arch=arch, recalled=recalled, **samples.named)
    subject = replace(made.subject, invented=plain_values(samples), shapes=samples.shapes.made_up)
    return heading, (replace(made, subject=subject),)


def check_near(kernel: Any, near: float | None) -> None:
    """Raises `InputError` for a number of neighbours of a kernel that looks for none."""
    if near is None:
        return
    if not isinstance(kernel, Pairwise) or kernel.searched is None:
        raise InputError(
            "--near says how many sources lie within the radius of a search, and "
            f"{kernel.__name__} runs over none"
        )
    if not (math.isfinite(near) and near > 0):
        raise InputError(f"--near {near:g}: wanted a number of sources above 0")


def placed_arguments(
    kernel: Pairwise, count: int, device: str, *, near: float | None = None, **given: Any
) -> tuple[Samples, str]:
    """Made-up arguments (see `sample_arguments`) whose elements are placed for the search of a
    kernel, and what is known of it.
    """
    samples = sample_arguments(kernel, count, device, **given)
    search = kernel.search
    if not isinstance(search, Tree):
        return samples, _spread(kernel, search, samples, near)
    if near is not None:
        raise InputError("--near is of a search with a radius, and a tree has none")
    return samples, f"by a {search.describe()}\n{far_field(kernel)}"


def _spread(kernel: Pairwise, search: Search, samples: Samples, near: float | None) -> str:
    """Put elements at random places, as dense everywhere, and say how dense."""
    target, source = list(kernel.signature.parameters)[:2]
    axes = _axes(kernel, search, source)
    sources = len(samples.named[source])
    ranges = _borders(search)
    if near is not None and (search.radius is None or ranges is not None):
        why = (
            f"this one has none ({search.describe()})"
            if search.radius is None
            else "in a world with borders it follows from the number of elements: choose --bodies"
        )
        raise InputError(f"--near says how many sources lie within the radius of a search; {why}")
    met = NEAR if near is None else near
    if ranges is None:
        side = _side(search.radius, axes, sources, met)
        ranges = ((0.0, side),) * axes
    rng = np.random.default_rng(0)
    lows, highs = np.array(ranges).T
    for records in {id(r): r for r in (samples.named[target], samples.named[source])}.values():
        places = rng.uniform(lows, highs, (len(records), axes))
        setattr(records, search.position, places.astype(getattr(records, search.position).dtype))
    within = f"over {search.describe()}; {sources:,} sources at random places"
    if search.radius is None:
        return within
    if isinstance(search.world, Open) and _borders(search) is None:
        chosen = "" if near is not None else " (choose it with --near)"
        return f"{within}, {met:g} of them within {search.radius:g} on average{chosen}"
    volume = float(np.prod(highs - lows))
    met = sources * _ball(search.radius, axes) / volume
    return f"{within}, about {met:.3g} of them within {search.radius:g}"


def _axes(kernel: Pairwise, search: Search, source: str) -> int:
    """How many axes positions have."""
    record = kernel.signature.parameters[source]
    assert isinstance(record, Record)
    kind: Any = next((f.type for f in record if f.name == search.position), None)
    if not isinstance(kind, t.Vector):
        found = "no such field" if kind is None else f"{search.position}: lw.{kind}"
        raise InputError(
            f"{kernel.__name__} runs over a search by the field {search.position!r} of "
            f"{record.name}; wanted a vector, found {found}"
        )
    return kind.length


def _borders(search: Search) -> Ranges | None:
    """Where elements lie, on each axis; None where the search does not say."""
    if isinstance(search, StaticGrid | CellArray) and search.over is not None:
        return search.over
    world: World = search.world
    match world:
        case Open():
            return None
        case Periodic(size=size, origin=origin):
            return tuple((o, o + s) for s, o in zip(size, origin, strict=True))
        case Bounded(low=low, high=high):
            return tuple(zip(low, high, strict=True))


def _side(radius: float | None, axes: int, sources: int, met: float) -> float:
    """Of the cube in which so many of all sources lie within the radius of one."""
    if radius is None:
        return sources ** (1 / axes)
    return (sources * _ball(radius, axes) / met) ** (1 / axes)


def _ball(radius: float, axes: int) -> float:
    """The volume of a ball in so many dimensions."""
    return math.pi ** (axes / 2) / math.gamma(axes / 2 + 1) * radius**axes
