"""Values of the kernel language in ordinary Python.

Type names that make scalars and vectors, and the arithmetic of vectors.

A kernel called with `.python(...)` runs on these, so `print`, a debugger and breakpoints work.
Scalars are NumPy scalars, whose promotion treats Python numbers as weak just as the compiler does.
Vectors are immutable values.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from lanewise.language import types as t
from lanewise.language.fates import Fate
from lanewise.support.articles import an
from lanewise.support.checks import shown
from lanewise.support.errors import ArgumentTypeError

SCALARS_IN_WORDS = {
    "f16": "A float of 16 bits",
    "f32": "A float of 32 bits",
    "f64": "A float of 64 bits",
    "i8": "An integer of 8 bits",
    "i16": "An integer of 16 bits",
    "i32": "An integer of 32 bits",
    "i64": "An integer of 64 bits",
    "u8": "An integer of 8 bits, from 0 on",
    "u16": "An integer of 16 bits, from 0 on",
    "u32": "An integer of 32 bits, from 0 on",
    "u64": "An integer of 64 bits, from 0 on",
    "bool": "True or False",
}


def _range(scalar: t.Scalar) -> str:
    """The numbers of a type, for its docstring."""
    if scalar.is_integer:
        low, high = t.limits(scalar)
        return f", {low:,} to {high:,}"
    if scalar.name == "bool":
        return ""
    info = np.finfo(scalar.dtype.name)
    return f", up to {float(info.max):.3g}, with {info.precision} decimal digits"


class ScalarName:
    """A scalar type as the user writes it: an annotation (`m: lw.f32`) and a conversion
    (`lw.f32(x)`).

    An array is converted as a whole: a function of one element then computes many.
    """

    def __init__(self, scalar: t.Scalar) -> None:
        self.type = scalar
        self.__doc__ = (
            f"{SCALARS_IN_WORDS[scalar.name]}{_range(scalar)}: an annotation "
            f"(`x: lw.{scalar.name}`) and a conversion (`lw.{scalar.name}(x)`), of numbers and of "
            "arrays of NumPy."
        )
        self._class = scalar.dtype.type

    def __call__(self, value: Any = 0) -> Any:
        if type(value) is self._class:
            return value
        with np.errstate(all="ignore"):
            if isinstance(value, int) and self.type.is_integer:  # of any size: it wraps
                value = value % (1 << 64)
                value -= (value >> 63) << 64
            try:
                converted = t.convert(value, self.type)
            except Exception as error:  # of the user's class, or of NumPy
                raise ArgumentTypeError(
                    f"lw.{self.type.name} takes a number, found {shown(value)}"
                ) from error
        if not isinstance(converted, np.generic) and not isinstance(value, np.ndarray):
            raise ArgumentTypeError(f"lw.{self.type.name} takes a scalar, found {shown(value)}")
        return converted

    def __repr__(self) -> str:
        return f"lanewise.{self.type.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _scalar_name, (self.type.name,)


def _scalar_name(name: str) -> ScalarName:
    """The one of this name: it is known by identity."""
    return SCALAR_NAMES[name]


SCALAR_NAMES = {scalar.name: ScalarName(scalar) for scalar in (*t.SCALARS, *t.STORED)}


def literal_type(value: Any) -> t.Scalar | None:
    """The type that a Python number has when it meets nothing; None for a value that has its own
    type.
    """
    if isinstance(value, np.generic) or not isinstance(value, (bool, int, float)):
        return None
    return (
        t.BOOL
        if isinstance(value, bool)
        else t.F32
        if isinstance(value, float)
        else t.I32
        if -(2**31) <= value < 2**31
        else t.I64
    )


def common_type(values: tuple[Any, ...]) -> t.Scalar:
    """The type in which the compiler computes an operation on these scalars."""
    weak = [kind for v in values if (kind := literal_type(v)) is not None]
    strong = [t.from_dtype(np.asarray(v).dtype) or t.F64 for v in values if literal_type(v) is None]
    return t.common(strong, weak)


class VectorValue:
    """An immutable vector of two to four scalars; arithmetic is by component, and a scalar meets
    every component.
    """

    type: ClassVar[t.Vector]
    _parts: tuple[Any, ...]
    __slots__ = ("_parts",)
    __array_ufunc__ = None  # NumPy scalars leave `2 * v` to us

    def __init__(self, *parts: Any) -> None:
        flat = list(parts) if _arrays_by_component(parts, self.type.length) else _flattened(parts)
        if len(flat) == 1:
            flat *= self.type.length
        if len(flat) != self.type.length:
            raise ArgumentTypeError(
                f"{self.type} takes {self.type.length} components, {len(flat)} given"
            )
        convert = SCALAR_NAMES[self.type.element.name]
        object.__setattr__(self, "_parts", tuple(convert(p) for p in flat))

    def __iter__(self) -> Iterator[Any]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def __getitem__(self, index: int) -> Any:
        return self._parts[index]

    def __getattr__(self, name: str) -> Any:
        if 0 < len(name) <= 4 and all(c in t.COMPONENTS[: self.type.length] for c in name):
            picked = [self._parts[t.COMPONENTS.index(c)] for c in name]
            return (
                picked[0] if len(name) == 1 else vector_class(self.type.element, len(name))(*picked)
            )
        raise AttributeError(f"{self.type} has no component {name!r}")

    def __setitem__(self, index: int, value: Any) -> None:
        raise TypeError(
            f"{an(self.type)} is a value and cannot be changed; make another one, {self.type}(...)"
        )

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "_parts":
            raise AttributeError(
                f"{an(self.type)} is a value: its {name!r} cannot be assigned; make another one, "
                f"{self.type}(...)"
            )
        object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"{self.type}({', '.join(str(p) for p in self._parts)})"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self._parts, dtype=dtype or self.type.element.dtype)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.type.element, self._parts)

    def _map(
        self, other: Any, operation: Callable[[Any, Any], Any], swapped: bool = False
    ) -> VectorValue:
        """Combine by component, in the type that the compiler computes in."""
        others: Any = (
            other if isinstance(other, (VectorValue, LiteralVector)) else (other,) * len(self)
        )
        if len(others) != len(self):
            raise ArgumentTypeError(
                f"vectors of {len(self)} and {len(others)} components do not fit"
            )
        kind = common_type((self[0], others[0]))
        convert = SCALAR_NAMES[(t.float_of(kind) if operation is operator.truediv else kind).name]
        with np.errstate(all="ignore"):
            rows = [
                (convert(b), convert(a)) if swapped else (convert(a), convert(b))
                for a, b in zip(self, others, strict=True)
            ]
            return make_vector([operation(a, b) for a, b in rows])

    if TYPE_CHECKING:  # `_define_operators` makes them

        def __add__(self, other: Any) -> Any: ...
        def __radd__(self, other: Any) -> Any: ...
        def __sub__(self, other: Any) -> Any: ...
        def __rsub__(self, other: Any) -> Any: ...
        def __mul__(self, other: Any) -> Any: ...
        def __rmul__(self, other: Any) -> Any: ...
        def __truediv__(self, other: Any) -> Any: ...
        def __rtruediv__(self, other: Any) -> Any: ...
        def __floordiv__(self, other: Any) -> Any: ...
        def __rfloordiv__(self, other: Any) -> Any: ...
        def __mod__(self, other: Any) -> Any: ...
        def __rmod__(self, other: Any) -> Any: ...
        def __and__(self, other: Any) -> Any: ...
        def __rand__(self, other: Any) -> Any: ...
        def __or__(self, other: Any) -> Any: ...
        def __ror__(self, other: Any) -> Any: ...
        def __xor__(self, other: Any) -> Any: ...
        def __rxor__(self, other: Any) -> Any: ...
        def __lshift__(self, other: Any) -> Any: ...
        def __rlshift__(self, other: Any) -> Any: ...
        def __rshift__(self, other: Any) -> Any: ...
        def __rrshift__(self, other: Any) -> Any: ...

    def __pow__(self, exponent: Any) -> Any:
        whole = isinstance(exponent, int) and self.type.element.is_integer
        return (
            make_vector([p**exponent for p in self]) if whole else self._map(exponent, operator.pow)
        )

    def __neg__(self) -> Any:
        with np.errstate(all="ignore"):
            return make_vector([-p for p in self])

    def __pos__(self) -> Any:
        return self

    def __invert__(self) -> Any:
        return make_vector([~p for p in self])

    def __abs__(self) -> Any:
        return make_vector([abs(p) for p in self])


def _arrays_by_component(parts: tuple[Any, ...], length: int) -> bool:
    """Whether each part is a separate component, some of them arrays: many vectors at once."""
    return len(parts) == length and any(isinstance(p, np.ndarray) and p.ndim for p in parts)


def _flattened(parts: tuple[Any, ...]) -> list[Any]:
    together = (VectorValue, LiteralVector, list, tuple)
    many = [isinstance(p, together) or (isinstance(p, np.ndarray) and p.ndim > 0) for p in parts]
    return [
        p for part, several in zip(parts, many, strict=True) for p in (part if several else (part,))
    ]


class LiteralVector:
    """An immutable vector of two to four Python numbers: like them it takes the type of what it
    meets.

    Arithmetic with Python numbers gives another one; with a typed scalar or vector a vector of that
    type.
    """

    __slots__ = ("_parts",)
    __array_ufunc__ = None  # NumPy scalars leave `x * v` to us

    def __init__(self, *parts: int | float) -> None:
        if not 2 <= len(parts) <= 4:
            raise ArgumentTypeError(f"a vector has 2 to 4 components, {len(parts)} given")
        floats = any(isinstance(p, float) for p in parts)
        self._parts = tuple(float(p) if floats else p for p in parts)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def __getitem__(self, index: int) -> Any:
        return self._parts[index]

    def __eq__(self, other: object) -> bool:
        return self._parts == other._parts if isinstance(other, LiteralVector) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._parts)

    def __getattr__(self, name: str) -> Any:
        if 0 < len(name) <= 4 and all(c in t.COMPONENTS[: len(self)] for c in name):
            picked = [self._parts[t.COMPONENTS.index(c)] for c in name]
            return picked[0] if len(name) == 1 else LiteralVector(*picked)
        raise AttributeError(f"a vector of {len(self)} components has no component {name!r}")

    def __repr__(self) -> str:
        return f"({', '.join(map(repr, self._parts))})"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self._parts, dtype=dtype)

    def __reduce__(self) -> tuple[Any, ...]:
        return LiteralVector, self._parts

    def _map(self, other: Any, operation: Callable[[Any, Any], Any], swapped: bool = False) -> Any:
        if isinstance(other, VectorValue):
            return NotImplemented  # which converts to the type that both have in common
        if not isinstance(other, LiteralVector) and literal_type(other) is None:
            return vector_class(common_type((other,)), len(self))(*[other] * len(self))._map(  # pyright: ignore[reportPrivateUsage]
                self, operation, not swapped
            )
        others: tuple[Any, ...] = (
            tuple(other) if isinstance(other, LiteralVector) else (other,) * len(self)
        )
        if len(others) != len(self):
            raise ArgumentTypeError(
                f"vectors of {len(self)} and {len(others)} components do not fit"
            )
        pairs = [(b, a) if swapped else (a, b) for a, b in zip(self, others, strict=True)]
        return LiteralVector(*(operation(a, b) for a, b in pairs))

    if TYPE_CHECKING:  # `_define_operators` makes them

        def __add__(self, other: Any) -> Any: ...
        def __radd__(self, other: Any) -> Any: ...
        def __sub__(self, other: Any) -> Any: ...
        def __rsub__(self, other: Any) -> Any: ...
        def __mul__(self, other: Any) -> Any: ...
        def __rmul__(self, other: Any) -> Any: ...
        def __truediv__(self, other: Any) -> Any: ...
        def __rtruediv__(self, other: Any) -> Any: ...
        def __floordiv__(self, other: Any) -> Any: ...
        def __mod__(self, other: Any) -> Any: ...

    def __pow__(self, exponent: Any) -> Any:
        return self._map(exponent, operator.pow)

    def __neg__(self) -> Any:
        return LiteralVector(*(-p for p in self))

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return LiteralVector(*(abs(p) for p in self))


def _define_operators() -> None:
    """`+` and its kind, with the vector on either side."""
    for name in (
        "add",
        "sub",
        "mul",
        "truediv",
        "floordiv",
        "mod",
        "and",
        "or",
        "xor",
        "lshift",
        "rshift",
    ):
        function = getattr(operator, f"{name}_" if name in ("and", "or") else name)

        def left(self: VectorValue | LiteralVector, other: Any, _function: Any = function) -> Any:
            return self._map(other, _function)  # pyright: ignore[reportPrivateUsage]

        def right(self: VectorValue | LiteralVector, other: Any, _function: Any = function) -> Any:
            return self._map(other, _function, swapped=True)  # pyright: ignore[reportPrivateUsage]

        for cls in (VectorValue, LiteralVector):
            setattr(cls, f"__{name}__", left)
            setattr(cls, f"__r{name}__", right)


_define_operators()


def _vector_class(element: t.Scalar, length: int) -> type[VectorValue]:
    vector = t.Vector(element, length)
    about = (
        f"An immutable vector of {length} {element}: "
        f"`lw.{vector.name}({', '.join('xyzw'[:length])})`; arithmetic is by component."
    )
    return type(
        vector.name,
        (VectorValue,),
        {"type": vector, "__slots__": (), "__module__": "lanewise", "__doc__": about},
    )


_CLASSES = {(e, n): _vector_class(e, n) for e in t.SCALARS for n in (2, 3, 4)}
VECTOR_NAMES = {c.type.name: c for (e, _), c in _CLASSES.items() if e in (t.F32, t.F64, t.I32)}


def vector_class(element: t.Scalar, length: int) -> type[VectorValue]:
    """The class of vectors of this type, also of those that have no name."""
    return _CLASSES[element, length]


def _restored(element: t.Scalar, parts: tuple[Any, ...]) -> VectorValue:
    return vector_class(element, len(parts))(*parts)


def make_vector(parts: list[Any]) -> VectorValue:
    """A vector of the common type of its components."""
    return vector_class(common_type(tuple(parts)), len(parts))(*parts)


def type_of_annotation(annotation: Any) -> t.ValueType | None:
    """The language type that an annotation names, or None (`float` and `int` are not precise
    enough, `bool` is).
    """
    if isinstance(annotation, ScalarName):
        return annotation.type
    if (
        isinstance(annotation, type)
        and issubclass(annotation, VectorValue)
        and annotation is not VectorValue
    ):
        return annotation.type
    if annotation is Fate:
        return t.I32
    return t.BOOL if annotation is bool else None


def to_python_value(value: Any, value_type: t.ValueType) -> Any:
    """`value` (a number, tuple or array) as a scalar or vector of `value_type`; raises `TypeError`
    when its shape does not fit.
    """
    if np.ndim(value) > isinstance(value_type, t.Vector):
        raise ArgumentTypeError(
            f"{an(value_type)} is wanted, found an array of {np.ndim(value)} dimensions"
        )
    if isinstance(value_type, t.Scalar):
        return SCALAR_NAMES[value_type.name](value)
    return vector_class(value_type.element, value_type.length)(
        *(value if np.ndim(value) else (value,))
    )


class _RowVector(VectorValue):
    """A vector as it was when it was read from a row of an array.

    What is assigned to its components is written there as well.
    """

    __slots__ = ("_write",)

    def __setitem__(self, index: int, value: Any) -> None:
        place = range(len(self))[index]  # an IndexError, or counted from the end
        self._write(place, value)
        parts = list(self._parts)
        parts[place] = SCALAR_NAMES[self.type.element.name](value)
        object.__setattr__(self, "_parts", tuple(parts))

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("_parts", "_write"):
            object.__setattr__(self, name, value)
        elif name in tuple(t.COMPONENTS[: len(self)]):
            self[t.COMPONENTS.index(name)] = value
        else:
            raise AttributeError(f"{self.type} has no component {name!r} that can be assigned")


_ROW_CLASSES = {
    (e, n): type(
        c.__name__, (_RowVector,), {"type": c.type, "__slots__": (), "__module__": "lanewise"}
    )
    for (e, n), c in _CLASSES.items()
}


def bound_value(value: Any, value_type: t.ValueType, write: Callable[[int, Any], None]) -> Any:
    """`to_python_value`; assigning to a component of a vector also calls `write(component,
    value)`.
    """
    if isinstance(value_type, t.Scalar):
        return to_python_value(value, value_type)
    made: Any = _ROW_CLASSES[value_type.element, value_type.length](*value)
    made._write = write
    return made
