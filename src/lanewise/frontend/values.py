"""What an expression of the user's source can stand for while it is lowered."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import numpy as np

from lanewise.ir import nodes as ir
from lanewise.ir.names import length_of
from lanewise.language import types as t
from lanewise.language.array_types import ArrayType
from lanewise.language.lattices.base import Direction, Lattice
from lanewise.language.record import Record
from lanewise.language.values import PopulationsName, VectorValue, type_of_annotation
from lanewise.language.vectors import LiteralVector
from lanewise.support.errors import NOWHERE, Location

Exact = int | None  # the integer that a direction gives a component, or that it gives none


@dataclass(frozen=True, slots=True)
class Number:
    """A scalar or a vector, as one expression per component.

    A weak number takes the type of what it meets: a Python number (`constant` set), a vector of
    them (literals, `open`), a choice between Python numbers, or a variable that only Python numbers
    have set so far (`open`). `exact` has an entry for each component, or none when no direction
    gives any of them.
    """

    type: t.ValueType
    parts: tuple[ir.Expression, ...]
    constant: bool | int | float | None = None
    open: bool = False
    exact: tuple[Exact, ...] = ()

    @property
    def weak(self) -> bool:
        return self.constant is not None or self.open

    @property
    def known(self) -> bool:
        """A Python number or a vector of them."""
        return self.constant is not None or (
            self.open and self.is_vector and all(isinstance(p, ir.Literal) for p in self.parts)
        )

    @property
    def given(self) -> bool:
        """Known, or of a type but a direction gives every component."""
        whole = bool(self.exact) and None not in self.exact
        return self.known or (whole and all(isinstance(p, ir.Literal) for p in self.parts))

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
class PopulationsReference:
    """The populations of a site, or a field at its neighbours: the variables `name.q0`, `name.q1`,
    ...
    """

    name: str
    lattice: Lattice
    type: t.Scalar
    mutable: bool
    field: bool = False

    def leaf(self, index: int) -> str:
        return f"{self.name}.q{index}"

    def describe(self) -> str:
        return (
            f"the {self.type} {'field' if self.field else 'populations'} {self.name} of "
            f"{self.lattice.name}"
        )


@dataclass(frozen=True, slots=True)
class RowReference:
    """The values that belong to an item: where they begin (`name.first`), how many there are, and
    where none of any row lie.
    """

    name: str
    type: t.ValueType

    def describe(self) -> str:
        return f"the row {self.name} of {self.type}"


@dataclass(frozen=True, slots=True)
class WindowReference:
    """Some neighbours of a row, which begin at `place`."""

    row: RowReference
    place: ir.Local
    size: int
    name: str = "lw.window(...)"

    def describe(self) -> str:
        return f"a window of {self.size} values of {self.row.name}"


@dataclass(frozen=True, slots=True)
class ArrayReference:
    """A local array."""

    name: str
    type: t.LocalArray

    def describe(self) -> str:
        return f"a local array of type {self.type}"


@dataclass(frozen=True, slots=True)
class ElementsReference:
    """An array whose elements have indices. `index`: the type of its lengths. `is_table`: it is
    only read.
    """

    name: str
    type: ArrayType
    index: t.Scalar
    is_table: bool = False

    def length(self, dimension: int) -> str:
        """The variable that holds the length of a dimension."""
        return length_of(self.name, dimension)

    @property
    def example(self) -> str:
        """One of its elements."""
        return f"{self.name}[{', '.join('zyx'[-self.type.rank :])}]"

    def describe(self) -> str:
        return f"the {'table' if self.is_table else 'array'} {self.name}: {self.type}"


@dataclass(frozen=True, slots=True)
class ShapeReference:
    """The lengths of an array's dimensions."""

    array: ElementsReference

    def describe(self) -> str:
        return f"the shape of {self.array.name}, {self.array.type.rank} numbers"


@dataclass(frozen=True, slots=True)
class PythonObject:
    """A function, type, module or any other thing that the source names."""

    value: Any

    def describe(self) -> str:
        """Without addresses, which would make the text of an error differ from run to run."""
        value, name = self.value, getattr(self.value, "__name__", None)
        if kind := type_of_annotation(value):
            return f"the type {kind}"
        if isinstance(value, PopulationsName):
            return f"the annotation lw.{value.name}"
        if isinstance(value, Direction):
            return f"the direction {value!r}"
        if isinstance(value, Lattice):
            return f"the lattice {value.name}"
        if isinstance(value, ModuleType):
            return f"the module {name}"
        if isinstance(value, type):
            return f"the class {name}"
        if callable(value) and isinstance(name, str):
            return f"the function {name.strip('_')}"
        if isinstance(value, np.ndarray):
            return f"an array of {value.dtype} with shape {value.shape}"
        text = repr(value)
        return (
            f"{type(value).__name__} {text}"
            if len(text) <= 40 and " at 0x" not in text
            else f"a value of Python type {type(value).__name__}"
        )


Value = (
    Number
    | Several
    | RecordReference
    | PopulationsReference
    | RowReference
    | WindowReference
    | ArrayReference
    | ElementsReference
    | ShapeReference
    | PythonObject
)


def weak(constant: bool | int | float, location: Location = NOWHERE) -> Number:
    """A Python number, to take the type of what it meets."""
    if isinstance(constant, bool):
        scalar = t.BOOL
    elif isinstance(constant, int):
        scalar = t.I32 if -(2**31) <= constant < 2**31 else t.I64
    else:
        scalar = t.F32
    return Number(scalar, (ir.Literal(constant, scalar, location),), constant)


def whole(constant: int, location: Location = NOWHERE) -> Number:
    """A Python number that a direction gives."""
    return replace(weak(constant, location), exact=(constant,))


def weak_vector(
    constants: tuple[int | float, ...], exact: tuple[Exact, ...] = (), where: Location = NOWHERE
) -> Number:
    """A vector of Python numbers, to take the type of what it meets."""
    floats = any(isinstance(c, float) for c in constants)
    scalar = t.F32 if floats else t.I32 if all(-(2**31) <= c < 2**31 for c in constants) else t.I64
    parts = tuple(ir.Literal(float(c) if floats else c, scalar, where) for c in constants)
    return Number(t.Vector(scalar, len(parts)), parts, open=True, exact=exact)


def literal_values(x: Number) -> tuple[bool | int | float, ...]:
    """The Python numbers that a known number or vector is made of."""
    return tuple(p.value for p in x.parts if isinstance(p, ir.Literal))


def component(x: Number, index: int) -> Number:
    """One component of a vector."""
    part, exact = x.parts[index], x.exact[index : index + 1]
    if x.known and isinstance(part, ir.Literal):
        return replace(weak(part.value, part.location), exact=exact)
    return Number(x.scalar, (part,), exact=exact)


def from_python(value: Any, location: Location = NOWHERE) -> Value:
    """A global or closure variable as the kernel sees it: numbers are frozen into the kernel."""
    if isinstance(value, np.generic) and (scalar := t.from_dtype(value.dtype)):
        return Number(scalar, (ir.Literal(value.item(), scalar, location),))
    if isinstance(value, bool):
        return weak(value, location)
    if isinstance(value, (int, float)) and not isinstance(value, np.generic):
        # enumeration members become numbers
        return weak(int(value) if isinstance(value, int) else float(value), location)
    if isinstance(value, LiteralVector):
        return weak_vector(tuple(value), (), location)
    if isinstance(value, VectorValue):
        return Number(
            value.type, tuple(ir.Literal(p.item(), value.type.element, location) for p in value)
        )
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
        case PopulationsReference(type=scalar, lattice=lattice):
            return [(f"{name}.q{i}", ir.Local(value.leaf(i), scalar)) for i in range(lattice.size)]
        case RowReference():
            kinds = {"first": t.I64, "length": t.I32, "beyond": t.I64}
            return [
                (f"{name}.{part}", ir.Local(f"{value.name}.{part}", kind))
                for part, kind in kinds.items()
            ]
        case ElementsReference(type=array, index=index):
            return [(n, ir.Local(n, index)) for n in map(value.length, range(array.rank))]
        case Number() if not value.known:
            return list(zip(t.leaves(name, value.type), value.parts, strict=True))
        case _:
            return []
