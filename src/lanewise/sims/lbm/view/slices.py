"""What of a flow is shown: a quantity on slices through the middle of the box, and the units that it is shown in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lanewise.errors import ArgumentError
from lanewise.sims.lbm.view.vorticity import checked_dimension, vorticity

Quantity: TypeAlias = Literal["speed", "vorticity"]
QUANTITIES: tuple[Quantity, ...] = ("speed", "vorticity")


@dataclass(frozen=True, slots=True)
class Slice:
    """A plane of the flow.

    axes    the names of the horizontal and of the vertical axis
    values  (vertical, horizontal): the speed, or the vorticity's component normal to the plane
    solid   as values
    place   where the plane lies: "z = 32", or "" in 2-D
    normal  the axis across the plane
    """

    axes: tuple[str, str]
    values: NDArray[np.floating[Any]]
    solid: NDArray[np.bool_] | None
    place: str
    normal: str


def middle_slices(
    velocity: NDArray[Any], solid: NDArray[np.bool_] | None, quantity: Quantity, periodic: str = ""
) -> tuple[Slice, ...]:
    """One slice of (ny, nx, 2), or those across z, x and y in the middle of (nz, ny, nx, 3).

    Raises:
        ArgumentError: a shape or a quantity that does not fit, no fluid site, or a value that is not finite.
    """
    across = ("z",) if velocity.ndim != 4 else ("z", "x", "y")
    return tuple(middle_slice(velocity, solid, quantity, axis, periodic) for axis in across)


def middle_slice(
    velocity: NDArray[Any],
    solid: NDArray[np.bool_] | None,
    quantity: Quantity,
    across: Literal["x", "y", "z"] = "z",
    periodic: str = "",
) -> Slice:
    """The slice across one axis; the plane itself of a 2-D flow. Raises ArgumentError as `middle_slices`."""
    checked_quantity(quantity)
    if checked_dimension(velocity, solid) == 2:
        return _checked(Slice(("x", "y"), _values(velocity, solid, quantity, 2, periodic), solid, "", "z"))
    return _checked(_across(velocity, solid, quantity, "xyz".index(across), periodic))


def checked_quantity(quantity: str) -> Quantity:
    """`quantity`, or an ArgumentError that says which there are."""
    for known in QUANTITIES:
        if quantity == known:
            return known
    raise ArgumentError(f"quantity is {quantity!r}; wanted one of {', '.join(QUANTITIES)}")


def value_range(slices: tuple[Slice, ...], quantity: Quantity) -> tuple[float, float]:
    """The ends of the colours. Speed: 0 to what 0.1 % of the sites exceed. Vorticity: symmetric, exceeded by 1 %.

    The thin layers at walls have many times the vorticity of a wake: they are what is cut off.
    """
    seen = np.abs(np.concatenate([s.values.ravel() if s.solid is None else s.values[~s.solid] for s in slices]))
    high = float(np.percentile(seen, 99.9 if quantity == "speed" else 99.0)) or float(seen.max())
    high = high or 1.0  # at rest
    return (0.0 if quantity == "speed" else -high), high


def _across(
    velocity: NDArray[Any], solid: NDArray[np.bool_] | None, quantity: Quantity, axis: int, periodic: str
) -> Slice:
    """The middle plane across `axis` (0 is x). Vorticity needs a layer on both sides of it, so no more is taken."""
    place = 2 - axis
    middle = velocity.shape[place] // 2
    start = max(middle - 1, 0)
    layers = (slice(None),) * place + (slice(start, middle + 2),)
    thin_solid = None if solid is None else solid[layers]
    values = _values(velocity[layers], thin_solid, quantity, axis, periodic.replace("xyz"[axis], ""))
    axes = {0: ("z", "y"), 1: ("x", "z"), 2: ("x", "y")}[axis]
    plane, blocked = np.take(values, middle - start, place), None if solid is None else np.take(solid, middle, place)
    if axis == 0:  # (nz, ny), drawn beside the plane across z, with which it shares y
        plane, blocked = plane.T, None if blocked is None else blocked.T
    return Slice(axes, plane, blocked, f"{'xyz'[axis]} = {middle}", "xyz"[axis])


def _values(
    velocity: NDArray[Any], solid: NDArray[np.bool_] | None, quantity: Quantity, axis: int, periodic: str
) -> NDArray[np.floating[Any]]:
    if quantity == "speed":
        return np.sqrt(np.square(velocity, dtype=np.result_type(velocity, np.float32)).sum(axis=-1))
    curl = vorticity(velocity, solid, periodic=periodic)
    return curl if velocity.ndim != 4 else curl[..., axis]


def _checked(shown: Slice) -> Slice:
    bad = ~np.isfinite(shown.values)
    if shown.solid is not None:
        bad &= ~shown.solid
        if shown.solid.all():
            raise ArgumentError(f"every site {f'at {shown.place} ' if shown.place else ''}is solid: nothing to draw")
    if bad.any():
        up, along = (int(i) for i in np.argwhere(bad)[0])
        where = f"{shown.axes[0]} = {along}, {shown.axes[1]} = {up}{', ' if shown.place else ''}{shown.place}"
        raise ArgumentError(f"the flow at {where} is {shown.values[up, along]}: only finite values can be drawn")
    return shown


@dataclass(frozen=True, slots=True)
class Reference:
    """The speed U and the length L, in lattice units and positive: values are shown as |u| / U and ω L / U."""

    speed: float
    length: float

    def __post_init__(self) -> None:
        for name, value in (("speed", self.speed), ("length", self.length)):
            if not 0 < value < float("inf"):
                raise ArgumentError(f"the reference {name} is {value}; wanted a positive number")


def unit_of(quantity: Quantity, reference: Reference | None) -> float:
    """What a value in lattice units is divided by before it is shown."""
    if reference is None:
        return 1.0
    return reference.speed if quantity == "speed" else reference.speed / reference.length


def label(quantity: Quantity, reference: Reference | None, *, across: bool = False) -> str:
    """Name, symbol and unit. `across`: it is the vorticity's component across the plane that is seen."""
    if quantity == "speed":
        return "speed  |u|  [lattice units]" if reference is None else "speed  |u| / U"
    return f"vorticity{' across the plane' if across else ''}  " + ("ω  [1 / step]" if reference is None else "ω L / U")
