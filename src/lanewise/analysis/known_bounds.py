"""The values that expressions may have, as intervals of linear terms."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import gcd

from lanewise.ir import nodes as ir
from lanewise.ir.traverse import statements, writes
from lanewise.language.types import Scalar, limits

Coefficients = tuple[tuple[str, int], ...]


Span = tuple[int, int]
"""The least and the greatest value."""


ENDLESS = 2**80  # beyond every number of 64 bits


@dataclass(frozen=True, slots=True)
class LinearValue:
    """`sum(coefficient * variable)` plus a number from `low` to `high`; the variables are those of
    `KnownBounds.box`.
    """

    coefficients: Coefficients
    low: int
    high: int

    @property
    def is_sum(self) -> bool:
        """Whether nothing but the variables decides it."""
        return self.low == self.high

    @property
    def number(self) -> int | None:
        return self.low if self.is_sum and not self.coefficients else None


def constant(n: int) -> LinearValue:
    """An integer that is known."""
    return LinearValue((), n, n)


@dataclass(slots=True)
class KnownBounds:
    """What holds where a statement runs.

    box: of variables, narrowed: of sums of several. values: what names stand for; truths: the
    conditions that they stand for.
    """

    box: dict[str, Span]
    narrowed: dict[Coefficients, Span]
    values: dict[str, LinearValue]
    truths: dict[str, KnownTruth] = field(default_factory=dict[str, "KnownTruth"])

    def copy(self) -> KnownBounds:
        return KnownBounds(
            dict(self.box), dict(self.narrowed), dict(self.values), dict(self.truths)
        )

    def forget(self, name: str) -> None:
        """A name may stand for anything."""
        self.values.pop(name, None)
        self.truths.pop(name, None)

    def span(self, value: LinearValue) -> Span:
        """The least and the greatest that a value can be."""
        low, high = self._total(value.coefficients)
        return low + value.low, high + value.high

    def _total(self, coefficients: Coefficients) -> Span:
        if not coefficients:
            return 0, 0
        key, factor = _normal(coefficients)
        ends = [(c * self.box[v][0], c * self.box[v][1]) for v, c in key]
        low, high = sum(min(e) for e in ends), sum(max(e) for e in ends)
        if len(key) > 1 and key in self.narrowed:
            low, high = max(low, self.narrowed[key][0]), min(high, self.narrowed[key][1])
        return (factor * low, factor * high) if factor > 0 else (factor * high, factor * low)

    def narrow(self, coefficients: Coefficients, span: Span) -> bool:
        """Learn that a sum lies in a span; whether that can be."""
        if not coefficients:
            return span[0] <= 0 <= span[1]
        key, factor = _normal(coefficients)
        low, high = span if factor > 0 else (-span[1], -span[0])
        low, high = -(-low // abs(factor)), high // abs(factor)
        was = self._total(key)
        low, high = max(low, was[0]), min(high, was[1])
        if len(key) == 1:
            self.box[key[0][0]] = low, high
        else:
            self.narrowed[key] = low, high
        return low <= high


def _normal(coefficients: Coefficients) -> tuple[Coefficients, int]:
    """A sum as an integer times one with a positive first coefficient and no common factor."""
    factor = gcd(*(c for _, c in coefficients)) * (1 if coefficients[0][1] > 0 else -1)
    return tuple((v, c // factor) for v, c in coefficients), factor


@dataclass(frozen=True, slots=True)
class KnownTruth:
    """A condition, and what the names in it stood for."""

    condition: ir.Expression
    values: dict[str, LinearValue]
    truths: dict[str, KnownTruth]


def forget_names(state: KnownBounds, block: ir.Block) -> None:
    """What a block assigns to may be anything."""
    for s in statements(block):
        for n in writes(s):
            state.forget(n)


def joined_states(one: KnownBounds | None, other: KnownBounds | None) -> KnownBounds | None:
    """Behind a branch: what holds on both sides."""
    if one is None or other is None:
        return other if one is None else one
    values = {
        n: v
        if v == other.values[n]
        else LinearValue((), *_hull(one.span(v), other.span(other.values[n])))
        for n, v in one.values.items()
        if n in other.values
    }
    box = {n: _hull(s, other.box[n]) for n, s in one.box.items()}
    narrowed = {
        k: _hull(s, other.narrowed[k]) for k, s in one.narrowed.items() if k in other.narrowed
    }
    return KnownBounds(
        box, narrowed, values, {n: x for n, x in one.truths.items() if other.truths.get(n) is x}
    )


def _hull(a: Span, b: Span) -> Span:
    return min(a[0], b[0]), max(a[1], b[1])


def assume(e: ir.Expression, state: KnownBounds, *, true: bool) -> KnownBounds | None:
    """The state where a condition holds, or where it does not; None where that cannot be.

    The state given is changed.
    """
    match e:
        case ir.Literal(value=value):
            return state if bool(value) is true else None
        case ir.Local(name=name) if name in state.truths:
            return _assume_truth(state.truths[name], state, true=true)
        case ir.Unary(operator="not", operand=operand):
            return assume(operand, state, true=not true)
        case ir.Logical(operator=operator, left=left, right=right):
            if (operator == "and") is true:
                first = assume(left, state, true=true)
                return None if first is None else assume(right, first, true=true)
            return joined_states(
                assume(left, state.copy(), true=true), assume(right, state, true=true)
            )
        case ir.Compare() if e.left.type.is_integer and e.right.type.is_integer:
            left, right = evaluate(e.left, state), evaluate(e.right, state)
            return (
                state
                if _compared(e.operator if true else _OPPOSITE[e.operator], left, right, state)
                else None
            )
        case _:
            return state


def _assume_truth(truth: KnownTruth, state: KnownBounds, *, true: bool) -> KnownBounds | None:
    """The same of a condition that was kept in a variable, with what its names stood for then."""
    values, truths = state.values, state.truths
    after = assume(truth.condition, with_truth(state, truth), true=true)
    if after is not None:
        after.values, after.truths = values, truths
    return after


def with_truth(state: KnownBounds, truth: KnownTruth) -> KnownBounds:
    """The state, changed to what names stood for when a condition was kept in a variable."""
    state.values, state.truths = truth.values, truth.truths
    return state


_OPPOSITE: dict[ir.CompareOperator, ir.CompareOperator] = {
    "==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">",
}  # fmt: skip


def _compared(
    operator: ir.CompareOperator, left: LinearValue, right: LinearValue, state: KnownBounds
) -> bool:
    """Learn from a comparison; whether it can be."""
    match operator:
        case "<" | "<=":
            return assume_below(left, right, state, strict=operator == "<")
        case ">" | ">=":
            return assume_below(right, left, state, strict=operator == ">")
        case "==":
            return assume_below(left, right, state, strict=False) and assume_below(
                right, left, state, strict=False
            )
        case "!=":
            between = difference(left, right)
            low, high = state.span(between)
            if not between.is_sum or not low <= 0 <= high:
                return True
            if low == high:
                return False
            ends = (low + (low == 0) - between.low, high - (high == 0) - between.low)
            return state.narrow(between.coefficients, ends)


def assume_below(
    left: LinearValue, right: LinearValue, state: KnownBounds, *, strict: bool
) -> bool:
    """Learn that one value is less than another one; whether that can be."""
    between = difference(left, right)
    return state.narrow(between.coefficients, (-ENDLESS, -int(strict) - between.low))


def type_limits(kind: Scalar) -> Span:
    """The least and the largest number of a type."""
    low, high = limits(kind)
    return int(low), int(high)


def _anything(e: ir.Expression) -> LinearValue:
    return LinearValue((), *type_limits(e.type))


def evaluate(e: ir.Expression, state: KnownBounds) -> LinearValue:
    """The value of an integer."""
    match e:
        case ir.Literal(value=value):
            return constant(int(value))
        case ir.Local(name=name):
            return state.values.get(name) or _anything(e)
        case ir.Cast(operand=operand) if operand.type.is_integer:
            return _fitting(e, evaluate(operand, state), state)
        case ir.Unary(operator="-", operand=operand):
            return _fitting(e, _scaled(evaluate(operand, state), -1), state)
        case ir.Binary(left=left, right=right):
            value = _binary(e, evaluate(left, state), evaluate(right, state), state)
            return value if e.bounded else _fitting(e, value, state)
        case ir.Call(intrinsic="min" | "max" | "clamp", arguments=arguments):
            return _extreme(e.intrinsic, [evaluate(a, state) for a in arguments], state)
        case ir.Select(condition=condition, if_true=one, if_false=other):
            sides = (
                assume(condition, state.copy(), true=True),
                assume(condition, state.copy(), true=False),
            )
            spans = [
                s.span(evaluate(x, s))
                for s, x in zip(sides, (one, other), strict=True)
                if s is not None
            ]
            return (
                LinearValue((), min(low for low, _ in spans), max(high for _, high in spans))
                if spans
                else _anything(e)
            )
        case _:
            return _anything(e)


def _fitting(e: ir.Expression, value: LinearValue, state: KnownBounds) -> LinearValue:
    """A value that wraps, unless it fits its type."""
    low, high = state.span(value)
    least, most = type_limits(e.type)
    return value if least <= low and high <= most else _anything(e)


def _binary(e: ir.Binary, left: LinearValue, right: LinearValue, state: KnownBounds) -> LinearValue:
    (a, b), n = state.span(left), right.number
    match e.operator:
        case "+":
            return _sum(left, right)
        case "-":
            return difference(left, right)
        case "*":
            for one, other in ((left, n), (right, left.number)):
                if other is not None:
                    return _scaled(one, other)
            ends = [x * y for x in (a, b) for y in state.span(right)]
            return LinearValue((), min(ends), max(ends))
        case "//" if n is not None and n > 0:
            return LinearValue((), a // n, b // n)
        case "%" if n is not None and n > 0:
            return left if a >= 0 and b < n else LinearValue((), 0, n - 1)
        case "&":
            masks = [high for low, high in ((a, b), state.span(right)) if low >= 0]
            return LinearValue((), 0, min(masks)) if masks else _anything(e)
        case ">>" if n is not None and n >= 0:
            return LinearValue((), a >> n, b >> n)
        case _:
            return _anything(e)


def _extreme(which: str, values: list[LinearValue], state: KnownBounds) -> LinearValue:
    """The least or the greatest of two values, or one of three between the others."""
    if which == "clamp":
        return _extreme("min", [_extreme("max", values[:2], state), values[2]], state)
    (low, high), (other_low, other_high) = (state.span(v) for v in values)
    if which == "min":
        first = high <= other_low
        second = other_high <= low
        ends = (min(low, other_low), min(high, other_high))
    else:
        first = low >= other_high
        second = other_low >= high
        ends = (max(low, other_low), max(high, other_high))
    return values[0] if first else values[1] if second else LinearValue((), *ends)


def _scaled(value: LinearValue, factor: int) -> LinearValue:
    if not factor:
        return constant(0)
    ends = sorted((value.low * factor, value.high * factor))
    return LinearValue(tuple((v, c * factor) for v, c in value.coefficients), *ends)


def difference(a: LinearValue, b: LinearValue) -> LinearValue:
    """One value less another one."""
    return _sum(a, _scaled(b, -1))


def _sum(a: LinearValue, b: LinearValue) -> LinearValue:
    both = dict(a.coefficients)
    for v, c in b.coefficients:
        both[v] = both.get(v, 0) + c
    return LinearValue(
        tuple(sorted((v, c) for v, c in both.items() if c)), a.low + b.low, a.high + b.high
    )
