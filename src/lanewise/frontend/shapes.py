"""Scalars that meet vectors."""

from __future__ import annotations

import ast

from lanewise.frontend.scope import Scope
from lanewise.frontend.values import Number
from lanewise.language import types as t


def spread(scope: Scope, single: Number, length: int) -> Number:
    """A vector with one scalar, computed once, in every component."""
    return Number(t.Vector(single.scalar, length), (scope.bind(single.parts[0]),) * length)


def same_shape(scope: Scope, numbers: list[Number], node: ast.AST) -> list[Number]:
    """Repeat the scalars for every component of the vectors that they meet; refuse vectors of
    different lengths.
    """
    lengths = {len(x.parts) for x in numbers if x.is_vector}
    if len(lengths) > 1:
        raise scope.error(
            "vectors of different lengths do not fit",
            node,
            found=" and ".join(str(x.type) for x in numbers if x.is_vector),
            wanted="vectors of one length",
        )
    if not lengths:
        return numbers
    (length,) = lengths
    return [x if x.is_vector else spread(scope, x, length) for x in numbers]
