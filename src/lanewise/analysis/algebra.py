"""Arithmetic on the values of a table, simplified as it is built: zeros and ones vanish, factors
that are numbers come together.

It is for derivatives, whose rounding no text fixes: 2 * (x * 0.5) may become x. A zero
is a derivative that is not there, so zero times anything is zero.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from lanewise.analysis.value_numbering import Value, ValueTable
from lanewise.ir import nodes as ir
from lanewise.ir.interpret import evaluate
from lanewise.language.types import BOOL, Scalar

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
MOST_FACTORS = 6  # of products that are compared


class Algebra:
    """Sums, products and rules over one table."""

    def __init__(self, table: ValueTable) -> None:
        self.table = table

    def kind(self, value: Value) -> Scalar:
        return self.table.nodes[value.number].type

    def number(self, value: float, kind: Scalar) -> Value:
        return Value(self.table.add("literal", (), kind, abs(float(value))), value < 0)

    def literal(self, value: Value) -> float | None:
        """The number that a value is, if it is one."""
        node = self.table.nodes[value.number]
        if node.operation != "literal" or not node.type.is_float:
            return None
        size = float(node.payload)  # type: ignore[arg-type]
        return -size if value.negative else size

    def negative(self, value: Value) -> Value:
        return Value(value.number, not value.negative)

    def add(self, a: Value, b: Value) -> Value:
        x, y = self.literal(a), self.literal(b)
        if x == 0:
            return b
        if y == 0:
            return a
        if x is not None and y is not None:
            return self.number(x + y, self.kind(a))
        if a.number == b.number:
            return (
                self.times(self.number(2, self.kind(a)), a)
                if a.negative == b.negative
                else self.number(0, self.kind(a))
            )
        if (product := self._alike(a, b)) is not None:
            return product
        if a.negative == b.negative:
            return Value(self.table.add("+", _sorted(a, b), self.kind(a)), a.negative)
        low, high = sorted((a, b), key=lambda v: v.number)
        return Value(self.table.add("-", (low.number, high.number), self.kind(a)), low.negative)

    def _alike(self, a: Value, b: Value) -> Value | None:
        """The sum of two products of the same factors, whatever their order: one product."""
        (m, first), (n, second) = self._factors(a), self._factors(b)
        if len(first) < 2 or first != second:
            return None
        product = Value(first[0])
        for factor in first[1:]:
            product = self.times(product, Value(factor))
        return self.times(self.number(m + n, self.kind(a)), product)

    def _factors(self, value: Value) -> tuple[float, tuple[int, ...]]:
        """A value as a number times the nodes that are multiplied in it, few of them and in
        order.
        """
        number, waiting, factors = (-1.0 if value.negative else 1.0), [value.number], list[int]()
        while waiting and len(factors) < MOST_FACTORS:
            n = waiting.pop()
            node = self.table.nodes[n]
            if node.operation == "*" and node.type.is_float:
                waiting += node.operands
            elif (x := self.literal(Value(n))) is not None:
                number *= x
            else:
                factors.append(n)
        return (1.0, (value.number,)) if waiting else (number, tuple(sorted(factors)))

    def times(self, a: Value, b: Value) -> Value:
        x, y = self.literal(a), self.literal(b)
        if x is None and y is not None:
            return self.times(b, a)
        if x is None:
            (m, rest), (n, other) = self._factor(a), self._factor(b)
            if rest is a and other is b:
                return Value(
                    self.table.add("*", _sorted(a, b), self.kind(a)), a.negative != b.negative
                )
            return self.times(self.number(m * n, self.kind(a)), self.times(rest, other))
        if x == 0 or y == 0:
            return self.number(0, self.kind(a))
        if y is not None:
            return self.number(x * y, self.kind(a))
        if abs(x) == 1:
            return self.negative(b) if x < 0 else b
        inner, rest = self._factor(b)
        if rest is not b:
            return self.times(self.number(x * inner, self.kind(a)), rest)
        return Value(self.table.add("*", _sorted(a, b), self.kind(a)), a.negative != b.negative)

    def product(self, a: Value, b: Value) -> Value:
        """The product of two values that are used elsewhere as well: numbers stay in their
        factors.
        """
        if self.literal(a) is not None or self.literal(b) is not None:
            return self.times(a, b)
        return Value(self.table.add("*", _sorted(a, b), self.kind(a)), a.negative != b.negative)

    def _factor(self, value: Value) -> tuple[float, Value]:
        """A value as a number times the rest of it."""
        node = self.table.nodes[value.number]
        if node.operation == "*" and node.type.is_float:
            for one, other in (node.operands, node.operands[::-1]):
                if (x := self.literal(Value(one))) is not None:
                    return (-x if value.negative else x), Value(other)
        return 1.0, value

    def divide(self, a: Value, b: Value) -> Value:
        x, y = self.literal(a), self.literal(b)
        if x == 0:
            return a
        if y is not None and y != 0:
            return self.times(self.number(1 / y, self.kind(a)), a)
        return Value(
            self.table.add("/", (a.number, b.number), self.kind(a)), a.negative != b.negative
        )

    def select(self, condition: Value, first: Value, second: Value) -> Value:
        node = self.table.nodes[condition.number]
        if first == second:
            return first
        if node.operation == "literal":
            return first if node.payload else second
        if first.negative and second.negative:
            return self.negative(
                self.select(condition, self.negative(first), self.negative(second))
            )
        operands = tuple(
            self.table.plain(Value(v.number)) if self.literal(v) == 0 else self.table.plain(v)
            for v in (first, second)
        )
        return Value(self.table.add("select", (condition.number, *operands), self.kind(first)))

    def cast(self, a: Value, kind: Scalar) -> Value:
        if self.kind(a) == kind:
            return a
        if (x := self.literal(a)) is not None:
            return self.number(x, kind)
        return Value(self.table.add("cast", (a.number,), kind), a.negative)

    def whole_quotient(self, a: Value, b: Value) -> Value:
        """The whole number of times that b goes into a: minus the derivative of `a % b` with
        respect to b.
        """
        return Value(self.table.add("//", (self.table.plain(a), self.table.plain(b)), self.kind(a)))

    def rule(self, e: ir.Expression, operands: Mapping[str, Value]) -> Value:
        """The value of a rule's expression for these operands."""
        match e:
            case ir.Literal():
                return self.number(float(e.value), e.type)
            case ir.Local():
                return operands[e.name]
            case ir.Unary():
                return self.negative(self.rule(e.operand, operands))
            case ir.Binary():
                a, b = self.rule(e.left, operands), self.rule(e.right, operands)
                match e.operator:
                    case "+":
                        return self.add(a, b)
                    case "-":
                        return self.add(a, self.negative(b))
                    case "*":
                        return self.times(a, b)
                    case _:
                        return self.divide(a, b)
            case ir.Compare():
                return self._compare(e, self.rule(e.left, operands), self.rule(e.right, operands))
            case ir.Select():
                parts = [self.rule(x, operands) for x in (e.condition, e.if_true, e.if_false)]
                return self.select(parts[0], parts[1], parts[2])
            case ir.Call():
                return self._call(e, [self.rule(a, operands) for a in e.arguments])
            case _:
                raise AssertionError(f"{e} in a rule")

    def _compare(self, e: ir.Compare, a: Value, b: Value) -> Value:
        x, y, kind = self.literal(a), self.literal(b), self.kind(a)
        if x is not None and y is not None:
            truth = bool(
                evaluate(ir.Compare(e.operator, ir.Literal(x, kind), ir.Literal(y, kind)), {})
            )
            return Value(self.table.add("literal", (), BOOL, truth))
        m, n = self.table.plain(a), self.table.plain(b)
        return Value(
            self.table.add(e.operator, (m, n), BOOL)
            if m <= n
            else self.table.add(_MIRRORED[e.operator], (n, m), BOOL)
        )

    def _call(self, e: ir.Call, arguments: list[Value]) -> Value:
        numbers = [self.literal(a) for a in arguments]
        if all(x is not None for x in numbers):
            known = tuple(ir.Literal(x, e.type) for x in numbers if x is not None)
            with np.errstate(all="ignore"):
                return self.number(float(evaluate(ir.Call(e.intrinsic, known, e.type), {})), e.type)
        return Value(
            self.table.add(e.intrinsic, tuple(self.table.plain(a) for a in arguments), e.type)
        )


def _sorted(a: Value, b: Value) -> tuple[int, int]:
    return (a.number, b.number) if a.number <= b.number else (b.number, a.number)
