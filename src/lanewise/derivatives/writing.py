"""Numbered values written back as statements: the user's names where a value has one, and branches
where a derivative has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lanewise.analysis.algebra import Algebra
from lanewise.analysis.simplification import expression_of
from lanewise.analysis.value_numbering import Value, ValueTable
from lanewise.derivatives.reverse import ConditionalSum
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.language.types import Scalar
from lanewise.support.errors import NOWHERE

_FREE = frozenset({"leaf", "literal"})


@dataclass
class Writer:
    """Writes statements: one for each value that is used more than once, or that has a name of the
    user's.
    """

    table: ValueTable
    body: list[ir.Statement] = field(default_factory=list[ir.Statement])
    names: dict[int, str] = field(default_factory=dict[int, str])
    taken: set[str] = field(default_factory=set[str])

    def results(self, choices: Sequence[ConditionalSum], kinds: Sequence[Scalar]) -> ir.Block:
        """Statements that compute the results and return them."""
        self.taken |= {str(n.payload) for n in self.table.nodes if n.operation == "leaf"}
        algebra = Algebra(self.table)
        condition = _only_condition(choices)
        if condition is None:
            values = [c.merged(algebra, kind) for c, kind in zip(choices, kinds, strict=True)]
            self._compute([v.number for v in values])
            self.body.append(ir.Return(tuple(map(self._value, values))))
            return tuple(self.body)
        first, second = (
            [c.sides.get(condition, (ConditionalSum(), ConditionalSum()))[side] for c in choices]
            for side in (0, 1)
        )
        shared = self.table.below(self._roots(first)) & self.table.below(self._roots(second))
        needed = {condition} | {n for n in shared if self.table.nodes[n].operation not in _FREE}
        self._compute([*sorted(needed), condition])
        inner = Writer(self.table, [], dict(self.names), set(self.taken)).results(first, kinds)
        self.body.append(ir.If(self._number(condition), inner))
        return Writer(self.table, self.body, self.names, self.taken).results(second, kinds)

    def _roots(self, choices: Sequence[ConditionalSum]) -> set[int]:
        """The values and conditions of derivatives."""
        roots: set[int] = set()
        for c in choices:
            roots |= {c.value.number} if c.value is not None else set()
            roots |= {*c.sides}
            roots |= self._roots([x for sides in c.sides.values() for x in sides])
        return roots

    def _compute(self, roots: list[int]) -> None:
        """Statements for what the roots are made of and has no name yet."""
        reached = self._below(roots)
        uses = dict.fromkeys(reached, 0)
        for n in [*roots, *(o for r in reached for o in self.table.nodes[r].operands)]:
            if n in uses:
                uses[n] += 1
        for number in sorted(reached):
            label, where = self.table.labels.get(number, ("", NOWHERE))
            if self.table.nodes[number].operation in _FREE or (not label and uses[number] < 2):
                continue
            name = label if label and label not in self.taken else own(f"value{number}")
            value = self._expression(number)  # before the name stands for it
            self.taken.add(name)
            self.names[number] = name
            self.body.append(ir.Assign(name, value, where))

    def _below(self, roots: list[int]) -> set[int]:
        """What the roots are computed from, down to what has a name."""
        below: set[int] = set()
        waiting = list(roots)
        while waiting:
            number = waiting.pop()
            if number not in below and number not in self.names:
                below.add(number)
                waiting += self.table.nodes[number].operands
        return below

    def _value(self, v: Value) -> ir.Expression:
        e = self._number(v.number)
        return ir.Unary("-", e, e.type) if v.negative else e

    def _number(self, number: int) -> ir.Expression:
        name = self.names.get(number)
        return ir.Local(name, self.table.nodes[number].type) if name else self._expression(number)

    def _expression(self, number: int) -> ir.Expression:
        node = self.table.nodes[number]
        return expression_of(node, tuple(self._number(o) for o in node.operands))


def _only_condition(choices: Sequence[ConditionalSum]) -> int | None:
    """The condition on which all that is not zero depends, if there is one."""
    conditions = {n for c in choices for n in c.sides}
    return (
        conditions.pop() if len(conditions) == 1 and all(c.value is None for c in choices) else None
    )
