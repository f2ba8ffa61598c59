"""The types of the variables that statements declare."""

from __future__ import annotations

from collections.abc import Callable

from lanewise.ir import nodes as ir
from lanewise.ir.traverse import declares, expressions
from lanewise.language.types import LocalArray, Scalar

Stored = Callable[[str, str], Scalar]
"""The type of a leaf of an array, or with "" of a buffer or of an array's only leaf."""


def declared(s: ir.Statement, stored: Stored) -> list[tuple[str, Scalar | LocalArray]]:
    """The variables that a sound statement itself declares, and their types: those of what it
    loads, else that of its last expression.
    """
    match s:
        case ir.DeclareArray():
            return [(s.name, s.type)]
        case ir.Apply():
            return [(n, r.type) for n, r in zip(s.results, s.function.results, strict=True)]
        case ir.LoadRecord():
            return [(variable, stored(s.array, leaf)) for leaf, variable in s.reads]
        case ir.LoadElement():
            return [(n, stored(s.array, "")) for n in s.names]
        case ir.Load():
            return [(n, stored(s.buffer, "")) for n in s.names if n]
        case _:
            names = declares(s)
            return [(n, expressions(s)[-1].type) for n in names]
