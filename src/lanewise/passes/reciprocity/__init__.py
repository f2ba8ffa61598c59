"""Compute each pair once for both of its sides: action and reaction.

    parallel for i: for j: sum += f(i, j)
->  tasks (a, b) of two tiles of R x 32 elements, one warp each; every lane holds R targets of tile
a, and for each slice of 32 sources of
    tile b, 32 times: action, reaction = f_both_ways(target, source); sum += action; back +=
    reaction; rotate back
A lane meets each source of a slice once; the sums for the sources travel around the warp and are
home after 32 steps. Tasks with a == b are computed from one side. Every tile takes one contribution
for each tile there is, in a fixed order, so the bits do not depend on timing: "scratch" writes each
to its own memory, and a second kernel adds them; "ordered" adds them to the result in turn;
"grouped" adds those of a group of tasks in turn, and a second kernel adds the groups.

Sums stand for any reduction: its state takes the place of the sum. Every pair of two elements is in
one task, which gives one direction to each of the two; every element with itself is in one task,
which gives it once. So each element has taken the value of every source once, in states that were
merged; a state is an element of a commutative monoid and `take` a merge, so that this is the
reduction of all sources.
"""

from __future__ import annotations

from dataclasses import replace

from lanewise.analysis.both_ways import LEAST_SAVING
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.language.target import WARP
from lanewise.passes.accumulation import no_sums
from lanewise.passes.base import refuse
from lanewise.passes.reciprocity.adding import final_kernel
from lanewise.passes.reciprocity.computing import both_sided, give_states, load_target, one_sided
from lanewise.passes.reciprocity.groups import tasks_of_part
from lanewise.passes.reciprocity.shape import (
    Mode,
    PairShape,
    Reference,
    make_shape,
    number_of_tasks,
    take_apart,
)
from lanewise.passes.reciprocity.tasks import (
    find_task,
    in_task,
    keeping,
    memory,
    task_tiles,
)

MOST_THREADS = 1024

__all__ = ["Mode", "apply", "examine", "legal"]


def examine(kernel: ir.Kernel) -> Reference | str:
    """The pieces of a kernel whose pairs are worth computing once, or why they are not."""
    reference = take_apart(kernel)
    if isinstance(reference, str) or reference.both.saved >= LEAST_SAVING:
        return reference
    return (
        f"the two directions of a pair share too little: {100 * reference.both.saved:.0f} % of the "
        "work would be saved, "
        f"and the exchange between threads pays from {100 * LEAST_SAVING:.0f} %"
    )


def legal(kernel: ir.Kernel, targets: int, threads: int = WARP) -> str | None:
    """Why the pass does not apply, or None."""
    reference = examine(kernel)
    return reference if isinstance(reference, str) else _misshapen(targets, threads)


def _misshapen(targets: int, threads: int) -> str | None:
    if targets < 1:
        return f"{targets} targets per thread were requested"
    if threads < WARP or threads > MOST_THREADS or threads % WARP:
        return (
            f"each warp has its own tasks, and a block {WARP} to {MOST_THREADS} threads in "
            f"whole warps; {threads} were requested"
        )
    return None


def apply(
    kernel: ir.Kernel,
    targets: int,
    mode: Mode,
    unroll: int,
    *,
    threads: int = WARP,
    min_blocks: int = 0,
    wide: bool = False,
) -> tuple[ir.Kernel, ...]:
    """The kernel of the tasks, mapped to warps, and the kernel that adds their sums (scratch) or
    rounds them (ordered and wide).

    `wide` adds the sums of tasks in float64; raises `PlanError` when the kernel has no reciprocity.
    """
    reference = examine(kernel)
    if isinstance(reference, str):
        raise refuse("reciprocity", kernel, reference)
    if reason := _misshapen(targets, threads):
        raise refuse("reciprocity", kernel, reason)
    if wide and (reason := no_sums(kernel)):
        raise refuse("float64 accumulation", kernel, reason)
    shape = make_shape(kernel, reference, targets, threads // WARP, mode, unroll, wide=wide)
    grouped = mode == "grouped"
    tasks = tasks_of_part(shape) if grouped else number_of_tasks(shape.tile_count)
    grid = ir.Grid(tasks, threads // WARP, threads, min_blocks=min_blocks)
    pieces, scratch = memory(shape)
    # the results that are made of states afterwards
    later = {k.result.name for k in keeping(shape) if k.aside}
    arrays = tuple(a for a in kernel.arrays if a.name not in later)
    main = replace(kernel, arrays=(*arrays, *pieces), body=_body(shape), grid=grid, scratch=scratch)
    last = final_kernel(shape)
    return (main,) if last is None else (main, last)


def _body(shape: PairShape) -> ir.Block:
    loads = tuple(s for r in range(shape.targets) for s in load_target(shape, r))
    work = ir.If(build.equal(shape.offset, 0), one_sided(shape), both_sided(shape))
    return (
        *find_task(shape),
        *in_task(shape, (*task_tiles(shape), *loads, work, *give_states(shape))),
    )
