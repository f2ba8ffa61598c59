"""What an expression of the user's source can stand for while it is lowered."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from lanewise import types as t
from lanewise.errors import NOWHERE, Location
from lanewise.ir import nodes as ir
from lanewise.record import Record
from lanewise.values import VectorValue, type_of_annotation


@dataclass(frozen=True, slots=True)
class Number:
    """A scalar or a vector, as one expression per component.

    A weak number takes the type of what it meets: a Python number (`constant` set), a choice between Python numbers,
    or a variable that only Python numbers have set so far (`open`).
    """

    type: t.ValueType
    parts: tuple[ir.Expression, ...]
    constant: bool | int | float | None = None
    open: bool = False

    @property
    def weak(self) -> bool:
        return self.constant is not None or self.open

    @property
    def scalar(self) -> t.Scalar:
        return t.scalar_of(self.type)

    @property
    def is_vector(self) -> bool:
        return isinstance(self.type, t.Vector)

    def describe(self) -> str:
        return f"a value of type {self.type}" if self.constant is None else f"{self.constant!r}"


@dataclass(frozen=True, slots=True)
class Several:
    """The results of a helper that returns more than one value."""

    values: tuple[Number, ...]

    def describe(self) -> str:
        return f"{len(self.values)} values of types {', '.join(str(x.type) for x in self.values)}"


@dataclass(frozen=True, slots=True)
class RecordReference:
    """A record parameter; its leaves are the variables `name.field.x`."""

    name: str
    record: Record
    mutable: bool

    def describe(self) -> str:
        return f"the record {self.name}: {self.record.name}"


@dataclass(frozen=True, slots=True)
class ArrayReference:
    """A local array."""

    name: str
    type: t.LocalArray

    def describe(self) -> str:
        return f"a local array of type {self.type}"


@dataclass(frozen=True, slots=True)
class PythonObject:
    """A function, type, module or any other thing that the source names."""

    value: Any

    def describe(self) -> str:
        """Without addresses, which would make the text of an error differ from run to run."""
        value, name = self.value, getattr(self.value, "__name__", None)
        if kind := type_of_annotation(value):
            return f"the type {kind}"
        if isinstance(value, ModuleType):
            return f"the module {name}"
        if isinstance(value, type):
            return f"the class {name}"
        if callable(value) and isinstance(name, str):
            return f"the function {name.strip('_')}"
        text = repr(value)
        return (
            f"{type(value).__name__} {text}"
            if len(text) <= 40 and " at 0x" not in text
            else f"a value of Python type {type(value).__name__}"
        )


Value = Number | Several | RecordReference | ArrayReference | PythonObject


def weak(constant: bool | int | float, location: Location = NOWHERE) -> Number:
    """A Python number, to take the type of what it meets."""
    if isinstance(constant, bool):
        scalar = t.BOOL
    elif isinstance(constant, int):
        scalar = t.I32 if -(2**31) <= constant < 2**31 else t.I64
    else:
        scalar = t.F32
    return Number(scalar, (ir.Literal(constant, scalar, location),), constant)


def from_python(value: Any, location: Location = NOWHERE) -> Value:
    """A global or closure variable as the kernel sees it: numbers are frozen into the kernel."""
    if isinstance(value, np.generic) and (scalar := t.from_dtype(value.dtype)):
        return Number(scalar, (ir.Literal(value.item(), scalar, location),))
    if isinstance(value, bool):
        return weak(value, location)
    if isinstance(value, (int, float)) and not isinstance(value, np.generic):
        return weak(
            int(value) if isinstance(value, int) else float(value), location
        )  # enumeration members become numbers
    if isinstance(value, VectorValue):
        return Number(value.type, tuple(ir.Literal(p.item(), value.type.element, location) for p in value))
    return PythonObject(value)


def formal_parameter(name: str, kind: Record | t.ValueType, mutable: bool) -> Value:
    """A parameter as the function's own statements see it."""
    if isinstance(kind, Record):
        return RecordReference(name, kind, mutable)
    return Number(kind, tuple(ir.Local(n, t.scalar_of(kind)) for n in t.leaves(name, kind)))


def leaves_of(name: str, value: Value) -> list[tuple[str, ir.Expression]]:
    """(formal leaf, actual expression) of a parameter and its argument.

    A Python number is part of the function: it has no leaf.
    """
    match value:
        case RecordReference():
            return [
                (f"{name}.{leaf.name}", ir.Local(f"{value.name}.{leaf.name}", leaf.type))
                for leaf in value.record.leaves
            ]
        case Number(constant=None):
            return list(zip(t.leaves(name, value.type), value.parts, strict=True))
        case _:
            return []
