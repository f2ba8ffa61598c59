"""A lattice: velocities of its populations, in links per step, and their weights; and what makes
these fit for flow.

Directions are numbered; a direction is an index of arrays whose first axis is the velocity, and a
constant in kernels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement
from math import prod
from typing import Any, overload

import numpy as np

from lanewise.language.vectors import LiteralVector
from lanewise.support.attributes import describe, frozen
from lanewise.support.checks import checked, shown
from lanewise.support.errors import ArgumentError, brief
from lanewise.support.kinds import Unfit, listed

Velocity = tuple[int, ...]


@frozen
@dataclass(frozen=True)
class Lattice:
    """Discrete velocities (direction 0 is at rest) and their weights.

    For flow the weights are isotropic up to fourth order (`isotropy=4`), with the square of the
    speed of sound c 1/3: sum w = 1, sum w e_a e_b = d_ab / 3 and sum w e_a e_b e_c e_d = (d_ab d_cd
    + d_ac d_bd + d_ad d_bc) / 9. Lattices for scalars such as a temperature (`isotropy=2`) only
    need sum w = 1 and sum w e_a e_b = c^2 d_ab, with any c^2. Every velocity has its opposite, with
    the same weight. Velocities have one to three components of -1, 0 or 1. Raises `ArgumentError`
    for any other lattice.
    """

    name: str
    velocities: tuple[Velocity, ...]
    weights: tuple[Fraction, ...]
    isotropy: int = 4

    def __post_init__(self) -> None:
        object.__setattr__(self, "velocities", nested("velocities", self.velocities))
        if not isinstance(self.name, str) or not isinstance(self.weights, (tuple, list)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError(
                f"Lattice(name={shown(self.name)}, weights={shown(self.weights)}): wanted a "
                "string, and a weight for each velocity"
            )
        object.__setattr__(self, "weights", tuple(self.weights))
        if type(self.isotropy) is not int or self.isotropy not in ORDERS:
            raise ArgumentError(
                f"lattice {self.name}: isotropy is 4 for flow or 2 for scalars, found "
                f"{shown(self.isotropy)}"
            )
        _check_lattice(self.name, self.velocities, self.weights, self.isotropy)
        use = "flow" if self.isotropy == 4 else "scalars such as a temperature"
        describe(
            self,
            f"The lattice {self.name}: {self.size} velocities along {self.dimension} "
            f"{'axis' if self.dimension == 1 else 'axes'} and "
            f"their weights, for {use}.",
        )

    @property
    def sound_squared(self) -> Fraction:
        """The square of the speed of sound, sum w e_x e_x, in links per step: 1/3 on every lattice
        for flow.
        """
        return _second_moment(self.velocities, self.weights)

    @property
    def dimension(self) -> int:
        return len(self.velocities[0])

    @property
    def size(self) -> int:
        """The number of velocities, Q."""
        return len(self.velocities)

    @property
    def directions(self) -> tuple[Direction, ...]:
        return tuple(Direction(self, i) for i in range(self.size))

    @property
    def opposite(self) -> tuple[int, ...]:
        """The index of the opposite of every direction."""
        return _opposites(self.velocities)

    @checked()
    def mirror(self, index: int, axes: frozenset[int]) -> int:
        """The direction whose velocity differs in the sign of its components along `axes` (0 is
        x).
        """
        for axis in axes:
            if not 0 <= axis < self.dimension:
                raise ArgumentError(
                    f"{self.name} has the axes 0 to {self.dimension - 1}, found {axis}"
                )
        if not 0 <= index < self.size:
            raise ArgumentError(
                f"{self.name} has the directions 0 to {self.size - 1}, found {index}"
            )
        velocity = self.velocities[index]
        return self.velocities.index(tuple(-v if a in axes else v for a, v in enumerate(velocity)))

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Direction]:
        return iter(self.directions)

    @overload
    def __getitem__(self, index: int) -> Direction: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Direction, ...]: ...
    def __getitem__(self, index: int | slice) -> Direction | tuple[Direction, ...]:
        """One direction, or those of a slice."""
        return self.directions[index]

    def __repr__(self) -> str:
        return f"<lanewise lattice {self.name}>"


@dataclass(frozen=True, slots=True)
class Direction:
    """One velocity of a lattice: `lw.D2Q9[5]`, or q of `for q in lw.D2Q9`.

    `velocity`, `weight`, `index` and `opposite` (the direction with the reverse velocity) are
    constants in kernels. A direction is also an index: `f[q]`, and `array[q]` of NumPy.
    """

    lattice: Lattice
    index: int

    def __index__(self) -> int:
        return self.index

    @property
    def velocity(self) -> LiteralVector | int:
        """In links per step, a vector of the lattice's dimension that takes the precision of its
        operand; on a line a number, as `x`.
        """
        if self.lattice.dimension == 1:
            return self.x
        return LiteralVector(*self.lattice.velocities[self.index])

    @property
    def x(self) -> int:
        return self.lattice.velocities[self.index][0]

    @property
    def y(self) -> int:
        """0 on a line."""
        return (*self.lattice.velocities[self.index], 0)[1]

    @property
    def z(self) -> int:
        """0 in two dimensions and on a line."""
        return (*self.lattice.velocities[self.index], 0, 0)[2]

    @property
    def weight(self) -> float:
        return float(self.lattice.weights[self.index])

    @property
    def opposite(self) -> Direction:
        return Direction(self.lattice, self.lattice.opposite[self.index])

    @brief
    def along(self, vector: Any) -> Any:
        """The scalar product of the velocity and a vector of the lattice's dimension, by sums and
        differences only.
        """
        check_dimension(self, vector)
        total: Any = None
        for v, component in zip(self.lattice.velocities[self.index], vector, strict=True):
            if v:
                total = (
                    v * component
                    if total is None
                    else total + component
                    if v > 0
                    else total - component
                )
        return _zero_like(vector[0]) if total is None else total

    def __repr__(self) -> str:
        return f"{self.lattice.name}[{self.index}]"


def nested(name: str, value: Any) -> tuple[tuple[Any, ...], ...]:
    """Tuples of a tuple."""
    try:
        return tuple(listed(v) for v in listed(value))
    except Unfit:
        raise ArgumentError(
            f"Lattice({name}={shown(value)}): wanted a tuple of tuples of integers"
        ) from None


def check_dimension(direction: Direction, vector: Sequence[Any]) -> None:
    """Refuse what is no vector of numbers, or one of another dimension than the direction's."""
    try:
        numbers = all(map(_is_number, vector)) and not isinstance(vector, (set, dict))
        len(vector)
    except Exception:  # also what its methods raise
        numbers = False
    if not numbers:
        raise ArgumentError(
            f"{direction!r} is multiplied with a vector of {direction.lattice.dimension} numbers, "
            f"found {shown(vector)}"
        )
    if len(vector) != direction.lattice.dimension:
        raise ArgumentError(
            f"{direction!r} has {direction.lattice.dimension} components, found a vector of "
            f"{len(vector)}"
        )


def _is_number(component: Any) -> bool:
    """Of Python, NumPy, or an array of them."""
    kind = getattr(getattr(component, "dtype", None), "kind", None)
    if kind is not None:
        return kind in "iuf"
    return isinstance(component, (int, float)) and not isinstance(component, bool)


def _zero_like(x: Any) -> Any:
    return np.zeros_like(x)[()] if isinstance(x, (np.generic, np.ndarray)) else 0


@cache
def _opposites(velocities: tuple[Velocity, ...]) -> tuple[int, ...]:
    return tuple(velocities.index(tuple(-v for v in e)) for e in velocities)


ORDERS = (2, 4)


def _check_lattice(
    name: str, velocities: tuple[tuple[int, ...], ...], weights: tuple[Fraction, ...], isotropy: int
) -> None:
    """Raise `ArgumentError` that says what is wrong, what was found and what is wanted."""
    if not velocities or len(velocities[0]) not in (1, 2, 3):
        components = f"{len(velocities[0])} components" if velocities else "no velocities"
        raise ArgumentError(
            f"lattice {name}: velocities have 1 to 3 components, found {components}"
        )
    _check_velocities(name, velocities)
    if len(weights) != len(velocities):
        raise ArgumentError(
            f"lattice {name}: found {len(weights)} weights for {len(velocities)} velocities"
        )
    for e, w in zip(velocities, weights, strict=True):
        if not isinstance(w, Fraction) or w <= 0:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError(
                f"lattice {name}: a weight is a positive Fraction, found {w!r} for {e}"
            )
        if (other := weights[velocities.index(tuple(-v for v in e))]) != w:
            raise ArgumentError(
                f"lattice {name}: opposite velocities weigh the same, found {w} and {other} for {e}"
            )
    _check_moments(name, velocities, weights, isotropy)


def _check_velocities(name: str, velocities: tuple[tuple[int, ...], ...]) -> None:
    for e in velocities:
        if len(e) != len(velocities[0]):
            raise ArgumentError(
                f"lattice {name}: velocities differ in length, found {velocities[0]} and {e}"
            )
        if any(type(v) is not int or abs(v) > 1 for v in e):
            raise ArgumentError(
                f"lattice {name}: the components of a velocity are -1, 0 or 1, found {shown(e)}"
            )
    if any(velocities[0]):
        raise ArgumentError(f"lattice {name}: direction 0 is at rest, found {velocities[0]}")
    for i, e in enumerate(velocities):
        if e in velocities[:i]:
            raise ArgumentError(f"lattice {name}: the velocity {e} is there twice")
        if tuple(-v for v in e) not in velocities:
            raise ArgumentError(f"lattice {name}: the velocity {e} has no opposite")


def _check_moments(
    name: str, velocities: tuple[tuple[int, ...], ...], weights: tuple[Fraction, ...], isotropy: int
) -> None:
    """The even moments of the Maxwell distribution, up to second or fourth order; the odd ones
    vanish by symmetry.
    """
    axes = range(len(velocities[0]))
    sound = Fraction(1, 3) if isotropy == 4 else _second_moment(velocities, weights)
    if not sound:
        raise ArgumentError(f"lattice {name}: nothing moves along x")
    for order in range(0, isotropy + 1, 2):
        for chosen in combinations_with_replacement(axes, order):
            moment = sum(
                (w * prod(e[a] for a in chosen) for e, w in zip(velocities, weights, strict=True)),
                Fraction(0),
            )
            exact = prod(_moment(chosen.count(a)) for a in axes) * sound ** (order // 2)
            if moment != exact:
                product = " ".join(("w", *(f"e_{'xyz'[a]}" for a in chosen)))
                hint = "" if isotropy == 2 else _for_scalars(velocities, weights)
                raise ArgumentError(
                    f"lattice {name}: the sum of {product} is {exact}, found {moment}{hint}"
                )


def _for_scalars(velocities: tuple[tuple[int, ...], ...], weights: tuple[Fraction, ...]) -> str:
    """What to do with weights that are good for scalars alone."""
    try:
        _check_moments("", velocities, weights, 2)
    except ArgumentError:
        return ""
    return (
        " (isotropy=2 makes a lattice for scalars, which needs no more than second order; a flow "
        "needs fourth)"
    )


@cache
def _second_moment(velocities: tuple[Velocity, ...], weights: tuple[Fraction, ...]) -> Fraction:
    """Sum w e_x e_x."""
    return sum((w * e[0] * e[0] for e, w in zip(velocities, weights, strict=True)), Fraction(0))


def _moment(power: int) -> int:
    """The moment of a normal distribution of variance 1: 1, 0, 1, 0, 3."""
    return (1, 0, 1, 0, 3)[power]
