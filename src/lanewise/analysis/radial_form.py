"""The values of a pair function as sums of products, where they depend on the places of the two
elements through their difference alone.

    field of the source * value of the target * product of components of d * value of s
with d = source.position - target.position and s = d.d. Values of s, of the target and of what is
one value for all stand in a separate table, simplified as they are built (`algebra`). Three
equal squares are s, in whatever order they are added. What has no such form says why, and where.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from lanewise.analysis.algebra import Algebra
from lanewise.analysis.value_numbering import Node, Value, ValueTable
from lanewise.language.types import BOOL, F32, Scalar

MOST_COMPONENTS = 4  # of the difference in one product
COMPARISONS = frozenset(["==", "!=", "<", "<=", ">", ">="])
STEPS = frozenset(["floor", "ceil", "trunc", "round", "//", "%", "isnan", "isinf", "isfinite"])
PARTED = frozenset(["min", "max", "clamp", "abs"])  # of several functions, each with its range
ONE = ""  # the weight of a source that is counted


@dataclass(frozen=True, slots=True)
class RadialPart:
    """What a value of s is multiplied by: a field of the source (`ONE`: none), a value of the
    target by its number (None: 1), and how often each component of d.
    """

    weight: str
    factor: int | None
    powers: tuple[int, ...]


Form = dict[RadialPart, Value]
"""A value: the sum of its parts, each times a value of s. Empty is zero."""


@dataclass(frozen=True, slots=True)
class NotRadial:
    """Why a value has no form, and the number of the value in the function's table."""

    reason: str
    number: int


@dataclass(frozen=True, slots=True)
class _Place:
    """A component of the position of one element."""

    of_source: bool
    axis: int


@dataclass(frozen=True, slots=True)
class _Whole:
    """A field of the source that is an integer or a boolean."""

    name: str


Known = Form | NotRadial | _Place | _Whole


def is_branch(node: Node) -> bool:
    """Whether a value of s is one of several functions, or decides which."""
    truth = node.operation == "cast" and node.type == BOOL
    return truth or node.operation in COMPARISONS | PARTED


class Forms:
    """The forms of the values of a function.

    places: the leaves that are components of positions; fields: the other leaves of the source;
    target: those of the target. All are numbers of the function's table.
    """

    def __init__(
        self,
        function: ValueTable,
        axes: int,
        places: dict[int, tuple[bool, int]],
        fields: dict[int, str],
        target: frozenset[int],
    ) -> None:
        self.function, self.axes, self.places, self.fields = function, axes, places, fields
        self.target = target
        self.table = ValueTable()
        self.algebra = Algebra(self.table)
        self.s: int | None = None
        self.forms: dict[int, Known] = {}
        self._depends: dict[int, bool] = {}
        self._none = (0,) * axes

    def of(self, value: Value) -> Form | NotRadial:
        """The form of a value of the function."""
        for number in sorted(self.function.below({value.number})):
            if number not in self.forms:
                self.forms[number] = self._node(number)
        form = self._read(value.number)
        return self._scaled(form, -1.0) if value.negative and isinstance(form, dict) else form

    def depends(self, number: int) -> bool:
        """Whether a value of the forms' table depends on s."""
        if number not in self._depends:
            for n in sorted(self.table.below({number})):
                below = any(self._depends[o] for o in self.table.nodes[n].operands)
                self._depends[n] = n == self.s or below
        return self._depends[number]

    # ------------------------------------------------------------ nodes

    def _read(self, number: int) -> Form | NotRadial:
        form = self.forms[number]
        match form:
            case _Place():
                who = "source" if form.of_source else "target"
                reason = f"the position of the {who} stands outside of a difference"
                return NotRadial(reason, number)
            case _Whole():
                reason = f"{form.name} is an integer or a boolean"
                return NotRadial(reason, number)
            case _:
                return form

    def _node(self, number: int) -> Known:
        node = self.function.nodes[number]
        if node.operation == "leaf":
            return self._leaf(number, node)
        if node.operation == "cast" and (moved := self._cast_leaf(node)) is not None:
            return moved
        if node.operation == "-" and (found := self._difference(node)) is not None:
            return found
        operands: list[Form] = []
        for n in node.operands:
            form = self._read(n)
            if isinstance(form, NotRadial):
                return form
            operands.append(form)
        try:
            return self._operation(node, operands)
        except _Ends as end:
            return NotRadial(str(end), number)

    def _leaf(self, number: int, node: Node) -> Known:
        if number in self.places:
            return _Place(*self.places[number])
        if number in self.fields:
            name = self.fields[number]
            if not node.type.is_float:
                return _Whole(name)
            return {RadialPart(name, None, self._none): self.algebra.number(1, node.type)}
        leaf = self.table.leaf(str(node.payload), node.type)
        if number in self.target:
            return self._of_factor(leaf)
        return {RadialPart(ONE, None, self._none): leaf}

    def _of_factor(self, value: Value) -> Form:
        node = self.table.nodes[value.number]
        if not node.type.is_float:  # integers are never multiplied here
            return {RadialPart(ONE, None, self._none): value}
        one = self.algebra.number(-1 if value.negative else 1, node.type)
        return {RadialPart(ONE, value.number, self._none): one}

    def _cast_leaf(self, node: Node) -> Known | None:
        match self.forms[node.operands[0]]:
            case _Place() as place if node.type.is_float:
                return place
            case _Whole(name) if node.type.is_float:
                return {RadialPart(name, None, self._none): self.algebra.number(1, node.type)}
            case _:
                return None

    def _difference(self, node: Node) -> Form | None:
        """A component of d, or of -d."""
        match [self.forms[n] for n in node.operands]:
            case [_Place() as low, _Place() as high] if (
                low.axis == high.axis and low.of_source != high.of_source
            ):
                return self._component(low.axis, 1.0 if low.of_source else -1.0, node.type)
            case _:
                return None

    def _component(self, axis: int, sign: float, kind: Scalar) -> Form:
        powers = tuple(int(a == axis) for a in range(self.axes))
        return {RadialPart(ONE, None, powers): self.algebra.number(sign, kind)}

    def _operation(self, node: Node, x: list[Form]) -> Form:
        kind = node.type
        match node.operation:
            case "literal":
                value = Value(self.table.add("literal", (), kind, node.payload))
                return {} if self._is_zero(value) else {RadialPart(ONE, None, self._none): value}
            case "+" | "-" if kind.is_float:
                return self._sum(x[0], x[1] if node.operation == "+" else self._scaled(x[1], -1.0))
            case "negate" if kind.is_float:
                return self._scaled(x[0], -1.0)
            case "*" if kind.is_float:
                return self._product(x[0], x[1])
            case "/" if kind.is_float:
                return self._product(x[0], self._inverse(node, x[1]))
            case "fma" if kind.is_float:
                sign = -1.0 if node.payload == "difference" else 1.0
                return self._sum(self._scaled(self._product(x[0], x[1]), sign), x[2])
            case "mix":  # x + (y - x) * z
                difference = self._sum(x[1], self._scaled(x[0], -1.0))
                return self._sum(x[0], self._product(difference, x[2]))
            case "select" if kind.is_float:
                return self._select(node, x)
            case "cast" if kind.is_float and self.function.nodes[node.operands[0]].type.is_float:
                return self._cast(x[0], kind)
            case "table":
                assert isinstance(node.payload, tuple)
                raise _Ends(f"it reads the table {node.payload[0]}, which has no derivatives")
            case _:
                return self._general(node, x)

    # ------------------------------------------------------------ arithmetic

    def _is_zero(self, value: Value) -> bool:
        return self.algebra.literal(value) == 0

    def _scaled(self, form: Form, by: float) -> Form:
        kind = self.algebra.kind
        return {p: self.algebra.times(self.algebra.number(by, kind(v)), v) for p, v in form.items()}

    def _sum(self, a: Form, b: Form) -> Form:
        total = dict(a)
        for part, value in b.items():
            total[part] = self.algebra.add(total[part], value) if part in total else value
        return self._with_squares({p: v for p, v in total.items() if not self._is_zero(v)})

    def _with_squares(self, form: Form) -> Form:
        """With s instead of the sum of the squares of all components."""
        for part in list(form):
            rest = tuple(p - 2 * (a == 0) for a, p in enumerate(part.powers))
            if min(rest) < 0 or part not in form:
                continue
            squares = [
                RadialPart(
                    part.weight, part.factor, tuple(p + 2 * (a == b) for b, p in enumerate(rest))
                )
                for a in range(self.axes)
            ]
            values = {form.get(q) for q in squares}
            if None in values or len(values) > 1:
                continue
            value = form[part]
            left = {p: v for p, v in form.items() if p not in squares}
            multiple = self.algebra.times(value, self._square(self.algebra.kind(value)))
            return self._sum(left, {RadialPart(part.weight, part.factor, rest): multiple})
        return form

    def _square(self, kind: Scalar) -> Value:
        """The squared distance in this type."""
        if self.s is None:
            self.s = self.table.leaf("s", kind).number
        return self.algebra.cast(Value(self.s), kind)

    def _product(self, a: Form, b: Form) -> Form:
        total: Form = {}
        for (p, x), (q, y) in product(a.items(), b.items()):
            powers = tuple(m + n for m, n in zip(p.powers, q.powers, strict=True))
            if p.weight and q.weight:
                raise _Ends("it multiplies two fields of the source")
            if sum(powers) > MOST_COMPONENTS:
                raise _Ends(
                    f"more than {MOST_COMPONENTS} components of the difference are multiplied"
                )
            part = RadialPart(p.weight or q.weight, self._factor(p.factor, q.factor), powers)
            total = self._sum(total, {part: self.algebra.times(x, y)})
        return total

    def _factor(self, a: int | None, b: int | None) -> int | None:
        if a is None or b is None:
            return b if a is None else a
        return self.algebra.times(Value(a), Value(b)).number

    def _inverse(self, node: Node, form: Form) -> Form:
        one = self.algebra.number(1, node.type)
        if (value := self._of_s(form, node.type)) is not None:
            return {RadialPart(ONE, None, self._none): self.algebra.divide(one, value)}
        if (value := self._of_target(form, node.type)) is not None:
            return self._of_factor(self.algebra.divide(one, value))
        raise _Ends(f"it divides by {self._of_what(form)}")

    def _select(self, node: Node, x: list[Form]) -> Form:
        condition = self._of_s(x[0], BOOL)
        if condition is None:
            raise _Ends(f"a branch depends on {self._of_what(x[0])}")
        if self.table.nodes[condition.number].operation == "literal":
            return x[1] if self.table.nodes[condition.number].payload else x[2]
        zero = self.algebra.number(0, node.type)
        chosen = {
            p: self.algebra.select(condition, x[1].get(p, zero), x[2].get(p, zero))
            for p in [*x[1], *(p for p in x[2] if p not in x[1])]
        }
        return self._with_squares(chosen)

    def _cast(self, form: Form, kind: Scalar) -> Form:
        total: Form = {}
        for p, v in form.items():
            factor = p.factor
            if factor is not None:
                factor = self.algebra.cast(Value(factor), kind).number
            total[RadialPart(p.weight, factor, p.powers)] = self.algebra.cast(v, kind)
        return total

    # ------------------------------------------------------------ all other operations

    def _general(self, node: Node, x: list[Form]) -> Form:
        """An operation on values of s, or on values of the target."""
        kinds = [self.function.nodes[n].type for n in node.operands]
        operands = [self._of_s(f, k) for f, k in zip(x, kinds, strict=True)]
        if all(v is not None for v in operands):
            value = self._computed(node, [v for v in operands if v is not None])
            if self.depends(value.number):
                self._check_smooth(node)
            return {} if self._is_zero(value) else {RadialPart(ONE, None, self._none): value}
        operands = [self._of_target(f, k) for f, k in zip(x, kinds, strict=True)]
        if all(v is not None for v in operands):
            return self._of_factor(self._computed(node, [v for v in operands if v is not None]))
        wrong = next(f for f, v in zip(x, operands, strict=True) if v is None)
        if self._of_s(wrong, kinds[0]) is not None:
            raise _Ends(f"{node.operation} of the distance and a field of the target")
        raise _Ends(f"{node.operation} of {self._of_what(wrong)}")

    def _check_smooth(self, node: Node) -> None:
        if node.operation in STEPS or (not node.type.is_float and node.type != BOOL):
            raise _Ends(f"{node.operation} of the distance is a step, and has no derivatives")

    def _computed(self, node: Node, x: Sequence[Value]) -> Value:
        if node.operation in ("and", "or"):
            for v, other in ((x[0], x[1]), (x[1], x[0])):
                leaf = self.table.nodes[v.number]
                if leaf.operation == "literal":
                    return v if bool(leaf.payload) == (node.operation == "or") else other
        numbers = tuple(self.table.plain(v) for v in x)
        return Value(self.table.add(node.operation, numbers, node.type, node.payload))

    def _of_s(self, form: Form, kind: Scalar) -> Value | None:
        """A form as one value of s and of what is one value for all."""
        if not form:
            return self.algebra.number(0, kind if kind.is_float else F32)
        if form.keys() != {RadialPart(ONE, None, self._none)}:
            return None
        (value,) = form.values()
        return None if self._has_target(value.number) else value

    def _has_target(self, number: int) -> bool:
        leaves = {str(self.function.nodes[n].payload) for n in self.target}
        nodes = (self.table.nodes[n] for n in self.table.below({number}))
        return any(n.operation == "leaf" and n.payload in leaves for n in nodes)

    def _of_target(self, form: Form, kind: Scalar) -> Value | None:
        """A form as one value that is the same for all sources."""
        total = self.algebra.number(0, kind) if kind.is_float else None
        for part, value in form.items():
            if part.weight or any(part.powers) or self.depends(value.number):
                return None
            if total is None:
                return value
            factor = Value(part.factor) if part.factor is not None else None
            multiple = value if factor is None else self.algebra.times(value, factor)
            total = self.algebra.add(total, multiple)
        return total

    def _of_what(self, form: Form) -> str:
        """What a form has that a value of s has not, in words."""
        if any(p.weight for p in form):
            return f"the field {next(p.weight for p in form if p.weight)}"
        if any(any(p.powers) for p in form):
            return "the direction of the difference"
        if any(self.depends(v.number) for v in form.values()):
            return "the distance and a field of the target together"
        return "a field of the target"


class _Ends(Exception):
    """A value has no form; the message says why."""
