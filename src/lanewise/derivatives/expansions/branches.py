"""Whether every branch of a function of s has one answer for all s between two groups.

    h = s^(-3/2) if sqrt(s) >= h else ...      decided where sqrt(least) >= h or sqrt(largest) < h
An expansion around one distance is that of the branch taken there: where another pair of the two
groups takes another one, they are not expanded. Values are intervals from the least s to the
largest one. They may be too wide, and what is not known, or no number, is undecided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from math import inf

from lanewise.analysis.value_numbering import Value
from lanewise.derivatives.expansions.operators import OperatorBuilder, Operators
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.language.types import BOOL, Scalar

LEAST, LARGEST, DECIDED = own("least"), own("largest"), own("decided")
RISING = frozenset(
    [
        "sqrt",
        "cbrt",
        "exp",
        "exp2",
        "expm1",
        "erf",
        "log",
        "log2",
        "log10",
        "asin",
        "atan",
        "sinh",
        "tanh",
    ]
)
FALLING = frozenset(["rsqrt", "acos", "erfc"])
PARTIAL = frozenset(["sqrt", "rsqrt", "log", "log2", "log10", "asin", "acos"])  # else no number

Interval = tuple[Value, Value]


def decided(operators: Operators) -> ir.Function:
    """From the least and the largest s of two groups: whether each branch has one answer."""
    return _Branches(OperatorBuilder(operators, "decided")).function()


class _Branches:
    def __init__(self, b: OperatorBuilder) -> None:
        self.b, self.radial, self.table = b, b.operators.radial, b.table
        self.intervals: dict[int, Interval] = {}

    def function(self) -> ir.Function:
        answers: list[Value] = []
        for number in sorted(self.radial.table.below(set(self.radial.branches))):
            node = self.radial.table.nodes[number]
            if number in self.radial.branches:
                answers.append(self._decided(node.operation, node.operands))
            self.intervals[number] = self._interval(number)
        total = Value(self.table.add("literal", (), BOOL, True))
        for answer in answers:
            total = self._logical("and", total, answer)
        self.b.values.append((ir.Parameter(DECIDED, BOOL), total))
        return self.b.function()

    # ------------------------------------------------------------ answers

    def _decided(self, operation: str, operands: Sequence[int]) -> Value:
        x = [self.intervals[n] for n in operands]
        (low, high), (least, most) = x[0], x[-1]
        is_above, at_least = self._comparison(">"), self._comparison(">=")
        match operation:
            case "<" | ">=":
                return self._logical("or", is_above(least, high), at_least(low, most))
            case "<=" | ">":
                return self._logical("or", at_least(least, high), is_above(low, most))
            case "==" | "!=":
                return self._logical("or", is_above(least, high), is_above(low, most))
            case "min" | "max":
                return self._logical("or", at_least(least, high), at_least(low, most))
            case "abs":
                zero = self._number(0, low)
                return self._logical("or", at_least(low, zero), at_least(zero, high))
            case "clamp":
                (bottom_low, bottom_high), (top_low, top_high) = x[1:]
                outside = self._logical("or", at_least(bottom_low, high), at_least(low, top_high))
                inside = self._logical("and", at_least(low, bottom_high), at_least(top_low, high))
                return self._logical("or", outside, inside)
            case _:  # a number as a boolean
                zero = self._number(0, low)
                return self._logical("or", is_above(low, zero), is_above(zero, high))

    def _comparison(self, operator: str) -> Callable[[Value, Value], Value]:
        def compared(a: Value, b: Value) -> Value:
            numbers = (self.table.plain(a), self.table.plain(b))
            return Value(self.table.add(operator, numbers, BOOL))

        return compared

    def _logical(self, operator: str, a: Value, b: Value) -> Value:
        for one, other in ((a, b), (b, a)):
            node = self.table.nodes[one.number]
            if node.operation == "literal":
                return one if bool(node.payload) == (operator == "or") else other
        return Value(self.table.add(operator, (a.number, b.number), BOOL))

    # ------------------------------------------------------------ intervals

    def _interval(self, number: int) -> Interval:
        node, algebra = self.radial.table.nodes[number], self.b.algebra
        if number == self.radial.s:
            return self.b.parameter(LEAST), self.b.parameter(LARGEST)
        if node.operation == "leaf":
            value = self.b.parameter(str(node.payload), node.type)
            return value, value
        if node.operation == "literal":
            value = Value(self.table.add("literal", (), node.type, node.payload))
            return value, value
        x = [self.intervals[n] for n in node.operands]
        if all(low == high for low, high in x):
            operands = tuple(self.table.plain(low) for low, _ in x)
            value = Value(self.table.add(node.operation, operands, node.type, node.payload))
            return value, value
        if not node.type.is_float:
            return self._unknown(self.radial.kind)  # conditions are looked at themselves
        match node.operation:
            case "+":
                return algebra.add(x[0][0], x[1][0]), algebra.add(x[0][1], x[1][1])
            case "-":
                return self._difference(x[0], x[1])
            case "negate":
                return algebra.negative(x[0][1]), algebra.negative(x[0][0])
            case "*":
                return self._hull(algebra.times(a, c) for a, c in product(*x))
            case "/":
                return self._quotient(node.type, x[0], x[1])
            case "select":
                return self._hull([*x[1], *x[2]])
            case "min" | "max" | "clamp" as word:
                low, high = (self._call(word, [ends[side] for ends in x]) for side in (0, 1))
                return low, high
            case "abs":
                zero = self._number(0, x[0][0])
                near = self._call("max", [x[0][0], algebra.negative(x[0][1])])
                far = self._call("max", [algebra.negative(x[0][0]), x[0][1]])
                return self._call("max", [near, zero]), far
            case word if word in RISING or word in FALLING:
                low, high = (self._call(word, [end]) for end in x[0])
                low, high = (low, high) if word in RISING else (high, low)
                return self._numbers(node.type, low, high) if word in PARTIAL else (low, high)
            case "cast" if self.radial.table.nodes[node.operands[0]].type.is_float:
                return algebra.cast(x[0][0], node.type), algebra.cast(x[0][1], node.type)
            case _:
                return self._unknown(node.type)

    def _difference(self, a: Interval, c: Interval) -> Interval:
        algebra = self.b.algebra
        low = algebra.add(a[0], algebra.negative(c[1]))
        return low, algebra.add(a[1], algebra.negative(c[0]))

    def _quotient(self, kind: Scalar, a: Interval, c: Interval) -> Interval:
        """Where the divisor has one sign; else it may be anything."""
        algebra = self.b.algebra
        low, high = self._hull(algebra.divide(m, n) for m, n in product(a, c))
        if c[0] == c[1]:
            return low, high
        one_sign = self._comparison(">")(algebra.times(*c), algebra.number(0, kind))
        least, most = self._unknown(kind)
        return algebra.select(one_sign, low, least), algebra.select(one_sign, high, most)

    def _numbers(self, kind: Scalar, low: Value, high: Value) -> Interval:
        """These ends, or all there is where one is no number: `min` and `max` may drop it."""
        algebra, equal = self.b.algebra, self._comparison("==")
        sound = self._logical("and", equal(low, low), equal(high, high))
        least, most = self._unknown(kind)
        return algebra.select(sound, low, least), algebra.select(sound, high, most)

    def _hull(self, values: Iterable[Value]) -> Interval:
        every = list(dict.fromkeys(values))
        low = high = every[0]
        for value in every[1:]:
            low, high = self._call("min", [low, value]), self._call("max", [high, value])
        return low, high

    def _unknown(self, kind: Scalar) -> Interval:
        algebra = self.b.algebra
        return algebra.number(-inf, kind), algebra.number(inf, kind)

    def _number(self, value: float, like: Value) -> Value:
        return self.b.algebra.number(value, self.b.algebra.kind(like))

    def _call(self, word: str, x: Sequence[Value]) -> Value:
        operands = tuple(self.table.plain(v) for v in x)
        return Value(self.table.add(word, operands, self.b.algebra.kind(x[0])))
