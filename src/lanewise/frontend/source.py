"""The source of a Python function: its syntax tree with true file positions, and the names that it sees."""

from __future__ import annotations

import ast
import builtins
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lanewise.errors import CompileError, Location


@dataclass(frozen=True)
class Source:
    """A parsed function. Columns of the tree are those of the dedented text; `location` gives them back."""

    function: Callable[..., Any]
    tree: ast.FunctionDef
    file: str
    first_line: int
    indent: int

    @property
    def name(self) -> str:
        return self.tree.name

    def location(self, node: ast.AST) -> Location:
        """Where a node of the tree stands in the file."""
        line = getattr(node, "lineno", 1)
        column = getattr(node, "col_offset", 0)
        end = getattr(node, "end_col_offset", None)
        if getattr(node, "end_lineno", line) != line or end is None:
            end = column + 1
        return Location(self.file, line + self.first_line - 1, column + self.indent, end + self.indent)

    def names(self) -> dict[str, Any]:
        """Builtins, globals and closure variables, inner names over outer ones."""
        closure = inspect.getclosurevars(self.function).nonlocals
        return {**vars(builtins), **self.function.__globals__, **closure}

    def annotations(self) -> dict[str, Any]:
        """The evaluated annotations of parameters and result."""
        try:
            return inspect.get_annotations(self.function, eval_str=True, locals=self.names())
        except NameError as error:
            raise CompileError(
                f"an annotation of {self.name} names something unknown", self.location(self.tree),
                found=str(error), wanted="types that the module of the function can see",
            ) from error  # fmt: skip

    def error(self, message: str, node: ast.AST, *, found: str = "", wanted: str = "", hint: str = "") -> CompileError:
        return CompileError(message, self.location(node), found=found, wanted=wanted, hint=hint)


def read_source(function: Callable[..., Any]) -> Source:
    """Parse the source of a function; raises `CompileError` when there is none (typed at a prompt) or it is no plain `def`."""
    code = getattr(function, "__code__", None)
    where = Location(code.co_filename, code.co_firstlineno) if code else Location(repr(function), 0)
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError) as error:
        raise CompileError(
            "the source of this function cannot be read", where, found=str(error), wanted="a function defined in a file or a notebook cell"
        ) from error
    text = "".join(lines)
    indent = len(text) - len(text.lstrip())
    node = ast.parse(textwrap.dedent(text)).body[0]
    if not isinstance(node, ast.FunctionDef):
        raise CompileError(
            "only a plain `def` can be compiled", where, found=type(node).__name__, wanted="def name(parameter: type, ...)"
        )
    return Source(function, node, where.file, first, indent)
