"""Numbered values written back as statements, with the user's names where a value has one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import chain, count

from lanewise.analysis.simplification import expression_of
from lanewise.analysis.value_numbering import Value, ValueTable
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.support.errors import NOWHERE

FREE = frozenset({"leaf", "literal"})
"""Operations that nothing computes."""


@dataclass
class ValueWriter:
    """Writes statements: one for each value that is used more than once, or that has a name of the
    user's. names: of values, by their numbers; taken: all that are in use.
    """

    table: ValueTable
    body: list[ir.Statement] = field(default_factory=list[ir.Statement])
    names: dict[int, str] = field(default_factory=dict[int, str])
    taken: set[str] = field(default_factory=set[str])

    def compute(self, roots: Collection[int]) -> None:
        """Statements for what the roots are made of and has no name yet."""
        reached, nodes = self._below(roots), self.table.nodes
        self.taken |= {str(n.payload) for n in nodes if n.operation == "leaf"}
        uses = dict.fromkeys(reached, 0)
        for n in [*roots, *(o for r in reached for o in nodes[r].operands)]:
            if n in uses:
                uses[n] += 1
        for number in sorted(reached):
            label, where = self.table.labels.get(number, ("", NOWHERE))
            if nodes[number].operation in FREE or (not label and uses[number] < 2):
                continue
            name = self._free(label, number)
            value = self._expression(number)  # before the name stands for it
            self.taken.add(name)
            self.names[number] = name
            self.body.append(ir.Assign(name, value, where))

    def _free(self, label: str, number: int) -> str:
        """A name that nothing has: labels may look like those that are made here."""
        made = (own(f"value{number}{'_' * n}") for n in count())
        return next(n for n in chain([label] if label else [], made) if n not in self.taken)

    def _below(self, roots: Collection[int]) -> set[int]:
        """What the roots are computed from, down to what has a name."""
        below: set[int] = set()
        waiting = list(roots)
        while waiting:
            number = waiting.pop()
            if number not in below and number not in self.names:
                below.add(number)
                waiting += self.table.nodes[number].operands
        return below

    def value(self, v: Value) -> ir.Expression:
        """A value whose parts have been computed."""
        e = self.number(v.number)
        return ir.Unary("-", e, e.type) if v.negative else e

    def number(self, number: int) -> ir.Expression:
        """The same for a value by its number."""
        name = self.names.get(number)
        return ir.Local(name, self.table.nodes[number].type) if name else self._expression(number)

    def _expression(self, number: int) -> ir.Expression:
        node = self.table.nodes[number]
        return expression_of(node, tuple(self.number(o) for o in node.operands))


def function_of_values(
    name: str,
    table: ValueTable,
    parameters: Sequence[ir.Parameter],
    results: Sequence[tuple[ir.Parameter, Value]],
) -> ir.Function:
    """A function that computes values of a table; parameters that none of them needs are left
    out.
    """
    writer = ValueWriter(table)
    writer.compute([value.number for _, value in results])
    writer.body.append(ir.Return(tuple(writer.value(value) for _, value in results)))
    reached = table.below({value.number for _, value in results})
    used = {n.payload for i in reached if (n := table.nodes[i]).operation == "leaf"}
    kept = tuple(p for p in parameters if p.name in used)
    return ir.Function(name, kept, tuple(p for p, _ in results), tuple(writer.body))
