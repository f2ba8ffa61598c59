"""Forward mode: along with every variable that depends on an input, its derivative with respect to
that input.

    r = sqrt(d2)   ->   $d0.r = (0.5 / sqrt(d2) if sqrt(d2) > 0.0 else 0.0) * $d0.d2;   r = sqrt(d2)
Branches, loops, local arrays and helpers stay what they are. There is one derivative for each
input, so it is for functions of one input, and for those whose loops reverse mode cannot take.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from lanewise.derivatives.rules import DIFFERENTIABLE, OUT, operand, partials
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.ir.spreading import spread
from lanewise.ir.traverse import rewrite
from lanewise.language.types import Scalar
from lanewise.support.errors import CompileError

Returned = Callable[[ir.Return], ir.Return]
Inputs = tuple[frozenset[str], ...]
"""For each direction, the parameters that have a derivative in it."""


def forward(
    f: ir.Function,
    leaves: Sequence[str],
    weights: Sequence[ir.Expression | None],
    suffix: str = "derivative",
) -> ir.Block:
    """The body of the gradient: for each leaf, the derivative of the sum of result * weight.

    A weight of None is 1.

    suffix: of the names of helpers that give derivatives besides.
    """
    kinds = {p.name: p.type for p in f.parameters}
    tangent = _Tangent(f, tuple(frozenset({x}) for x in leaves), suffix)
    ones = tuple(ir.Assign(_dual(k, x), ir.Literal(1.0, kinds[x])) for k, x in enumerate(leaves))
    starts = (*ones, *tangent.zeros(f, tuple(frozenset({x}) for x in leaves)))

    def returned(s: ir.Return) -> ir.Return:
        sums = [_weighted(tangent, k, s.values, weights, kinds[x]) for k, x in enumerate(leaves)]
        return ir.Return(tuple(sums), s.location)

    return (*starts, *tangent.block(f.body, returned))


def _weighted(
    tangent: _Tangent,
    k: int,
    values: Sequence[ir.Expression],
    weights: Sequence[ir.Expression | None],
    kind: Scalar,
) -> ir.Expression:
    terms: list[ir.Expression] = []
    for value, weight in zip(values, weights, strict=True):
        if (d := tangent.of(value, k)) is not None:
            d = d if weight is None else ir.Binary("*", weight, d, d.type)
            terms.append(build.cast(d, kind))
    return (
        reduce(lambda a, b: ir.Binary("+", a, b, kind), terms) if terms else ir.Literal(0.0, kind)
    )


def _dual(k: int, name: str) -> str:
    return own(f"d{k}.{name}")


class _Tangent:
    """A function with its derivatives in several directions."""

    def __init__(self, f: ir.Function, inputs: Inputs, suffix: str) -> None:
        self.suffix = suffix
        self.directions = range(len(inputs))
        self.active = [spread(f.body, set(x)) if x else set[str]() for x in inputs]

    def zeros(self, f: ir.Function, inputs: Inputs) -> ir.Block:
        """The derivatives of parameters that are no inputs and are given new values that depend on
        one.
        """
        return tuple(
            ir.Assign(_dual(k, p.name), ir.Literal(0.0, p.type))
            for k in self.directions
            for p in f.parameters
            if p.type.is_float and p.name in self.active[k] and p.name not in inputs[k]
        )

    # ------------------------------------------------------------ statements

    def block(self, block: ir.Block, returned: Returned) -> ir.Block:
        return tuple(x for s in block for x in self._statement(s, returned))

    def _statement(self, s: ir.Statement, returned: Returned) -> ir.Block:
        match s:
            case ir.Assign() if s.value.type.is_float:
                duals = (
                    ir.Assign(_dual(k, s.name), self._or_zero(s.value, k), s.location)
                    for k in self.directions
                    if s.name in self.active[k]
                )
                return (*duals, s)
            case ir.DeclareArray() if s.type.element.is_float:
                return (
                    *(
                        ir.DeclareArray(_dual(k, s.name), s.type, s.location)
                        for k in self.directions
                        if s.name in self.active[k]
                    ),
                    s,
                )
            case ir.SetElement() if s.value.type.is_float:
                duals = (
                    ir.SetElement(_dual(k, s.array), s.index, self._or_zero(s.value, k), s.location)
                    for k in self.directions
                    if s.array in self.active[k]
                )
                return (*duals, s)
            case ir.If():
                return (
                    ir.If(
                        s.condition,
                        self.block(s.then, returned),
                        self.block(s.otherwise, returned),
                        s.location,
                    ),
                )
            case ir.For():
                body = self.block(s.body, returned)
                return (
                    ir.For(s.variable, s.start, s.stop, s.step, body, s.role, s.unroll, s.location),
                )
            case ir.While():
                return (ir.While(s.condition, self.block(s.body, returned), s.location),)
            case ir.Return():
                return (returned(s),)
            case ir.Apply():
                return self._apply(s)
            case ir.Assign() | ir.DeclareArray() | ir.SetElement() | ir.Break() | ir.Continue():
                return (s,)
            case _:
                raise AssertionError(f"{type(s).__name__} in a function of numbers")

    def _apply(self, s: ir.Apply) -> ir.Block:
        """A call of a helper that gives derivatives besides."""
        f = s.function
        if any(p.mutable for p in f.parameters):
            raise not_differentiable("a helper that changes its arguments", s)
        pairs = list(zip(f.parameters, s.arguments, strict=True))
        given = [
            [(p, d) for p, a in pairs if (d := self.of(a, k)) is not None] for k in self.directions
        ]
        floats = [i for i, r in enumerate(f.results) if r.type.is_float]
        outputs = [
            (k, i) for k in self.directions for i in floats if s.results[i] in self.active[k]
        ]
        if not any(given):  # it depends on integers at most
            return (
                s,
                *(
                    ir.Assign(_dual(k, s.results[i]), ir.Literal(0.0, f.results[i].type))
                    for k, i in outputs
                ),
            )
        inputs = tuple(frozenset(p.name for p, _ in x) for x in given)
        inner = _Tangent(f, inputs, self.suffix)

        def returned(r: ir.Return) -> ir.Return:
            return ir.Return(
                (*r.values, *(inner._or_zero(r.values[i], k) for k, i in outputs)), r.location
            )

        function = ir.Function(
            f"{f.name}_{self.suffix}",
            (
                *f.parameters,
                *(
                    ir.Parameter(_dual(k, p.name), p.type)
                    for k, x in enumerate(given)
                    for p, _ in x
                ),
            ),
            (
                *f.results,
                *(ir.Parameter(_dual(k, f.results[i].name), f.results[i].type) for k, i in outputs),
            ),
            (*inner.zeros(f, inputs), *inner.block(f.body, returned)),
            f.location,
        )
        arguments = (*s.arguments, *(d for x in given for _, d in x))
        results = (*s.results, *(_dual(k, s.results[i]) for k, i in outputs))
        return (ir.Apply(function, arguments, results, s.location),)

    # ------------------------------------------------------------ expressions

    def _or_zero(self, e: ir.Expression, k: int) -> ir.Expression:
        d = self.of(e, k)
        return ir.Literal(0.0, e.type) if d is None else d

    def of(self, e: ir.Expression, k: int) -> ir.Expression | None:
        """The derivative of an expression in a direction; None where it is zero."""
        if not e.type.is_float:
            return None
        match e:
            case ir.Literal() | ir.Builtin() | ir.Compare() | ir.Logical():
                return None
            case ir.Local():
                return ir.Local(_dual(k, e.name), e.type) if e.name in self.active[k] else None
            case ir.Element():
                return (
                    ir.Element(_dual(k, e.array), e.index, e.type)
                    if e.array in self.active[k]
                    else None
                )
            case ir.Unary():
                return None if (d := self.of(e.operand, k)) is None else ir.Unary("-", d, e.type)
            case ir.Cast():
                return None if (d := self.of(e.operand, k)) is None else ir.Cast(d, e.type)
            case ir.Select():
                first, second = self.of(e.if_true, k), self.of(e.if_false, k)
                if first is None and second is None:
                    return None
                zero = ir.Literal(0.0, e.type)
                return ir.Select(e.condition, first or zero, second or zero, e.type)
            case ir.Binary():
                return self._binary(e, self.of(e.left, k), self.of(e.right, k))
            case ir.Call() if e.intrinsic in DIFFERENTIABLE:
                return self._call(e, [self.of(a, k) for a in e.arguments])
            case ir.Call():
                return None
            case _:
                raise AssertionError(f"{e} has no derivative rule")

    def _binary(
        self, e: ir.Binary, left: ir.Expression | None, right: ir.Expression | None
    ) -> ir.Expression | None:
        kind = e.type

        def binary(
            operator: ir.BinaryOperator, a: ir.Expression, b: ir.Expression
        ) -> ir.Expression:
            return ir.Binary(operator, a, b, kind)

        match e.operator:
            case "+":
                return (
                    left if right is None else right if left is None else binary("+", left, right)
                )
            case "-":
                negative = None if right is None else ir.Unary("-", right, kind)
                return (
                    left
                    if right is None
                    else negative
                    if left is None
                    else binary("-", left, right)
                )
            case "*":
                first = None if left is None else binary("*", left, e.right)
                second = None if right is None else binary("*", e.left, right)
                return _sum(first, second, kind)
            case "/":
                first = None if left is None else binary("/", left, e.right)
                second = (
                    None
                    if right is None
                    else ir.Unary("-", binary("/", binary("*", e, right), e.right), kind)
                )
                return _sum(first, second, kind)
            case "%":
                times = None if right is None else binary("*", binary("//", e.left, e.right), right)
                return _sum(left, None if times is None else ir.Unary("-", times, kind), kind)
            case _:
                return None

    def _call(self, e: ir.Call, duals: Sequence[ir.Expression | None]) -> ir.Expression | None:
        if all(d is None for d in duals):
            return None
        values: dict[str, ir.Expression] = {operand(i): a for i, a in enumerate(e.arguments)} | {
            OUT: e
        }
        total: ir.Expression | None = None
        for rule, d in zip(partials(e.intrinsic, e.type), duals, strict=True):
            if d is not None:
                factor = rewrite(rule, lambda x: values[x.name] if isinstance(x, ir.Local) else x)
                if not (isinstance(factor, ir.Literal) and factor.value == 0):
                    total = _sum(total, ir.Binary("*", factor, d, e.type), e.type)
        return total


def _sum(a: ir.Expression | None, b: ir.Expression | None, kind: Scalar) -> ir.Expression | None:
    return a if b is None else b if a is None else ir.Binary("+", a, b, kind)


def not_differentiable(what: str, s: ir.Apply) -> CompileError:
    """The error about a statement that has no derivative."""
    return CompileError(
        "this has no derivative that lanewise can write",
        s.location,
        found=what,
        wanted="functions of numbers",
    )
