"""The state of lowering one function: variables, their types, the block being written."""

from __future__ import annotations

import ast
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from lanewise.frontend.promotion import settle
from lanewise.frontend.source import Source
from lanewise.frontend.values import Number, PythonObject, Value
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import children, reads
from lanewise.language import types as t
from lanewise.support.errors import CompileError, Location

DEEP = 64  # operations one inside the other


def deeper(e: ir.Expression, levels: int = DEEP) -> bool:
    """Whether an expression has more levels."""
    return not levels or any(deeper(x, levels - 1) for x in children(e))


class Retype(Exception):
    """A variable turned out to need another type than assumed: lower the function again."""


@dataclass(frozen=True, slots=True)
class LocalVariable:
    """The type of a local variable, whether it is open (only Python numbers have set it so far),
    and what gave it the type.
    """

    type: t.ValueType | t.LocalArray
    open: bool
    location: Location
    declared: bool = False


@dataclass(slots=True)
class Inferred:
    """What one attempt at lowering a function leaves for the next: types that no first assignment
    shows.
    """

    variables: dict[str, LocalVariable] = field(default_factory=dict[str, LocalVariable])
    results: list[tuple[t.ValueType, bool]] | None = None  # (type, open)


@dataclass(slots=True)
class NameUses:
    """How the names of a function are used, found before it is lowered."""

    assignments: dict[str, int]
    loop_variables: frozenset[str]
    visible: dict[str, Any]


@dataclass
class Scope:
    """Everything that lowering one function needs to know or remembers."""

    source: Source
    parameters: dict[str, Value]
    result_types: list[t.ValueType] | None
    call_helper: Callable[[Scope, Any, list[Value], ast.AST], Value]
    inferred: Inferred
    names: NameUses
    same_allowed: bool = False
    indices: frozenset[str] = frozenset()  # of the thread, in a threadwise function
    elements: frozenset[str] = frozenset()  # the parameters that lw.index_of takes
    variables: dict[str, LocalVariable] = field(default_factory=dict[str, LocalVariable])
    # names of Python numbers and directions
    constants: dict[str, Value] = field(default_factory=dict[str, Value])
    # the variables of loops that are being unrolled
    items: dict[str, Value] = field(default_factory=dict[str, Value])
    unrolled_at: int = 0  # the depth of the outermost of these loops
    depth: int = 0  # of the block being written in others, which may not run
    block: list[ir.Statement] = field(default_factory=list[ir.Statement])
    defined: set[str] = field(default_factory=set[str])
    # the loops that are being lowered
    loop_names: dict[str, ir.Local] = field(default_factory=dict[str, ir.Local])
    # None: unrolled
    loop_types: dict[str, t.Scalar | None] = field(default_factory=dict[str, t.Scalar | None])
    # the values of variables of loops over literals
    loop_ranges: dict[str, range] = field(default_factory=dict[str, range])
    # for each open loop: what is defined where it is left; None for one that is unrolled
    breaks: list[list[set[str]] | None] = field(default_factory=list[list[set[str]] | None])
    results_open: list[bool] = field(default_factory=list[bool])
    uses_same: bool = False
    # the parameters whose index is requested
    numbered: dict[str, None] = field(default_factory=dict[str, None])
    _temporaries: int = 0

    def error(
        self, message: str, node: ast.AST, *, found: str = "", wanted: str = "", hint: str = ""
    ) -> CompileError:
        return self.source.error(message, node, found=found, wanted=wanted, hint=hint)

    def location(self, node: ast.AST) -> Location:
        return self.source.location(node)

    def emit(self, statement: ir.Statement) -> None:
        self.block.append(statement)

    def decide(self, name: str, variable: LocalVariable) -> Retype:
        """Remember the type of a variable for the next attempt: `raise scope.decide(...)`."""
        self.inferred.variables[name] = variable
        return Retype()

    def settle(self, value: Number, scalar: t.Scalar, *, explicit: bool = False) -> Number:
        """The same number or vector with components of type `scalar`; raises `Misfit` (see
        `promotion.cast`).

        A variable that only Python numbers have set is kept as f64 once it meets one: 0.1 stays
        0.1.
        """
        if value.open and scalar == t.F64 and value.type == t.F32:
            for name in sorted(n for p in value.parts for n in reads(p)):
                variable = self.variables.get(name)
                if variable is not None and variable.open and variable.type == t.F32:
                    raise self.decide(name, LocalVariable(t.F64, True, variable.location))
        return settle(value, scalar, explicit=explicit)

    def computed(self, value: Number) -> Number:
        """The same number in the type that a kernel computes with: i32 for u8, f32 for f16."""
        return (
            value if value.scalar not in t.STORED else self.settle(value, t.computed(value.scalar))
        )

    @contextmanager
    def nested(self) -> Generator[list[ir.Statement]]:
        """Write into a new block until the end of the `with`."""
        outer, self.block = self.block, []
        self.depth += 1
        try:
            yield self.block
        finally:
            self.block = outer
            self.depth -= 1

    @property
    def decides(self) -> bool:
        """Whether conditions that are known while lowering are decided, because the code is written
        for one direction.

        Elsewhere a known condition is a switch of the user's, both sides of which are checked.
        """
        return bool(self.items) or any(
            isinstance(p, PythonObject) for p in self.parameters.values()
        )

    def fresh(self, hint: str) -> str:
        """A name that the user's source does not use."""
        while True:
            self._temporaries += 1
            name = f"{hint}_{self._temporaries}"
            names = self.names
            if not any(
                name in x
                for x in (names.assignments, names.loop_variables, names.visible, self.parameters)
            ):
                return name

    def bind(self, e: ir.Expression, hint: str = "t") -> ir.Expression:
        """The expression itself when it is cheap to repeat, else a new variable that holds it."""
        return e if isinstance(e, (ir.Literal, ir.Local)) else self.copy(e, hint)

    def copy(self, e: ir.Expression, hint: str = "t") -> ir.Local:
        """A new variable that holds the value that the expression has here."""
        name = self.fresh(hint)
        self.emit(ir.Assign(name, e, e.location))
        return ir.Local(name, e.type, e.location)

    def is_steady(self, e: ir.Expression) -> bool:
        """Whether an expression of a threadwise function keeps its value: a variable that no line
        assigns.
        """
        return (
            bool(self.indices) and isinstance(e, ir.Local) and e.name not in self.names.assignments
        )

    def shallow(self, value: Number) -> Number:
        """The same value; a deep expression becomes a variable, so that what walks through
        expressions needs no deep stack.
        """
        return self.bind_number(value) if any(deeper(p) for p in value.parts) else value

    def bind_number(self, value: Number) -> Number:
        if value.known:
            return value
        return Number(
            value.type, tuple(self.bind(p) for p in value.parts), open=value.open, exact=value.exact
        )
