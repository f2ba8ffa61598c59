"""Streamlines of a flow in 2-D, as contours of its stream function: no seeds to place, and they close."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lanewise.plot.raster import resample
from lanewise.sims.lbm.view.vorticity import stream_function

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

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
