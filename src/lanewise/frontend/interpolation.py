"""`lw.interpolate` in the kernel language: reads of tables and arithmetic, in the order of
`lanewise.language.interpolation`.

Indices end in a clamp between 0 and the last one, so that every read is proved to be inside,
whatever the coordinates are.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from lanewise.frontend.scope import Scope
from lanewise.frontend.values import ElementsReference, Number, Value
from lanewise.ir import nodes as ir
from lanewise.language import types as t
from lanewise.language.interpolation import EDGES, Edge
from lanewise.language.types import BOOL, F32, F64, I64, Scalar, computed
from lanewise.support.errors import Location


def interpolation(scope: Scope, node: ast.Call, arguments: list[Value]) -> Number:
    """Lower a call of `lw.interpolate`."""
    edge = _edge(scope, node)
    match arguments:
        case [ElementsReference() as table, *coordinates] if table.type.element in (F32, F64):
            pass
        case _:
            raise scope.error(
                "lw.interpolate takes a table of floats and a coordinate for each of its "
                "dimensions",
                node,
                found=", ".join(a.describe() for a in arguments) or "no arguments",
                wanted="lw.interpolate(t, x), with t: lw.Array1[lw.f32] among the parameters of "
                "the kernel",
            )
    if len(coordinates) != table.type.rank:
        raise scope.error(
            f"{table.name!r} has {table.type.rank} dimension{'s' if table.type.rank > 1 else ''}",
            node,
            found=f"{len(coordinates)} coordinate{'' if len(coordinates) == 1 else 's'}",
            wanted=f"lw.interpolate({table.name}, {', '.join('zyx'[-table.type.rank :])})",
        )
    numbers = [
        _coordinate(scope, x, table, n) for x, n in zip(coordinates, node.args[1:], strict=True)
    ]
    write = _Writer(scope, table, scope.location(node), I64 if edge == "mirror" else table.index)
    ends = [write.ends(x.parts[0], d, edge) for d, x in enumerate(numbers)]
    result = write.between(ends, (), None)
    return Number(result.type, (result,))


def _edge(scope: Scope, node: ast.Call) -> Edge:
    """The edge that a call names; a literal."""
    if any(isinstance(a, ast.Starred) for a in node.args):
        raise scope.error(
            "calls in a kernel take plain arguments",
            node,
            found=ast.unparse(node),
            wanted="the values",
        )
    for keyword in node.keywords:
        match keyword:
            case ast.keyword(arg="edge", value=ast.Constant(value=str(value))) if value in EDGES:
                return next(e for e in EDGES if e == value)
            case _:
                raise scope.error(
                    "edge= says what lies outside of a table",
                    keyword.value,
                    found=ast.unparse(keyword),
                    wanted=" or ".join(f'edge="{e}"' for e in EDGES),
                )
    return "clamp"


def _coordinate(scope: Scope, value: Value, table: ElementsReference, node: ast.expr) -> Number:
    if (
        not isinstance(value, Number)
        or value.is_vector
        or not (value.weak or value.scalar.is_float)
    ):
        raise scope.error(
            "a coordinate is a float",
            node,
            found=value.describe(),
            wanted="a float for each dimension",
            hint=f"lw.{table.type.element}(x)"
            if isinstance(value, Number) and value.scalar.is_integer
            else "",
        )
    kind = table.type.element if value.weak else computed(value.scalar)
    return scope.bind_number(scope.settle(value, kind))


@dataclass(frozen=True, slots=True)
class _Ends:
    """The two elements next to a coordinate, how far it lies from the first, and tests of whether
    they are in the table, if any.
    """

    first: ir.Expression
    second: ir.Expression
    weight: ir.Expression
    tests: tuple[ir.Expression | None, ir.Expression | None] = (None, None)


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes the statements of one interpolation into the scope."""

    scope: Scope
    table: ElementsReference
    where: Location
    index: Scalar  # twice the length of a table may have more than 32 bits

    def ends(self, x: ir.Expression, dimension: int, edge: Edge) -> _Ends:
        real = x.type
        n: ir.Expression = ir.Local(self.table.length(dimension), self.table.index, self.where)
        n = n if n.type == self.index else self.kept(self.cast(n, self.index))
        last = self.whole("-", n, 1)
        if edge in ("clamp", "zero"):
            low, high = (
                (self.real(0, real), self.cast(last, real))
                if edge == "clamp"
                else (self.real(-1, real), self.cast(n, real))
            )
            x = self.kept(self.call("min", self.call("max", x, low), high))
        below = self.kept(self.call("floor", x))
        weight = self.kept(ir.Binary("-", x, below, real, self.where))
        if edge == "clamp":
            first = self.kept(self.inside(self.cast(below, self.index), last))
            return _Ends(first, self.kept(self.inside(self.whole("+", first, 1), last)), weight)
        if edge == "zero":
            first = self.kept(self.cast(below, self.index))
            second = self.kept(self.whole("+", first, 1))
            tests = tuple(self.kept(self.is_inside(e, n)) for e in (first, second))
            return _Ends(
                self.kept(self.inside(first, last)),
                self.kept(self.inside(second, last)),
                weight,
                (tests[0], tests[1]),
            )
        period = n if edge == "repeat" else self.kept(self.whole("*", n, 2))
        first = self.kept(
            self.inside(
                self.cast(self.remainder(below, self.cast(period, real)), self.index),
                self.whole("-", period, 1),
            )
        )
        after = self.whole("+", first, 1)
        second = self.kept(
            ir.Select(
                ir.Compare("<", after, period, self.where),
                after,
                self.number(0),
                self.index,
                self.where,
            )
        )
        if edge == "mirror":
            first, second = self.mirrored(first, n, period), self.mirrored(second, n, period)
        return _Ends(
            self.kept(self.inside(first, last)), self.kept(self.inside(second, last)), weight
        )

    def remainder(self, x: ir.Expression, period: ir.Expression) -> ir.Expression:
        """X modulo the period, both integers among the floats; a quotient may be rounded to
        the next one.
        """
        real, zero = x.type, self.real(0, x.type)
        period = self.kept(period)
        turns = self.call("floor", ir.Binary("/", x, period, real, self.where))
        rest = self.kept(
            ir.Binary("-", x, ir.Binary("*", period, turns, real, self.where), real, self.where)
        )
        more = ir.Binary("+", rest, period, real, self.where)
        rest = self.kept(
            ir.Select(ir.Compare("<", rest, zero, self.where), more, rest, real, self.where)
        )
        less = ir.Binary("-", rest, period, real, self.where)
        return ir.Select(ir.Compare(">=", rest, period, self.where), less, rest, real, self.where)

    def mirrored(self, e: ir.Expression, n: ir.Expression, period: ir.Expression) -> ir.Expression:
        turned = self.whole("-", self.whole("-", period, 1), e)
        return ir.Select(ir.Compare("<", e, n, self.where), e, turned, self.index, self.where)

    def between(
        self, ends: list[_Ends], chosen: tuple[ir.Expression, ...], inside: ir.Expression | None
    ) -> ir.Expression:
        """The value of the table, along the dimensions after the chosen ones."""
        if len(chosen) == len(ends):
            return self.read(chosen, inside)
        e = ends[len(chosen)]
        a, b = (
            self.between(ends, (*chosen, index), self.both(inside, test))
            for index, test in zip((e.first, e.second), e.tests, strict=True)
        )
        kind = t.promote(a.type, e.weight.type)
        a, b, weight = (
            x if x.type == kind else ir.Cast(x, kind, self.where) for x in (a, b, e.weight)
        )
        a = self.kept(a)
        rise = ir.Binary("-", b, a, kind, self.where)
        return self.kept(
            ir.Binary("+", a, ir.Binary("*", weight, rise, kind, self.where), kind, self.where)
        )

    def read(
        self, indices: tuple[ir.Expression, ...], inside: ir.Expression | None
    ) -> ir.Expression:
        name, kind = self.scope.fresh(self.table.name), self.table.type.element
        self.scope.emit(ir.LoadElement(self.table.name, indices, name, self.where))
        value = ir.Local(name, kind, self.where)
        return (
            value
            if inside is None
            else self.kept(ir.Select(inside, value, self.real(0, kind), kind, self.where))
        )

    # ------------------------------------------------------------ expressions

    def both(self, a: ir.Expression | None, b: ir.Expression | None) -> ir.Expression | None:
        return b if a is None else a if b is None else ir.Logical("and", a, b, self.where)

    def is_inside(self, index: ir.Expression, n: ir.Expression) -> ir.Expression:
        return ir.Logical(
            "and",
            ir.Compare(">=", index, self.number(0), self.where),
            ir.Compare("<", index, n, self.where),
            self.where,
        )

    def inside(self, index: ir.Expression, last: ir.Expression) -> ir.Expression:
        return ir.Call("clamp", (index, self.number(0), last), self.index, self.where)

    def whole(
        self, operator: ir.BinaryOperator, left: ir.Expression, right: int | ir.Expression
    ) -> ir.Expression:
        other = self.number(right) if isinstance(right, int) else right
        return ir.Binary(operator, left, other, self.index, self.where, bounded=True)

    def call(self, intrinsic: str, *arguments: ir.Expression) -> ir.Expression:
        return ir.Call(intrinsic, arguments, arguments[0].type, self.where)

    def cast(self, e: ir.Expression, kind: Scalar) -> ir.Expression:
        return ir.Cast(e, kind, self.where)

    def number(self, n: int) -> ir.Literal:
        return ir.Literal(n, self.index, self.where)

    def real(self, x: float, kind: Scalar) -> ir.Literal:
        return ir.Literal(float(x), kind, self.where)

    def kept(self, e: ir.Expression) -> ir.Expression:
        """A variable that holds a value, unless it is one or a literal."""
        return self.scope.bind(
            e, "at" if e.type.is_integer else "is_inside" if e.type == BOOL else "between"
        )
