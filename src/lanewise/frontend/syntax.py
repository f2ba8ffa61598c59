"""Words for the Python syntax that kernels do not have, and what to write instead."""

from __future__ import annotations

import ast

_EXPRESSIONS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Lambda: ("a lambda", "define a helper with @lw.function"),
    ast.ListComp: (
        "a list comprehension",
        "a for loop over range(), with a local array if the values are needed again",
    ),
    ast.SetComp: ("a set comprehension", "a for loop over range()"),
    ast.DictComp: ("a dictionary comprehension", "a for loop over range()"),
    ast.GeneratorExp: ("a generator expression", "a for loop over range()"),
    ast.List: ("a list", "a vector, lw.vec3(x, y, z), or a local array, lw.zeros(lw.f32, n)"),
    ast.Tuple: ("a tuple", "a vector: lw.vec3(x, y, z)"),
    ast.Dict: ("a dictionary", "a record"),
    ast.Set: ("a set", ""),
    ast.JoinedStr: ("an f-string", "kernel.python(...), where print works"),
    ast.NamedExpr: (
        "an assignment inside an expression",
        "a separate assignment, on the line before",
    ),
    ast.Await: ("await", ""),
    ast.Yield: ("yield", "return"),
    ast.YieldFrom: ("yield from", "return"),
    ast.Starred: ("a starred expression", "the values, one by one"),
    ast.Slice: ("a slice", "a loop"),
}
_STATEMENTS: dict[type[ast.AST], tuple[str, str]] = {
    ast.FunctionDef: (
        "a function inside the function",
        "define it outside and decorate it with @lw.function",
    ),
    ast.AsyncFunctionDef: ("an async function", ""),
    ast.ClassDef: ("a class", ""),
    ast.Import: ("an import", "import at the top of the module"),
    ast.ImportFrom: ("an import", "import at the top of the module"),
    ast.Global: ("global", "return the value; module-level numbers can be read, not changed"),
    ast.Nonlocal: ("nonlocal", "return the value; outer numbers can be read, not changed"),
    ast.Try: ("try", "test for the bad case with if"),
    ast.TryStar: ("try", "test for the bad case with if"),
    ast.With: ("with", ""),
    ast.Raise: ("raise", "return a value that marks the bad case, and check it outside"),
    ast.Assert: ("assert", "return a value that marks the bad case, and check it outside"),
    ast.Delete: ("del", ""),
    ast.Match: ("match", "if / elif / else"),
    ast.AsyncFor: ("async for", ""),
    ast.AsyncWith: ("async with", ""),
    ast.For: ("for ... else", "a bool variable that the loop sets"),
    ast.While: ("while ... else", "a bool variable that the loop sets"),
}


def describe_syntax(node: ast.AST) -> tuple[str, str]:
    """What stands there, in words, and a hint (or nothing)."""
    if isinstance(node, ast.Constant):
        value = node.value
        if isinstance(value, str):
            return f"the string {value!r}", "kernels compute with numbers"
        return f"{value!r}", "real and imaginary parts as two numbers, or a vec2" if isinstance(
            value, complex
        ) else ""
    return (_EXPRESSIONS | _STATEMENTS).get(type(node), (type(node).__name__, ""))
