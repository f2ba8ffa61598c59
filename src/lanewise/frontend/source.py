"""The source of a Python function: its syntax tree with true file positions, and what it sees
outside of itself.

That are helpers, constants and records, as they were when it was lowered. A kernel holds them as
they were then. A notebook cell that runs
again, or a program that assigns to its constants, binds their names to something else: kernels ask
at every call, which takes a microsecond, and are made anew.
"""

from __future__ import annotations

import ast
import builtins
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CellType, CodeType, ModuleType
from typing import Any

from lanewise.frontend.typed_text import typed_lines, why_lost
from lanewise.support.errors import CompileError, Location


@dataclass(frozen=True)
class Source:
    """A parsed function. `lines` are its lines as they stand in the file, the first of them line
    `first_line`.

    A line of the tree is `lines[node.lineno - 1 - wrapped]`: an indented function is parsed below a
    line `if 1:` (`wrapped` is 1 then), because taking the indentation away would change columns,
    and comments or strings may stand further left than the code.
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
        """Where a node of the tree stands in the file; of a node over several lines, its first
        one.
        """
        number = getattr(node, "lineno", 1 + self.wrapped) - 1 - self.wrapped
        text = self.lines[number].rstrip()
        start = _characters(text, getattr(node, "col_offset", 0))
        return Location(self.file, self.first_line + number, start, self._end(node, text, start))

    def _end(self, node: ast.AST, text: str, start: int) -> int:
        match node:
            case ast.FunctionDef():
                return start + len(f"def {node.name}")
            case ast.If() | ast.While():
                return (
                    self._end(node.test, text, start)
                    if node.test.lineno == node.lineno
                    else len(text)
                )
            case ast.For():
                return (
                    self._end(node.iter, text, start)
                    if node.iter.lineno == node.lineno
                    else len(text)
                )
            case _:
                same_line = getattr(node, "end_lineno", None) == getattr(node, "lineno", None)
                end = getattr(node, "end_col_offset", None)
                return _characters(text, end) if same_line and end is not None else len(text)

    def names(self) -> dict[str, Any]:
        """Builtins, globals and closure variables, inner names over outer ones."""
        function: Any = self.function
        closure: dict[str, Any] = {}
        for name, cell in zip(
            function.__code__.co_freevars, function.__closure__ or (), strict=True
        ):
            try:
                closure[name] = cell.cell_contents
            except ValueError:  # the enclosing function has not assigned it yet
                continue
        return {**vars(builtins), **function.__globals__, **closure}

    def annotations(self) -> dict[str, Any]:
        """The evaluated annotations of parameters and result."""
        try:
            return inspect.get_annotations(self.function, eval_str=True, locals=self.names())
        except Exception as error:
            # a postponed annotation is an expression of the user's, and may fail in any way
            raise CompileError(
                f"an annotation of {self.name} cannot be evaluated",
                self.location(self.tree),
                found=f"{type(error).__name__}: {error}",
                wanted="types that the module of the function can see",
            ) from error

    def error(
        self, message: str, node: ast.AST, *, found: str = "", wanted: str = "", hint: str = ""
    ) -> CompileError:
        return CompileError(message, self.location(node), found=found, wanted=wanted, hint=hint)


def _characters(text: str, offset: int) -> int:
    """Characters before a byte offset: `ast` counts the bytes of UTF-8."""
    if text.isascii():
        return min(offset, len(text))
    return len(text.encode()[:offset].decode(errors="ignore"))


def read_source(function: Callable[..., Any]) -> Source:
    """Parse the source of a function; raises `CompileError` when there is none (typed at a prompt)
    or it is no plain `def`.
    """
    code = getattr(function, "__code__", None)
    below = getattr(function, "python", function)  # of another decorator of lanewise
    shown = code or getattr(inspect.unwrap(below), "__code__", None)
    where = (
        Location(shown.co_filename, shown.co_firstlineno)
        if shown
        else Location(_described(function), 0)
    )
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
        file, lines, first = _written_lines(function, code)
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
        found, hint = why_lost(code)
        raise CompileError(
            "the source of this function cannot be read",
            where,
            found=found or str(error),
            wanted="a function defined in a file, a notebook cell, `python -c` or `python < file`, "
            "or typed at the prompt",
            hint=hint,
        ) from (None if found else error)
    node: ast.stmt = (
        module.body[0].body[0] if wrapped and isinstance(module.body[0], ast.If) else module.body[0]
    )
    assert isinstance(node, ast.FunctionDef)
    return Source(function, node, file, first, tuple(lines), wrapped)


def _written_lines(function: Callable[..., Any], code: CodeType) -> tuple[str, list[str], int]:
    """The file of a function, its lines there, and the number of the first one.

    Raises `OSError` where they are not to be had.
    """
    try:
        return code.co_filename, *inspect.getsourcelines(function)
    except OSError:
        typed = typed_lines(code)
        if typed is None:
            raise
        return typed


def _described(function: Any) -> str:
    name = getattr(function, "__name__", None)
    if hasattr(function, "__wrapped__"):
        return f"{name}, which another decorator has wrapped"
    if name == "<lambda>":
        return "a lambda"
    if inspect.iscoroutinefunction(function):
        return f"async def {name}"
    return (
        f"{type(function).__name__} {name}"
        if isinstance(name, str)
        else f"a value of type {type(function).__name__}"
    )


_MISSING = object()
_STEADY = frozenset({"lanewise", "math", "numpy"})  # modules whose members are never assigned to


class Surroundings:
    """The names of a function and of the helpers that it calls, each with what it stood for."""

    __slots__ = ("_attributes", "_cells", "_globals")

    def __init__(self, source: Source) -> None:
        self._globals: list[tuple[dict[str, Any], str, Any]] = []
        self._cells: list[tuple[CellType, Any]] = []
        self._attributes: list[tuple[Any, str, Any]] = []
        self._add(source, set())

    def same(self) -> bool:
        """Whether every name still stands for the same."""
        for names, name, value in self._globals:
            if (now := names.get(name, _MISSING)) is not value and not _equal(now, value):
                return False
        for cell, value in self._cells:
            if (now := _content(cell)) is not value and not _equal(now, value):
                return False
        for owner, name, value in self._attributes:
            if (now := getattr(owner, name, _MISSING)) is not value and not _equal(now, value):
                return False
        return True

    def _add(self, source: Source, met: set[Callable[..., Any]]) -> None:
        met.add(source.function)
        function: Any = source.function
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        own = set(function.__code__.co_varnames) | set(function.__code__.co_cellvars)
        seen: set[str] = set()
        for name, path in _names(source.tree):
            if name in own:
                continue
            value = (
                _content(cells[name]) if name in cells else function.__globals__.get(name, _MISSING)
            )
            if name not in seen:
                seen.add(name)
                if name in cells:
                    self._cells.append((cells[name], value))
                else:
                    self._globals.append((function.__globals__, name, value))
            self._follow(value, met)
            for attribute in path:
                if value is _MISSING or (
                    isinstance(value, ModuleType) and value.__name__ in _STEADY
                ):
                    break
                owner, value = value, getattr(value, attribute, _MISSING)
                self._attributes.append((owner, attribute, value))
                self._follow(value, met)

    def _follow(self, value: Any, met: set[Callable[..., Any]]) -> None:
        """The surroundings of a helper belong to those of its caller."""
        function = value.function if getattr(type(value), "__lanewise_function__", False) else None
        if function is None or function in met:
            return
        try:
            self._add(read_source(function), met)
        except CompileError:  # said where it is called, if it is
            return


def _names(tree: ast.FunctionDef) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Names that are read, with the attributes behind them; decorators have done their work."""
    for part in (tree.args, *([tree.returns] if tree.returns else []), *tree.body):
        for node in ast.walk(part):
            path: list[str] = []
            root: ast.AST = node
            while isinstance(root, ast.Attribute):
                path.append(root.attr)
                root = root.value
            if isinstance(root, ast.Name) and isinstance(root.ctx, ast.Load):
                yield root.id, tuple(reversed(path))


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # the enclosing function has not assigned it yet
        return _MISSING


def _equal(now: Any, before: Any) -> bool:
    """Whether something else is as good: the same number, not 1.0 for 1 and not -0.0 for 0.0."""
    if type(now) is not type(before):
        return False
    try:
        return bool(now == before) and repr(now) == repr(before)
    except Exception:  # of the user's class
        return False
