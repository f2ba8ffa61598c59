"""The source of a Python function: its syntax tree with true file positions, and the names that it sees."""

from __future__ import annotations

import ast
import builtins
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lanewise.errors import CompileError, Location


@dataclass(frozen=True)
class Source:
    """A parsed function. `lines` are its lines as they stand in the file, the first of them line `first_line`.

    A line of the tree is `lines[node.lineno - 1 - wrapped]`: an indented function is parsed below a line `if 1:`
    (`wrapped` is 1 then), because taking the indentation away would change columns, and comments or strings may stand
    further left than the code.
    """

    function: Callable[..., Any]
    tree: ast.FunctionDef
    file: str
    first_line: int
    lines: tuple[str, ...]
    wrapped: int

    @property
    def name(self) -> str:
        return self.tree.name

    def location(self, node: ast.AST) -> Location:
        """Where a node of the tree stands in the file; of a node over several lines, its first one."""
        number = getattr(node, "lineno", 1 + self.wrapped) - 1 - self.wrapped
        text = self.lines[number].rstrip()
        start = _characters(text, getattr(node, "col_offset", 0))
        return Location(self.file, self.first_line + number, start, self._end(node, text, start))

    def _end(self, node: ast.AST, text: str, start: int) -> int:
        match node:
            case ast.FunctionDef():
                return start + len(f"def {node.name}")
            case ast.If() | ast.While():
                return self._end(node.test, text, start) if node.test.lineno == node.lineno else len(text)
            case ast.For():
                return self._end(node.iter, text, start) if node.iter.lineno == node.lineno else len(text)
            case _:
                same_line = getattr(node, "end_lineno", None) == getattr(node, "lineno", None)
                end = getattr(node, "end_col_offset", None)
                return _characters(text, end) if same_line and end is not None else len(text)

    def names(self) -> dict[str, Any]:
        """Builtins, globals and closure variables, inner names over outer ones."""
        function: Any = self.function
        closure: dict[str, Any] = {}
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            try:
                closure[name] = cell.cell_contents
            except ValueError:  # the enclosing function has not assigned it yet
                continue
        return {**vars(builtins), **function.__globals__, **closure}

    def annotations(self) -> dict[str, Any]:
        """The evaluated annotations of parameters and result."""
        try:
            return inspect.get_annotations(self.function, eval_str=True, locals=self.names())
        except Exception as error:  # a postponed annotation is an expression of the user's, and may fail in any way
            raise CompileError(
                f"an annotation of {self.name} cannot be evaluated", self.location(self.tree),
                found=f"{type(error).__name__}: {error}", wanted="types that the module of the function can see",
            ) from error  # fmt: skip

    def error(self, message: str, node: ast.AST, *, found: str = "", wanted: str = "", hint: str = "") -> CompileError:
        return CompileError(message, self.location(node), found=found, wanted=wanted, hint=hint)


def _characters(text: str, offset: int) -> int:
    """Characters before a byte offset: `ast` counts the bytes of UTF-8."""
    return len(text.encode()[:offset].decode(errors="ignore"))


def read_source(function: Callable[..., Any]) -> Source:
    """Parse the source of a function; raises `CompileError` when there is none (typed at a prompt) or it is no plain `def`."""
    code = getattr(function, "__code__", None)
    below = getattr(function, "python", function)  # of another decorator of lanewise
    shown = code or getattr(inspect.unwrap(below), "__code__", None)
    where = Location(shown.co_filename, shown.co_firstlineno) if shown else Location(_described(function), 0)
    if (
        code is None
        or hasattr(function, "__wrapped__")
        or function.__name__ == "<lambda>"
        or inspect.iscoroutinefunction(function)
    ):
        raise CompileError(
            "only a plain `def` can be compiled",
            where,
            found=_described(function),
            wanted="def name(parameter: type, ...)",
            hint="one decorator of lanewise, directly above the def"
            if shown is not code or hasattr(function, "__wrapped__")
            else "",
        )
    try:
        lines, first = inspect.getsourcelines(function)
        wrapped = int(lines[0][:1].isspace())
        module = ast.parse("if 1:\n" + "".join(lines) if wrapped else "".join(lines))
    except RecursionError as error:
        raise CompileError(
            "the source of this function is nested too deeply",
            where,
            found="more operations one inside the other than Python reads",
            wanted="shorter expressions",
            hint="a loop, or variables for parts of it",
        ) from error
    except (OSError, TypeError, SyntaxError) as error:
        raise CompileError(
            "the source of this function cannot be read",
            where,
            found=str(error),
            wanted="a function defined in a file or a notebook cell",
        ) from error
    node: ast.stmt = module.body[0].body[0] if wrapped and isinstance(module.body[0], ast.If) else module.body[0]
    assert isinstance(node, ast.FunctionDef)
    return Source(function, node, where.file, first, tuple(lines), wrapped)


def _described(function: Any) -> str:
    name = getattr(function, "__name__", None)
    if hasattr(function, "__wrapped__"):
        return f"{name}, which another decorator has wrapped"
    if name == "<lambda>":
        return "a lambda"
    if inspect.iscoroutinefunction(function):
        return f"async def {name}"
    return (
        f"{type(function).__name__} {name}" if isinstance(name, str) else f"a value of type {type(function).__name__}"
    )
