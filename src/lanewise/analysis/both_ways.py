"""One function for both directions of a pair: f(i, j) and f(j, i), with everything that they share
computed once.

    gravity(target, source)  ->  gravity_both_ways(target, source): the action on the target, and
    the reaction on the source
Both directions are numbered in one table (`value_numbering`); the function is written back from it,
with the user's names where a value has one. Values are shared only when they are equal to the last
bit, so each direction is what the user's function gives.
"""

from __future__ import annotations

from dataclasses import dataclass

from lanewise.analysis.value_numbering import NotNumbered, Value, ValueTable, number_function
from lanewise.analysis.written_values import FREE, ValueWriter
from lanewise.ir import nodes as ir
from lanewise.ir.names import own, owner
from lanewise.ir.traverse import expressions, subexpressions
from lanewise.language.types import BOOL

LEAST_SAVING = (
    # of the work for both directions: below that, the exchange between threads costs more than it
    # saves
    0.15
)


@dataclass(frozen=True, slots=True)
class BothWays:
    """The combined function, and its operations compared with two calls of the original.

    same_bits: also where a compiler fuses multiplications and additions, each direction has the
    bits that the function gives alone.
    """

    function: ir.Function
    alone: int
    together: int
    same_bits: bool

    @property
    def saved(self) -> float:
        """The share of the work for a pair, both ways, that need not be done: 0 for nothing, up to
        0.5.
        """
        return 1 - self.together / (2 * self.alone) if self.alone else 0.0


def both_ways(function: ir.Function, target: str, source: str) -> BothWays | str:
    """The combined function of two different elements of one record, or why there is none.

    `target` and `source` are the names of the record parameters. The results of the new function
    are those of the old one, then the same for the opposite direction under the name `reaction...`.
    """
    table = ValueTable()
    other = {target: source, source: target}
    forward: dict[str, Value] = {}
    backward: dict[str, Value] = {}
    for p in function.parameters:
        if p.name == own("same"):
            forward[p.name] = backward[p.name] = Value(table.add("literal", (), BOOL, False))
            continue
        who = owner(p.name)
        exchanged = other[who] + p.name[len(who) :] if who in other else p.name
        forward[p.name], backward[p.name] = (
            table.leaf(p.name, p.type),
            table.leaf(exchanged, p.type),
        )
    try:
        there = number_function(table, function, forward)
        back = number_function(table, function, backward)
    except NotNumbered as reason:
        return str(reason)
    alone, together = _work(table, there), _work(table, there + back)
    writer = ValueWriter(table)
    writer.compute({v.number for v in there + back})
    values = tuple(map(writer.value, there + back))
    reactions = tuple(ir.Parameter(reaction_of(r.name), r.type) for r in function.results)
    named = [*(e for s in writer.body for e in expressions(s)), *values]
    used = {x.name for e in named for x in subexpressions(e) if isinstance(x, ir.Local)}
    leaves = [n for n in table.nodes if n.operation == "leaf" and n.payload in used]
    combined = ir.Function(
        f"{function.name}_both_ways", tuple(ir.Parameter(str(n.payload), n.type) for n in leaves),
        (*function.results, *reactions), (*writer.body, ir.Return(values)), function.location,
    )  # fmt: skip
    return BothWays(combined, alone, together, not table.products_turned)


def reaction_of(result: str) -> str:
    """The name of a result of the opposite direction."""
    return f"reaction{result.removeprefix('result')}"


# a minus sign is part of the addition that follows
_FREE = FREE | {"negate", "cast"}


def _work(table: ValueTable, values: list[Value]) -> int:
    return sum(
        table.nodes[n].operation not in _FREE for n in table.below({v.number for v in values})
    )
