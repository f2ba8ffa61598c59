"""Reverse mode: the derivatives of some values of a table with respect to leaves, in one walk from
the results to the leaves.

A value that is selected passes its derivative on to the selected side alone. What comes through one
side is added up by itself, and the selection is made at the leaves: where the other side counts, an
infinite factor (the inverse distance of an element from itself) meets no zero. So every derivative
is a `ConditionalSum`: a value, and for conditions what is added where they hold and where they do
not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lanewise.analysis.algebra import Algebra
from lanewise.analysis.value_numbering import Node, NotNumbered, Value, ValueTable
from lanewise.derivatives.rules import DIFFERENTIABLE, OUT, operand, partials
from lanewise.ir.names import own
from lanewise.language.types import Scalar
from lanewise.support.errors import NOWHERE

# combinations of conditions; beyond them forward mode, which keeps the branches, is shorter
MOST_PATHS = 32

Path = tuple[tuple[int, bool], ...]
"""The conditions, by number, that decide whether a derivative counts, the outermost first, and what
they have to be.
"""


@dataclass
class ConditionalSum:
    """A derivative: a value, and by the numbers of conditions what is added where one holds and
    where it does not.
    """

    value: Value | None = None
    sides: dict[int, tuple[ConditionalSum, ConditionalSum]] = field(
        default_factory=dict[int, "tuple[ConditionalSum, ConditionalSum]"]
    )

    def plus(self, path: Path, value: Value, algebra: Algebra) -> None:
        """Add a value that counts at the end of a path."""
        if not path:
            self.value = value if self.value is None else algebra.add(self.value, value)
            return
        (condition, holds), rest = path[0], path[1:]
        sides = self.sides.setdefault(condition, (ConditionalSum(), ConditionalSum()))
        sides[0 if holds else 1].plus(rest, value, algebra)

    def merged(self, algebra: Algebra, kind: Scalar) -> Value:
        """As one value, with selections."""
        total = algebra.number(0, kind) if self.value is None else self.value
        for condition, (first, second) in self.sides.items():
            chosen = algebra.select(
                Value(condition), first.merged(algebra, kind), second.merged(algebra, kind)
            )
            total = algebra.add(total, chosen)
        return total


def backward(
    table: ValueTable, seeds: Iterable[tuple[Value, Value]], leaves: Mapping[int, str]
) -> dict[int, ConditionalSum]:
    """The derivative of the sum of result * cotangent with respect to each leaf.

    seeds: pairs of a result and its cotangent. leaves: the numbers of those that are requested.
    Raises `NotNumbered` where there are too many paths.
    """
    walk = _Walk(table, frozenset(leaves))
    for result, cotangent in seeds:
        walk.pass_on(result, (), cotangent)
    for number in sorted(walk.active, reverse=True):
        walk.node(number)
    return {n: walk.gradients.get(n, ConditionalSum()) for n in leaves}


class _Walk:
    def __init__(self, table: ValueTable, leaves: frozenset[int]) -> None:
        self.table, self.algebra, self.leaves = table, Algebra(table), leaves
        self.active = _active(table, leaves)
        self.adjoints: dict[int, dict[Path, Value]] = {}
        self.gradients: dict[int, ConditionalSum] = {}

    def pass_on(self, value: Value, path: Path, adjoint: Value) -> None:
        """Add to the derivative of a value."""
        number = value.number
        if number not in self.active or self.algebra.literal(adjoint) == 0:
            return
        paths = self.adjoints.setdefault(number, {})
        adjoint = self.algebra.negative(adjoint) if value.negative else adjoint
        paths[path] = self.algebra.add(paths[path], adjoint) if path in paths else adjoint
        if len(paths) > MOST_PATHS:
            raise NotNumbered(f"it has more than {MOST_PATHS} combinations of branches")

    def node(self, number: int) -> None:
        """Pass the derivative of a node on to its operands."""
        for path, g in self.adjoints.pop(number, {}).items():
            self._label(number, g)
            if number in self.leaves:
                self.gradients.setdefault(number, ConditionalSum()).plus(path, g, self.algebra)
                continue
            node = self.table.nodes[number]
            if node.operation == "select":
                condition, first, second = node.operands
                for side, holds in ((first, True), (second, False)):
                    if (inner := _extended(path, condition, holds)) is not None:
                        self.pass_on(Value(side), inner, g)
                continue
            for place, factor in self._contributions(number, node, g):
                self.pass_on(Value(place), path, factor)

    def _label(self, number: int, g: Value) -> None:
        """Call a derivative after the user's variable: `$d.inv` is that with respect to `inv`."""
        label, where = self.table.labels.get(number, ("", NOWHERE))
        if label and not label.startswith(own("d.")):
            self.table.labels.setdefault(g.number, (own(f"d.{label}"), where))

    def _contributions(self, number: int, node: Node, g: Value) -> list[tuple[int, Value]]:
        """(operand, its share of the derivative g of a node)."""
        a = self.algebra
        x = [Value(n) for n in node.operands]
        match node.operation, node.operands:
            case "+", (p, q):
                return [(p, g), (q, g)]
            case "-", (p, q):
                return [(p, g), (q, a.negative(g))]
            case "negate", (p,):
                return [(p, a.negative(g))]
            case "*", (p, q) if p == q:
                return [(p, a.times(a.times(a.number(2, node.type), g), x[0]))]
            case "*", (p, q):
                return [
                    (n, a.times(g, other))
                    for n, other in ((p, x[1]), (q, x[0]))
                    if n in self.active
                ]
            case "/", (p, q):
                share = a.divide(g, x[1])
                return [
                    (p, share),
                    *([(q, a.negative(a.times(share, Value(number))))] if q in self.active else []),
                ]
            case "%", (p, q):
                whole = a.whole_quotient(x[0], x[1]) if q in self.active else None
                return [
                    (p, g),
                    *([(q, a.negative(a.times(g, whole)))] if whole is not None else []),
                ]
            case "//", _:
                return []
            case "cast", (p,):
                return [(p, a.cast(g, self.table.nodes[p].type))]
            case "fma", (p, q, r):
                product = a.negative(g) if node.payload == "difference" else g
                return [(p, a.times(product, x[1])), (q, a.times(product, x[0])), (r, g)]
            case intrinsic, operands if intrinsic in DIFFERENTIABLE:
                names = {operand(i): v for i, v in enumerate(x)} | {OUT: Value(number)}
                rules = partials(intrinsic, node.type)
                # An operand that stands in several places gets the derivatives of all of them.
                return [
                    (n, a.times(g, a.rule(r, names)))
                    for n, r in zip(operands, rules, strict=True)
                    if n in self.active
                ]
            case operation, _:
                raise NotNumbered(f"{operation} has no derivative")


def _extended(path: Path, condition: int, holds: bool) -> Path | None:
    """A path with one condition more; None where it contradicts itself."""
    for number, value in path:
        if number == condition:
            return path if value == holds else None
    return (*path, (condition, holds))


def _active(table: ValueTable, leaves: frozenset[int]) -> set[int]:
    """The nodes whose value changes smoothly with a leaf."""
    active: set[int] = set()
    for number, node in enumerate(table.nodes):
        if number in leaves or (node.type.is_float and any(n in active for n in node.operands)):
            active.add(number)
    return active
