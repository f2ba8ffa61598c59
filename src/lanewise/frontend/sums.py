"""`sum(f[q] for q in lattice)`: the terms of all directions, added from the first to the last."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable

from lanewise.frontend import operators
from lanewise.frontend.directions import items_of
from lanewise.frontend.scope import Scope
from lanewise.frontend.values import Number, PythonObject, Value


def generator_of(callee: PythonObject, node: ast.Call) -> ast.GeneratorExp | None:
    """What `sum` is called with, where that is a generator over one name; over `range()` it is a
    loop's business.
    """
    if callee.value is not builtins.sum or len(node.args) not in (1, 2) or node.keywords:
        return None
    terms = node.args[0]
    if not isinstance(terms, ast.GeneratorExp) or len(terms.generators) != 1:
        return None
    (loop,) = terms.generators
    return (
        terms if isinstance(loop.target, ast.Name) and not isinstance(loop.iter, ast.Call) else None
    )


def sum_of_terms(
    scope: Scope,
    node: ast.Call,
    terms: ast.GeneratorExp,
    lower: Callable[[Scope, ast.expr], Value],
    number: Callable[[Scope, ast.expr], Number],
) -> Number:
    """The start, if one is given, and then each term; as in Python, a condition of the generator
    leaves terms out.
    """
    (loop,) = terms.generators
    assert isinstance(loop.target, ast.Name)
    name = loop.target.id
    if loop.ifs or loop.is_async:
        raise scope.error(
            "a sum has a term for each direction",
            loop.ifs[0] if loop.ifs else terms,
            found=f"sum({ast.unparse(terms)})",
            wanted="sum(term for q in lattice)",
            hint="lw.select(condition, term, 0), or a tuple of some directions outside of the "
            "function",
        )
    items = items_of(scope, loop.iter, lower(scope, loop.iter))
    if not items:
        raise scope.error(
            "a sum goes over directions or integers",
            loop.iter,
            found=ast.unparse(loop.iter),
            wanted="a lattice, or a tuple of its directions or of integers",
            hint="a for loop over range()",
        )
    total = number(scope, node.args[1]) if len(node.args) == 2 else None
    before = scope.items.get(name)
    for item in items:
        scope.items[name] = item
        term = number(scope, terms.elt)
        total = (
            term
            if total is None
            else scope.shallow(operators.binary(scope, ast.Add(), total, term, node))
        )
    if before is None:
        del scope.items[name]
    else:
        scope.items[name] = before
    assert total is not None
    return total
