"""What velocities and weights must fulfil to make a lattice for flow."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement
from math import prod

from lanewise.errors import ArgumentError

MOST = 27  # the velocities with components -1, 0 and 1 in three dimensions


def check_lattice(name: str, velocities: tuple[tuple[int, ...], ...], weights: tuple[Fraction, ...]) -> None:
    """Raise `ArgumentError` that says what is wrong, what was found and what is wanted."""
    if not velocities or len(velocities[0]) not in (2, 3):
        found = f"{len(velocities[0])} components" if velocities else "no velocities"
        raise ArgumentError(f"lattice {name}: velocities have 2 or 3 components, found {found}")
    _check_velocities(name, velocities)
    if len(weights) != len(velocities):
        raise ArgumentError(f"lattice {name}: found {len(weights)} weights for {len(velocities)} velocities")
    for e, w in zip(velocities, weights, strict=True):
        if not isinstance(w, Fraction) or w <= 0:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError(f"lattice {name}: a weight is a positive Fraction, found {w!r} for {e}")
        if (other := weights[velocities.index(tuple(-v for v in e))]) != w:
            raise ArgumentError(f"lattice {name}: opposite velocities weigh the same, found {w} and {other} for {e}")
    _check_moments(name, velocities, weights)


def _check_velocities(name: str, velocities: tuple[tuple[int, ...], ...]) -> None:
    if any(velocities[0]):
        raise ArgumentError(f"lattice {name}: direction 0 is at rest, found {velocities[0]}")
    for i, e in enumerate(velocities):
        if len(e) != len(velocities[0]):
            raise ArgumentError(f"lattice {name}: velocities differ in length, found {velocities[0]} and {e}")
        if any(type(v) is not int or abs(v) > 1 for v in e):
            raise ArgumentError(f"lattice {name}: the components of a velocity are -1, 0 or 1, found {e}")
        if e in velocities[:i]:
            raise ArgumentError(f"lattice {name}: the velocity {e} is there twice")
        if tuple(-v for v in e) not in velocities:
            raise ArgumentError(f"lattice {name}: the velocity {e} has no opposite")


def _check_moments(name: str, velocities: tuple[tuple[int, ...], ...], weights: tuple[Fraction, ...]) -> None:
    """The even moments of the Maxwell distribution with c_s^2 = 1/3; the odd ones vanish by symmetry."""
    axes = range(len(velocities[0]))
    for order in (0, 2, 4):
        for chosen in combinations_with_replacement(axes, order):
            found = sum((w * prod(e[a] for a in chosen) for e, w in zip(velocities, weights, strict=True)), Fraction(0))
            wanted = Fraction(prod(_moment(chosen.count(a)) for a in axes), 3 ** (order // 2))
            if found != wanted:
                product = " ".join(("w", *(f"e_{'xyz'[a]}" for a in chosen)))
                raise ArgumentError(f"lattice {name}: the sum of {product} is {wanted}, found {found}")


def _moment(power: int) -> int:
    """The moment of a normal distribution of variance 1: 1, 0, 1, 0, 3."""
    return (1, 0, 1, 0, 3)[power]
