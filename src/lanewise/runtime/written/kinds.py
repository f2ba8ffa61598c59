"""Types of numbers and arrays in texts that are written by hand.

Integers have 64 bits in arithmetic, whatever they are stored as: with a sign, unless both are
without. Integers of 32 and 64 bits with floats are float64; what is stored in an element, or
converted by the name of a type, is cut to it. Integers written in the text take the sign of
what they meet.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np


class TextError(ValueError):
    """A text that is written by hand says what it must not; it is a fault of lanewise."""


@dataclass(frozen=True, slots=True)
class NumberKind:
    """A type of numbers. letter: b, i, u or f, as NumPy has them."""

    letter: str
    bits: int

    @property
    def text(self) -> str:
        """The type in LLVM's language."""
        match self.letter:
            case "f":
                return "float" if self.bits == 32 else "double"
            case _:
                return f"i{self.bits}"

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return max(self.bits, 8) // 8

    @property
    def stored(self) -> str:
        """The type of an element: booleans are bytes there."""
        return "i8" if self.letter == "b" else self.text

    @property
    def is_float(self) -> bool:
        return self.letter == "f"


BOOL = NumberKind("b", 1)
I64, U64, F64 = NumberKind("i", 64), NumberKind("u", 64), NumberKind("f", 64)
NAMES = {
    "bool_": BOOL,
    "int": I64,
    **{f"int{n}": NumberKind("i", n) for n in (8, 16, 32, 64)},
    **{f"uint{n}": NumberKind("u", n) for n in (8, 16, 32, 64)},
    **{f"float{n}": NumberKind("f", n) for n in (32, 64)},
}
"""By the names that texts have for them."""


@dataclass(frozen=True, slots=True)
class ArrayKind:
    """A type of arrays. whole: their elements follow each other in memory."""

    element: NumberKind
    dimensions: int
    whole: bool


@dataclass(frozen=True, slots=True)
class TupleKind:
    """The type of several values."""

    items: tuple[Kind, ...]


Kind = NumberKind | ArrayKind | TupleKind


def number_of(dtype: Any) -> NumberKind:
    """That of a type of NumPy."""
    name = np.dtype(dtype).name
    return BOOL if name == "bool" else NAMES[name]


def kind_of(argument: Any) -> Kind:
    """The type of an argument."""
    match argument:
        case np.ndarray():
            if not argument.dtype.isnative:
                raise TextError(f"an array of {argument.dtype}, as other machines have it")
            return ArrayKind(number_of(argument.dtype), argument.ndim, argument.flags.c_contiguous)
        case np.generic():
            return number_of(argument.dtype)
        case bool():
            return BOOL
        case int():
            return I64
        case float():
            return F64
        case _:
            raise TextError(f"a kernel takes arrays and numbers, found {type(argument).__name__}")


def sort_of(argument: Any) -> Any:
    """What `kind_of` an argument follows from. Types of NumPy have names, but finding one takes
    longer than many a kernel.
    """
    if isinstance(argument, np.ndarray):
        return argument.dtype, argument.ndim, argument.flags.c_contiguous
    return type(argument)


def in_arithmetic(a: NumberKind, b: NumberKind) -> NumberKind:
    """The type in which two numbers are added."""
    if a.is_float or b.is_float:
        return in_common(a, b)
    return U64 if a.letter == b.letter == "u" else _signed(a, b, I64)


def in_common(a: NumberKind, b: NumberKind) -> NumberKind:
    """The type that holds both."""
    if a == b:
        return a
    if a.is_float and b.is_float:
        return F64
    if a.is_float or b.is_float:
        real, whole = (a, b) if a.is_float else (b, a)
        return real if whole.bits < 32 else F64
    if "b" in (a.letter, b.letter):
        return b if a.letter == "b" else a
    wider = max(a, b, key=lambda n: n.bits)
    return wider if a.letter == b.letter else _signed(a, b, I64)


def _signed(a: NumberKind, b: NumberKind, found: NumberKind) -> NumberKind:
    if a != b and U64 in (a, b) and "i" in (a.letter, b.letter):
        raise TextError("an integer with a sign meets one of 64 bits without: convert either")
    return found


def joined(a: Kind, b: Kind) -> Kind:
    """The type of a variable that is one or the other."""
    match a, b:
        case NumberKind(), NumberKind():
            return in_common(a, b)
        case ArrayKind(), ArrayKind() if replace(a, whole=b.whole) == b:
            return a if not a.whole else b
        case TupleKind(), TupleKind() if len(a.items) == len(b.items):
            return TupleKind(tuple(joined(x, y) for x, y in zip(a.items, b.items, strict=True)))
        case _:
            raise TextError(f"a variable is {a} here and {b} there")
