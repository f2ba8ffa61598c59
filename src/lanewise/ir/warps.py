"""Whether all threads of a warp, or all lanes of SIMD registers, come to a statement together.

What the threads of a warp ask each other has an answer only where all of them are: each condition
and each loop around has to be the same in all of them, and so has every way out of these loops.
"""

from __future__ import annotations

from collections.abc import Iterator

from lanewise.ir import nodes as ir
from lanewise.ir.spreading import control, spread
from lanewise.ir.traverse import blocks, expressions, statements, subexpressions, writes
from lanewise.language.target import WARP


def divided_around(body: ir.Block, sought: ir.Statement) -> list[str]:
    """Variables that are not the same in all threads of a warp, of which it depends whether, or how
    often, they come to a statement of a kernel's body; none where they come to it together.
    """
    around = [s for place in _around(body, sought, ()) for s in place]
    deciding = [s for s in around if isinstance(s, ir.If | ir.While | ir.For)]
    # a loop inside of that of the lanes, or of a grid
    lanes = {s.variable for s in around if isinstance(s, ir.Parallel) and s not in body}
    varying = spread(_without_quotients(body), lanes | _of_threads(body), (ir.Agreed,))
    if any(_reads_thread(s) for s in deciding):
        return ["the thread"]
    return sorted({n for s in deciding for n in control(s) & varying})


def _around(
    block: ir.Block, sought: ir.Statement, outer: tuple[ir.Statement, ...]
) -> Iterator[tuple[ir.Statement, ...]]:
    """The statements around each place of a statement, the outermost first."""
    for s in block:
        if s is sought:
            yield outer
        for inner in blocks(s):
            yield from _around(inner, sought, (*outer, s))


def _reads_thread(s: ir.Statement) -> bool:
    nodes = (x for e in expressions(s) for x in subexpressions(e))
    return any(isinstance(x, ir.Builtin) and x.name in ("thread", "clock") for x in nodes)


def _of_threads(body: ir.Block) -> set[str]:
    """The variables that are made from the number of a thread."""
    return {n for s in statements(body) if _reads_thread(s) for n in writes(s)}


def _without_quotients(body: ir.Block) -> ir.Block:
    """The body without the numbers of warps: quotients of places of threads that are the same in
    each of them.
    """
    assigned = [s for s in statements(body) if isinstance(s, ir.Assign)]
    places = {s.name for s in assigned if _is_place(s.value)}
    places -= {n for s in statements(body) for n in writes(s) if s not in assigned}
    places -= {s.name for s in assigned if not _is_place(s.value)}
    return tuple(
        s for s in body if not (isinstance(s, ir.Assign) and _is_quotient(s.value, places))
    )


def _is_place(e: ir.Expression) -> bool:
    """`block * n + thread` for n a number of whole warps."""
    match e:
        case ir.Binary(
            operator="+",
            left=ir.Binary(
                operator="*", left=ir.Builtin(name="block"), right=ir.Literal(value=int(n))
            ),
            right=ir.Builtin(name="thread"),
        ):
            return n % WARP == 0
        case _:
            return False


def _is_quotient(e: ir.Expression, places: set[str]) -> bool:
    match e:
        case ir.Binary(
            operator="//", left=ir.Local(name=place), right=ir.Literal(value=int(threads))
        ):
            return place in places and threads % WARP == 0
        case _:
            return False
