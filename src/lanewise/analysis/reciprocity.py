"""Newton's third law, found in the user's function: what of f(j, i) is known once f(i, j) is computed.

Both are numbered in one table (`value_numbering`), the second with target and source exchanged. Values of one number
are shared, up to an exact
sign. Gravity, Coulomb, Yukawa and Lennard-Jones share all but the factor of the source; a function without symmetry
shares nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from lanewise.analysis.value_numbering import NotNumbered, Table, Value, number_function
from lanewise.ir import nodes as ir
from lanewise.ir.names import own, owner
from lanewise.types import BOOL

_FREE = frozenset({"leaf", "literal", "negate", "cast"})  # a minus sign is part of the addition that follows


@dataclass(frozen=True, slots=True)
class Reciprocity:
    """Operations of f(i, j) alone, and of f(i, j) and f(j, i) together when everything equal is computed once."""

    alone: int
    together: int

    @property
    def saved(self) -> float:
        """The share of the work for a pair, both ways, that need not be done: 0 for nothing, up to 0.5."""
        return 1 - self.together / (2 * self.alone) if self.alone else 0.0


def reciprocity(function: ir.Function, target: str, source: str) -> Reciprocity | str:
    """How much the two directions of a pair share, or why that is not known.

    `target` and `source` are the names of the two record parameters; both must be of one record class.
    """
    table = Table()
    other = {target: source, source: target}
    forward: dict[str, Value] = {}
    backward: dict[str, Value] = {}
    for p in function.parameters:
        if p.name == own("same"):  # pairs of different bodies only
            forward[p.name] = backward[p.name] = Value(table.add("literal", (), BOOL, False))
            continue
        who = owner(p.name)
        exchanged = other[who] + p.name[len(who) :] if who in other else p.name
        forward[p.name], backward[p.name] = table.leaf(p.name, p.type), table.leaf(exchanged, p.type)
    try:
        there, back = number_function(table, function, forward), number_function(table, function, backward)
    except NotNumbered as reason:
        return str(reason)

    def work(values: list[Value]) -> int:
        reached = table.below({v.number for v in values})
        return sum(table.nodes[n].operation not in _FREE for n in reached)

    return Reciprocity(work(there), work(there + back))
