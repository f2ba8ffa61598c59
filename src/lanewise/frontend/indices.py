"""`lw.index_of(element)`: which element of the caller's array a parameter is.

    lw.random(seed, step, lw.index_of(a))      random(seed, step, $index.a)
The kernel gives the function a number for each parameter that is asked about, whatever order its
elements run in.
"""

from __future__ import annotations

import ast

from lanewise.frontend.scope import Scope
from lanewise.frontend.values import Number
from lanewise.ir import nodes as ir
from lanewise.ir.names import index_name
from lanewise.language import types as t


def index_of(scope: Scope, node: ast.Call) -> Number:
    """Lower a call of `lw.index_of`."""
    match node:
        case ast.Call(args=[ast.Name(id=name)], keywords=[]) if name in scope.elements:
            scope.numbered[name] = None
            return Number(t.I32, (ir.Local(index_name(name), t.I32, scope.location(node)),))
        case _:
            pass
    names = [n for n in scope.parameters if n in scope.elements]
    raise scope.error(
        "lw.index_of asks which element a parameter is",
        node,
        found=ast.unparse(node)
        + ("" if names else ", in a function that has no element to ask about"),
        wanted=" or ".join(f"lw.index_of({n})" for n in names)
        or "an elementwise, pairwise or sitewise function",
        hint=""
        if names
        else "in a helper take the index as a parameter; a threadwise function has its lw.index "
        "parameters",
    )
