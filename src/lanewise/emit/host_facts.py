"""What the texts for a CPU ask of kernels: local arrays and who lends them, how far neighbours lie
apart, loops whose variables count all of their rounds.
"""

from __future__ import annotations

import math

from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.ir.traverse import statements, subexpressions
from lanewise.language.types import LocalArray, limits

Arrays = dict[str, LocalArray]


def local_arrays(block: ir.Block) -> Arrays:
    """The local arrays of a block and of the functions that it applies.

    The kernel makes them once, not once for each element.
    """
    arrays: Arrays = {}
    for s in statements(block):
        match s:
            case ir.DeclareArray():
                arrays[s.name] = s.type
            case ir.Apply():
                arrays |= borrowed(s.function)
            case _:
                pass
    return arrays


def borrowed(f: ir.Function) -> Arrays:
    """The local arrays that a caller lends to a function, by their names at the caller:
    `$function.array`.
    """
    return {own(f"{f.name}.{name}"): kind for name, kind in local_arrays(f.body).items()}


def is_counted(s: ir.For) -> bool:
    """Whether the type of a loop's variable surely holds the way from its start to its stop."""
    match s.start, s.stop:
        case ir.Literal(value=start), ir.Literal(value=stop):
            low, high = limits(s.start.type)
            return low <= stop - start <= high
        case start, stop:
            return start == ir.Literal(0, start.type) or stop == ir.Literal(-1, stop.type)


def stride(index: ir.Expression) -> float:
    """How far neighbours lie apart: 1 for blocks (which divide) and for an index from memory (which
    is cast).
    """
    parts = list(subexpressions(index))
    products = [x for x in parts if isinstance(x, ir.Binary) and x.operator == "*"]
    divided = any(isinstance(x, ir.Binary) and x.operator == "//" for x in parts)
    if not products or divided or any(isinstance(x, ir.Cast) for x in parts):
        return 1
    factors = [f.value for x in products for f in (x.left, x.right) if isinstance(f, ir.Literal)]
    return max(factors) if len(factors) == len(products) else math.inf
