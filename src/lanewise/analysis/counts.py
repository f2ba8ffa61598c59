"""What one application of a function costs in operations, by kind.

Helpers are counted where they are called, branches both ways.
"""

from __future__ import annotations

from collections import Counter

from lanewise.ir import nodes as ir
from lanewise.ir.traverse import expressions, statements, subexpressions


def count_operations(function: ir.Function) -> Counter[str]:
    """Operations as the text has them: `+`, `*`, `rsqrt`, ... Loops count once."""
    counts: Counter[str] = Counter()
    for s in statements(function.body):
        if isinstance(s, ir.Apply):
            counts += count_operations(s.function)
        for e in expressions(s):
            for x in subexpressions(e):
                match x:
                    case ir.Unary() | ir.Binary() | ir.Compare() | ir.Logical():
                        counts[x.operator] += 1
                    case ir.Call():
                        counts[x.intrinsic] += 1
                    case ir.Select():
                        counts["select"] += 1
                    case _:
                        pass
    return counts
