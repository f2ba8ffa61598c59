"""Value numbering with signs: which values of a function are equal, or equal up to a minus sign,
for all inputs.

Every expression becomes a node of one table; equal nodes are one node. A value is a node and a
sign, because negation is exact in floating
point: `a - b` and `b - a` are one node with two signs, and so are all products and odd functions of
them. Nothing here relies on an algebraic law that rounding breaks (no reassociation, no
distribution), so values that share a node are equal to the last bit. One thing is not of the
language but of compilers: of a sum of two products they round one, and fuse the other with the
addition. A node has its operands in the order in which they were first met; `products_turned` says
whether the text has such a sum the other way round anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import copysign

from lanewise.ir import nodes as ir
from lanewise.ir.traverse import statements
from lanewise.language.types import BOOL, Scalar
from lanewise.support.errors import Location

ODD = frozenset({"sin", "tan", "asin", "atan", "sinh", "tanh", "cbrt", "trunc", "round", "erf"})
EVEN = frozenset({"cos", "cosh", "abs"})
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


class NotNumbered(Exception):
    """The function has something that value numbering does not follow; the message says what."""


@dataclass(frozen=True, slots=True)
class Node:
    """An operation on numbered values.

    `operands` are numbers in the table; `payload` tells leaves and literals apart.
    """

    operation: str
    operands: tuple[int, ...]
    type: Scalar
    payload: object = None


@dataclass(frozen=True, slots=True)
class Value:
    """A node of the table, perhaps negated."""

    number: int
    negative: bool = False


class ValueTable:
    """All values seen so far.

    Numbers grow from operands to results, so their order is an order of computation.
    """

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        # of what makes a node, which takes longer to make and to compare
        self._numbers: dict[tuple[str, tuple[int, ...], str, object], int] = {}
        # the user's first name for a value, and where it is
        self.labels: dict[int, tuple[str, Location]] = {}
        self.places: dict[int, Location] = {}  # where a value is first written
        # of arrays that are only read, by name; an access to any other one is not numbered
        self.tables: Mapping[str, Scalar] = {}
        self.products_turned = False

    def add(
        self, operation: str, operands: tuple[int, ...], kind: Scalar, payload: object = None
    ) -> int:
        """The number of a node, an old one if it is known."""
        # NaN, which does not equal itself, is one node too
        known = payload if payload == payload else "nan"
        number = self._numbers.setdefault((operation, operands, kind.name, known), len(self.nodes))
        if number == len(self.nodes):
            self.nodes.append(Node(operation, operands, kind, payload))
        return number

    def known(self, operation: str, operands: tuple[int, ...], kind: Scalar) -> int | None:
        """The number of a node that is there already."""
        return self._numbers.get((operation, operands, kind.name, None))

    def place(self, value: Value, location: Location) -> Value:
        """The value, written there if nowhere before."""
        if location.line:
            self.places.setdefault(value.number, location)
        return value

    def plain(self, value: Value) -> int:
        """The number of a value with its sign applied."""
        return (
            self.add("negate", (value.number,), self.nodes[value.number].type)
            if value.negative
            else value.number
        )

    def leaf(self, name: str, kind: Scalar) -> Value:
        return Value(self.add("leaf", (), kind, name))

    def below(self, numbers: set[int]) -> set[int]:
        """These nodes and everything that they are computed from."""
        below: set[int] = set()
        waiting = list(numbers)
        while waiting:
            number = waiting.pop()
            if number not in below:
                below.add(number)
                waiting += self.nodes[number].operands
        return below


def number_function(
    table: ValueTable, function: ir.Function, arguments: dict[str, Value]
) -> list[Value]:
    """The results of a function for these arguments, as values of the table.

    Branches become selections, so both sides must be free of loops. Raises `NotNumbered` for loops,
    local arrays and mutable parameters.
    """
    for s in statements(function.body):
        if isinstance(s, (ir.For, ir.While, ir.DeclareArray)):
            raise NotNumbered(
                f"{function.name} has a "
                f"{'local array' if isinstance(s, ir.DeclareArray) else 'loop'}"
            )
    if any(p.mutable for p in function.parameters):
        raise NotNumbered(f"{function.name} changes its arguments")
    return _Numbering(table).run(function.body, dict(arguments))


def number_expression(table: ValueTable, e: ir.Expression, arguments: Mapping[str, Value]) -> Value:
    """The value of an expression of these variables."""
    return _Numbering(table).value(e, arguments)


class _Numbering:
    def __init__(self, table: ValueTable) -> None:
        self.table = table

    def run(self, block: ir.Block, env: dict[str, Value]) -> list[Value]:
        results = self._block(block, env)
        return results if results is not None else []

    def _block(self, block: ir.Block, env: dict[str, Value]) -> list[Value] | None:
        """Run statements; the results when all paths return.

        What follows a branch runs for each side that continues.
        """
        for place, s in enumerate(block):
            match s:
                case ir.Assign():
                    env[s.name] = value = self.value(s.value, env)
                    if not value.negative:
                        self.table.labels.setdefault(value.number, (s.name, s.location))
                case ir.Apply():
                    actual = {
                        p.name: self.value(a, env)
                        for p, a in zip(s.function.parameters, s.arguments, strict=True)
                    }
                    env.update(
                        zip(s.results, number_function(self.table, s.function, actual), strict=True)
                    )
                case ir.Return():
                    return [self.value(v, env) for v in s.values]
                case ir.If():
                    return self._branch(s, block[place + 1 :], env)
                case ir.LoadRecord() if s.array in self.table.tables:
                    index, kind = self.value(s.index, env), self.table.tables[s.array]
                    for leaf, name in s.reads:
                        read = (self.table.plain(index),)
                        env[name] = Value(self.table.add("table", read, kind, (s.array, leaf)))
                        self.table.place(env[name], s.index.location)
                case ir.LoadRecord():
                    raise NotNumbered(f"it reads the table {s.array}")
                case _:
                    raise NotNumbered(f"a {type(s).__name__} statement")
        return None

    def _branch(self, s: ir.If, rest: ir.Block, env: dict[str, Value]) -> list[Value] | None:
        condition = self.value(s.condition, env)
        then, otherwise = dict(env), dict(env)
        first = self._block((*s.then, *rest), then)
        second = self._block((*s.otherwise, *rest), otherwise)

        def chosen(a: Value, b: Value) -> Value:
            return self.table.place(self._select(condition, a, b), s.location)

        if first is not None and second is not None:
            return [chosen(a, b) for a, b in zip(first, second, strict=True)]
        both = [n for n in then if n in otherwise]
        env.update({n: chosen(then[n], otherwise[n]) for n in both})
        return None

    def value(self, e: ir.Expression, env: Mapping[str, Value]) -> Value:
        return self.table.place(self._value(e, env), e.location)

    def _value(self, e: ir.Expression, env: Mapping[str, Value]) -> Value:
        t = self.table

        def go(x: ir.Expression) -> Value:
            return self.value(x, env)

        match e:
            case ir.Literal():
                return self._literal(e)
            case ir.Local():
                return env[e.name]
            case ir.Unary(operator="-") if e.type.is_float:
                operand = go(e.operand)
                return Value(operand.number, not operand.negative)
            case ir.Unary():
                return Value(t.add(e.operator, (t.plain(go(e.operand)),), e.type))
            case ir.Binary():
                return self._binary(e, go(e.left), go(e.right))
            case ir.Compare():
                return self._compare(e.operator, go(e.left), go(e.right))
            case ir.Logical():
                return Value(
                    t.add(
                        e.operator, tuple(sorted((t.plain(go(e.left)), t.plain(go(e.right))))), BOOL
                    )
                )
            case ir.Select():
                return self._select(go(e.condition), go(e.if_true), go(e.if_false))
            case ir.Cast():
                operand = go(e.operand)
                keep = e.type.is_float and e.operand.type.is_float
                number = operand.number if keep else t.plain(operand)
                return Value(t.add("cast", (number,), e.type), operand.negative and keep)
            case ir.Call():
                return self._call(e, [go(a) for a in e.arguments])
            case _:  # an element of a local array, a thread's place
                raise NotNumbered(f"an access to {e}")

    def _literal(self, e: ir.Literal) -> Value:
        # -0.0 is not 0.0
        if e.type.is_float and (e.value < 0 or (e.value == 0 and copysign(1, e.value) < 0)):
            return Value(self.table.add("literal", (), e.type, -e.value), True)
        return Value(self.table.add("literal", (), e.type, e.value))

    def _binary(self, e: ir.Binary, left: Value, right: Value) -> Value:
        t = self.table
        if not e.type.is_float or e.operator in ("//", "%"):
            operands = (t.plain(left), t.plain(right))
            commutes = e.operator in ("+", "*", "&", "|", "^")
            return Value(
                t.add(e.operator, tuple(sorted(operands)) if commutes else operands, e.type)
            )
        if e.operator in ("*", "/"):
            operands = (left.number, right.number)
            number = t.add(
                e.operator, tuple(sorted(operands)) if e.operator == "*" else operands, e.type
            )
            return Value(number, left.negative != right.negative)
        if left.number > right.number and all(
            t.nodes[v.number].operation == "*" for v in (left, right)
        ):
            t.products_turned = True
        if e.operator == "-":
            right = Value(right.number, not right.negative)
        if left.negative == right.negative:  # a + b, or -(a + b)
            return Value(
                t.add("+", tuple(sorted((left.number, right.number))), e.type), left.negative
            )
        low, high = sorted((left, right), key=lambda v: v.number)  # low - high, or -(low - high)
        return Value(t.add("-", (low.number, high.number), e.type), low.negative)

    def _compare(self, operator: str, left: Value, right: Value) -> Value:
        t = self.table
        if left.negative and right.negative:
            left, right = Value(right.number), Value(left.number)
        a, b = t.plain(left), t.plain(right)
        return Value(
            t.add(operator, (a, b), BOOL) if a <= b else t.add(_MIRRORED[operator], (b, a), BOOL)
        )

    def _select(self, condition: Value, first: Value, second: Value) -> Value:
        t = self.table
        if first == second:
            return first
        if t.nodes[condition.number].operation == "literal":
            return first if t.nodes[condition.number].payload else second
        negative = self._sign(first, second)
        operands = tuple(
            t.plain(Value(v.number, v.negative != negative and not self._is_zero(v)))
            for v in (first, second)
        )
        return Value(
            t.add("select", (condition.number, *operands), t.nodes[first.number].type), negative
        )

    def _sign(self, first: Value, second: Value) -> bool:
        """Whether a selection is best seen as the negative of another; zero has no say, only its
        sign would differ.
        """
        signs = [v.negative for v in (first, second) if not self._is_zero(v)]
        return bool(signs) and all(signs)

    def _is_zero(self, value: Value) -> bool:
        node = self.table.nodes[value.number]
        return node.operation == "literal" and node.payload == 0

    def _call(self, e: ir.Call, arguments: list[Value]) -> Value:
        t = self.table
        if len(arguments) == 1 and e.intrinsic in ODD | EVEN:
            number = t.add(e.intrinsic, (arguments[0].number,), e.type)
            return Value(number, arguments[0].negative and e.intrinsic in ODD)
        if e.intrinsic == "fma" and e.type.is_float:
            return self._fma(e, *arguments)
        operands = tuple(t.plain(a) for a in arguments)
        return Value(
            t.add(
                e.intrinsic,
                tuple(sorted(operands)) if e.intrinsic in ("min", "max", "hypot") else operands,
                e.type,
            )
        )

    def _fma(self, e: ir.Call, left: Value, right: Value, addend: Value) -> Value:
        """The signs of the product and of the addend decide whether a * b + c is a sum or a
        difference, and its sign.
        """
        difference = (left.negative != right.negative) != addend.negative
        operands = (*sorted((left.number, right.number)), addend.number)
        return Value(
            self.table.add("fma", operands, e.type, "difference" if difference else None),
            addend.negative,
        )
