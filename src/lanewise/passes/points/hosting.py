"""The threads of a block as the lanes of SIMD registers: a kernel mapped to a grid becomes one for
a CPU.

$block = @block; $thread = @thread; $slice = $thread % 32; ... ->  parallel for $block: parallel for
$thread in range(32): $slice = $thread; ... What threads share is memory of a core, and they run
together, so that barriers cost nothing. Legal where all lanes run the same statements, in loops of
the same rounds or in loops whose rounds they share one by one (lane after lane, `lockstep`).
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import replace

from lanewise.analysis import simd_operations
from lanewise.analysis.index_sums import IndexSum, index_sum
from lanewise.analysis.lane_sums import lane_sums, shared_loops
from lanewise.ir import nodes as ir
from lanewise.ir.spreading import spread, spread_in_lanes
from lanewise.ir.traverse import blocks, expressions, flat_map, reads, rewrite_block
from lanewise.language.types import BOOL
from lanewise.passes.points.shape import BLOCK, THREAD


def apply(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel with its blocks and threads in parallel loops; `lockstep` says whether a CPU can
    run them.
    """
    grid = kernel.grid
    assert grid is not None
    body = tuple(
        s for s in kernel.body if not (isinstance(s, ir.Assign) and isinstance(s.value, ir.Builtin))
    )
    kind = grid.extent.type
    thread, count = ir.Local(THREAD, kind), ir.Literal(grid.threads, kind)

    def simplified(e: ir.Expression) -> ir.Expression:
        match e:
            case ir.Binary(operator="%", left=left, right=right) if (
                left == thread and right == count
            ):
                return thread
            case ir.Binary(operator="//", left=left, right=right) if (
                left == thread and right == count
            ):
                return ir.Literal(0, kind)
            case _:
                return e

    lanes = ir.Parallel(THREAD, count, rewrite_block(body, simplified))
    return replace(kernel, body=(ir.Parallel(BLOCK, grid.extent, (lanes,)),), grid=None)


def lockstep(kernel: ir.Kernel) -> str | None:
    """Why the threads of a block cannot be lanes, or None."""
    (outer,) = kernel.body
    assert isinstance(outer, ir.Parallel)
    (threads,) = outer.body
    assert isinstance(threads, ir.Parallel)
    assert isinstance(threads.extent, ir.Literal)
    body, count = threads.body, int(threads.extent.value)
    varying = spread_in_lanes(body, {THREAD})
    truths = {a.name for a in kernel.arrays if any(x.type == BOOL for x in a.leaves)}
    loops = shared_loops(body, varying, THREAD, count)
    sums = lane_sums(body, varying, loops)
    by_lane = spread(_outside_shared(body, loops), {THREAD})
    for s, is_shared in _with_sharing(body, loops):
        match s:
            case ir.Assign() | ir.If() | ir.Barrier() | ir.Shuffle():
                pass
            case ir.LoadElement() | ir.StoreElement():
                if reason := _apart(s, varying, sums, truths):
                    return reason
            case ir.For():
                if s.variable not in loops and varying & {
                    n for e in (s.start, s.stop, s.step) for n in reads(e)
                }:
                    return f"how often the loop over {s.variable} runs is not the same in all lanes"
                if s.variable not in loops and s.variable in varying:
                    return simd_operations.counts_apart(s)
            case _:
                return simd_operations.why_not_together(s)
        for e in expressions(s):
            # What differs only because lanes gathered it has been put together by then: it is the
            # same in all of them.
            once = not is_shared and by_lane.isdisjoint(reads(e))
            if not varying.isdisjoint(reads(e)) and (
                reason := simd_operations.problem(e, varying, once=once)
            ):
                return reason
    return None


def _with_sharing(
    block: ir.Block, loops: Container[str], *, is_shared: bool = False
) -> Iterator[tuple[ir.Statement, bool]]:
    """Every statement, and whether it is inside a loop whose rounds the lanes share."""
    for s in block:
        yield s, is_shared
        for b in blocks(s):
            yield from _with_sharing(
                b, loops, is_shared=is_shared or (isinstance(s, ir.For) and s.variable in loops)
            )


def _outside_shared(block: ir.Block, loops: Container[str]) -> ir.Block:
    """What stands outside of loops whose rounds lanes share: there all lanes compute the same
    values.
    """
    return flat_map(block, lambda s: () if isinstance(s, ir.For) and s.variable in loops else (s,))


def _apart(
    s: ir.LoadElement | ir.StoreElement,
    varying: set[str],
    sums: dict[str, IndexSum],
    truths: set[str],
) -> str | None:
    totals = [index_sum(i, sums) for i in s.indices]
    rest = [t.without([THREAD]) for t in totals]
    steps = [t.coefficient(THREAD) for t in totals]
    text = f"neighbouring lanes do not touch neighbouring elements of {s.array}"
    if any(not varying.isdisjoint(reads(e)) for t in rest for e in t.terms):
        return text
    if any(steps) and s.array in truths:
        return (
            f"{s.array} holds booleans, which take a byte each in memory and a bit each in a "
            "register"
        )
    return text if any(steps[:-1]) or steps[-1] not in (0, 1) else None
