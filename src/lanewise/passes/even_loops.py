"""Loops that end where a point says, as loops that end where the last point says: threads of a
block go over them together, and share what they read.

    for k in range(y + 1): load a[y, k]: u; load b[k, x]: v; s += u * v
->  for k in range($y.extent): load a[y, k]: u; load b[k, x]: v; if k < y + 1: s += u * v
Every point adds what it added, in its order. It reads more, and nothing beyond an array: a place
along a dimension is a round, which the last point reads as well, or an index, which other rounds
read. The rounds are twice as many for a triangle, which tiles are worth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lanewise.analysis.affine import nest
from lanewise.analysis.index_sums import IndexSum, index_sum, single_definitions
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import read_counts, reads, statements
from lanewise.passes.points.shape import Shape, first_of

MOST = 1 << 20  # rounds beyond an index, next to which no sum wraps


def apply(kernel: ir.Kernel, shape: Shape | None = None) -> ir.Kernel:
    """The kernel with such loops; the same one where it has none, or one that reads otherwise.

    shape: of the blocks that its points will be divided into: then loops end where the last point
    of a block says.
    """
    loops, body = nest(kernel)
    ends = {x.variable: x.extent for x in loops}
    if shape is not None:
        ends = {
            x.variable: build.minimum(_end_of_block(x, shape.side(d)), x.extent)
            for d, x in enumerate(loops)
        }
    shared = {p.name for p in kernel.counts + kernel.uniforms}
    written = {a.name for a in kernel.arrays if a.written}
    read, definitions = read_counts(body), single_definitions(body)

    def even_of(s: ir.Statement) -> ir.Statement:
        if not isinstance(s, ir.For) or not _is_alone(s, read):
            return s
        return _even(s, index_sum(s.stop, definitions), ends, shared, written)

    even = tuple(map(even_of, body))
    if even == body:
        return kernel
    for loop in reversed(loops):
        even = (replace(loop, body=even),)
    return replace(kernel, body=even)


def _even(
    loop: ir.For,
    stop: IndexSum,
    ends: dict[str, ir.Expression],
    shared: set[str],
    written: set[str],
) -> ir.For:
    """stop: what its end is, as a sum. ends: of the indices."""
    name = next((n for n in ends if stop == IndexSum(stop.constant, {_index(n, loop): 1})), None)
    if (
        name is None
        or abs(stop.constant) > MOST
        or not shared.issuperset(reads(loop.start))
        or loop.step != ir.Literal(1, loop.step.type)
    ):
        return loop
    loads = tuple(s for s in loop.body if isinstance(s, ir.LoadElement))
    others = tuple(s for s in loop.body if not isinstance(s, ir.LoadElement))
    if (
        any(s.array in written for s in loads)
        or not all(_is_there(s, loop.variable, set(ends), shared) for s in loads)
        or not all(isinstance(s, ir.Assign | ir.If) for s in statements(others))
    ):
        return loop
    last = build.add(ends[name], stop.constant - 1)
    own = build.less(ir.Local(loop.variable, loop.stop.type), loop.stop)
    return replace(loop, stop=last, body=(*loads, ir.If(own, others)))


def _end_of_block(loop: ir.Parallel, side: int) -> ir.Expression:
    return build.add(ir.Local(first_of(loop.variable), loop.extent.type), side)


def _index(name: str, loop: ir.For) -> ir.Expression:
    return ir.Local(name, loop.stop.type)


def _is_alone(loop: ir.For, read: Mapping[str, int]) -> bool:
    """Whether what its rounds load is read by them alone."""
    own = read_counts(loop.body)
    names = [n for s in loop.body if isinstance(s, ir.LoadElement) for n in s.names]
    return all(own[n] == read[n] for n in (*names, loop.variable))


def _is_there(load: ir.LoadElement, round_: str, indices: set[str], shared: set[str]) -> bool:
    """Whether an element is in its array for every round of every point, if it is for those of a
    point's own.
    """
    return all(
        {round_, *shared}.issuperset(reads(e)) or (isinstance(e, ir.Local) and e.name in indices)
        for e in load.indices
    )
