"""What a function sees outside of itself: helpers, constants and records, as they were when it was lowered.

A kernel holds them as they were then. A notebook cell that runs again, or a program that assigns to its constants, binds their names
to something else: kernels ask at every call, which takes a microsecond, and are made anew.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from types import CellType, ModuleType
from typing import Any

from lanewise.errors import CompileError
from lanewise.frontend.source import Source, read_source

_MISSING = object()
_STEADY = frozenset({"lanewise", "math", "numpy"})  # modules whose members nobody assigns to


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
            value = _content(cells[name]) if name in cells else function.__globals__.get(name, _MISSING)
            if name not in seen:
                seen.add(name)
                if name in cells:
                    self._cells.append((cells[name], value))
                else:
                    self._globals.append((function.__globals__, name, value))
            self._follow(value, met)
            for attribute in path:
                if value is _MISSING or (isinstance(value, ModuleType) and value.__name__ in _STEADY):
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
