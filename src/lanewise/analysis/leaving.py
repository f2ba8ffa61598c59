"""Whether what follows a statement may be left out, because data decide that a function returns or
a loop ends there.
"""

from __future__ import annotations

from collections.abc import Callable

from lanewise.ir import nodes as ir
from lanewise.ir.traverse import blocks


def leaves(s: ir.Statement, known: Callable[[ir.Expression], bool]) -> bool:
    """Whether a statement may return from its function, or break or continue with the loop that it
    stands in.

    A branch whose condition is `known` counts as part of the path that is followed.
    """
    return _leaves(s, known, in_loop=False)


def _leaves(s: ir.Statement, known: Callable[[ir.Expression], bool], *, in_loop: bool) -> bool:
    match s:
        case ir.If():
            return not known(s.condition) and any(
                _ends(x, in_loop=in_loop) for block in (s.then, s.otherwise) for x in block
            )
        case ir.For() | ir.While():
            return any(_leaves(x, known, in_loop=True) for x in s.body)
        case _:
            return False


def _ends(s: ir.Statement, *, in_loop: bool) -> bool:
    """Whether a return stands in it, or a break or continue of the loop around."""
    match s:
        case ir.Return():
            return True
        case ir.Break() | ir.Continue():
            return not in_loop
        case ir.For() | ir.While():
            return any(_ends(x, in_loop=True) for x in s.body)
        case _:
            return any(_ends(x, in_loop=in_loop) for block in blocks(s) for x in block)
