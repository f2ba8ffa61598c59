"""The names of the kernel language as ordinary Python: types, and the mathematics on scalars and
vectors.

The functions compute in the type that the compiler computes in. Of Python numbers alone they give a
Python number, which stays weak.
"""

from __future__ import annotations

import functools
import inspect
import math
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, SupportsIndex, TypeVar, cast

import numpy as np

from lanewise.language import types as t
from lanewise.language.function_words import words_of
from lanewise.language.scalar_functions import SCALAR_FUNCTIONS
from lanewise.language.vectors import (
    SCALAR_NAMES,
    VECTOR_NAMES,
    LiteralVector,
    ScalarName,
    VectorValue,
    bound_value,
    common_type,
    literal_type,
    make_vector,
    to_python_value,
    type_of_annotation,
)
from lanewise.support.attributes import describe
from lanewise.support.checks import LARGEST, host_array, shown
from lanewise.support.errors import ArgumentError, ArgumentTypeError

__all__ = [
    "Field",
    "PopulationsName",
    "Row",
    "VectorValue",
    "bound_value",
    "field_of_annotation",
    "is_field",
    "make_vector",
    "on_python_numbers",
    "populations_of_annotation",
    "row_of_annotation",
    "to_python_value",
    "type_of_annotation",
    "window",
]


@dataclass(frozen=True)
class PopulationsName:
    """The annotation of a site's populations: one scalar a direction of the lattice, indexed by
    directions.

    In ordinary Python they are a NumPy array whose first axis is the direction.
    """

    name: str
    scalar: t.Scalar

    def __post_init__(self) -> None:
        describe(
            self,
            f"`f: lw.{self.name}`: the populations of a site, one {self.scalar} per direction of "
            "the lattice; a NumPy array in Python.",
        )

    def __repr__(self) -> str:
        return f"lanewise.{self.name}"


if TYPE_CHECKING:
    # For a type checker a scalar is the Python number that it behaves like, and every vector is one
    # class.
    f32 = float
    f64 = float
    i32 = int
    i64 = int
    u32 = int
    i8 = u8 = i16 = u16 = int
    f16 = float
    bool_ = bool
    vec2 = vec3 = vec4 = dvec2 = dvec3 = dvec4 = ivec2 = ivec3 = ivec4 = VectorValue
    populations = dpopulations = np.ndarray[Any, Any]
else:
    f32, f64 = SCALAR_NAMES["f32"], SCALAR_NAMES["f64"]
    i32, i64, u32 = SCALAR_NAMES["i32"], SCALAR_NAMES["i64"], SCALAR_NAMES["u32"]
    i8, u8, i16, u16 = (SCALAR_NAMES[n] for n in ("i8", "u8", "i16", "u16"))
    f16 = SCALAR_NAMES["f16"]
    bool_ = SCALAR_NAMES["bool"]
    vec2, vec3, vec4 = VECTOR_NAMES["vec2"], VECTOR_NAMES["vec3"], VECTOR_NAMES["vec4"]
    dvec2, dvec3, dvec4 = VECTOR_NAMES["dvec2"], VECTOR_NAMES["dvec3"], VECTOR_NAMES["dvec4"]
    ivec2, ivec3, ivec4 = VECTOR_NAMES["ivec2"], VECTOR_NAMES["ivec3"], VECTOR_NAMES["ivec4"]
    populations = PopulationsName("populations", t.F32)
    dpopulations = PopulationsName("dpopulations", t.F64)


Element = TypeVar("Element")


WINDOW = 256  # values in a window at most


def _place(what: str, index: Any) -> int:
    if isinstance(index, (bool, np.bool_)) or not isinstance(index, (int, np.integer)):
        raise ArgumentTypeError(f"{what} is an integer, found {shown(index)}")
    return int(index)


class Row(Generic[Element]):
    """The values that belong to an item: `bins: lw.Row[lw.vec2]` as a parameter of a segmentwise
    function.

    `bins[k]` is one of them, `len(bins)` their number, and `lw.window(bins, first, 16)` are 16
    adjacent ones. A value outside the row is NaN. In ordinary Python make it from an array of shape
    (n,) or (n, components).
    """

    __slots__ = ("_values",)

    def __init__(self, values: Any) -> None:
        self._values = host_array("lw.Row", values)
        if self._values.dtype.kind != "f" or self._values.ndim not in (1, 2):
            raise ArgumentError(
                f"lw.Row takes floats, of shape (n,) or (n, components), found {shown(values)}"
            )

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, index: int) -> Element:
        place = _place("an index of a row", index)
        inside = 0 <= place < len(self._values)
        element = (
            self._values[place]
            if inside
            else np.full_like(self._values, np.nan, shape=self._values.shape[1:])
        )
        return cast(Any, make_vector(list(element)) if np.ndim(element) else element[()])


def window(row: Row[Element], first: int, size: int) -> Row[Element]:
    """`size` adjacent values of a row from `first` on; all are NaN unless all lie in the row.

    In a kernel `size` is a literal from 1 to 256, and an index into the window is a literal or made
    of variables of loops over literal
    ranges: nothing has to be tested when it is used.
    """
    if not isinstance(row, Row):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ArgumentTypeError(f"lw.window takes a row, found {shown(row)}")
    first, size = _place("the first index of a window", first), _place("the size of a window", size)
    if not 1 <= size <= WINDOW:
        raise ArgumentError(f"a window has 1 to {WINDOW} values, found {size}")
    values = row._values  # pyright: ignore[reportPrivateUsage]
    inside = 0 <= first <= len(values) - size
    part = (
        values[first : first + size]
        if inside
        else np.full_like(values, np.nan, shape=(size, *values.shape[1:]))
    )
    return Row(part)


def row_of_annotation(annotation: Any) -> t.ValueType | None:
    """The type of the values of the row that an annotation names, or None."""
    if typing.get_origin(annotation) is not Row:
        return None
    return type_of_annotation(typing.get_args(annotation)[0])


def populations_of_annotation(annotation: Any) -> t.Scalar | None:
    """The type of the populations that an annotation names, or None."""
    return annotation.scalar if isinstance(annotation, PopulationsName) else None


class Field(Generic[Element]):
    """A number at each site of a lattice that a site reads at its neighbours: `psi:
    lw.Field[lw.f32]`, or `lw.f64`.

    `psi[q]` is the value of the neighbour in direction q, `psi[0]` that of the site itself. In
    ordinary Python it is a NumPy array whose first axis is the direction, like populations.
    """

    def __init__(self) -> None:
        raise ArgumentTypeError(
            "lw.Field is an annotation; a function that is called as ordinary Python takes an "
            "array (Q, ...)"
        )

    if TYPE_CHECKING:

        def __getitem__(self, direction: SupportsIndex) -> Element: ...


def is_field(annotation: Any) -> bool:
    """Whether an annotation is that of a field, of whatever it says."""
    return annotation is Field or typing.get_origin(annotation) is Field


def field_of_annotation(annotation: Any) -> t.Scalar | None:
    """The type of the field that an annotation names; None where it is none, or has no floats."""
    if typing.get_origin(annotation) is not Field:
        return None
    element = type_of_annotation(typing.get_args(annotation)[0])
    if not isinstance(element, t.Scalar):
        return None
    return element if element in (t.F32, t.F64) else None


MOST_ZEROS = 1 << 20  # far more than registers


def _clamp(x: int, low: int, high: int) -> int:
    return min(max(x, low), high)


_OF_INTEGERS: dict[str, Callable[..., Any]] = {
    "min": min, "max": max, "clamp": _clamp, "abs": abs,
}  # fmt: skip


def on_python_numbers(name: str, *arguments: Any) -> Any:
    """A scalar function of Python numbers: a Python number, computed in float64, or exactly where
    integers stay integers.
    """
    if name in _OF_INTEGERS and not any(isinstance(a, float) for a in arguments):
        kind = bool if all(isinstance(a, bool) for a in arguments) else int
        return kind(_OF_INTEGERS[name](*arguments))
    with np.errstate(all="ignore"):
        return SCALAR_FUNCTIONS[name](*map(np.float64, arguments)).item()


def _on_scalars(name: str, arguments: tuple[Any, ...]) -> Any:
    if all(literal_type(a) is not None for a in arguments):
        return on_python_numbers(name, *arguments)
    kind = common_type(arguments)
    convert = SCALAR_NAMES[(kind if name in _OF_INTEGERS else t.float_of(kind)).name]
    return SCALAR_FUNCTIONS[name](*(convert(a) for a in arguments))


def _of_values(
    name: str, kinds: str = "numbers and vectors", count: int | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Where a function fails because an argument is no value, say so; looked at only then. count:
    of its arguments.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*arguments: Any) -> Any:
            if count is not None and len(arguments) != count:
                raise ArgumentTypeError(
                    f"lw.{name} takes {count} argument{'' if count == 1 else 's'}, found "
                    f"{len(arguments)}"
                )
            try:
                return function(*arguments)
            except Exception as error:
                wrong = [a for a in arguments if not _is_value(a, "numbers" in kinds)]
                if not wrong and any(isinstance(a, np.ndarray) for a in arguments):
                    # arrays that do not fit together
                    raise ArgumentError(f"lw.{name}: {error}") from error
                if not wrong:
                    raise
                raise ArgumentTypeError(
                    f"lw.{name} takes {kinds}, found {shown(wrong[0])}"
                ) from error

        return call

    return decorate


def _is_value(x: Any, numbers: bool) -> bool:
    if isinstance(x, (VectorValue, LiteralVector)):
        return True
    if isinstance(x, int):
        return numbers and abs(x) <= LARGEST
    if isinstance(x, float):
        return numbers
    return numbers and isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind in "biuf"


def _function(name: str) -> Callable[..., Any]:
    """The public form of a scalar function: of Python numbers, NumPy scalars and, by component, of
    vectors.
    """
    # those of NumPy would take one more argument for an array to write to
    computed = SCALAR_FUNCTIONS[name]
    count = (
        computed.nin
        if isinstance(computed, np.ufunc)
        else len(inspect.signature(computed).parameters)
    )

    @_of_values(name, count=count)
    def apply(*arguments: Any) -> Any:
        lengths = {len(a) for a in arguments if isinstance(a, (VectorValue, LiteralVector))}
        with np.errstate(all="ignore"):
            if not lengths:
                return _on_scalars(name, arguments)
            vectors = (VectorValue, LiteralVector)
            columns = [
                tuple(a) if isinstance(a, vectors) else (a,) * max(lengths) for a in arguments
            ]
            results = [_on_scalars(name, row) for row in zip(*columns, strict=True)]
            weak = all(literal_type(r) is not None for r in results)
            return LiteralVector(*results) if weak else make_vector(results)

    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = words_of(name)
    apply.__lanewise_intrinsic__ = name  # type: ignore[attr-defined]  # what the frontend knows it by
    return apply


@_of_values("select")
def select(condition: Any, a: Any, b: Any) -> Any:
    """`a` if the condition is true, else `b`, in their common type.

    Takes numbers, or vectors by component. A kernel may compute both sides, so use it for cheap
    values; an `if` computes one side. `lw.select(x > 0, x, 0.0)` is x, but not below zero.
    """
    vectors = (VectorValue, LiteralVector)
    lengths = [len(x) for x in (a, b) if isinstance(x, vectors)]
    if not lengths:
        return _select(condition, a, b)
    columns = (tuple(x) if isinstance(x, vectors) else (x,) * lengths[0] for x in (a, b))
    parts = [_select(condition, x, y) for x, y in zip(*columns, strict=True)]
    return (
        LiteralVector(*parts)
        if all(literal_type(p) is not None for p in parts)
        else make_vector(parts)
    )


def _select(condition: Any, a: Any, b: Any) -> Any:
    if literal_type(a) is not None and literal_type(b) is not None:
        a, b = (float(a), float(b)) if isinstance(a, float) or isinstance(b, float) else (a, b)
        return np.where(condition, a, b) if np.ndim(condition) else a if condition else b
    convert = SCALAR_NAMES[common_type((a, b)).name]
    return (
        np.where(condition, convert(a), convert(b))
        if np.ndim(condition)
        else convert(a if condition else b)
    )


@_of_values("dot", "vectors")
def dot(a: Any, b: Any) -> Any:
    """The scalar product of two vectors of one length, summed from x on: a number."""
    with np.errstate(all="ignore"):
        products = list(a * b)
        total = products[0]
        for p in products[1:]:
            total = total + p
        return total


@_of_values("cross", "vectors")
def cross(a: Any, b: Any) -> Any:
    """The vector product of two vectors of three components: a vector at right angles to both."""
    return a.yzx * b.zxy - a.zxy * b.yzx


@_of_values("length", "vectors")
def length(a: Any) -> Any:
    """The Euclidean length of a vector, sqrt(dot(a, a)): a number in the unit of its components."""
    if isinstance(a, LiteralVector):
        return sqrt(dot(a, a))
    a = (
        a
        if a.type.element.is_float
        else make_vector([SCALAR_NAMES[t.float_of(a.type.element).name](p) for p in a])
    )
    return sqrt(dot(a, a))


@_of_values("normalize", "vectors")
def normalize(a: Any) -> Any:
    """A vector divided by its length: of length 1, and NaN for the zero vector."""
    return a / length(a)


def zeros(element: Any, count: int) -> Any:
    """A local array of `count` zeros of a scalar type: `a = lw.zeros(lw.f32, 8)`."""
    whole = isinstance(count, (int, np.integer)) and not isinstance(count, bool)  # pyright: ignore[reportUnnecessaryIsInstance]
    if not isinstance(element, ScalarName) or not whole or not 0 < count <= MOST_ZEROS:
        raise ArgumentError(
            f"lw.zeros({shown(element)}, {shown(count)}): wanted a scalar type and a number of "
            "elements, as in lw.zeros(lw.f32, 8)"
        )
    return np.zeros(count, element.type.dtype)


def same(target: Any, source: Any) -> bool:
    """Whether the two records of a pairwise function are the same element of one array.

    Elements of a copy are different elements. Use it to leave an element out of its sum, or out of
    a search over its own array:

        @lw.pairwise
        def nearest(target: Body, source: Body) -> lw.ArgMin[lw.f32]:
            if lw.same(target, source):
                return math.inf
            return lw.length(source.position - target.position)
    """
    return target is source


def index_of(element: Any) -> int:
    """The index of an element in the array that a call passes, an int32, regardless of the order in
    which the elements run.

    In a kernel it takes the records of elementwise and pairwise functions, the value of an
    elementwise function without records, and the populations of sitewise functions. Functions that
    run in Python do not know the index: raises `ArgumentError`.
    """
    raise ArgumentError(
        f"lw.index_of({shown(element)}): an element by itself has no index; a kernel gives it one, "
        "where the function runs over an array"
    )


rsqrt, clamp, mix, fma, sqrt, cbrt = (
    _function(n) for n in ("rsqrt", "clamp", "mix", "fma", "sqrt", "cbrt")
)
exp, exp2, log, log2, log10 = (_function(n) for n in ("exp", "exp2", "log", "log2", "log10"))
expm1, log1p, erf, erfc, gamma = (_function(n) for n in ("expm1", "log1p", "erf", "erfc", "gamma"))
sin, cos, tan, asin, acos, atan, atan2 = (
    _function(n) for n in ("sin", "cos", "tan", "asin", "acos", "atan", "atan2")
)
sinh, cosh, tanh, floor, ceil, trunc, round_ = (
    _function(n) for n in ("sinh", "cosh", "tanh", "floor", "ceil", "trunc", "round")
)
hypot, pow_, abs_, minimum, maximum = (_function(n) for n in ("hypot", "pow", "abs", "min", "max"))
isnan, isinf, isfinite = (_function(n) for n in ("isnan", "isinf", "isfinite"))
pi = math.pi
