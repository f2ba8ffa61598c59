"""How a flow turns: its vorticity, its stream function, and streamlines as contours of that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lanewise.errors import ArgumentError
from lanewise.plot.raster import resample

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray


def vorticity(
    velocity: NDArray[Any], solid: NDArray[np.bool_] | None = None, *, periodic: str = ""
) -> NDArray[np.floating[Any]]:
    """The curl of the velocity, by central differences.

    Beside a solid site, and at the edges of the box that are not periodic, the difference is one-sided (order 1). It is
    0 at solid sites, and where a site has no fluid neighbour along an axis.

    Args:
        velocity: (ny, nx, 2) or (nz, ny, nx, 3), components in x, y, z order.
        solid: (ny, nx) or (nz, ny, nx), True where there is no fluid.
        periodic: the axes along which the box is periodic, such as "x" or "xy".

    Returns:
        2-D: (ny, nx), d(u_y)/dx - d(u_x)/dy. 3-D: (nz, ny, nx, 3), the components in x, y, z order. float32 for a
        velocity of float32 or float16, else float64.

    Raises:
        ArgumentError: a shape that does not fit.
    """
    dimension = checked_dimension(velocity, solid)
    flow = velocity.astype(np.result_type(velocity, np.float32), copy=False)
    fluid = np.ones(flow.shape[:-1], np.bool_) if solid is None else ~solid
    if solid is not None:  # whatever stands there must not meet the fluid, not even on its way to being discarded
        flow = np.where(solid[..., None], np.zeros((), flow.dtype), flow)

    def d(component: int, along: int) -> NDArray[Any]:
        return _difference(flow[..., component], dimension - 1 - along, fluid, "xyz"[along] in periodic)

    if dimension == 2:
        return d(1, 0) - d(0, 1)
    return np.stack([d(2, 1) - d(1, 2), d(0, 2) - d(2, 0), d(1, 0) - d(0, 1)], axis=-1)


def stream_function(velocity: NDArray[Any]) -> NDArray[np.float64]:
    """The psi with u_x = d(psi)/dy, u_y = -d(psi)/dx; its contours are the streamlines of a steady flow in 2-D.

    Integrated along y from a wall half a spacing below the first row, where psi is 0: right for boxes whose lower wall
    lets nothing through. Solid sites must have zero velocity.

    Args:
        velocity: (ny, nx, 2).

    Returns:
        (ny, nx), in lattice units.
    """
    u = velocity[..., 0].astype(np.float64)
    return np.cumsum(u, axis=0) - u / 2


def checked_dimension(velocity: NDArray[Any], solid: NDArray[Any] | None) -> int:
    """2 or 3. Raises ArgumentError for shapes that are no flow."""
    dimension = velocity.ndim - 1
    if dimension not in (2, 3) or velocity.shape[-1] != dimension or velocity.size == 0:
        raise ArgumentError(f"velocity has shape {velocity.shape}; wanted (ny, nx, 2) or (nz, ny, nx, 3)")
    if solid is not None and (solid.shape != velocity.shape[:-1] or solid.dtype != np.bool_):
        wanted = f"{velocity.shape[:-1]} of bool"
        raise ArgumentError(f"solid has shape {solid.shape} of {solid.dtype}; wanted {wanted}")
    return dimension


def _difference(values: NDArray[Any], axis: int, fluid: NDArray[np.bool_], periodic: bool) -> NDArray[Any]:
    """The mean of the forward and the backward difference, of those that lie between two fluid sites."""
    values, fluid = np.moveaxis(values, axis, 0), np.moveaxis(fluid, axis, 0)
    steps = np.roll(values, -1, axis=0) - values  # from each site to the next
    valid = np.roll(fluid, -1, axis=0) & fluid
    if not periodic:
        valid[-1] = False
    steps = np.where(valid, steps, 0)
    count = valid.astype(np.int8) + np.roll(valid, 1, axis=0)
    found = (steps + np.roll(steps, 1, axis=0)) / np.maximum(count, 1).astype(values.dtype)
    return np.moveaxis(np.where(fluid, found, 0), 0, axis)


MAIN = np.array((0.01, 0.04, 0.1, 0.2, 0.3, 0.42, 0.54, 0.66, 0.78, 0.88, 0.95, 0.99))
"""Levels of the vortex that turns most, as parts of its stream function's extreme."""

COUNTER = np.array((0.02, 0.15, 0.4, 0.75))
"""Levels of the vortices that turn the other way, as parts of theirs: in a cavity they are hundreds of times weaker."""

WEAKEST = 2e-5
"""A counter vortex weaker than this part of the main one is not told from errors of the solution."""

FINEST = 600
"""Points a side for the contours: more take seconds and look the same."""


def levels(psi: NDArray[np.float64]) -> NDArray[np.float64]:
    """The values of a stream function (n,) to draw, growing, each once; none for a flow at rest. A wall has the value 0."""
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
        axes.contour(x, y, values, levels=drawn, colors="white", linewidths=0.8, alpha=0.55, linestyles="solid")
