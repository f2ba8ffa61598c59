"""Particles on the host, the common form of every file format and every initial condition, and
checks of arrays from outside.

The error of a check names the field, the first bad body, what was seen and what is wanted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lanewise.support.attributes import frozen
from lanewise.support.checks import checked, host_array, plain_zero, shown
from lanewise.support.errors import InputError

DARK = 1
"""The component of bodies that say nothing else: Gadget's type 1, collisionless halo matter."""


@frozen
@dataclass(frozen=True, slots=True, eq=False)
class Particles:
    """n bodies in the units of their source. Build it with `Particles.of`, which checks; the
    constructor does not.

    Attributes:
        position: (n, 3) float64, length
        velocity: (n, 3) float64, length / time
        mass: (n,) float64, zero or more
        ids: (n,) int64, names that follow a body through files, each once
        component: (n,) uint8, Gadget's particle type: 0 gas, 1 halo, 2 disc, 3 bulge, 4 stars, 5
          other
        time: of the state, in units of time
        softening: length that the source recommends for all bodies, or None when it names none
    """

    position: NDArray[np.float64]
    velocity: NDArray[np.float64]
    mass: NDArray[np.float64]
    ids: NDArray[np.int64]
    component: NDArray[np.uint8]
    time: float = 0.0
    softening: float | None = None

    @classmethod
    @checked(InputError)
    def of(
        cls,
        position: ArrayLike,
        velocity: ArrayLike,
        mass: ArrayLike,
        *,
        ids: ArrayLike | None = None,
        component: ArrayLike | int = DARK,
        time: float = 0.0,
        softening: float | None = None,
    ) -> Particles:
        """Convert, fill in defaults (ids 0..n-1, component 1) and check.

        Arrays that fit already are not copied.

        One number for `mass` or `component` holds for all bodies. Raises InputError that names the
        field, the first bad body, the value seen and the value wanted.
        """
        places = _vectors("position", position)
        n = len(places)
        if n == 0:
            raise InputError("there are no bodies; at least one is wanted")
        return cls(
            position=places,
            velocity=_vectors("velocity", velocity, n),
            mass=_masses(mass, n),
            ids=np.arange(n, dtype=np.int64) if ids is None else _ids(ids, n),
            component=_components(component, n),
            time=_scalar("time", time),
            softening=None if softening is None else _scalar("softening", softening, minimum=0.0),
        )

    def __len__(self) -> int:
        return len(self.mass)

    @checked(InputError)
    def take(self, order: NDArray[np.int64]) -> Particles:
        """The bodies at these indices, (m,) int64, in this order; raises InputError for an index
        without a body.
        """
        if (
            order.ndim != 1
            or order.dtype.kind not in "iu"
            or (order.size and not -len(self) <= order.min() <= order.max() < len(self))
        ):
            raise InputError(f"take: {shown(order)}: wanted indices of {len(self)} bodies")
        return Particles(
            self.position[order],
            self.velocity[order],
            self.mass[order],
            self.ids[order],
            self.component[order],
            self.time,
            self.softening,
        )


@checked(InputError)
def concatenate(parts: Sequence[Particles]) -> Particles:
    """All bodies of `parts`, in order, numbered anew from 0 (ids of different sources may
    coincide).

    Time is that of the first part; softening is kept when all parts agree. Raises InputError for no
    parts.
    """
    if not parts:
        raise InputError("there are no bodies; at least one is wanted")
    softenings = {part.softening for part in parts}
    return Particles.of(
        np.concatenate([part.position for part in parts]),
        np.concatenate([part.velocity for part in parts]),
        np.concatenate([part.mass for part in parts]),
        component=np.concatenate([part.component for part in parts]),
        time=parts[0].time,
        softening=softenings.pop() if len(softenings) == 1 else None,
    )


def check_any(path: object, particles: Particles) -> None:
    """Refuse to write a file that no reader would take: what has no bodies is mostly a mistake, or
    an end that no reader saw.
    """
    if not len(particles):
        raise InputError(
            f"{path}: there are no bodies, and particle files have at least one; lw.save writes "
            "arrays without records"
        )


COMPONENTS = 6
AXES = "xyz"
Scalar = TypeVar("Scalar", np.float64, np.int64)


def _vectors(name: str, values: ArrayLike, bodies: int | None = None) -> NDArray[np.float64]:
    """`values` as (n, 3) float64, finite; n must be `bodies` when that is given."""
    array = _real(name, values)
    if array.ndim != 2 or array.shape[1] != 3 or bodies not in (None, len(array)):
        wanted = "n" if bodies is None else str(bodies)
        raise InputError(f"{name} has shape {array.shape}; wanted ({wanted}, 3)")
    bad = ~np.isfinite(array)
    if bad.any():
        body, axis = (int(index) for index in np.argwhere(bad)[0])
        raise InputError(
            f"{name} of body {body} is {array[body, axis]} in {AXES[axis]}; wanted a finite number"
        )
    return array


def _masses(values: ArrayLike, bodies: int) -> NDArray[np.float64]:
    """`values` as (bodies,) float64, finite, zero or more; one number holds for all."""
    array = _one_each("mass", _real("mass", values), bodies)
    _refuse_first("mass", array, ~np.isfinite(array), "a finite number")
    _refuse_first("mass", array, array < 0, "zero or more")
    return array


def _ids(values: ArrayLike, bodies: int) -> NDArray[np.int64]:
    """`values` as (bodies,) int64, each once: they name bodies."""
    array = _one_each("ids", _whole("ids", values), bodies)
    order = np.argsort(array, kind="stable")
    again = np.flatnonzero(array[order][1:] == array[order][:-1])
    if len(again):
        first, second = int(order[again[0]]), int(order[again[0] + 1])
        raise InputError(
            f"ids of bodies {first} and {second} are both {array[first]}; wanted each once"
        )
    return array


def _components(values: ArrayLike, bodies: int) -> NDArray[np.uint8]:
    """`values` as (bodies,) uint8 of 0..5; one number holds for all."""
    array = _one_each("component", _whole("component", values), bodies)
    _refuse_first("component", array, (array < 0) | (array >= COMPONENTS), f"0 to {COMPONENTS - 1}")
    return array.astype(np.uint8)


def _scalar(name: str, value: float, minimum: float = -math.inf) -> float:
    """`value` as a finite float of at least `minimum`."""
    number = float(value)
    if not math.isfinite(number):
        raise InputError(f"{name} is {number}; wanted a finite number")
    if number < minimum:
        raise InputError(f"{name} is {number}; wanted {minimum:g} or more")
    return plain_zero(number)


def as_float32(
    name: str, values: NDArray[Any], bodies: NDArray[np.int64] | None = None
) -> NDArray[np.float32]:
    """`values` rounded to float32; refuses what would become infinite.

    `bodies` are the numbers of the rows, if not 0 to n.
    """
    with np.errstate(over="ignore"):
        rounded = values.astype(np.float32)
    if not np.isfinite(rounded).all():
        row = int(np.argwhere(~np.isfinite(rounded))[0][0])
        body = row if bodies is None else int(bodies[row])
        raise InputError(
            f"{name} of body {body} does not fit into float32; wanted magnitudes below 3.4e38"
        )
    return rounded


def _real(name: str, values: ArrayLike) -> NDArray[np.float64]:
    array = _array(name, values)
    if array.dtype.kind not in "fiu":
        raise InputError(f"{name} has dtype {array.dtype}; wanted real numbers")
    return np.asarray(array, np.float64, order="C")


def _whole(name: str, values: ArrayLike) -> NDArray[np.int64]:
    array = _array(name, values)
    if array.dtype.kind not in "iu":
        raise InputError(f"{name} has dtype {array.dtype}; wanted integers")
    if array.dtype == np.uint64 and array.size and int(array.max()) > np.iinfo(np.int64).max:
        raise InputError(
            f"{name} has the value {int(array.max())}; wanted at most {np.iinfo(np.int64).max}"
        )
    return array.astype(np.int64, copy=False)


def _array(name: str, values: ArrayLike) -> NDArray[Any]:
    return host_array(name, values, InputError)


def _one_each(name: str, array: NDArray[Scalar], bodies: int) -> NDArray[Scalar]:
    """(bodies,), from one value a body or from one for all."""
    if array.ndim == 0:
        return np.full(bodies, array)
    if array.shape != (bodies,):
        raise InputError(f"{name} has shape {array.shape}; wanted ({bodies},)")
    return array


def _refuse_first(name: str, array: NDArray[Any], bad: NDArray[np.bool_], wanted: str) -> None:
    if bad.any():
        body = int(np.flatnonzero(bad)[0])
        raise InputError(f"{name} of body {body} is {array[body]}; wanted {wanted}")
