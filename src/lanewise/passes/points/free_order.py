"""Whether the rounds of a loop may come in any order, but for rounding: a window over two loops is
cut into tiles of both.
"""

from __future__ import annotations

from lanewise.ir import nodes as ir
from lanewise.ir.traverse import expressions, reads, statements, used_in, writes, written_in


def adds_up(body: ir.Block) -> bool:
    """Whether rounds may come in any order, but for rounding: variables that last are sums,
    products, minima or maxima.
    """
    every = list(statements(body))
    if any(
        isinstance(s, ir.ElementWrite | ir.SetElement | ir.DeclareArray | ir.Apply | ir.While)
        for s in every
    ):
        return False
    given, seen = written_in(body), set[str]()
    lasting: set[str] = set()
    for s in body:
        used, written = used_in((s,)), written_in((s,))
        lasting |= (used & given) - seen
        if isinstance(s, ir.Assign | ir.LoadElement | ir.For):
            seen |= set(writes(s)) - lasting
        else:
            lasting |= written - seen
    return all(_accumulates(n, every) for n in lasting)


def _accumulates(name: str, every: list[ir.Statement]) -> bool:
    """Whether a variable is only added to, or multiplied, or compared, and not read otherwise."""
    operators: set[str] = set()
    for s in every:
        used = [n for e in expressions(s) for n in reads(e)]
        if name not in used and name not in writes(s):
            continue
        if not isinstance(s, ir.Assign) or s.name != name or used.count(name) != 1:
            return False
        match s.value:
            case ir.Binary(operator="+" | "*" as operator, left=ir.Local(name=n)) if n == name:
                operators.add(operator)
            case ir.Binary(operator="+" | "*" as operator, right=ir.Local(name=n)) if n == name:
                operators.add(operator)
            case ir.Binary(operator="-", left=ir.Local(name=n)) if n == name:
                operators.add("+")
            case ir.Call(intrinsic="min" | "max" as which, arguments=arguments) if any(
                isinstance(a, ir.Local) and a.name == name for a in arguments
            ):
                operators.add(which)
            case _:
                return False
    return len(operators) == 1
