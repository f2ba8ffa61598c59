"""Sitewise functions put together from others: switches decided, one after the other, parameters
named anew.

The compiler reads the text of a function, so a function that is put together has its own text:
`inspect.getsource` shows it, and errors point into it.
"""

from __future__ import annotations

import ast
import builtins
import linecache
from collections.abc import Callable, Mapping
from hashlib import sha256
from types import FunctionType
from typing import Any, cast

from lanewise.frontend.source import read_source

Function = Callable[..., Any]


def specialise(function: Function) -> Function:
    """The same function for the switches of its maker.

    An `if` or `a if b else c` on a name of the maker that is a bool (`if forced:`) is decided, and
    parameters that nothing reads any more are left out. What the function calls, and its
    annotations, stay those of the maker.
    """
    tree, names = _parsed(function)
    decided = cast(
        ast.FunctionDef,
        _Decide({n: v for n, v in names.items() if isinstance(v, bool)}).visit(tree),
    )
    read = {n.id for s in decided.body for n in ast.walk(s) if isinstance(n, ast.Name)}
    decided.args.args = [a for a in decided.args.args if a.arg in read]
    return _made(decided, names)


def renamed(function: Function, names: Mapping[str, str]) -> Function:
    """The same function with other names for some of its parameters."""
    tree, values = _parsed(function)
    taken = (_used(tree) - names.keys()) & set(names.values())
    moved = {n: _fresh(n, _used(tree) | set(names.values())) for n in taken}  # locals in the way
    values |= {new: values[old] for old, new in moved.items() if old in values}
    return _made(_Rename({**names, **moved}).visit(tree), values)


def in_sequence(first: Function, second: Function) -> Function:
    """One function that does what `first` does and then what `second` does, to the same
    populations.

    Parameters of one name are one parameter; `first` must not return.
    """
    tree, names = _parsed(first)
    later, later_names = _parsed(second)
    parameters, later_parameters = ({a.arg for a in x.args.args} for x in (tree, later))
    same = {n for n in names.keys() & later_names.keys() if names[n] is later_names[n]}
    everything = _used(tree) | _used(later)
    tree = _Rename(
        moved := {n: _fresh(n, everything) for n in (_used(tree) - parameters) & later_parameters}
    ).visit(tree)
    names |= {new: names[old] for old, new in moved.items() if old in names}
    clashing = (_used(later) - later_parameters - same) & _used(tree)
    later = _Rename(moved := {n: _fresh(n, everything) for n in clashing}).visit(later)
    later_names |= {new: later_names[old] for old, new in moved.items() if old in later_names}
    tree.args.args += [a for a in later.args.args if a.arg not in parameters]
    tree.name = f"{tree.name}_{later.name}"
    tree.body += later.body
    return _made(tree, {**later_names, **names})


def _parsed(function: Function) -> tuple[ast.FunctionDef, dict[str, Any]]:
    """The tree of a function without its docstring, and the values of the names that it does not
    set itself.
    """
    source = read_source(function)
    tree = source.tree  # read for this call alone
    tree.decorator_list = []
    if ast.get_docstring(tree) is not None:
        del tree.body[0]
    outer = source.names()
    used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)} - _set(tree)
    values = {n: outer[n] for n in used if n in outer and not hasattr(builtins, n)}
    return tree, values | _annotations(tree, source.annotations())


def _annotations(tree: ast.FunctionDef, annotations: Mapping[str, Any]) -> dict[str, Any]:
    """The names that annotations use: their values are known where the function was defined.

    Those without are named.
    """
    values: dict[str, Any] = {}
    for arg in tree.args.args:
        if isinstance(arg.annotation, ast.Name):
            values[arg.annotation.id] = annotations[arg.arg]
    if tree.returns is not None:
        tree.returns = ast.Name("Result", ast.Load())
        values["Result"] = annotations["return"]
    return values


def _set(tree: ast.FunctionDef) -> set[str]:
    stored = {
        n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    return stored | {a.arg for a in tree.args.args}


def _used(tree: ast.FunctionDef) -> set[str]:
    return {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)} | _set(tree)


def _fresh(name: str, taken: set[str]) -> str:
    count = 2
    while f"{name}_{count}" in taken:
        count += 1
    return f"{name}_{count}"


def _made(tree: ast.FunctionDef, names: Mapping[str, Any]) -> Function:
    """The function of a tree, whose text Python's own tools find."""
    text = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
    # The name stands in generated code, whose text the cache goes by: the same text has the same
    # name in every process.
    digest = sha256(text.encode()).hexdigest()[:12]
    file = f"<lanewise {tree.name} {digest}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    namespace = {"__name__": __name__, **names}
    # the text is that of functions of the caller
    exec(compile(text, file, "exec", dont_inherit=True), namespace)
    return cast(FunctionType, namespace[tree.name])


class _Decide(ast.NodeTransformer):
    """Take the branches that known names decide."""

    def __init__(self, decided: Mapping[str, bool]) -> None:
        self.decided = decided

    def decision(self, test: ast.expr) -> bool | None:
        match test:
            case ast.Name(id=name) if name in self.decided:
                return self.decided[name]
            case ast.UnaryOp(op=ast.Not(), operand=ast.Name(id=name)) if name in self.decided:
                return not self.decided[name]
            case _:
                return None

    def visit_If(self, node: ast.If) -> Any:
        decision = self.decision(node.test)
        if decision is None:
            return self.generic_visit(node)
        return [self.visit(s) for s in (node.body if decision else node.orelse)]

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        decision = self.decision(node.test)
        return (
            self.generic_visit(node)
            if decision is None
            else self.visit(node.body if decision else node.orelse)
        )


class _Rename(ast.NodeTransformer):
    """Give names and parameters others."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.copy_location(ast.Name(self.names.get(node.id, node.id), node.ctx), node)

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.arg = self.names.get(node.arg, node.arg)
        return cast(ast.arg, self.generic_visit(node))
