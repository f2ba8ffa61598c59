"""Which loops of a kernel for a CPU become lanes of SIMD registers by LLVM: several rounds at once.

    parallel for y: for x in range(n): for u in range(3): s = s + a[y, x + u]     the one over x
    parallel for y: for k in range(n): s = s + a[y, k], in any order              the one over k
It does so for innermost loops, after it has written out short ones whose rounds the text counts.
What a round hands on to the next has to be a sum that may be added in any order, or an integer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from lanewise.analysis.reductions import first_access
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import blocks, expressions, statements, subexpressions, writes

# expressions and accesses, up to which LLVM writes the rounds of a loop out
WRITTEN_OUT = 900
# the same for a loop within an element, and its most rounds: LLVM writes it out before it makes
# lanes of elements, or makes none
WRITTEN_OUT_INSIDE = 256
ROUNDS_INSIDE = 80
_ALONE = (ir.While, ir.Break, ir.Continue, ir.Return, ir.DeclareArray, ir.Scatter)


def has_lanes(loop: ir.For) -> bool:
    """Whether the rounds of a loop go together."""
    inside = list(statements(loop.body))
    if any(isinstance(s, _ALONE) for s in inside) or size_written_out(loop) <= WRITTEN_OUT:
        return False
    if any(_keeps_apart(x) for s in inside for e in expressions(s) for x in subexpressions(e)):
        return False
    if any(size_written_out(s) > WRITTEN_OUT for s in outer_loops(loop.body)):
        return False
    return not _touched_elsewhere(inside) and all(
        _is_free(s)
        for name in dict.fromkeys(n for s in inside for n in writes(s))
        if first_access(loop.body, name) == "read"
        for s in inside
        if name in writes(s)
    )


def keeps_elements_apart(loop: ir.For | ir.While) -> bool:
    """Whether a loop of an element's own function stays a loop, so that neither elements nor its
    rounds go together.
    """
    if isinstance(loop, ir.While):
        return True
    size, rounds = size_written_out(loop), rounds_of(loop)
    return (size > WRITTEN_OUT_INSIDE or rounds > ROUNDS_INSIDE) and not has_lanes(loop)


def kept_loops(functions: Iterable[ir.Function], which: str) -> list[str]:
    """What such loops cost, with their lines (of nested ones that of the outer one): one text, or
    none where there are none. which: what a function is called for.
    """
    found: set[int] = set()

    def look(block: ir.Block) -> None:
        for s in block:
            if isinstance(s, ir.For | ir.While) and keeps_elements_apart(s):
                found.add(s.location.line)
            else:
                for inner in blocks(s):
                    look(inner)

    for f in functions:
        look(f.body)
    if not found:
        return []
    lines = ", ".join(map(str, sorted(found)))
    where = "loop of line" if len(found) == 1 else "loops of lines"
    return [f"{where} {lines}: {which} are computed one after the other, without SIMD lanes"]


def _keeps_apart(e: ir.Expression) -> bool:
    """Whether registers have no instruction for an operation: division of integers."""
    return (
        isinstance(e, ir.Binary)
        and e.operator in ("//", "%")
        and e.type.is_integer
        and not isinstance(e.right, ir.Literal)
    )


def size_written_out(loop: ir.For) -> float:
    """Expressions and accesses of all rounds of a loop; no end where the text does not count
    them.
    """
    rounds = rounds_of(loop)
    return rounds * _size(loop.body) if math.isfinite(rounds) else rounds


def rounds_of(loop: ir.For) -> float:
    """How often the text says that a loop turns; no end where it does not."""
    ends = (loop.start, loop.stop, loop.step)
    if not all(isinstance(e, ir.Literal) for e in ends):
        return math.inf
    start, stop, step = (int(e.value) for e in ends if isinstance(e, ir.Literal))
    return len(range(start, stop, step)) if step else float("inf")


def _size(block: ir.Block) -> float:
    total = 0.0
    for s in block:
        total += isinstance(s, ir.Load | ir.Store | ir.If)
        total += sum(
            not isinstance(x, ir.Local | ir.Literal)
            for e in expressions(s)
            for x in subexpressions(e)
        )
        if isinstance(s, ir.For):
            total += size_written_out(s)
        else:
            total += sum(map(_size, blocks(s)))
    return total


def outer_loops(block: ir.Block) -> Iterator[ir.For]:
    """Counting loops of a block that stand in no other one."""
    for s in block:
        if isinstance(s, ir.For):
            yield s
        else:
            for inner in blocks(s):
                yield from outer_loops(inner)


def _touched_elsewhere(inside: list[ir.Statement]) -> bool:
    """Whether what is written may be read in another round."""
    stored = {(s.buffer, s.index) for s in inside if isinstance(s, ir.Store)}
    buffers = {b for b, _ in stored}
    return any(
        isinstance(s, ir.Load) and s.buffer in buffers and (s.buffer, s.index) not in stored
        for s in inside
    )


def _is_free(s: ir.Statement) -> bool:
    """Whether what a statement makes of a variable that rounds hand on may be made in any
    order.
    """
    if not isinstance(s, ir.Assign):
        return False
    match s.value:
        case ir.Binary(free=True):
            return True
        case value:
            return value.type.is_integer
