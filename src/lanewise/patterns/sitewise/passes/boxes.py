"""Let a thread update sites of several rows and layers, and a block of threads neighbours in all
directions.

    parallel for n: y = row(n) % ny; z = ...; load t[n]: a; load t[n + ahead.y * 4]: b; load t[n +
    back.z * 4]: c; ...; store next[n]
->  parallel for $z.group: parallel for $y.group: parallel for $x.group:
        y#0 = min(2 $y.group, ny - 2); y#1 = ...; n#0#0 = (z * ny + y#0) * nx + 4 $x.group; ...
        load t[n#0#0, 4 records]: ...; load t[n#0#1, 4 records]: ...; ...
A row is read for the row itself and for both next to it, and so is a layer. Threads that have
several of them read it once, threads of a block read it from the cache of their multiprocessor:
what is left to read is the surface of a block. The last rows and layers go with the last whole
group of them: some sites are then updated twice, with the same result, for they read one copy and
write the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import numbered, own
from lanewise.ir.traverse import used_in, written_in
from lanewise.passes.base import refuse
from lanewise.passes.thread_merging import varying_names
from lanewise.patterns.sitewise.builder import FIELDS, MARKS, SOLIDS
from lanewise.patterns.sitewise.kinds import AXES
from lanewise.patterns.sitewise.links import EXTENTS, FLAGS, rest_of
from lanewise.patterns.sitewise.passes import merging, ranges, sharing
from lanewise.planning.plan import CompletePlan
from lanewise.support.errors import PlanError

NO_NEIGHBOURS = "its populations arrive each at one site: rows have nothing to share"
MARKED = (
    "its sites read marks of what is special about them, and more of them a thread wait longer for "
    "each other"
)
NO_PLACES = "its sites do not compute where they lie"
MOST = 32  # sites of a thread
ROWS = 8  # and of these along an axis, but for x


def rank(kernel: ir.Kernel) -> int:
    """The axes of the box."""
    return sum(n in {c.name for c in kernel.counts} for n in EXTENTS)


def fitting(shape: tuple[int, ...]) -> tuple[int, ...]:
    """How many rows and layers a thread may have in a box: part of what kernels are kept by."""
    return tuple(min(n, ROWS) for n in shape[:-1])


def check_extents(plan: CompletePlan, shape: tuple[int, ...]) -> None:
    """Raise `PlanError` for more rows or layers a thread than the box has."""
    for name, axis, extent in zip(("rows", "layers"), AXES[1:], shape[-2::-1], strict=False):
        if getattr(plan, name) > extent:
            raise PlanError(
                f"Plan({name}={getattr(plan, name)}): the box has {extent} "
                f"{'site' if extent == 1 else 'sites'} along {axis}; "
                f"wanted at most as many {name} per thread"
            )


def legal(kernel: ir.Kernel, points: Sequence[int]) -> str | None:
    """Why the pass does not apply, or None. points: sites of a thread along x, y and z."""
    if (
        len(kernel.body) != 1
        or not isinstance(kernel.body[0], ir.Parallel)
        or kernel.grid is not None
    ):
        return "its sites are already mapped to threads"
    if kernel.arrays[0].name != FIELDS:
        return NO_NEIGHBOURS
    if {MARKS, SOLIDS, FLAGS} & {a.name for a in kernel.arrays}:
        return MARKED
    axes = rank(kernel)
    if points[0] != 1 and (reason := merging.legal(kernel, points[0])):
        return reason
    if axes < 2 or any(p != 1 for p in points[axes:]):
        return f"its box has {axes} {'axis' if axes == 1 else 'axes'}"
    if rest_of(0).name not in written_in(kernel.body):
        return NO_PLACES
    if min(points) < 1 or prod(points) > MOST or max(points) > ROWS:
        return (
            f"a thread updates at most {MOST} sites, {ROWS} along an axis; "
            f"{' x '.join(map(str, points))} were requested"
        )
    return None


def apply(kernel: ir.Kernel, points: Sequence[int]) -> ir.Kernel:
    """So many sites per thread along x, y and z, in loops over groups of them, that along x the
    innermost.
    """
    if reason := legal(kernel, points):
        raise refuse("thread merging", kernel, reason)
    loop = kernel.body[0]
    assert isinstance(loop, ir.Parallel)
    index = loop.extent.type
    axes = rank(kernel)
    extents = [ir.Local(n, index) for n in EXTENTS[:axes]]
    places = [ir.Local(own(a), index) for a in AXES[:axes]]
    groups = [ir.Local(own(f"{a}.group"), index) for a in AXES[:axes]]
    body = _by_place(loop, extents, places)
    starts: list[ir.Statement] = []
    numbered_axes: list[int] = []
    for axis, (place, extent, group) in enumerate(zip(places, extents, groups, strict=True)):
        count, end = points[axis], extents[axis]
        first = build.multiply(group, count)
        if axis == axes - 1 and ranges.has_range(kernel):
            begin, end = ranges.layers(index)
            first = build.add(first, begin)
        if axis and count > 1:
            first = build.minimum(first, build.subtract(end, count))
        if count == 1:
            starts.append(ir.Assign(place.name, first))
            continue
        merge = merging.Merge(
            axis, count, _varying(place, extent, body), None if axis else loop.variable
        )
        begin = ir.Local(own(f"{AXES[axis]}.begin"), index)
        starts.append(ir.Assign(begin.name, first))
        starts += [ir.Assign(numbered(place.name, r), build.add(begin, r)) for r in range(count)]
        body = merge.apart(body) if axis == len(AXES) - 1 else merge.block(body)
        numbered_axes.append(axis)
    body = (*starts, *sharing.share(body, kernel, tuple(numbered_axes), points[0]))
    for axis, group in enumerate(groups):
        extent: ir.Expression = extents[axis]
        if axis == axes - 1 and ranges.has_range(kernel):
            begin, end = ranges.layers(index)
            extent = build.subtract(end, begin)
        body = (ir.Parallel(group.name, build.ceil_divide(extent, points[axis]), body),)
    used = used_in(body)
    counts = (kernel.counts[0], *(c for c in kernel.counts[1:] if c.name in used))
    return replace(kernel, body=body, counts=counts)


def _varying(place: ir.Local, extent: ir.Expression, body: ir.Block) -> set[str]:
    return varying_names(ir.Parallel(place.name, extent, body), merging.SHARED)


def _by_place(
    loop: ir.Parallel, extents: Sequence[ir.Local], places: Sequence[ir.Local]
) -> ir.Block:
    """The work of a site whose coordinates are known, and its number is not."""
    found = {p.name for p in places} | {rest_of(axis).name for axis in range(len(places))}
    number: ir.Expression = places[-1]
    for axis in reversed(range(len(places) - 1)):
        number = build.add(build.multiply(number, extents[axis]), places[axis])
    rest = (s for s in loop.body if not (isinstance(s, ir.Assign) and s.name in found))
    return (ir.Assign(loop.variable, number), *rest)
