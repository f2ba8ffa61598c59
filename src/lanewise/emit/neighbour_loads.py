"""Loops that read an element and its neighbours, which the next rounds read again.

LLVM keeps what the next round reads in a register. Whole vectors do well with that: an element less
is loaded. What is left at the end of a row is one element after the other then, each waiting for
the one before. So such a loop is written in two parts: whole vectors, and a rest in which
neighbours at odd distances are read through another pointer to the same array, of which LLVM does
not know that it is the same.
"""

from __future__ import annotations

from lanewise.analysis.index_sums import index_sum, single_definitions
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import statements, used_in, writes, written_in
from lanewise.language.types import Scalar

VECTORS = 4 * 64  # bytes that LLVM takes at once at most: of four registers
Places = frozenset[tuple[str, ir.Expression]]


def odd_neighbours(s: ir.For, separate: bool) -> Places:
    """Buffers and places of a loop that are neighbours, at an odd distance, of others which it
    reads. None where rounds depend on each other, or where what is stored may lie in the same
    memory.

    separate: arrays never share memory.
    """
    if s.step != ir.Literal(1, s.step.type) or not all(
        isinstance(x, ir.Assign | ir.Load | ir.Store | ir.If | ir.Apply) for x in statements(s.body)
    ):
        return frozenset()
    stored = {x.buffer for x in statements(s.body) if isinstance(x, ir.Store)}
    loads = [x for x in s.body if isinstance(x, ir.Load) and x.buffer not in stored]
    if len(loads) < 2 or (stored and not separate) or _hang_together(s.body):
        return frozenset()
    sums = single_definitions(s.body)
    classes = dict[tuple[object, ...], list[tuple[int, ir.Load]]]()
    for load in loads:
        total = index_sum(load.index, sums)
        by = total.coefficient(s.variable)
        if by:
            number, rest = divmod(total.constant, by)
            classes.setdefault((load.buffer, total.key(), rest), []).append((number, load))
    return frozenset(
        (load.buffer, load.index)
        for near in classes.values()
        for number, load in near
        if (number - near[0][0]) % 2
    )


def _hang_together(body: ir.Block) -> bool:
    """Whether a round reads what the one before has left in a variable."""
    written, given = written_in(body), set[str]()
    for s in body:
        if (used_in((s,)) & written) - given:
            return True
        given |= set(writes(s))
    return False


def rounds_at_once(s: ir.For, kinds: dict[str, Scalar]) -> int:
    """Rounds of whole vectors."""
    moved = (x for x in statements(s.body) if isinstance(x, ir.Load | ir.Store))
    return VECTORS // min(kinds[x.buffer].size for x in moved)
