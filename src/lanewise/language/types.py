"""The types of the kernel language: scalars, vectors of scalars, and fixed-size local arrays of
scalars.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, reduce
from typing import Any

import numpy as np
import numpy.typing as npt


@cache
def _dtype(kind: str, size: int) -> np.dtype[np.generic]:
    return np.dtype("bool" if kind == "b" else f"{kind}{size}")


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number or boolean.

    `kind` is "b" (bool), "i" (signed), "u" (unsigned) or "f" (floating point).
    """

    name: str
    kind: str
    size: int

    def __eq__(self, other: object) -> bool:
        """As of any dataclass; nearly all are one object, and compilers compare little else."""
        if self is other:
            return True
        return isinstance(other, Scalar) and (self.name, self.kind, self.size) == (
            other.name,
            other.kind,
            other.size,
        )

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def dtype(self) -> np.dtype[np.generic]:
        return _dtype(self.kind, self.size)

    @property
    def is_float(self) -> bool:
        return self.kind == "f"

    @property
    def is_integer(self) -> bool:
        return self.kind in "iu"

    def __str__(self) -> str:
        return self.name


BOOL = Scalar("bool", "b", 1)
I32 = Scalar("i32", "i", 4)
U32 = Scalar("u32", "u", 4)
I64 = Scalar("i64", "i", 8)
F32 = Scalar("f32", "f", 4)
F64 = Scalar("f64", "f", 8)
SCALARS = (BOOL, I32, U32, I64, F32, F64)
# in memory only: kernels compute with what they are converted to
I8, U8 = Scalar("i8", "i", 1), Scalar("u8", "u", 1)
I16, U16 = Scalar("i16", "i", 2), Scalar("u16", "u", 2)
F16 = Scalar("f16", "f", 2)
STORED = (I8, U8, I16, U16, F16)

_PREFIX = {F32: "vec", F64: "dvec", I32: "ivec"}


@dataclass(frozen=True, slots=True)
class Vector:
    """Two to four scalars of one type; its components are x, y, z, w."""

    element: Scalar
    length: int

    @property
    def name(self) -> str:
        return f"{_PREFIX.get(self.element, self.element.name + 'x')}{self.length}"

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class LocalArray:
    """A fixed number of scalars that live as long as one element's computation."""

    element: Scalar
    length: int

    def __str__(self) -> str:
        return f"{self.element}[{self.length}]"


ValueType = Scalar | Vector
COMPONENTS = "xyzw"


def component(axis: int) -> str:
    """The name of a component: x, y, z, w, and numbers behind them, where a result or a position
    has more than a vector.
    """
    return COMPONENTS[axis] if axis < len(COMPONENTS) else f"c{axis}"


def scalar_of(value_type: ValueType) -> Scalar:
    """The type of the components."""
    return value_type if isinstance(value_type, Scalar) else value_type.element


def shape_of(value_type: ValueType) -> tuple[int, ...]:
    """The shape of a value as an array: () or (components,)."""
    return () if isinstance(value_type, Scalar) else (value_type.length,)


def leaves(name: str, value_type: ValueType) -> tuple[str, ...]:
    """The names of the scalars that a value called `name` is made of: `m`, or `p.x`, `p.y`,
    `p.z`.
    """
    match value_type:
        case Scalar():
            return (name,)
        case Vector():
            return tuple(f"{name}.{component(i)}" for i in range(value_type.length))


# The order of promotion. The result of an operation on two types is the later one; i32 with u32
# needs i64 to hold both.
_RANK = {BOOL: 0, I32: 1, U32: 2, I64: 3, F32: 4, F64: 5}


def computed(scalar: Scalar) -> Scalar:
    """The type that a kernel computes with: of numbers of 8 and 16 bits i32 or f32."""
    return scalar if scalar not in STORED else F32 if scalar.is_float else I32


def promote(a: Scalar, b: Scalar) -> Scalar:
    """The type in which an operation on `a` and `b` is computed."""
    a, b = computed(a), computed(b)
    if {a, b} == {I32, U32}:
        return I64
    return a if _RANK[a] >= _RANK[b] else b


def float_of(scalar: Scalar) -> Scalar:
    """The float type that an integer or boolean becomes when an operation needs floats: as
    wide as it is, of 32 bits at least.
    """
    return computed(scalar) if scalar.is_float else F64 if scalar == I64 else F32


def common(strong: Iterable[Scalar], weak: Iterable[Scalar] = ()) -> Scalar:
    """The type in which values of several types are computed.

    The types in `weak` are those of Python numbers, which change the result only where they must: a
    float among integers makes floats of them, an integer among booleans makes
    integers.
    """
    types, literals = [computed(x) for x in strong], [computed(x) for x in weak]
    result = reduce(promote, types or literals)
    for literal in literals:
        if literal.is_float and not result.is_float:
            result = float_of(result)
        elif literal.is_integer and result == BOOL:
            result = literal
    return result


def limits(scalar: Scalar) -> tuple[float, float]:
    """The smallest and the largest finite number of a type (integers for integers)."""
    if scalar == BOOL:
        return 0, 1
    if scalar.is_float:
        largest = float(np.finfo(scalar.dtype.name).max)
        return -largest, largest
    bits = 8 * scalar.size - (scalar.kind == "i")
    return (-(1 << bits) if scalar.kind == "i" else 0), (1 << bits) - 1


NO_NUMBERS = "cmMSUV"  # of NumPy, which would drop an imaginary part, read a text, count seconds


def convert(value: Any, scalar: Scalar) -> Any:
    """A NumPy scalar or array as `scalar`: the one meaning of a conversion, on every device.

    Integers wrap. Floats lose what stands after the point; beyond the limits of an
    integer they become the nearest limit, and NaN becomes 0. To a narrower float they are rounded,
    to infinity beyond its largest number. Raises `TypeError` for what is no real number.
    """
    array = np.asarray(value)
    if array.dtype.kind in NO_NUMBERS:
        raise TypeError(f"no real number: {array.dtype}")
    if not scalar.is_integer or array.dtype.kind != "f":
        return array.astype(scalar.dtype)[()]
    low, high = limits(scalar)
    if not array.ndim:
        number = float(array)
        whole = (
            0
            if number != number
            else low
            if number <= low
            else high
            if number >= high
            else int(number)
        )
        return scalar.dtype.type(whole)
    wide = array.astype(np.float64)
    beyond = (wide >= high) | (wide <= low) | (wide != wide)
    limit = np.where(wide >= high, high, np.where(wide <= low, low, 0))
    return np.where(beyond, limit, np.where(beyond, 0.0, wide).astype(np.int64)).astype(
        scalar.dtype
    )


def holds(wide: Scalar, narrow: Scalar) -> bool:
    """Whether a value of type `narrow` may be stored in `wide` without being asked (promotion
    changes nothing; what is in memory only holds values of that type, and narrower ones whose
    limits it has).
    """
    if wide not in STORED:
        return promote(wide, narrow) == wide
    if narrow == wide or wide.is_float or narrow not in STORED or narrow.is_float:
        return narrow == wide
    (low, high), (least, most) = limits(wide), limits(narrow)
    return low <= least and most <= high


def from_dtype(dtype: npt.DTypeLike) -> Scalar | None:
    """The scalar type that has this NumPy dtype (native byte order), or None."""
    native = np.dtype(dtype)
    return next((scalar for scalar in (*SCALARS, *STORED) if scalar.dtype == native), None)
