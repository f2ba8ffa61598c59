"""The kernel language as ordinary Python: type names that make values, vectors, and the mathematics on them.

A kernel called with `.python(...)` runs on these, so `print`, a debugger and breakpoints work. Scalars are NumPy scalars, whose promotion
rules treat Python numbers as weak just as the compiler does. Vectors are immutable values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from lanewise import types as t


class ScalarName:
    """A scalar type as the user writes it: an annotation (`m: lw.f32`) and a conversion (`lw.f32(x)`)."""

    def __init__(self, scalar: t.Scalar) -> None:
        self.type = scalar

    def __call__(self, value: Any = 0) -> Any:
        with np.errstate(all="ignore"):
            return np.asarray(value).astype(self.type.dtype)[()]

    def __repr__(self) -> str:
        return f"lanewise.{self.type.name}"


class VectorValue:
    """An immutable vector of two to four scalars; arithmetic is by component, and a scalar meets every component."""

    type: ClassVar[t.Vector]
    __slots__ = ("_parts",)
    __array_ufunc__ = None  # NumPy scalars leave `2 * v` to us

    def __init__(self, *parts: Any) -> None:
        flat = [p for part in parts for p in (part if isinstance(part, (VectorValue, list, tuple, np.ndarray)) else (part,))]
        if len(flat) == 1:
            flat *= self.type.length
        if len(flat) != self.type.length:
            raise TypeError(f"{self.type} takes {self.type.length} components, {len(flat)} given")
        convert = SCALAR_NAMES[self.type.element.name]
        self._parts = tuple(convert(p) for p in flat)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def __getitem__(self, index: int) -> Any:
        return self._parts[index]

    def __getattr__(self, name: str) -> Any:
        if name and all(c in t.COMPONENTS[: len(self._parts)] for c in name):
            picked = [self._parts[t.COMPONENTS.index(c)] for c in name]
            return picked[0] if len(name) == 1 else make_vector(picked)
        raise AttributeError(f"{self.type} has no component {name!r}")

    def __repr__(self) -> str:
        return f"{self.type}({', '.join(str(p) for p in self._parts)})"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self._parts, dtype=dtype)

    def _map(self, other: Any, operation: Callable[[Any, Any], Any]) -> VectorValue:
        others = other if isinstance(other, VectorValue) else (other,) * len(self)
        if len(others) != len(self):
            raise TypeError(f"vectors of {len(self)} and {len(others)} components do not fit")
        with np.errstate(all="ignore"):
            return make_vector([operation(a, b) for a, b in zip(self, others, strict=True)])

    def __add__(self, other: Any) -> Any:
        return self._map(other, lambda a, b: a + b)

    def __radd__(self, other: Any) -> Any:
        return self._map(other, lambda a, b: b + a)

    def __sub__(self, other: Any) -> Any:
        return self._map(other, lambda a, b: a - b)

    def __rsub__(self, other: Any) -> Any:
        return self._map(other, lambda a, b: b - a)

    def __mul__(self, other: Any) -> Any:
        return self._map(other, lambda a, b: a * b)

    def __rmul__(self, other: Any) -> Any:
        return self._map(other, lambda a, b: b * a)

    def __truediv__(self, other: Any) -> Any:
        return self._map(other, lambda a, b: a / b)

    def __rtruediv__(self, other: Any) -> Any:
        return self._map(other, lambda a, b: b / a)

    def __floordiv__(self, other: Any) -> Any:
        return self._map(other, lambda a, b: a // b)

    def __mod__(self, other: Any) -> Any:
        return self._map(other, lambda a, b: a % b)

    def __pow__(self, other: Any) -> Any:
        return self._map(other, lambda a, b: a**b)

    def __neg__(self) -> Any:
        return make_vector([-p for p in self])

    def __pos__(self) -> Any:
        return self


SCALAR_NAMES = {scalar.name: ScalarName(scalar) for scalar in t.SCALARS}


def _vector_class(element: t.Scalar, length: int) -> type[VectorValue]:
    vector = t.Vector(element, length)
    return type(vector.name, (VectorValue,), {"type": vector, "__slots__": (), "__module__": "lanewise"})


VECTOR_NAMES = {
    t.Vector(e, n).name: _vector_class(e, n) for e in (t.F32, t.F64, t.I32) for n in (2, 3, 4)
}
_OTHER_VECTORS = {(e, n): _vector_class(e, n) for e in (t.BOOL, t.U32, t.I64) for n in (2, 3, 4)}


def make_vector(parts: list[Any]) -> VectorValue:
    """A vector of the common NumPy type of its components."""
    scalar = t.from_dtype(np.result_type(*parts)) or t.F64
    cls = VECTOR_NAMES.get(t.Vector(scalar, len(parts)).name) or _OTHER_VECTORS[scalar, len(parts)]
    return cls(*parts)


if TYPE_CHECKING:
    # For a type checker a scalar is the Python number that it behaves like, and every vector is one class.
    f32 = float
    f64 = float
    i32 = int
    i64 = int
    u32 = int
    bool_ = bool
    vec2 = vec3 = vec4 = dvec2 = dvec3 = dvec4 = ivec2 = ivec3 = ivec4 = VectorValue
else:
    f32, f64 = SCALAR_NAMES["f32"], SCALAR_NAMES["f64"]
    i32, i64, u32 = SCALAR_NAMES["i32"], SCALAR_NAMES["i64"], SCALAR_NAMES["u32"]
    bool_ = SCALAR_NAMES["bool"]
    vec2, vec3, vec4 = VECTOR_NAMES["vec2"], VECTOR_NAMES["vec3"], VECTOR_NAMES["vec4"]
    dvec2, dvec3, dvec4 = VECTOR_NAMES["dvec2"], VECTOR_NAMES["dvec3"], VECTOR_NAMES["dvec4"]
    ivec2, ivec3, ivec4 = VECTOR_NAMES["ivec2"], VECTOR_NAMES["ivec3"], VECTOR_NAMES["ivec4"]


def type_of_annotation(annotation: Any) -> t.ValueType | None:
    """The language type that an annotation names, or None (`float`, `int` and `bool` are not precise enough but `bool`)."""
    if isinstance(annotation, ScalarName):
        return annotation.type
    if isinstance(annotation, type) and issubclass(annotation, VectorValue) and annotation is not VectorValue:
        return annotation.type
    return t.BOOL if annotation is bool else None


def to_python_value(value: Any, value_type: t.ValueType) -> Any:
    """`value` (a number, tuple or array) as a scalar or vector of `value_type`."""
    if isinstance(value_type, t.Scalar):
        return SCALAR_NAMES[value_type.name](value)
    cls = VECTOR_NAMES.get(value_type.name) or _OTHER_VECTORS[value_type.element, value_type.length]
    return cls(*(value if np.ndim(value) or isinstance(value, VectorValue) else (value,)))


def _lift(scalar_function: Callable[..., Any]) -> Callable[..., Any]:
    """Apply a scalar function by component when any argument is a vector."""

    def apply(*arguments: Any) -> Any:
        vectors = [a for a in arguments if isinstance(a, VectorValue)]
        with np.errstate(all="ignore"):
            if not vectors:
                return scalar_function(*(a if isinstance(a, np.generic) else _default(a) for a in arguments))
            columns = [tuple(a) if isinstance(a, VectorValue) else (a,) * len(vectors[0]) for a in arguments]
            return make_vector([scalar_function(*row) for row in zip(*columns, strict=True)])

    apply.__name__ = scalar_function.__name__.lstrip("_")
    return apply


def _default(value: Any) -> Any:
    """A Python number that met nothing: f32, i32."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    return np.float32(value) if isinstance(value, float) else value


def _rsqrt(x: Any) -> Any:
    x = x if isinstance(x, np.floating) else np.float32(x)
    return type(x)(1) / np.sqrt(x)


def _min(a: Any, b: Any) -> Any:
    return np.minimum(a, b)[()]


def _max(a: Any, b: Any) -> Any:
    return np.maximum(a, b)[()]


def _clamp(x: Any, low: Any, high: Any) -> Any:
    return _min(_max(x, low), high)


def _mix(a: Any, b: Any, weight: Any) -> Any:
    return a + (b - a) * weight


def _fma(a: Any, b: Any, c: Any) -> Any:
    return a * b + c


def _select(condition: Any, a: Any, b: Any) -> Any:
    return a if condition else b


SCALAR_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "rsqrt": _rsqrt, "min": _min, "max": _max, "clamp": _clamp, "mix": _mix, "fma": _fma,
    **{name: getattr(np, name) for name in (
        "sqrt", "cbrt", "exp", "exp2", "log", "log2", "log10", "sin", "cos", "tan", "sinh", "cosh", "tanh", "floor", "ceil",
        "trunc", "hypot", "isnan", "isinf", "isfinite")},
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2, "pow": np.power, "abs": np.abs,
}  # fmt: skip


def dot(a: Any, b: Any) -> Any:
    """The scalar product of two vectors, summed from x on."""
    products = list(a * b)
    total = products[0]
    for p in products[1:]:
        total = total + p
    return total


def cross(a: Any, b: Any) -> Any:
    """The vector product of two 3-vectors."""
    return make_vector([a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x])


def length(a: Any) -> Any:
    """The Euclidean length of a vector."""
    return np.sqrt(dot(a, a))


def normalize(a: Any) -> Any:
    """`a` divided by its length (not a number for the zero vector)."""
    return a / length(a)


def zeros(element: Any, count: int) -> list[Any]:
    """A local array of `count` zeros of a scalar type: `a = lw.zeros(lw.f32, 8)`."""
    return [element(0)] * count


def same(target: Any, source: Any) -> bool:
    """Whether the two records of a pairwise function are the same element of the same array."""
    return target is source


rsqrt, clamp, mix, fma = (_lift(SCALAR_FUNCTIONS[n]) for n in ("rsqrt", "clamp", "mix", "fma"))
sqrt, cbrt, exp, exp2, log, log2, log10 = (
    _lift(SCALAR_FUNCTIONS[n]) for n in ("sqrt", "cbrt", "exp", "exp2", "log", "log2", "log10")
)
sin, cos, tan, asin, acos, atan, atan2 = (
    _lift(SCALAR_FUNCTIONS[n]) for n in ("sin", "cos", "tan", "asin", "acos", "atan", "atan2")
)
sinh, cosh, tanh, floor, ceil, trunc, hypot, pow_ = (
    _lift(SCALAR_FUNCTIONS[n]) for n in ("sinh", "cosh", "tanh", "floor", "ceil", "trunc", "hypot", "pow")
)
isnan, isinf, isfinite, abs_ = (_lift(SCALAR_FUNCTIONS[n]) for n in ("isnan", "isinf", "isfinite", "abs"))
select = _select
minimum, maximum = _lift(_min), _lift(_max)
pi = math.pi
