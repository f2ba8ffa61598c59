"""A numbered function, simplified by what is exact in floating point, and what has to hold for it.

    x - x = 0    when x is finite and both sides compute it alike        0 + x = x    0 * x = 0
    when x is finite
Fields of records are taken to be finite and of ordinary size: sums and products of them do not
overflow. Values of uniforms alone are known only at a call: they become conditions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from lanewise.analysis.folding import fold
from lanewise.analysis.value_numbering import Node, Value, ValueTable
from lanewise.ir import nodes as ir
from lanewise.ir.names import owner
from lanewise.ir.printer import print_expression
from lanewise.language.types import BOOL, Scalar

SHOWN = 70  # characters of an expression in a message
LONG = 2000  # operations of a condition, written out, that are still worth evaluating

_ZERO_AT_ZERO = frozenset(
    [
        "sqrt",
        "sin",
        "tan",
        "asin",
        "atan",
        "sinh",
        "tanh",
        "cbrt",
        "expm1",
        "log1p",
        "erf",
        "abs",
        "floor",
        "ceil",
        "trunc",
        "round",
        "cast",
        "negate",
    ]
)
_BOUNDED = frozenset(["sin", "cos", "atan", "tanh", "erf", "erfc"])
_KEEPS_FINITE = frozenset(
    [
        "+",
        "-",
        "*",
        "negate",
        "cast",
        "abs",
        "min",
        "max",
        "clamp",
        "floor",
        "ceil",
        "trunc",
        "round",
        "select",
        "fma",
        "mix",
    ]
)
# What target and source compute alike whatever the compiler does: no product that may be contracted
# into a sum, no function that may be one routine for a register of sources and another one for the
# target.
_ALIKE = frozenset(
    [
        "leaf",
        "literal",
        "negate",
        "cast",
        "+",
        "-",
        "abs",
        "min",
        "max",
        "floor",
        "ceil",
        "trunc",
        "round",
    ]
)
_OF_ITSELF = {"==": True, "<=": True, ">=": True, "!=": False, "<": False, ">": False}


@dataclass(frozen=True, slots=True)
class Condition:
    """What an expression of uniforms must be: "> 0", or "finite" (and so when a field multiplies
    it).
    """

    value: ir.Expression
    demand: Literal["> 0", "finite"]


class NotFinite(Exception):
    """A value that may be infinite or no number; the message says which."""


class Simplification:
    """The values of a table, simplified, by their old numbers: what each is now, and the conditions
    under which it is that.
    """

    def __init__(self, old: ValueTable, record: str) -> None:
        self.table, self.record = ValueTable(), record
        self.values: list[Value] = []
        self.conditions: list[dict[Condition, None]] = []
        self.blocked: list[str] = []  # why a value is not simpler, where that is known
        self._sizes: list[int] = []  # by new number: the length of the expression
        # by new number: what makes it finite
        self._finiteness: dict[int, dict[Condition, None] | NotFinite] = {}
        for node in old.nodes:
            self._node(node)

    def is_zero(self, value: Value) -> bool:
        node = self.table.nodes[value.number]
        return node.operation == "literal" and node.type != BOOL and node.payload == 0

    def shown(self, number: int) -> str:
        """A value as text, cut to a readable length."""
        if self._size(number) > LONG:
            return "a long expression"
        text = print_expression(self.expression(number))
        return text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."

    def expression(self, number: int) -> ir.Expression:
        """A value of the new table as an expression of the leaves."""
        node = self.table.nodes[number]
        return expression_of(node, tuple(self.expression(n) for n in node.operands))

    def _size(self, number: int) -> int:
        for node in self.table.nodes[len(self._sizes) :]:
            self._sizes.append(1 + sum(self._sizes[n] for n in node.operands))
        return self._sizes[number]

    def _node(self, node: Node) -> None:
        """Simplify the next value of the old table."""
        operands = [self.values[n] for n in node.operands]
        conditions: dict[Condition, None] = {}
        blocked = ""
        try:
            value, used = self._simpler(node, operands, conditions)
        except NotFinite as reason:
            value = self._general(node, operands)
            used = list(range(len(operands)))
            blocked = str(reason)
            conditions.clear()
        for place in used:
            conditions |= self.conditions[node.operands[place]]
            blocked = blocked or self.blocked[node.operands[place]]
        self.values.append(value)
        self.conditions.append(conditions)
        self.blocked.append(blocked)

    def _simpler(
        self, node: Node, operands: list[Value], conditions: dict[Condition, None]
    ) -> tuple[Value, list[int]]:
        """The value, and the places of the operands that it still depends on.

        Adds to the conditions.
        """
        every = list(range(len(operands)))
        zeros = [self.is_zero(v) for v in operands]
        match node.operation, operands:
            case "select", [condition, *sides] if (truth := self._truth(condition)) is not None:
                return sides[0 if truth else 1], [0, 1 if truth else 2]
            case "select", [_, first, second] if first == second or all(zeros[1:]):
                return first, every
            case "and" | "or", [first, second]:
                for place, (v, other) in enumerate(((first, second), (second, first))):
                    if (truth := self._truth(v)) is not None:
                        decided = truth == (node.operation == "or")
                        return (v if decided else other), [place] if decided else every
            case "+", [first, second] if any(zeros):
                return (second if zeros[0] else first), every
            case "-", [first, second] if any(zeros):
                return (first if zeros[1] else Value(second.number, not second.negative)), every
            case "-", [first, second] if first == second and self._alike(first.number):
                self._finite(first.number, conditions)
                return self._zero(node.type), every
            case "*", [first, second] if any(zeros):
                self._finite((second if zeros[0] else first).number, conditions)
                return self._zero(node.type), every
            case "/", [_, below] if zeros[0] and node.type.is_float:
                self._invertible(below.number, conditions)
                return self._zero(node.type), every
            case "fma", [first, second, addend] if any(zeros[:2]):
                self._finite((second if zeros[0] else first).number, conditions)
                return addend, every
            case (("==" | "<=" | ">=" | "!=" | "<" | ">"), [first, second]) if (
                first == second and self._alike(first.number)
            ):
                self._finite(first.number, conditions)
                return self._literal(BOOL, _OF_ITSELF[node.operation]), every
            case operation, [_] if operation in _ZERO_AT_ZERO and zeros[0]:
                return self._zero(node.type), every
            case "negate", [operand]:
                return Value(operand.number, not operand.negative), every
            case _:
                pass
        return self._general(node, operands), every

    def _general(self, node: Node, operands: list[Value]) -> Value:
        """The same operation on the simplified operands, computed if they are all literals."""
        numbers = tuple(self.table.plain(v) for v in operands)
        if numbers and all(self.table.nodes[n].operation == "literal" for n in numbers):
            folded = fold(expression_of(node, tuple(self.expression(n) for n in numbers)))
            if isinstance(folded, ir.Literal):
                return self._literal(node.type, folded.value)
        return Value(self.table.add(node.operation, numbers, node.type, node.payload))

    def _truth(self, value: Value) -> bool | None:
        node = self.table.nodes[value.number]
        return bool(node.payload) if node.operation == "literal" else None

    def _zero(self, kind: Scalar) -> Value:
        return self._literal(kind, 0.0 if kind.is_float else 0)

    def _literal(self, kind: Scalar, payload: object) -> Value:
        return Value(self.table.add("literal", (), kind, payload))

    def _alike(self, number: int) -> bool:
        node = self.table.nodes[number]
        return not node.type.is_float or all(
            self.table.nodes[n].operation in _ALIKE for n in self.table.below({number})
        )

    def _of_uniforms(self, number: int) -> bool:
        leaves = (
            self.table.nodes[n]
            for n in self.table.below({number})
            if self.table.nodes[n].operation == "leaf"
        )
        return all(owner(str(leaf.payload)) != self.record for leaf in leaves)

    def _finite(self, number: int, conditions: dict[Condition, None]) -> None:
        """Add the conditions for a value to be finite, or raise `NotFinite`."""
        if number not in self._finiteness:
            needs: dict[Condition, None] = {}
            try:
                self._look(number, needs)
                self._finiteness[number] = needs
            except NotFinite as reason:
                self._finiteness[number] = reason
        outcome = self._finiteness[number]
        if isinstance(outcome, NotFinite):
            raise outcome
        conditions |= outcome

    def _look(self, number: int, conditions: dict[Condition, None]) -> None:
        node = self.table.nodes[number]
        if not node.type.is_float:
            return
        if node.operation == "literal":
            if not math.isfinite(float(str(node.payload))):
                raise NotFinite(f"{self.shown(number)} is not finite")
        elif self._of_uniforms(number):
            self._require(number, conditions)
        elif node.operation == "/":
            self._finite(node.operands[0], conditions)
            self._invertible(node.operands[1], conditions)
        elif node.operation in _KEEPS_FINITE | _BOUNDED:
            for n in node.operands:
                self._finite(n, conditions)
        elif node.operation != "leaf":
            raise NotFinite(f"{self.shown(number)} may be infinite")

    def _require(self, number: int, conditions: dict[Condition, None]) -> None:
        """A value of uniforms alone is finite if it turns out to be."""
        if self._size(number) > LONG:
            raise NotFinite("an expression of the uniform arguments is too long to be checked")
        for n in sorted(self.table.below({number})):
            if self.table.nodes[n].operation == "rsqrt":
                conditions[Condition(self.expression(self.table.nodes[n].operands[0]), "> 0")] = (
                    None
                )
        if self.table.nodes[number].operation != "rsqrt":  # of a positive number it is finite
            conditions[Condition(self.expression(number), "finite")] = None

    def _invertible(self, number: int, conditions: dict[Condition, None]) -> None:
        """Add the conditions for one over a value to be finite, or raise `NotFinite`."""
        node = self.table.nodes[number]
        one = self.table.add("literal", (), node.type, 1.0)
        if not self._of_uniforms(number):
            raise NotFinite(f"{self.shown(number)} may be zero")
        if node.operation == "literal":
            if not node.payload:
                raise NotFinite("it divides by zero")
        else:
            self._finite(self.table.add("/", (one, number), node.type), conditions)


def expression_of(node: Node, x: tuple[ir.Expression, ...]) -> ir.Expression:
    """The expression of one node of a table, given those of its operands."""
    kind = node.type
    match node.operation, x:
        case "leaf", _:
            return ir.Local(str(node.payload), kind)
        case "literal", _:
            assert isinstance(node.payload, float | int | bool)
            return ir.Literal(node.payload, kind)
        case "negate", (operand,):
            return ir.Unary("-", operand, kind)
        case ("-" | "not" | "~") as operator, (operand,):
            return ir.Unary(operator, operand, kind)
        case "cast", (operand,):
            return ir.Cast(operand, kind)
        case ("+" | "-" | "*" | "/" | "//" | "%" | "&" | "|" | "^" | "<<" | ">>") as operator, (
            left,
            right,
        ):
            return ir.Binary(operator, left, right, kind)
        case ("==" | "!=" | "<" | "<=" | ">" | ">=") as operator, (left, right):
            return ir.Compare(operator, left, right)
        case ("and" | "or") as operator, (left, right):
            return ir.Logical(operator, left, right)
        case "select", (condition, if_true, if_false):
            return ir.Select(condition, if_true, if_false, kind)
        case "fma", (left, right, addend) if node.payload == "difference":
            return ir.Call("fma", (ir.Unary("-", left, kind), right, addend), kind)
        case intrinsic, arguments:
            return ir.Call(intrinsic, arguments, kind)
