"""Which variables of a function have one value for as long as it runs, and what they are defined
as.

    r2 = d.x * d.x + d.y * d.y; inv = rsqrt(r2 + e)   ->   r2: d.x * d.x + d.y * d.y, inv: rsqrt(r2
    + e)
A pass may put such a definition where the name stands, anywhere behind it: nothing that it reads
changes.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from lanewise.ir import nodes as ir
from lanewise.ir.traverse import blocks, expressions, reads, statements, write_counts, writes


@dataclass(frozen=True, slots=True)
class Definitions:
    """`values` by name, in order of text; `fixed` are all names that never change, parameters among
    them; `uses` of every name.

    A use within a loop counts twice: what stands there is computed again and again.
    """

    values: dict[str, ir.Expression]
    fixed: frozenset[str]
    uses: Counter[str]

    def used_once(self, name: str) -> ir.Expression | None:
        """The definition of a name that is read in one place, outside loops."""
        return self.values.get(name) if self.uses[name] == 1 else None


def definitions(function: ir.Function) -> Definitions:
    """Find the variables that are assigned once, outside loops, from others of that kind."""
    written = write_counts(function.body)
    looped = {
        n
        for s in statements(function.body)
        if _is_loop(s)
        for b in blocks(s)
        for x in statements(b)
        for n in writes(x)
    }
    parameters = {p.name for p in function.parameters}
    fixed = {n for n in parameters if n not in written}
    values: dict[str, ir.Expression] = {}
    for s in statements(function.body):
        for name in writes(s):
            if written[name] > 1 or name in looped or name in parameters:
                continue
            match s:
                case ir.Assign() if fixed.issuperset(reads(s.value)):
                    values[name] = s.value
                    fixed.add(name)
                case ir.Apply() | ir.Assign():
                    fixed.add(name)
                case _:  # a local array or the variable of a loop
                    pass
    return Definitions(values, frozenset(fixed), _uses(function.body, 1))


def _is_loop(s: ir.Statement) -> bool:
    return isinstance(s, ir.For | ir.While)


def _uses(block: ir.Block, weight: int) -> Counter[str]:
    """How often each name is read; a condition of `while` belongs to its loop."""
    uses: Counter[str] = Counter()
    for s in block:
        inner = 2 if _is_loop(s) else weight
        for e in expressions(s):
            for n in reads(e):
                uses[n] += inner if isinstance(s, ir.While) else weight
        for b in blocks(s):
            uses += _uses(b, inner)
    return uses
