"""Which variables belong to a round of a loop, and which go from one round to the next.

for k: u = a[k]; s = s + u   ->   u belongs to a round, s goes on
"""

from __future__ import annotations

from lanewise.ir import nodes as ir
from lanewise.ir.traverse import blocks, expressions, reads, statements, writes


def given_in_rounds(body: ir.Block) -> set[str]:
    """The variables that every round gives a value before it reads them."""
    seen: set[str] = set()
    lasting: set[str] = set()
    for s in body:
        inside = [s, *(x for b in blocks(s) for x in statements(b))]
        used = {n for x in inside for e in expressions(x) for n in reads(e)}
        written = {n for x in inside for n in writes(x)}
        if isinstance(s, ir.Assign | ir.LoadElement | ir.Load | ir.DeclareArray):
            lasting |= used - seen
            seen |= written - lasting
        else:
            lasting |= (used | written) - seen
    return seen - lasting
