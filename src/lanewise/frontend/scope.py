"""The state of lowering one function: variables, their types, the block being written."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from lanewise import types as t
from lanewise.errors import CompileError, Location
from lanewise.frontend.source import Source
from lanewise.frontend.values import Number, Value
from lanewise.ir import nodes as ir


class Retype(Exception):
    """A variable turned out to need another type than assumed: lower the function again."""


@dataclass
class Variable:
    """What is known of a local variable across attempts: its type, whether only literals set it so far, where it was set first."""

    type: t.ValueType | t.LocalArray
    weak: bool
    location: Location


@dataclass
class Scope:
    """Everything that lowering one function needs to know or remembers."""

    source: Source
    parameters: dict[str, Value]
    result_types: list[t.ValueType] | None
    call_helper: Callable[[Scope, Any, list[Value], ast.AST], Number]
    variables: dict[str, Variable]
    constants: dict[str, Number] = field(default_factory=dict)
    block: list[ir.Statement] = field(default_factory=list)
    defined: set[str] = field(default_factory=set)
    loop_variables: list[str] = field(default_factory=list)
    globals: dict[str, Any] = field(default_factory=dict)
    assignment_counts: dict[str, int] = field(default_factory=dict)
    uses_same: bool = False
    loops: int = 0
    _temporaries: int = 0

    def error(self, message: str, node: ast.AST, *, found: str = "", wanted: str = "", hint: str = "") -> CompileError:
        return self.source.error(message, node, found=found, wanted=wanted, hint=hint)

    def location(self, node: ast.AST) -> Location:
        return self.source.location(node)

    def emit(self, statement: ir.Statement) -> None:
        self.block.append(statement)

    @contextmanager
    def nested(self) -> Iterator[list[ir.Statement]]:
        """Write into a new block until the end of the `with`."""
        outer, self.block = self.block, []
        try:
            yield self.block
        finally:
            self.block = outer

    def fresh(self, hint: str) -> str:
        """A name that the user's source does not use."""
        while True:
            self._temporaries += 1
            name = f"{hint}_{self._temporaries}"
            if name not in self.assignment_counts and name not in self.parameters and name not in self.globals:
                return name

    def bind(self, e: ir.Expression, hint: str = "t") -> ir.Expression:
        """The expression itself when it is cheap to repeat, else a new variable that holds it."""
        if isinstance(e, (ir.Literal, ir.Local)):
            return e
        name = self.fresh(hint)
        self.emit(ir.Assign(name, e, e.location))
        return ir.Local(name, e.type, e.location)

    def bind_number(self, value: Number, hint: str = "t") -> Number:
        return value if value.weak else Number(value.type, tuple(self.bind(p, hint) for p in value.parts))
