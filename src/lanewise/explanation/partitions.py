"""How the blocks of a threadwise kernel that run at once divide among partitions of memory.

GPUs of the GT200 kind, which the literature on naive kernels is about, gave 256 neighbouring bytes
to each of eight partitions in turn, and a partition served one access at a time. Where all blocks
need bytes of one partition the others idle ("partition camping": A. M. Aji, M. Daga, W. Feng,
Bounding the effect of partition camping in GPU kernels, 2011). Later GPUs hash addresses; what is
counted here tells what an order of blocks was meant for.

A block begins with the first round of its loops, and needs each segment of 64 bytes once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.analysis.affine import AffineAccess, accesses, nest
from lanewise.ir import nodes as ir
from lanewise.ir.interpret import evaluate
from lanewise.ir.names import length_of
from lanewise.ir.printer import print_expression
from lanewise.passes.points.merging import PANEL
from lanewise.passes.points.shape import shape_of
from lanewise.planning.plan import CompletePlan
from lanewise.support.errors import PlanError

PARTITIONS, WIDTH, SEGMENT = 8, 256, 64  # partitions, and bytes of a piece and of an access
AT_ONCE = 30  # blocks: one for each multiprocessor of a GeForce GTX 280
UNEVEN = 2.0  # times the mean in the fullest partition, from which on it is worth a line
Whole = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PartitionLoad:
    """An access, and how many segments of each partition the blocks need together."""

    place: str
    written: bool
    segments: tuple[int, ...]

    @property
    def unevenness(self) -> float:
        """The fullest partition over the mean: 1 is even, and with as many as there are
        partitions all blocks wait for one.
        """
        return max(self.segments) * len(self.segments) / sum(self.segments)


def partition_loads(
    reference: ir.Kernel, environment: Mapping[str, Any], plan: CompletePlan
) -> tuple[PartitionLoad, ...]:
    """Of each access of a matrix whose place is known before the kernel runs."""
    loops, body = nest(reference)
    if len(loops) < 2 or not plan.block:
        return ()
    try:
        shape = shape_of(plan, len(loops))
        extents = [int(evaluate(loop.extent, dict(environment))) for loop in loops]
    except (PlanError, KeyError):
        return ()
    sides = [shape.side(d) for d in range(len(loops))]
    blocks = _first_blocks(extents, sides, plan.order)
    indices = tuple(loop.variable for loop in loops)
    points = _points(blocks, sides, extents)
    found: dict[tuple[str, bool], PartitionLoad] = {}
    for access in accesses(body, indices):
        load = _load(access, reference, environment, dict(zip(indices, points, strict=True)))
        if load is not None:
            found.setdefault((load.place, load.written), load)
    return tuple(found.values())


def _first_blocks(extents: list[int], sides: list[int], order: str) -> list[Whole]:
    """The place of each of the first blocks along each index, as `passes/points/merging.py` numbers
    them.
    """
    counts = [-(-e // s) for e, s in zip(extents, sides, strict=True)]
    height, width = counts[-2], counts[-1]
    number = np.arange(min(AT_ONCE, math.prod(counts)), dtype=np.int64)
    rest, within = np.divmod(number, height * width)
    y, x = np.divmod(within, width)
    if order == "diagonal":
        along, y = np.divmod(within, height)
        x = (along + y) % width
    elif order == "panels":
        first = y // PANEL * PANEL
        rows = np.minimum(height - first, PANEL)
        x, down = np.divmod(y % PANEL * width + x, rows)
        y = first + down
    before: list[Whole] = []
    for count in reversed(counts[:-2]):
        rest, place = np.divmod(rest, count)
        before.insert(0, place)
    return [*before, y, x]


def _points(blocks: list[Whole], sides: list[int], extents: list[int]) -> list[Whole]:
    """The indices of all points of these blocks, one row a block; those beyond the end are the last
    ones.
    """
    grid = np.indices(sides).reshape(len(sides), -1)
    return [
        np.minimum(b[:, None] * side + g, extent - 1)
        for b, side, g, extent in zip(blocks, sides, grid, extents, strict=True)
    ]


def _load(
    access: AffineAccess,
    reference: ir.Kernel,
    environment: Mapping[str, Any],
    points: Mapping[str, Whole],
) -> PartitionLoad | None:
    (array,) = (a for a in reference.arrays if a.name == access.array)
    lengths = [environment.get(length_of(access.array, d)) for d in range(len(access.indices))]
    if len(lengths) < 2 or None in lengths or len(array.leaves) != 1:
        return None
    place: Whole = np.zeros_like(next(iter(points.values())))
    for index, length in zip(access.indices, lengths, strict=True):
        if index is None or index.scaled:
            return None
        # loops are at their first round, and what all threads share moves all alike
        moved = sum((c * points[v] for v, c in index.coefficients if v in points), index.constant)
        place = place * int(length or 0) + moved
    segments = np.unique(
        place * array.leaves[0].type.size // SEGMENT
        + np.arange(len(place))[:, None] * np.int64(2**40)
    ) % np.int64(2**40)
    partitions = segments * SEGMENT // WIDTH % PARTITIONS
    counts = np.bincount(partitions, minlength=PARTITIONS)
    text = f"{access.array}[{', '.join(print_expression(i) for i in access.statement.indices)}]"
    return PartitionLoad(text, access.is_store, tuple(counts.tolist()))


def partition_facts(
    reference: ir.Kernel, environment: Mapping[str, Any], plan: CompletePlan
) -> tuple[list[str], list[dict[str, Any]]]:
    """A line for each access that is uneven, with its load by both orders of blocks; and all as
    facts.
    """
    loads = partition_loads(reference, environment, plan)
    other = "rows" if plan.order == "diagonal" else "diagonal"
    turned = partition_loads(reference, environment, replace(plan, order=other)) if loads else ()
    texts: list[str] = []
    facts: list[dict[str, Any]] = []
    for load, by_other in zip(loads, turned, strict=True):
        facts.append(
            {
                "place": load.place,
                "written": load.written,
                "segments": list(load.segments),
                "unevenness": load.unevenness,
                f"with_{other}": by_other.unevenness,
            }
        )
        if load.unevenness < UNEVEN and by_other.unevenness < UNEVEN:
            continue
        shown = " ".join(map(str, load.segments))
        texts.append(
            f"{load.place} {'written' if load.written else 'read'}: {shown}, the fullest "
            f"{load.unevenness:.1f} times the mean; with order={other!r} "
            f"{by_other.unevenness:.1f} times"
        )
    if texts:
        texts.insert(
            0,
            f"of {PARTITIONS} with {WIDTH} bytes in turn, as a GeForce GTX 280 had (later GPUs "
            f"hash addresses): segments that {AT_ONCE} blocks begin with",
        )
    return texts, facts
