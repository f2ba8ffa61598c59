"""Mathematics on typed numbers: the intrinsics by component, and the functions of whole vectors."""

from __future__ import annotations

import ast
from functools import reduce

from lanewise.frontend.literals import combine, exact_of, exact_result, fold
from lanewise.frontend.promotion import common_scalar, signed_scalar
from lanewise.frontend.scope import Scope
from lanewise.frontend.shapes import same_shape
from lanewise.frontend.values import Number
from lanewise.ir import nodes as ir
from lanewise.ir.interpret import INTRINSICS
from lanewise.language import types as t
from lanewise.language.values import on_python_numbers


def check_count(
    scope: Scope, name: str, arguments: list[Number], count: int, node: ast.AST, hint: str = ""
) -> None:
    """Refuse a wrong number of arguments."""
    if len(arguments) != count:
        plural = "" if count == 1 else "s"
        raise scope.error(
            f"{name} takes {count} argument{plural}",
            node,
            found=f"{len(arguments)} given",
            wanted=str(count),
            hint=hint,
        )


def intrinsic(scope: Scope, name: str, arguments: list[Number], node: ast.AST) -> Number:
    """Apply a scalar function by component, in the common type of its arguments."""
    entry = INTRINSICS[name]
    if name in {"min", "max"}:
        while len(arguments) > 2:
            first = scope.shallow(intrinsic(scope, name, arguments[:2], node))
            arguments = [first, *arguments[2:]]
        check_count(
            scope,
            name,
            arguments,
            2,
            node,
            hint="a loop over a local array; over all elements: lw.min(values) outside of kernels"
            if len(arguments) == 1
            else "",
        )
    check_count(scope, name, arguments, entry.arity, node)
    if all(a.constant is not None for a in arguments):
        constants = tuple(a.constant for a in arguments)
        return fold(scope, lambda *x: on_python_numbers(name, *x), constants, node)
    kind = signed_scalar(arguments)
    if kind == t.BOOL and entry.domain == "number":
        raise scope.error(
            f"{name} takes numbers",
            node,
            found=", ".join(a.describe() for a in arguments),
            wanted="numbers",
            hint="and, or, not",
        )
    if entry.domain == "float":
        kind = t.float_of(kind)
    settled = same_shape(scope, [scope.settle(a, kind) for a in arguments], node)
    result = t.BOOL if entry.predicate else kind
    where = scope.location(node)
    parts = tuple(
        ir.Call(name, column, result, where)
        for column in zip(*(a.parts for a in settled), strict=True)
    )
    still_open = all(a.weak for a in arguments) and not entry.predicate
    return Number(
        t.Vector(result, len(parts)) if settled[0].is_vector else result, parts, open=still_open
    )


def select(scope: Scope, arguments: list[Number], node: ast.AST) -> Number:
    """`lw.select(condition, a, b)`."""
    check_count(scope, "select", arguments, 3, node)
    test, first, second = arguments
    if test.type != t.BOOL:
        raise scope.error(
            "select needs a boolean first",
            node,
            found=test.describe(),
            wanted="a bool",
            hint="lw.select(x > 0, a, b)",
        )
    return choose(scope, scope.bind(test.parts[0]), first, second, node)


def choose(
    scope: Scope, test: ir.Expression, first: Number, second: Number, node: ast.AST
) -> Number:
    """One of two values in their common type and shape; of two Python numbers it is a Python number
    still.
    """
    kind, still_open = common_scalar([first, second]), first.weak and second.weak
    first, second = same_shape(scope, [scope.settle(first, kind), scope.settle(second, kind)], node)
    where = scope.location(node)
    parts = tuple(
        ir.Select(test, a, b, kind, where) for a, b in zip(first.parts, second.parts, strict=True)
    )
    return Number(first.type, parts, open=still_open)


def _vectors(
    scope: Scope,
    name: str,
    arguments: list[Number],
    lengths: tuple[int, ...],
    count: int,
    node: ast.AST,
) -> list[Number]:
    """Vectors of one allowed length in their common type, each component computed once."""
    check_count(scope, name, arguments, count, node)
    if any(
        not a.is_vector or len(a.parts) not in lengths or len(a.parts) != len(arguments[0].parts)
        for a in arguments
    ):
        pair = "two vectors of 3 components" if lengths == (3,) else "two vectors of one length"
        raise scope.error(
            f"{name} takes {'a vector' if count == 1 else pair}",
            node,
            found=", ".join(x.describe() for x in arguments),
            wanted=f"{'vectors' if count == 2 else 'a vector'} of "
            f"{'3' if lengths == (3,) else '2 to 4'} components",
        )
    kind = common_scalar(arguments)
    return [
        scope.bind_number(scope.settle(a, kind if count == 2 else t.float_of(kind)))
        for a in arguments
    ]


def dot(scope: Scope, arguments: list[Number], node: ast.AST) -> Number:
    """The scalar product, summed from x on."""
    a, b = _vectors(scope, "dot", arguments, (2, 3, 4), 2, node)
    where = scope.location(node)
    exact = [exact_of(x, len(a.parts)) for x in arguments]
    sides = (zip(x.parts, e, strict=True) for x, e in zip((a, b), exact, strict=True))
    products = [combine("*", x, y, where) for x, y in zip(*sides, strict=True)]
    total = reduce(lambda x, y: combine("+", x, y, where), products)
    return Number(a.scalar, (total[0],), exact=exact_result([total]))


def cross(scope: Scope, arguments: list[Number], node: ast.AST) -> Number:
    """The vector product."""
    a, b = _vectors(scope, "cross", arguments, (3,), 2, node)
    where, kind = scope.location(node), a.scalar

    def component(i: int, j: int) -> ir.Expression:
        left, right = (
            ir.Binary("*", a.parts[p], b.parts[q], kind, where) for p, q in ((i, j), (j, i))
        )
        return ir.Binary("-", left, right, kind, where)

    return Number(t.Vector(kind, 3), (component(1, 2), component(2, 0), component(0, 1)))


def length(scope: Scope, arguments: list[Number], node: ast.AST) -> Number:
    """The Euclidean length."""
    (a,) = _vectors(scope, "length", arguments, (2, 3, 4), 1, node)
    return intrinsic(scope, "sqrt", [dot(scope, [a, a], node)], node)


def normalize(scope: Scope, arguments: list[Number], node: ast.AST) -> Number:
    """The vector divided by its length."""
    (a,) = _vectors(scope, "normalize", arguments, (2, 3, 4), 1, node)
    norm = scope.bind(length(scope, [a], node).parts[0], "length")
    return Number(
        a.type, tuple(ir.Binary("/", p, norm, p.type, scope.location(node)) for p in a.parts)
    )
