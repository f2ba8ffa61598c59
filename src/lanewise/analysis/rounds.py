"""Which variables belong to a round of a loop, and which go from one round to the next.

for k: u = a[k]; s = s + u   ->   u belongs to a round, s continues
"""

from __future__ import annotations

from lanewise.ir import nodes as ir
from lanewise.ir.traverse import used_in, written_in


def given_in_rounds(body: ir.Block) -> set[str]:
    """The variables that every round gives a value before it reads them."""
    seen: set[str] = set()
    lasting: set[str] = set()
    for s in body:
        used, written = used_in((s,)), written_in((s,))
        if isinstance(s, ir.Assign | ir.LoadElement | ir.Load | ir.DeclareArray):
            lasting |= used - seen
            seen |= written - lasting
        else:
            lasting |= (used | written) - seen
    return seen - lasting
