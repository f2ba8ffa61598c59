"""Scalar expressions: what has a value and a type, and no effect."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import copysign
from typing import ClassVar
from typing import Literal as Choice

from lanewise.ir.roles import (
    ExpressionNode,
    Read,
)
from lanewise.language.types import BOOL, Scalar
from lanewise.support.errors import NOWHERE, Location

__all__ = [
    "Binary",
    "BinaryOperator",
    "Builtin",
    "Call",
    "Cast",
    "Compare",
    "CompareOperator",
    "Element",
    "Expression",
    "Literal",
    "Local",
    "Logical",
    "Select",
    "Unary",
    "UnaryOperator",
]


@dataclass(frozen=True, slots=True)
class Literal(ExpressionNode):
    """A number or boolean of a definite type."""

    value: float | int | bool
    type: Scalar
    location: Location = field(default=NOWHERE, compare=False, repr=False)

    def __eq__(self, other: object) -> bool:
        """Whether both are one number: 0.0 and -0.0 are two, with infinities of two signs as 1 / x;
        NaN is one.
        """
        if not isinstance(other, Literal):
            return NotImplemented
        a, b = self.value, other.value
        if self.type is not other.type and self.type != other.type:
            return False
        return copysign(1, a) == copysign(1, b) if a == b == 0 else a == b or (a != a and b != b)

    def __hash__(self) -> int:
        return hash((self.value if self.value == self.value else None, self.type))


@dataclass(frozen=True, slots=True)
class Local(ExpressionNode):
    """The value of a parameter or local variable."""

    form: ClassVar[str] = "{name}"

    name: Read
    type: Scalar
    location: Location = field(default=NOWHERE, compare=False, repr=False)


UnaryOperator = Choice["-", "not", "~"]

BinaryOperator = Choice["+", "-", "*", "/", "//", "%", "&", "|", "^", "<<", ">>"]

CompareOperator = Choice["==", "!=", "<", "<=", ">", ">="]


@dataclass(frozen=True, slots=True)
class Unary(ExpressionNode):
    operator: UnaryOperator
    operand: Expression
    type: Scalar
    location: Location = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Binary(ExpressionNode):
    """Both operands and the result have one type; `/` is for floats only, `//` and `%` round
    towards minus infinity.

    Integers wrap. `bounded`: lanewise's own arithmetic of indices, whose result surely fits;
    compilers may rely on it.
    `free`: a sum or product of floats that may be computed in any order with others that are free.
    """

    operator: BinaryOperator
    left: Expression
    right: Expression
    type: Scalar
    location: Location = field(default=NOWHERE, compare=False, repr=False)
    bounded: bool = field(default=False, repr=False)
    free: bool = field(default=False, repr=False)


@dataclass(frozen=True, slots=True)
class Compare(ExpressionNode):
    operator: CompareOperator
    left: Expression
    right: Expression
    location: Location = field(default=NOWHERE, compare=False, repr=False)

    @property
    def type(self) -> Scalar:
        return BOOL


@dataclass(frozen=True, slots=True)
class Logical(ExpressionNode):
    """`and` or `or`; the right side is evaluated only when the left leaves it open."""

    operator: Choice["and", "or"]
    left: Expression
    right: Expression
    location: Location = field(default=NOWHERE, compare=False, repr=False)

    @property
    def type(self) -> Scalar:
        return BOOL


@dataclass(frozen=True, slots=True)
class Select(ExpressionNode):
    """One of two values; both may be computed."""

    condition: Expression
    if_true: Expression
    if_false: Expression
    type: Scalar
    location: Location = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Cast(ExpressionNode):
    """A conversion, as `types.convert` defines it. `bounded`: of a float of lanewise's own, which
    surely fits.
    """

    form: ClassVar[str] = "{type}({operand})"

    operand: Expression
    type: Scalar
    location: Location = field(default=NOWHERE, compare=False, repr=False)
    bounded: bool = field(default=False, repr=False)


@dataclass(frozen=True, slots=True)
class Call(ExpressionNode):
    """An intrinsic of `ir/interpret.py`."""

    form: ClassVar[str] = "{intrinsic}({arguments})"

    intrinsic: str
    arguments: tuple[Expression, ...]
    type: Scalar
    location: Location = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Element(ExpressionNode):
    """An element of a local array."""

    form: ClassVar[str] = "{array}[{index}]"

    array: Read
    index: Expression
    type: Scalar
    location: Location = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Builtin(ExpressionNode):
    """A coordinate of the running thread, or its multiprocessor's count of cycles: only after the
    map to threads.

    "phase" and "far" are no such things, but say of the array that the kernel writes, on a CPU, how
    many elements fit between the beginning of a line of memory and its own, and whether it is so
    large that it is written past the caches; "read_phase" is the same number as "phase" of the only
    array that it reads. What a kernel computes must not depend on them; the interpreter has 0 and
    no.
    """

    form: ClassVar[str] = "@{name}"

    name: Choice["thread", "block", "part", "clock", "phase", "read_phase", "far"]
    type: Scalar

    @property
    def location(self) -> Location:
        return NOWHERE


Expression = (
    Literal | Local | Unary | Binary | Compare | Logical | Select | Cast | Call | Element | Builtin
)
