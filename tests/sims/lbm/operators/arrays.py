"""Sitewise functions on arrays of sites: the same text in ordinary Python, about five times faster than with lanewise's
vectors.

Those check and convert every component; here a vector is a list of arrays (`test_plain_python` says that both are
equal). Also what a flow needs besides a collision, in a few lines of NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import CellType, FunctionType, SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lanewise as lw
from lanewise.frontend.helpers import HelperFunction
from lanewise.frontend.source import read_source
from lanewise.language.lattices.base import Direction, Lattice
from lanewise.language.vectors import ScalarName, VectorValue

Array = NDArray[np.float64]


class Vectors:
    """Vectors of arrays, one for each component."""

    __array_ufunc__ = None

    def __init__(self, parts: Any) -> None:
        self.parts = [np.asarray(p) for p in parts]

    def __iter__(self) -> Any:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, index: int) -> Any:
        return self.parts[index]

    def _with(self, other: Any, operation: Callable[[Any, Any], Any]) -> Vectors:
        others = list(other) if isinstance(other, Vectors) else [other] * len(self)
        return Vectors([operation(a, b) for a, b in zip(self.parts, others, strict=True)])

    def __add__(self, other: Any) -> Vectors:
        return self._with(other, lambda a, b: a + b)

    def __sub__(self, other: Any) -> Vectors:
        return self._with(other, lambda a, b: a - b)

    def __mul__(self, other: Any) -> Vectors:
        return self._with(other, lambda a, b: a * b)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Vectors:
        return self._with(other, lambda a, b: a / b)


@dataclass(frozen=True, slots=True)
class ArrayDirection:
    """A direction whose products with arrays are vectors of arrays."""

    index: int
    x: int
    y: int
    z: int
    weight: float
    velocity: Vectors
    _opposite: int

    def __index__(self) -> int:
        return self.index

    @property
    def opposite(self) -> int:
        return self._opposite

    def along(self, vector: Any) -> Any:
        return sum((int(v) * component for v, component in zip(self.velocity, vector, strict=True) if v), 0.0)


def _direction(q: Direction) -> ArrayDirection:
    velocity = Vectors(q.lattice.velocities[q.index])
    return ArrayDirection(q.index, q.x, q.y, q.z, q.weight, velocity, q.opposite.index)


def _dot(a: Any, b: Any) -> Any:
    return sum(x * y for x, y in zip(a, b, strict=True))


LANGUAGE = SimpleNamespace(dot=_dot, sqrt=np.sqrt, min=np.minimum, max=np.maximum)


def _vector(length: int, *parts: Any) -> Vectors:
    return Vectors(parts if len(parts) == length else parts * length)


def on_arrays(function: Any) -> Any:
    """The function on populations of shape (Q, ...) and `Vectors`."""
    if isinstance(function, HelperFunction):
        return on_arrays(function.function)
    if isinstance(function, Direction):
        return _direction(function)
    if isinstance(function, Lattice):
        return on_arrays(function.directions)
    if isinstance(function, tuple):
        return tuple(on_arrays(x) for x in function)  # type: ignore[reportUnknownVariableType]
    if isinstance(function, ScalarName):
        return function.type.dtype.type
    if isinstance(function, type) and issubclass(function, VectorValue):
        return partial(_vector, function.type.length)
    if function is lw:
        return LANGUAGE
    if not isinstance(function, FunctionType):
        return function
    names = read_source(function).names()
    used = {n for n in function.__code__.co_names + function.__code__.co_freevars if n in names}
    code = function.__code__
    values = {n: on_arrays(names[n]) for n in used if n != function.__name__}
    if code.co_freevars:  # a helper in its maker: closures become cells of the converted values
        return FunctionType(code, values, closure=tuple(CellType(values[n]) for n in code.co_freevars))
    return FunctionType(code, values)


def stream(f: Any, lattice: Lattice) -> Array:
    """Every population moves one link in a periodic box; f has the shape (Q, ny, nx) or (Q, nz, ny, nx)."""
    axes = tuple(range(f.ndim - 2, -1, -1))[: lattice.dimension]
    return np.stack([np.roll(f[q], list(lattice.velocities[q.index]), axes) for q in lattice])


def equilibrium(lattice: Lattice, deviation: Any, velocity: Any) -> Array:
    """The deviations g_eq = f_eq - w of a density 1 + deviation and a velocity, one array a component."""
    deviation, u = np.asarray(deviation, np.float64), np.asarray(velocity, np.float64)
    w = np.array([float(x) for x in lattice.weights])
    c = np.array(lattice.velocities, np.float64)
    cu = np.tensordot(c, u, (1, 0))
    squares = 3 * cu + 4.5 * cu**2 - 1.5 * (u**2).sum(0)
    shape = (lattice.size,) + (1,) * (u.ndim - 1)
    return w.reshape(shape) * (deviation + (1 + deviation) * squares)


def moments(lattice: Lattice, f: Any) -> tuple[Array, Array]:
    """sum g and sum c g, by NumPy."""
    return f.sum(0), np.einsum("qa,q...->a...", np.array(lattice.velocities, np.float64), f)
