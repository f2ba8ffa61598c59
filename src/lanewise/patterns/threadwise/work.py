"""What default plans ask of a threadwise call: whether a few points have long loops, and how the
loads of these are coalesced.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from lanewise.analysis.affine import accesses, nest_of
from lanewise.analysis.recurrences import Recurrence, recurrence
from lanewise.ir import nodes as ir
from lanewise.ir.interpret import evaluate
from lanewise.ir.pattern import Rounds, Work
from lanewise.ir.traverse import reads, statements
from lanewise.passes import loop_sharing, loop_splitting, panels, shared_loops
from lanewise.passes.points.boxes import WIDEST
from lanewise.patterns.threadwise.totals import POINT


def describe(reference: ir.Kernel, work: Work) -> Work:
    """The work of a call with this reference kernel, apart from its numbers."""
    if loop_sharing.legal(reference) is not None:
        if loop_sharing.legal(reference, running=True) is None:
            loops = shared_loops.shareable_loops(reference, running=True)
            count = _counting(reference, tuple(x.inner for x in loops.values()))
            return replace(work, rounds=Rounds(count, running=True))
        blocked = recurrence(reference)
        if isinstance(blocked, str) or panels.legal(reference, 1) is not None:
            return work
        long = replace(blocked.outer, start=_first(blocked), stop=_last(blocked))
        return replace(work, rounds=Rounds(_counting(reference, (long,)), panels=True))
    loops = shared_loops.shareable_loops(reference)
    indices, _ = nest_of(reference)
    # rows that begin anywhere are copied one by one, and the L1 cache has them for less
    multiples = {a.name: a.multiple for a in reference.arrays}
    rows = shared_loops.rows_of(reference, loops)
    wide = all(multiples[r.array] * r.type.size % WIDEST == 0 for r in rows)
    rounds = Rounds(
        _counting(reference, tuple(x.inner for x in loops.values())),
        columns=shared_loops.best_way(reference) == "column",
        kept=sum(r.type.size for r in rows),
        wide=wide,
        divided=loop_splitting.legal(reference, 2) is None,
        alone=indices == (POINT,),
        reused=_reused(reference),
        nested=all(x.stores and _has_loop(x.inner.body) for x in loops.values()),
    )
    return replace(work, rounds=rounds)


def _has_loop(body: ir.Block) -> bool:
    return any(isinstance(s, ir.For) for s in statements(body))


def _first(blocked: Recurrence) -> ir.Expression:
    return blocked.start if blocked.step > 0 else blocked.stop


def _last(blocked: Recurrence) -> ir.Expression:
    return blocked.stop if blocked.step > 0 else blocked.start


def _reused(reference: ir.Kernel) -> bool:
    """Whether several points read the same elements in the rounds of their loops, and not all of
    them the same: products and windows.
    """
    indices, body = nest_of(reference)
    loads = [a for a in accesses(body, indices) if a.loops and not a.is_store]
    ways = [[a.way(i) for i in indices] for a in loads]
    return any("same" in w and set(w) != {"same"} for w in ways) or any(
        a.slides(indices) for a in loads
    )


def _counting(
    reference: ir.Kernel, loops: tuple[ir.For, ...]
) -> Callable[[Mapping[str, Any]], int]:
    """The rounds of the longest of some loops.

    Where their ends depend on more than a call's numbers, the longest row of an array.
    """
    kinds = {p.name: p.type for p in reference.counts + reference.uniforms}
    shapes = [n for a in reference.arrays for n in a.shape if isinstance(n, str)]

    def count(environment: Mapping[str, Any]) -> int:
        values = {
            n: kind.dtype.type(environment[n]) for n, kind in kinds.items() if n in environment
        }
        lengths = [
            int(evaluate(x.stop, values)) - int(evaluate(x.start, values))
            for x in loops
            if all(n in values for e in (x.start, x.stop) for n in reads(e))
        ]
        return max(lengths, default=max((int(values[n]) for n in shapes if n in values), default=1))

    return count
