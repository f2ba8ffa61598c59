"""The memory of the tasks: a slice of sources, counters, and what is kept until it is added."""

from __future__ import annotations

from dataclasses import replace

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import own, partial_of
from lanewise.layouts import SoA, SoAoAS
from lanewise.passes.reciprocity.shape import WARP, Shape
from lanewise.passes.splitting import add_parts
from lanewise.record import Leaf
from lanewise.types import I32

TASKS, TURNS, SLICE, REACTIONS = own("tasks"), own("turns"), own("slice"), own("reactions")
COMBINE_UNROLL = 16  # partial sums in flight


def results(shape: Shape) -> list[ir.ArrayArgument]:
    """The arrays that the kernel writes."""
    return [a for a in shape.kernel.arrays if a.written and a.space == "global"]


def memory(shape: Shape) -> tuple[tuple[ir.ArrayArgument, ...], tuple[ir.Scratch, ...]]:
    """Arrays beside the kernel's own, and how long those in global memory are.

    A slice lies in shared memory twice, so that lane l finds source (l + step) % 32 at l + step.
    """
    fields = shape.fields
    slice_ = ir.ArrayArgument(SLICE, fields, SoAoAS().arrange(fields), written=True, space="shared", length=2 * WARP)
    if shape.mode == "scratch":
        partial = _partial(shape)
        scratch = tuple(ir.Scratch(p.name, ir.Binary("*", shape.tile_count, shape.n, shape.type)) for p in partial)
        return (slice_, *partial), scratch
    number = (Leaf("number", I32),)
    leaves = tuple(Leaf(f"s{n}", x.type) for n, x in enumerate(shape.back))
    tasks = ir.ArrayArgument(TASKS, number, SoA().arrange(number), written=True)
    aside = ir.ArrayArgument(REACTIONS, leaves, SoA().arrange(leaves), written=True, space="shared", length=shape.size)
    counters = (
        ir.Scratch(TASKS, ir.Literal(1, shape.type), zeroed=True),
        ir.Scratch(TURNS, shape.tile_count, zeroed=True),
    )
    return (slice_, aside, tasks, replace(tasks, name=TURNS)), counters


def _partial(shape: Shape) -> list[ir.ArrayArgument]:
    """One result for every turn and element; components apart, so that the lanes of a warp write neighbours."""
    return [replace(a, name=partial_of(a.name), arrangement=SoA().arrange(a.leaves)) for a in results(shape)]


def combine_kernel(shape: Shape) -> ir.Kernel:
    """Add the contributions to every element in the order of their turns."""
    kernel, i, turn = shape.kernel, shape.local("i"), shape.local("turn")
    place = build.add(ir.Binary("*", turn, shape.n, shape.type), i)
    partial = _partial(shape)
    body = tuple(
        s
        for a, p in zip(results(shape), partial, strict=True)
        for s in add_parts(a, p.name, place, turn, i, shape.tile_count, unroll=COMBINE_UNROLL)
    )
    arrays = (*(replace(p, written=False) for p in partial), *results(shape))
    name = f"{kernel.name}_combine"
    loop = ir.Parallel(i.name, shape.n, body)
    return ir.Kernel(name, "combine", arrays, (), kernel.counts[:1], (loop,), location=kernel.location)
