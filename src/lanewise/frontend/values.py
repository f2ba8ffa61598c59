"""What an expression of the user's source can stand for while it is lowered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lanewise import types as t
from lanewise.ir import nodes as ir
from lanewise.record import Record
from lanewise.values import VectorValue


@dataclass(frozen=True, slots=True)
class Number:
    """A scalar or a vector, as one expression per component. A Python number (`constant` set) is weak: it has no type yet."""

    type: t.ValueType
    parts: tuple[ir.Expression, ...]
    constant: bool | int | float | None = None

    @property
    def weak(self) -> bool:
        return self.constant is not None

    @property
    def scalar(self) -> t.Scalar:
        return t.scalar_of(self.type)

    @property
    def is_vector(self) -> bool:
        return isinstance(self.type, t.Vector)

    def describe(self) -> str:
        return f"{self.constant!r}" if self.weak else f"a value of type {self.type}"


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
    """A function, type or module that the source names."""

    value: Any

    def describe(self) -> str:
        return f"{self.value!r}"


Value = Number | RecordReference | ArrayReference | PythonObject


def weak(constant: bool | int | float) -> Number:
    """A Python number, to take the type of what it meets."""
    if isinstance(constant, bool):
        scalar = t.BOOL
    elif isinstance(constant, int):
        scalar = t.I32 if -(2**31) <= constant < 2**31 else t.I64
    else:
        scalar = t.F32
    return Number(scalar, (ir.Literal(constant, scalar),), constant)


def from_python(value: Any) -> Value:
    """A global or closure variable as the kernel sees it: numbers are frozen into the kernel."""
    if isinstance(value, (bool, int, float)) and not isinstance(value, np.generic):
        return weak(value if isinstance(value, bool) else int(value) if isinstance(value, int) else float(value))
    if isinstance(value, np.generic) and (scalar := t.from_dtype(value.dtype)):
        return Number(scalar, (ir.Literal(value.item(), scalar),))
    if isinstance(value, VectorValue):
        return Number(value.type, tuple(ir.Literal(p.item(), value.type.element) for p in value))
    return PythonObject(value)


def cast(e: ir.Expression, scalar: t.Scalar) -> ir.Expression:
    """Convert an expression, at once when it is a literal."""
    if e.type == scalar:
        return e
    if isinstance(e, ir.Literal):
        with np.errstate(all="ignore"):
            return ir.Literal(np.asarray(e.value).astype(scalar.dtype).item(), scalar, e.location)
    return ir.Cast(e, scalar, e.location)


def settle(value: Number, scalar: t.Scalar) -> Number:
    """The same number or vector with components of type `scalar` (a weak number keeps its full precision until here)."""
    if value.weak:
        widest = t.BOOL if isinstance(value.constant, bool) else t.I64 if isinstance(value.constant, int) else t.F64
        return Number(scalar, (cast(ir.Literal(value.constant or 0, widest, value.parts[0].location), scalar),))
    parts = tuple(cast(p, scalar) for p in value.parts)
    return Number(t.Vector(scalar, len(parts)) if value.is_vector else scalar, parts)


def common_scalar(values: list[Number]) -> t.Scalar:
    """The type in which an operation on these values is computed: weak numbers follow the others."""
    strong = [v.scalar for v in values if not v.weak]
    result = strong[0] if strong else values[0].scalar
    for scalar in strong[1:]:
        result = t.promote(result, scalar)
    for v in values:
        if v.weak:  # a float literal makes floats of integers, an integer literal changes nothing but bools
            result = t.promote(result, v.scalar) if _outranks(v.scalar, result) or not strong else result
    return result


def _outranks(literal: t.Scalar, other: t.Scalar) -> bool:
    return (literal.is_float and not other.is_float) or (literal.is_integer and other == t.BOOL)
