"""Indices as sums: coefficients times variables, plus what all threads share.

(y * 2 + 1) + k   ->   2 y + k + 1
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import reads, statements, write_counts
from lanewise.language.types import Scalar


@dataclass(frozen=True, slots=True)
class IndexSum:
    """A constant and the terms of a sum: what is multiplied (a variable, or an expression that is
    taken as a whole), and by what.
    """

    constant: int = 0
    terms: Mapping[ir.Expression, int] = field(default_factory=dict[ir.Expression, int])

    def plus(self, other: IndexSum, factor: int = 1) -> IndexSum:
        """This sum and `factor` times another one."""
        terms = dict(self.terms)
        for e, c in other.terms.items():
            terms[e] = terms.get(e, 0) + factor * c
        return IndexSum(
            self.constant + factor * other.constant, {e: c for e, c in terms.items() if c}
        )

    def coefficient(self, name: str) -> int:
        """Of a variable."""
        return sum(c for e, c in self.terms.items() if isinstance(e, ir.Local) and e.name == name)

    def without(self, names: Iterable[str]) -> IndexSum:
        """The same, without the terms of these variables."""
        gone = set(names)
        kept = {
            e: c for e, c in self.terms.items() if not (isinstance(e, ir.Local) and e.name in gone)
        }
        return IndexSum(self.constant, kept)

    def key(self) -> frozenset[tuple[ir.Expression, int]]:
        """What two sums have in common that differ by a constant."""
        return frozenset(self.terms.items())

    def expression(self, kind: Scalar) -> ir.Expression:
        """The sum as an expression."""
        total: ir.Expression = ir.Literal(0, kind)
        for e, c in self.terms.items():
            total = build.add(total, build.multiply(build.index_of(e, kind), c))
        # which has no positive counterpart in its type
        if self.constant == -(2 ** (8 * kind.size - 1)):
            return build.add(total, ir.Literal(self.constant, kind))
        return (
            build.subtract(total, -self.constant)
            if self.constant < 0
            else build.add(total, self.constant)
        )


def index_sum(e: ir.Expression, definitions: Mapping[str, IndexSum] = {}) -> IndexSum:
    """The sum that an expression is; what is no sum is one term.

    Names with a definition are replaced by it.
    """
    match e:
        case ir.Literal():
            return IndexSum(int(e.value))
        case ir.Local() if e.name in definitions:
            return definitions[e.name]
        case ir.Cast(operand=inner) if (
            inner.type.is_integer and e.type.is_integer and e.type.size >= inner.type.size
        ):
            total = index_sum(inner, definitions)
            widened = inner.type.kind == "u" and e.type.size > inner.type.size
            # a sum of unsigned numbers may have wrapped before: its terms, widened, are another one
            return IndexSum(0, {e: 1}) if widened and not _is_plain(total) else total
        case ir.Unary(operator="-"):
            return IndexSum().plus(index_sum(e.operand, definitions), -1)
        case ir.Binary(operator="+" | "-"):
            return index_sum(e.left, definitions).plus(
                index_sum(e.right, definitions), 1 if e.operator == "+" else -1
            )
        case ir.Binary(operator="*"):
            left, right = index_sum(e.left, definitions), index_sum(e.right, definitions)
            if not left.terms:
                return IndexSum().plus(right, left.constant)
            return IndexSum().plus(left, right.constant) if not right.terms else IndexSum(0, {e: 1})
        case _:
            return IndexSum(0, {e: 1})


def _is_plain(total: IndexSum) -> bool:
    """Whether a sum is one term or a constant."""
    if not total.terms:
        return total.constant >= 0
    return not total.constant and list(total.terms.values()) == [1]


def single_definitions(block: ir.Block, start: Mapping[str, IndexSum] = {}) -> dict[str, IndexSum]:
    """The integers of a block that are assigned once, from what does not change in it, as
    sums.
    """
    count = write_counts(block)
    definitions = dict(start)
    for s in statements(block):
        if (
            not isinstance(s, ir.Assign)
            or s.name in definitions
            or count[s.name] != 1
            or not s.value.type.is_integer
        ):
            continue
        if all(count.get(n, 0) <= 1 or n in start for n in reads(s.value)):
            definitions[s.name] = index_sum(s.value, definitions)
    return definitions
