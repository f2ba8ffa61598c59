"""What of a flow is shown: a quantity on slices through the middle of the box, and the units that
it is shown in.

How a flow turns is one such quantity: its vorticity, its stream function, and streamlines as
contours of that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lanewise.plot.raster import resample
from lanewise.support.attributes import near
from lanewise.support.errors import ArgumentError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray


Quantity: TypeAlias = Literal["speed", "vorticity"]
QUANTITIES: tuple[Quantity, ...] = ("speed", "vorticity")


@dataclass(frozen=True, slots=True)
class Slice:
    """A plane of the flow.

    Attributes:
        axes: the names of the horizontal and of the vertical axis
        values: (vertical, horizontal): the speed, or the vorticity's component normal to the plane
        solid: as values
        place: where the plane lies: "z = 32", or "" in 2-D
        normal: the axis across the plane
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
        ArgumentError: a shape or a quantity that does not fit, no fluid site, or a value that is
        not finite.
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
    """The slice across one axis; the plane itself of a 2-D flow.

    Raises ArgumentError as `middle_slices`.
    """
    checked_quantity(quantity)
    if _checked_dimension(velocity, solid) == 2:
        return _checked(
            Slice(("x", "y"), _values(velocity, solid, quantity, 2, periodic), solid, "", "z")
        )
    return _checked(_across(velocity, solid, quantity, "xyz".index(across), periodic))


def checked_quantity(quantity: str) -> Quantity:
    """`quantity`, or an ArgumentError that says which there are."""
    for name in QUANTITIES:
        if quantity == name:
            return name
    raise ArgumentError(
        f"quantity is {quantity!r}{near(quantity, QUANTITIES) or ';'} wanted one of "
        f"{', '.join(QUANTITIES)}"
    )


def value_range(slices: tuple[Slice, ...], quantity: Quantity) -> tuple[float, float]:
    """The ends of the colours. Speed: 0 to what 0.1 % of the sites exceed. Vorticity: symmetric,
    exceeded by 1 %.

    The thin layers at walls have many times the vorticity of a wake: they are what is cut off.
    """
    seen = np.abs(
        np.concatenate(
            [s.values.ravel() if s.solid is None else s.values[~s.solid] for s in slices]
        )
    )
    high = float(np.percentile(seen, 99.9 if quantity == "speed" else 99.0)) or float(seen.max())
    high = high or 1.0  # at rest
    return (0.0 if quantity == "speed" else -high), high


def _across(
    velocity: NDArray[Any],
    solid: NDArray[np.bool_] | None,
    quantity: Quantity,
    axis: int,
    periodic: str,
) -> Slice:
    """The middle plane across `axis` (0 is x).

    Vorticity needs a layer on both sides of it, so no more is taken.
    """
    place = 2 - axis
    middle = velocity.shape[place] // 2
    start = max(middle - 1, 0)
    layers = (slice(None),) * place + (slice(start, middle + 2),)
    thin_solid = None if solid is None else solid[layers]
    values = _values(
        velocity[layers], thin_solid, quantity, axis, periodic.replace("xyz"[axis], "")
    )
    axes = {0: ("z", "y"), 1: ("x", "z"), 2: ("x", "y")}[axis]
    plane = np.take(values, middle - start, place)
    blocked = None if solid is None else np.take(solid, middle, place)
    if axis == 0:  # (nz, ny), drawn next to the plane across z, with which it shares y
        plane, blocked = plane.T, None if blocked is None else blocked.T
    return Slice(axes, plane, blocked, f"{'xyz'[axis]} = {middle}", "xyz"[axis])


def _values(
    velocity: NDArray[Any],
    solid: NDArray[np.bool_] | None,
    quantity: Quantity,
    axis: int,
    periodic: str,
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
            raise ArgumentError(
                f"every site {f'at {shown.place} ' if shown.place else ''}is solid: nothing to draw"
            )
    if bad.any():
        up, along = (int(i) for i in np.argwhere(bad)[0])
        where = (
            f"{shown.axes[0]} = {along}, {shown.axes[1]} = "
            f"{up}{', ' if shown.place else ''}{shown.place}"
        )
        raise ArgumentError(
            f"the flow at {where} is {shown.values[up, along]}: only finite values can be drawn"
        )
    return shown


@dataclass(frozen=True, slots=True)
class ReferenceScale:
    """The speed U and the length L, in lattice units and positive: values are shown as |u| / U and
    ω L / U.
    """

    speed: float
    length: float

    def __post_init__(self) -> None:
        for name, value in (("speed", self.speed), ("length", self.length)):
            if not 0 < value < float("inf"):
                raise ArgumentError(f"the reference {name} is {value}; wanted a positive number")


def unit_of(quantity: Quantity, reference: ReferenceScale | None) -> float:
    """What a value in lattice units is divided by before it is shown."""
    if reference is None:
        return 1.0
    return reference.speed if quantity == "speed" else reference.speed / reference.length


def label(quantity: Quantity, reference: ReferenceScale | None, *, across: bool = False) -> str:
    """Name, symbol and unit. `across`: it is the vorticity's component across the plane that is
    seen.
    """
    if quantity == "speed":
        return "speed  |u|  [lattice units]" if reference is None else "speed  |u| / U"
    return f"vorticity{' across the plane' if across else ''}  " + (
        "ω  [1 / step]" if reference is None else "ω L / U"
    )


def vorticity(
    velocity: NDArray[Any], solid: NDArray[np.bool_] | None = None, *, periodic: str = ""
) -> NDArray[np.floating[Any]]:
    """The curl of the velocity, by central differences.

    Next to a solid site, and at the edges of the box that are not periodic, the difference is
    one-sided (order 1). It is 0 at solid sites, and where a site has no fluid neighbour along an
    axis.

    Args:
        velocity: (ny, nx, 2) or (nz, ny, nx, 3), components in x, y, z order.
        solid: (ny, nx) or (nz, ny, nx), True where there is no fluid.
        periodic: the axes along which the box is periodic, such as "x" or "xy".

    Returns:
        2-D: (ny, nx), d(u_y)/dx - d(u_x)/dy. 3-D: (nz, ny, nx, 3), the components in x, y, z order.
        float32 for a velocity of float32 or float16, else float64.

    Raises:
        ArgumentError: a shape that does not fit.
    """
    dimension = _checked_dimension(velocity, solid)
    flow = velocity.astype(np.result_type(velocity, np.float32), copy=False)
    fluid = np.ones(flow.shape[:-1], np.bool_) if solid is None else ~solid
    # whatever stands there must not meet the fluid, not even on its way to being discarded
    if solid is not None:
        flow = np.where(solid[..., None], np.zeros((), flow.dtype), flow)

    def d(component: int, along: int) -> NDArray[Any]:
        return _difference(
            flow[..., component], dimension - 1 - along, fluid, "xyz"[along] in periodic
        )

    if dimension == 2:
        return d(1, 0) - d(0, 1)
    return np.stack([d(2, 1) - d(1, 2), d(0, 2) - d(2, 0), d(1, 0) - d(0, 1)], axis=-1)


def stream_function(velocity: NDArray[Any]) -> NDArray[np.float64]:
    """The psi with u_x = d(psi)/dy, u_y = -d(psi)/dx; its contours are the streamlines of a steady
    flow in 2-D.

    Integrated along y from a wall half a spacing below the first row, where psi is 0: right for
    boxes whose lower wall lets nothing through. Solid sites must have zero velocity.

    Args:
        velocity: (ny, nx, 2).

    Returns:
        (ny, nx), in lattice units.
    """
    u = velocity[..., 0].astype(np.float64)
    return np.cumsum(u, axis=0) - u / 2


def _checked_dimension(velocity: NDArray[Any], solid: NDArray[Any] | None) -> int:
    """2 or 3. Raises ArgumentError for shapes that are no flow."""
    dimension = velocity.ndim - 1
    if dimension not in (2, 3) or velocity.shape[-1] != dimension or velocity.size == 0:
        raise ArgumentError(
            f"velocity has shape {velocity.shape}; wanted (ny, nx, 2) or (nz, ny, nx, 3)"
        )
    if solid is not None and (solid.shape != velocity.shape[:-1] or solid.dtype != np.bool_):
        wanted = f"{velocity.shape[:-1]} of bool"
        raise ArgumentError(f"solid has shape {solid.shape} of {solid.dtype}; wanted {wanted}")
    return dimension


def _difference(
    values: NDArray[Any], axis: int, fluid: NDArray[np.bool_], periodic: bool
) -> NDArray[Any]:
    """The mean of the forward and the backward difference, of those that lie between two fluid
    sites.
    """
    values, fluid = np.moveaxis(values, axis, 0), np.moveaxis(fluid, axis, 0)
    steps = np.roll(values, -1, axis=0) - values  # from each site to the next
    valid = np.roll(fluid, -1, axis=0) & fluid
    if not periodic:
        valid[-1] = False
    steps = np.where(valid, steps, 0)
    count = valid.astype(np.int8) + np.roll(valid, 1, axis=0)
    mean = (steps + np.roll(steps, 1, axis=0)) / np.maximum(count, 1).astype(values.dtype)
    return np.moveaxis(np.where(fluid, mean, 0), 0, axis)


MAIN = np.array((0.01, 0.04, 0.1, 0.2, 0.3, 0.42, 0.54, 0.66, 0.78, 0.88, 0.95, 0.99))
"""Levels of the vortex that turns most, as parts of its stream function's extreme."""

COUNTER = np.array((0.02, 0.15, 0.4, 0.75))
"""Levels of the vortices that turn the other way, as parts of theirs.

In a cavity they are hundreds of times weaker.
"""

WEAKEST = 2e-5
"""A counter vortex weaker than this part of the main one is not told from errors of the
solution.
"""

FINEST = 600
"""Points a side for the contours: more take seconds and look the same."""


def levels(psi: NDArray[np.float64]) -> NDArray[np.float64]:
    """The values of a stream function (n,) to draw, growing, each once; none for a flow at rest.

    A wall has the value 0.
    """
    low, high = float(psi.min(initial=0.0)), float(psi.max(initial=0.0))
    main, counter = (low, high) if -low > high else (high, low)
    chosen = [main * MAIN] if main else []
    if main * counter < 0 and abs(counter) > WEAKEST * abs(main):
        chosen.append(counter * COUNTER)
    return np.unique(np.concatenate(chosen)) if chosen else np.empty(0)


def draw_streamlines(axes: Axes, velocity: NDArray[Any], solid: NDArray[np.bool_] | None) -> None:
    """Adds them to `axes` in units of sites. velocity: (ny, nx, 2); solid: (ny, nx)."""
    ny, nx = velocity.shape[:2]
    flow = velocity if solid is None else np.where(solid[..., None], 0, velocity)
    psi = stream_function(flow)
    coarser = max(1.0, max(ny, nx) / FINEST)
    size = max(2, round(ny / coarser)), max(2, round(nx / coarser))
    shown, fluid = resample(psi, solid, size)
    values = np.ma.masked_array(shown, np.zeros(size, np.bool_) if fluid is None else fluid < 0.5)
    x, y = ((np.arange(n) + 0.5) * (full / n) for n, full in zip(size[::-1], (nx, ny), strict=True))
    drawn = levels(np.asarray(values.compressed(), np.float64))
    if len(drawn):
        axes.contour(
            x,
            y,
            values,
            levels=drawn,
            colors="white",
            linewidths=0.8,
            alpha=0.55,
            linestyles="solid",
        )
