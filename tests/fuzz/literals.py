"""Programs whose helpers are given literals: Python's numbers, which take the types of what they meet.

What a helper makes of literals alone has a type of its own: i64 where i32 cannot hold it, so that the program that
meant an i32 is refused.
"""

from __future__ import annotations

import ast
import warnings

from lanewise.support.errors import CompileError
from tests.fuzz.patterns.written import whole
from tests.fuzz.texts import executed

HELPER = "helper"  # what the names of a program's helpers begin with


class _Typed(ast.NodeTransformer):
    """Gives the literals of helpers' arguments the types that the program means them to have."""

    found = False

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id.startswith(HELPER):
            node.args = [self._typed(a) for a in node.args]
        return node

    def _typed(self, argument: ast.expr) -> ast.expr:
        try:
            number = ast.literal_eval(argument)
        except ValueError:  # an expression
            return argument
        self.found = True
        return ast.parse(f"lw.{'f32' if isinstance(number, float) else 'i32'}({number})", mode="eval").body


def with_types(text: str) -> str | None:
    """The program whose helpers are given numbers of types instead of literals; None where they are given none."""
    typed = _Typed()
    tree = typed.visit(ast.parse(text))
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n" if typed.found else None


def refused_for_literals(text: str, error: CompileError, file: str) -> bool:
    """Whether a program is refused for a literal that is, or has become, one that no type or not the wanted
    type holds.
    """
    if "does not fit" in error.message:  # a literal that meets a literal becomes one that no type holds
        return True
    wider = error.found.startswith("a value of type i64") and error.wanted.startswith("a value of type ")
    if not wider or (typed := with_types(text)) is None:
        return False
    with executed(whole(typed), file) as names, warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            names.run("python")
        except CompileError:
            return False
    return True
